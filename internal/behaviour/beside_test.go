package behaviour

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
)

// shelf keeps what is too large for the log.
type shelf struct {
	data    map[string]json.RawMessage
	fetched []string // references that workers asked for
}

var _ pipeline.Results = (*shelf)(nil)

// PutResult keeps data under the next number of its name.
func (s *shelf) PutResult(_ context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	at := event.ResultRef{Execution: execution, Name: name, ID: 1}
	for s.data[at.String()] != nil {
		at.ID++
	}
	s.data[at.String()] = data
	sum := sha256.Sum256(data)
	return event.StoredResult{
		Ref: at.String(), Store: "db", Scope: "execution", Bytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	}, nil
}

// Result finds data by its reference.
func (s *shelf) Result(_ context.Context, ref string) (json.RawMessage, error) {
	s.fetched = append(s.fetched, ref)
	data, ok := s.data[ref]
	if !ok {
		return nil, event.Errorf(event.NotFound, "%s is not kept", ref)
	}
	return data, nil
}

// PutBlob keeps a stream as PutResult keeps data.
func (s *shelf) PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return event.StoredResult{}, err
	}
	return s.PutResult(ctx, execution, o.Name, data)
}

// OpenBlob reads from what is kept.
func (s *shelf) OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	data, err := s.Result(ctx, ref)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	part := data[offset:]
	if length > 0 {
		part = part[:min(int64(len(part)), length)]
	}
	return io.NopCloser(bytes.NewReader(part)), event.StoredResult{Ref: ref, Bytes: int64(len(data))}, nil
}

// shown lists what is kept and what was fetched.
func (s *shelf) shown() string {
	var b strings.Builder
	refs := make([]string, 0, len(s.data))
	for ref := range s.data {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	for _, ref := range refs {
		fmt.Fprintf(&b, "kept %s %d bytes\n", ref, len(s.data[ref]))
	}
	for _, ref := range s.fetched {
		fmt.Fprintf(&b, "fetched %s\n", ref)
	}
	return b.String()
}

// answerable are the children whose end the script tells.
func (w *world) answerable() []engine.Child {
	return slices.DeleteFunc(w.state.Children(), func(c engine.Child) bool { return w.worker.script["child "+w.parent(c)] == nil })
}

// parent is the step that asked for a child.
func (w *world) parent(c engine.Child) string {
	for _, cmd := range w.state.OpenCommands() {
		if cmd.ID == c.Command {
			return w.label(cmd)
		}
	}
	return ""
}

// endChild brings the news that a child has ended as the script says.
func (w *world) endChild(c engine.Child) {
	w.t.Helper()
	a := w.worker.script["child "+w.parent(c)][0]
	var failure json.RawMessage
	if a.err != nil {
		failure = json.RawMessage(compact(a.err))
	}
	e, ok := engine.ChildNews(w.state, c, json.RawMessage(a.data), failure, nil, w.env())
	if !ok {
		w.fatalf("nobody waits for the child of %s", c.Command)
	}
	w.input(e)
}

// children lists what parked commands asked for.
func (w *world) children() string {
	var b strings.Builder
	for _, c := range w.state.Children() {
		fmt.Fprintf(&b, "%s %s\n", w.parent(c), compact(c.Request))
	}
	return b.String()
}
