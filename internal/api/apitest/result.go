package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"github.com/noetl/noetl-go/internal/event"
)

// PutResult keeps a value of an execution that was put.
func (p *Plane) PutResult(_ context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error) {
	if p.OnPutResult != nil {
		return p.OnPutResult(execution, name, data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.rows[execution]; !known {
		return event.StoredResult{}, missing("not found")
	}
	p.ids++
	ref := event.ResultRef{Execution: execution, Name: name, ID: p.ids}.String()
	if p.results == nil {
		p.results = map[string]json.RawMessage{}
	}
	p.results[ref] = bytes.Clone(data)
	return event.StoredResult{Ref: ref, Store: "db", Scope: "execution", Bytes: int64(len(data)), SHA256: "sum"}, nil
}

// Result finds a value by its reference.
func (p *Plane) Result(_ context.Context, ref string) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	data, ok := p.results[ref]
	if !ok {
		return nil, missing("not found")
	}
	return bytes.Clone(data), nil
}

// PutBlob is PutResult for a stream; of the options only the name counts.
func (p *Plane) PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return event.StoredResult{}, err
	}
	return p.PutResult(ctx, execution, o.Name, data)
}

// OpenBlob reads a value that was put, or a part of it.
func (p *Plane) OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	data, err := p.Result(ctx, ref)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	at := event.StoredResult{Ref: ref, Store: "db", Scope: "execution", Bytes: int64(len(data)), SHA256: "sum"}
	data = data[min(offset, at.Bytes):]
	if length > 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(bytes.NewReader(data)), at, nil
}
