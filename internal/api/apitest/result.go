package apitest

import (
	"bytes"
	"context"
	"encoding/json"

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
