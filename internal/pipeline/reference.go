package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/tool"
)

// Results keeps data that is too large to travel in an event. Errors are
// coded; an uncoded one counts as a network failure.
type Results interface {
	PutResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error)
	// Result is the data behind a reference that PutResult gave.
	Result(ctx context.Context, ref string) (json.RawMessage, error)
	// PutBlob stores what r gives and OpenBlob reads it, from offset on, at most
	// length bytes (0 = to the end); neither holds it in memory.
	PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error)
	OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error)
}

const (
	// contextRefKey is the reserved name in a render context that was kept
	// elsewhere as a whole; its value is the reference.
	contextRefKey = "__context_ref__"
	// maxWhole is how many bytes of a stored value templates may ask for; what is
	// larger is for tools that read it piece by piece.
	maxWhole = 64 << 20
	// wholesKept bounds the fetched results kept for the next command.
	wholesKept = 8
	// tries and firstPause bound how long the store of results is waited for.
	tries      = 5
	firstPause = 200 * time.Millisecond
)

// persist calls f until it succeeds, fails for good, or has been tried often
// enough.
func (r *Runner) persist(ctx context.Context, f func() error) error {
	for n, pause := 1, firstPause; ; n, pause = n+1, 2*pause {
		err := f()
		if err == nil || n == tries || !transient(err) {
			return err
		}
		if r.opt.Sleep(ctx, pause) != nil {
			return err
		}
	}
}

func transient(err error) bool {
	switch event.CodeOf(err) {
	case event.Unavailable, event.Internal:
		return true
	}
	return false
}

// whole is the data behind a reference. References never change what they
// stand for, so that what was fetched once can be used again.
func (r *Runner) whole(ctx context.Context, ref string) (json.RawMessage, *tool.Error) {
	if raw, ok := r.wholes.get([]byte(ref)); ok {
		return raw, nil
	}
	if r.opt.Results == nil {
		return nil, unavailable(ref, "this worker has no access to stored results")
	}
	var raw json.RawMessage
	err := r.persist(ctx, func() (err error) {
		raw, err = r.opt.Results.Result(ctx, ref)
		return err
	})
	if err != nil {
		return nil, unavailable(ref, err.Error())
	}
	r.wholes.put([]byte(ref), raw)
	return raw, nil
}

func unavailable(ref, why string) *tool.Error {
	return &tool.Error{
		Kind: tool.KindNotFound, Code: "REFERENCE_NOT_AVAILABLE", Retryable: true,
		Message: "the result " + ref + " is not available: " + why,
	}
}

// fetchUnder is how the values of the command find what they are summaries of.
// Templates cannot report that a value is not there, so it is noted here for
// whoever evaluated them.
func (n *names) fetchUnder(ctx context.Context) scope.Fetch {
	return func(ref *scope.Reference) json.RawMessage {
		if n.missing != nil {
			return nil
		}
		if ref.Bytes > maxWhole {
			n.missing = &tool.Error{
				Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
				Message: fmt.Sprintf("a template reads into a result of %d bytes; select what it needs with output_select, or hand the whole to a tool by its reference, as in files: {data: \"{{ step._ref }}\"}", ref.Bytes),
			}
			return nil
		}
		raw, err := n.runner.whole(ctx, ref.Ref)
		n.missing = err
		return raw
	}
}

// unavailable tells whether what was just evaluated lacked a value, once.
func (n *names) unavailable() *tool.Error {
	err := n.missing
	n.missing = nil
	return err
}

// because is the reason of a failed evaluation: a value that was not there if
// there is one, since all else follows from it.
func (n *names) because(err *tool.Error) *tool.Error {
	if missing := n.unavailable(); missing != nil {
		return missing
	}
	return err
}
