package control

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// foundRef is a place of the log that speaks of something kept elsewhere.
type foundRef struct {
	seq   int64
	ref   string   // a value
	child event.ID // or an execution
}

// holder is what can refer to values in the payload of an event: the members
// the fold reads, wherever producers put them. What users wrote is not looked
// into.
type holder struct {
	Reference *struct {
		Ref     string `json:"ref"`
		Logical string `json:"logical_uri"`
	} `json:"reference"`
	ItemsRef      string            `json:"items_ref"`
	Refs          map[string]string `json:"refs"`
	Result        *holder           `json:"result"`
	Context       *holder           `json:"context"`
	RenderContext *struct {
		Ref string `json:"__context_ref__"`
	} `json:"render_context"`
	Child  string `json:"child_execution_id"`
	Status string `json:"status"`
}

var refMarks = [][]byte{[]byte(`"reference"`), []byte(`_ref`), []byte(`"refs"`), []byte(`"ref"`), []byte(`"child_execution_id"`)}

// referencesOf finds what an event refers to.
func referencesOf(e *event.Event) []foundRef {
	var found []foundRef
	for _, raw := range []json.RawMessage{e.Context, e.Result} {
		marked := false
		for _, m := range refMarks {
			marked = marked || bytes.Contains(raw, m)
		}
		if !marked {
			continue
		}
		if e.Type.Canonical() == event.StepReused {
			found = append(found, reusedReference(e, raw)...)
			continue
		}
		var h holder
		_ = json.Unmarshal(raw, &h) // members of another shape are somebody's data
		found = append(found, h.all(e, inEnvelope)...)
	}
	return found
}

// reusedReference finds where the whole of a reused result is. The result
// itself, which stands beside that, is data.
func reusedReference(e *event.Event, raw json.RawMessage) []foundRef {
	type reference struct {
		Ref string `json:"ref"`
	}
	var d struct {
		Context struct {
			About struct {
				Ref  reference `json:"ref"`
				Loop struct {
					Refs map[string]reference `json:"refs"`
				} `json:"loop"`
			} `json:"about"`
		} `json:"context"`
	}
	if json.Unmarshal(raw, &d) != nil {
		return nil
	}
	var found []foundRef
	about := &d.Context.About
	for _, r := range append(slices.Collect(maps.Values(about.Loop.Refs)), about.Ref) {
		if r.Ref != "" {
			found = append(found, foundRef{seq: e.Seq, ref: r.Ref})
		}
	}
	slices.SortFunc(found, func(a, b foundRef) int { return cmp.Compare(a.ref, b.ref) })
	return found
}

// The layers of an event's payload, from the outside. Below the last one is
// what a tool returned.
const (
	inEnvelope = iota
	inPayload
	inResult
	inData
)

func (h *holder) all(e *event.Event, layer int) []foundRef {
	if h == nil {
		return nil
	}
	var found []foundRef
	add := func(ref string) {
		if ref != "" {
			found = append(found, foundRef{seq: e.Seq, ref: ref})
		}
	}
	if h.Reference != nil {
		add(h.Reference.Ref)
		add(h.Reference.Logical)
	}
	if e.Type.Canonical() == event.StepEnter && e.WorkerID == "" {
		add(h.ItemsRef)
	}
	if e.Type.Canonical() == event.CtxUpdated {
		for _, ref := range h.Refs {
			add(ref)
		}
	}
	if h.RenderContext != nil && e.Type.Canonical() == event.CommandIssued {
		add(h.RenderContext.Ref)
	}
	if h.Child != "" && e.Type.Canonical() == event.CallDone && e.WorkerID == "" && e.Status == event.StatusCompleted {
		if id, err := event.ParseID(h.Child); err == nil {
			found = append(found, foundRef{seq: e.Seq, child: id})
		}
	}
	switch layer {
	case inEnvelope:
		found = append(append(found, h.Context.all(e, inPayload)...), h.Result.all(e, inResult)...)
	case inPayload:
		found = append(found, h.Result.all(e, inResult)...)
	case inResult:
		found = append(found, h.Context.all(e, inData)...)
	}
	return found
}

// references follows what the log of an execution refers to. Every value is
// read once and held against its checksum.
func (v *verifier) references(ctx context.Context, a *audit) ([]Difference, error) {
	var found []Difference
	seen := make(map[string]bool)
	for _, r := range a.refs {
		want, got, err := "", "", error(nil)
		switch {
		case r.child != 0:
			v.report.Children++
			want, got, err = v.child(ctx, r.child)
		default:
			v.report.References++
			if seen[r.ref] {
				continue
			}
			seen[r.ref] = true
			want, got, err = v.value(ctx, r.ref)
		}
		if err != nil {
			return nil, err
		}
		if got != "" {
			what, where := DifferentReference, r.ref
			if r.child != 0 {
				what, where = DifferentChild, "execution "+r.child.String()
			}
			found = append(found, Difference{
				ExecutionID: event.StringID(a.id), Seq: r.seq, What: what, Where: where, Want: want, Got: got,
			})
		}
	}
	return found, nil
}

// value looks a value up. Those that are not ours to keep are only counted.
func (v *verifier) value(ctx context.Context, ref string) (want, got string, err error) {
	at, err := event.ParseResultRef(strings.SplitN(ref, "#", 2)[0])
	if err != nil {
		v.report.External++
		return "", "", nil
	}
	r, err := v.store.Result(ctx, at.Execution, at.String())
	switch {
	case errors.Is(err, store.ErrCollected):
		v.report.Collected++
		return "", "", nil
	case errors.Is(err, store.ErrNotFound):
		if gone, err := v.removed(ctx, at.Execution); err != nil || gone {
			v.report.Collected++
			return "", "", err
		}
		return "a stored value", "none", nil
	case err != nil:
		return "", "", storeError("read result", err)
	case r.Key != "":
		return v.elsewhere(ctx, &r)
	}
	sum := sha256.Sum256(r.Data)
	if text := hex.EncodeToString(sum[:]); text != r.SHA256 {
		return "the checksum " + r.SHA256, text, nil
	}
	v.report.Results++
	return "", "", nil
}

// elsewhere reads a value that is not in its row; doing so compares the
// checksum. Values in tiers the caller has no access to are only counted.
func (v *verifier) elsewhere(ctx context.Context, r *store.Result) (want, got string, err error) {
	if v.o.Results == nil || !v.o.Results.Has(r.Tier) {
		v.report.External++
		return "", "", nil
	}
	body, err := v.o.Results.OpenRow(ctx, r, 0, 0)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		_ = body.Close()
	}
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err != nil:
		return "a value in " + r.Tier + " with the checksum " + r.SHA256, err.Error(), nil
	}
	v.report.Results++
	return "", "", nil
}

// child looks for an execution that brought its result to another one.
func (v *verifier) child(ctx context.Context, id event.ID) (want, got string, err error) {
	there, err := logged(ctx, v.store, id)
	if err != nil || there {
		return "", "", err
	}
	if gone, err := v.removed(ctx, id); err != nil || gone {
		return "", "", err
	}
	return "a log of the execution that was waited for", "none", nil
}

// removed tells whether an execution was removed when its time was over.
func (v *verifier) removed(ctx context.Context, id event.ID) (bool, error) {
	_, err := v.store.RemovedAt(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, storeError("look for a removed execution", err)
	}
	return true, nil
}
