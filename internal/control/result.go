package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	maxResult     = 64 << 20 // bytes of one value
	maxResultName = 512      // bytes; references are keys of an index
)

// PutResult puts a value aside that is too large for the log, and returns the
// reference that stands for it. Putting a value again makes another reference.
// NotFound when there is no such execution, Invalid when the name is empty or
// long, or the data too large or no JSON.
func (p *Plane) PutResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	began := p.o.Clock()
	r, err := p.putResult(ctx, execution, name, data)
	p.timed(p.metrics.ResultPut, p.metrics.ResultPutTime, began, err)
	return r, err
}

func (p *Plane) putResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	switch {
	case name == "":
		return event.StoredResult{}, event.Errorf(event.Invalid, "name: a result needs a name, usually its step")
	case len(name) > maxResultName:
		return event.StoredResult{}, event.Errorf(event.Invalid, "name: %d bytes are too long for the name of a result, at most %d are accepted", len(name), maxResultName)
	case len(data) > maxResult:
		return event.StoredResult{}, &event.Error{
			Code:    event.Invalid,
			Message: fmt.Sprintf("data: the result has %d bytes, at most %d are accepted", len(data), maxResult),
			Remedy:  "keep it in a database or an object store and return where it is",
		}
	case !json.Valid(data):
		return event.StoredResult{}, event.Errorf(event.Invalid, "data: the result is not JSON")
	}
	if _, err := p.Execution(ctx, execution); err != nil {
		return event.StoredResult{}, err
	}
	ref := event.ResultRef{Execution: execution, Name: name, ID: p.o.IDs()}.String()
	r := newResult(execution, ref, name, data, p.now())
	if err := p.store.PutResult(ctx, r); err != nil {
		return event.StoredResult{}, storeError("store result", err)
	}
	return whereabouts(&r), nil
}

// newResult is a value as stores keep it.
func newResult(execution event.ID, ref, name string, data json.RawMessage, now time.Time) store.Result {
	sum := sha256.Sum256(data)
	return store.Result{ExecutionID: execution, Ref: ref, Name: name, Data: data, SHA256: hex.EncodeToString(sum[:]), CreatedAt: now}
}

// whereabouts says where a value went.
func whereabouts(r *store.Result) event.StoredResult {
	return event.StoredResult{Ref: r.Ref, Store: "db", Scope: "execution", Bytes: int64(len(r.Data)), SHA256: r.SHA256}
}

// Result finds the value a reference stands for, as it was put or as the
// reference's fragment asks for it. Invalid when ref is no reference, NotFound
// when nothing is stored under it.
func (p *Plane) Result(ctx context.Context, ref string) (json.RawMessage, error) {
	began := p.o.Clock()
	data, err := p.result(ctx, ref)
	p.timed(p.metrics.ResultFound, p.metrics.ResultFoundTime, began, err)
	return data, err
}

func (p *Plane) result(ctx context.Context, ref string) (json.RawMessage, error) {
	ref, view, _ := strings.Cut(ref, "#")
	at, err := event.ParseResultRef(ref)
	if err != nil {
		return nil, err
	}
	r, err := p.store.Result(ctx, at.Execution, at.String())
	if errors.Is(err, store.ErrNotFound) {
		return nil, event.Errorf(event.NotFound, "result not found")
	}
	if err != nil {
		return nil, storeError("read result", err)
	}
	if view == scope.ViewTasks {
		return scope.Tasks(r.Data), nil
	}
	return r.Data, nil
}
