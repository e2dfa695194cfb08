package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/store"
)

// maxResult is how many bytes of a value are held at once.
const maxResult = 64 << 20

// ResultOptions say where large values are kept, and how long.
type ResultOptions struct {
	Tiers    []result.Tier // beside the store itself
	Large    string        // the tier of large values whose author chose none; "" = the store
	MaxBytes int64         // 4 GiB: of one value
	Grace    time.Duration // 24 h: how long values outlive their execution
}

func (p *Plane) openResults() (*result.Service, error) {
	return result.New(result.Options{
		Store: p.store, IDs: p.o.IDs, Now: p.now, Tiers: p.o.Results.Tiers, Large: p.o.Results.Large, MaxBytes: p.o.Results.MaxBytes,
	})
}

// PutResult puts a value aside that is too large for the log, and returns the
// reference that stands for it. Putting a value again makes another reference.
// NotFound when there is no such execution, Invalid when the name is empty or
// long, or the data too large or no JSON.
func (p *Plane) PutResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	if len(data) > maxResult {
		return event.StoredResult{}, &event.Error{
			Code:    event.Invalid,
			Message: fmt.Sprintf("data: the result has %d bytes, at most %d are accepted", len(data), maxResult),
			Remedy:  "send it as a stream, or keep it in a database or an object store and return where it is",
		}
	}
	return p.PutBlob(ctx, execution, event.ResultOptions{Name: name}, bytes.NewReader(data))
}

// PutBlob puts all that r gives aside, of any size, without holding it, and
// returns the reference that stands for it. NotFound when there is no such
// execution, Invalid when the options are wrong or the data is no JSON though it
// should be, Limit when it is too large. An error of r comes back as it is.
func (p *Plane) PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	began := p.o.Clock()
	at, err := p.putBlob(ctx, execution, o, r)
	p.timed(p.metrics.ResultPut, p.metrics.ResultPutTime, began, err)
	return at, err
}

func (p *Plane) putBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	if _, err := p.Execution(ctx, execution); err != nil {
		return event.StoredResult{}, err
	}
	return p.results.Put(ctx, execution, o, r)
}

// OpenBlob reads what a reference stands for, from offset on, at most length
// bytes; 0 = to the end. Nothing is held but the piece at hand. Invalid when ref
// is no reference or the offset lies behind the end, NotFound when nothing is
// stored under it, or not any more.
func (p *Plane) OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	began := p.o.Clock()
	body, at, err := p.openBlob(ctx, ref, offset, length)
	p.timed(p.metrics.ResultFound, p.metrics.ResultFoundTime, began, err)
	return body, at, err
}

func (p *Plane) openBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	ref, view, _ := strings.Cut(ref, "#")
	at, err := event.ParseResultRef(ref)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	if view != scope.ViewTasks {
		return p.results.Open(ctx, at, offset, length)
	}
	data, stored, err := p.tasksView(ctx, at)
	if err != nil {
		return nil, stored, err
	}
	if offset < 0 || length < 0 || offset > int64(len(data)) {
		return nil, stored, event.Errorf(event.Invalid, "the range from byte %d on lies outside of the result, which has %d bytes", offset, len(data))
	}
	data = data[offset:]
	if length > 0 && length < int64(len(data)) {
		data = data[:length]
	}
	return io.NopCloser(bytes.NewReader(data)), stored, nil
}

// tasksView is a value as templates see the result of a list of tasks. It is not
// the stored text and has a checksum of its own.
func (p *Plane) tasksView(ctx context.Context, at event.ResultRef) (json.RawMessage, event.StoredResult, error) {
	row, data, err := p.whole(ctx, at)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	data = scope.Tasks(data)
	stored := result.About(&row)
	sum := sha256.Sum256(data)
	stored.Bytes, stored.SHA256 = int64(len(data)), hex.EncodeToString(sum[:])
	return data, stored, nil
}

// whole reads all of a value that is JSON and not too large to be held.
func (p *Plane) whole(ctx context.Context, at event.ResultRef) (store.Result, json.RawMessage, error) {
	row, err := p.results.Row(ctx, at)
	switch {
	case err != nil:
		return row, nil, storeError("read result", err)
	case row.Bytes > maxResult:
		return row, nil, &event.Error{
			Code: event.Limit, Message: fmt.Sprintf("the result %s has %d bytes, at most %d are read at once", at, row.Bytes, maxResult),
			Remedy: "read it piece by piece with the artifact tool, or select what is needed with output_select",
		}
	case row.Normal().MediaType != store.MediaJSON:
		return row, nil, event.Errorf(event.Invalid, "the result %s is %s, not JSON: read it with the artifact tool", at, row.MediaType)
	}
	body, err := p.results.OpenRow(ctx, &row, 0, 0)
	if err != nil {
		return row, nil, storeError("read result", err)
	}
	defer func() { _ = body.Close() }()
	data := make([]byte, row.Bytes)
	if _, err := io.ReadFull(body, data); err != nil {
		return row, nil, storeError("read result", err)
	}
	return row, data, nil
}

// newResult is a value as stores keep it.
func newResult(execution event.ID, ref, name string, data json.RawMessage, now time.Time) store.Result {
	sum := sha256.Sum256(data)
	return store.Result{ExecutionID: execution, Ref: ref, Name: name, Data: data, SHA256: hex.EncodeToString(sum[:]), CreatedAt: now}
}

// whereabouts says where a value went.
func whereabouts(r *store.Result) event.StoredResult { return result.About(r) }

// Result finds the value a reference stands for, as it was put or as the
// reference's fragment asks for it. Invalid when ref is no reference or the value
// no JSON, NotFound when nothing is stored under it, Limit when it is too large
// to be held.
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
	_, data, err := p.whole(ctx, at)
	if err == nil && view == scope.ViewTasks {
		data = scope.Tasks(data)
	}
	return data, err
}

// ListedResult is one value of an execution.
type ListedResult struct {
	event.StoredResult
	Name       string    `json:"name"`
	SourceStep string    `json:"source_step,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
}

// Results lists the values of an execution, by reference, those behind after.
// NotFound when there is no such execution.
func (p *Plane) Results(ctx context.Context, execution event.ID, after string, limit int) ([]ListedResult, error) {
	if _, err := p.Execution(ctx, execution); err != nil {
		return nil, err
	}
	rows, err := p.store.ListResults(ctx, execution, after, limit)
	if err != nil {
		return nil, storeError("list results", err)
	}
	out := make([]ListedResult, len(rows))
	for i := range rows {
		r := &rows[i]
		out[i] = ListedResult{StoredResult: result.About(r), Name: r.Name, SourceStep: r.SourceStep, CreatedAt: r.CreatedAt}
	}
	return out, nil
}

// RemoveResults removes the values of an execution, all or those of one scope,
// whatever their time, and returns how many. What other executions still use
// stays. NotFound when there is no such execution.
func (p *Plane) RemoveResults(ctx context.Context, execution event.ID, scope string) (int, error) {
	if _, err := p.Execution(ctx, execution); err != nil {
		return 0, err
	}
	removed := 0
	for after := ""; ; {
		rows, err := p.store.ListResults(ctx, execution, after, collectBatch)
		if err != nil {
			return removed, storeError("list results", err)
		}
		for _, r := range rows {
			after = r.Ref
			if scope != "" && r.Scope != scope {
				continue
			}
			if used, err := p.pinned(ctx, &r, p.now()); err != nil || used {
				if err != nil {
					return removed, err
				}
				continue
			}
			done, err := p.results.Remove(ctx, r)
			if done {
				removed++
				p.values.Drop(r.Ref)
			}
			if err != nil {
				return removed, storeError("remove result", err)
			}
		}
		if len(rows) < collectBatch {
			return removed, nil
		}
	}
}
