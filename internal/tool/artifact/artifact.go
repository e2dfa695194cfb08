// Package artifact reads results that are kept outside the log, for steps that
// want all of one or a part of it, and puts data there. It must not know where
// they are kept.
package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

// Fetcher finds the data behind a reference. Errors are coded; an uncoded one
// counts as a network failure.
type Fetcher interface {
	Result(ctx context.Context, ref string) (json.RawMessage, error)
}

// Tool reads and writes stored results.
type Tool struct {
	kind string
	from Fetcher
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool of kind "artifact", whose action field says what to do.
func New(from Fetcher) *Tool { return &Tool{"artifact", from} }

// NewFetch makes the same tool under its other name, "result_fetch".
func NewFetch(from Fetcher) *Tool { return &Tool{"result_fetch", from} }

// Kind is the name the tool was made under.
func (t *Tool) Kind() string { return t.kind }

// Run gives the data behind result_ref (or ref), which stands in the input or
// in the config, or the part of it that is asked for; or it puts data aside.
// Data that is not there is an *Error of kind not_found; one that cannot be had
// now is retryable. Both have the code REFERENCE_NOT_AVAILABLE.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, t.kind, limit)
	}
	run, err := t.action(call)
	if err != nil {
		return nil, err
	}
	res, err := run(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, tool.Ended(ctx, t.kind, limit)
	}
	return res, err
}

type action func(ctx context.Context) (*tool.Result, error)

func (t *Tool) action(call *tool.Call) (action, error) {
	word, err := call.Fields().String("action")
	if err != nil {
		return nil, err
	}
	switch strings.ToLower(word) {
	case "", "get":
		return t.reading(call)
	case "put":
		return putting(call)
	}
	return nil, tool.ConfigErrorf("action %q is not one of get, put", word)
}

// reading finds out what of which result is wanted.
func (t *Tool) reading(call *tool.Call) (action, error) {
	ref, err := t.reference(call)
	if err != nil {
		return nil, err
	}
	rows, byRows, err := rowSpan(call)
	if err != nil {
		return nil, err
	}
	bytes, byBytes, err := byteSpan(call)
	if err != nil {
		return nil, err
	}
	switch {
	case byRows && byBytes:
		return nil, tool.ConfigErrorf("rows or bytes: offset and limit cannot be given together with byte_offset and byte_limit")
	case byRows:
		return func(ctx context.Context) (*tool.Result, error) { return t.rows(ctx, call, ref, rows) }, nil
	case byBytes:
		return func(ctx context.Context) (*tool.Result, error) { return t.bytes(ctx, call, ref, bytes) }, nil
	}
	return func(ctx context.Context) (*tool.Result, error) { return t.whole(ctx, call, ref) }, nil
}

// whole gives all of a result. One that is too large to be held is copied to
// where the step's own result is kept.
func (t *Tool) whole(ctx context.Context, call *tool.Call, ref string) (*tool.Result, error) {
	data, err := t.from.Result(ctx, ref)
	if err == nil {
		return &tool.Result{Data: data}, nil
	}
	if e, ok := errors.AsType[*event.Error](err); !ok || e.Code != event.Limit || call.Blobs == nil {
		return nil, failure(ref, err)
	}
	body, err := call.Blobs.Open(ctx, ref, 0, 0)
	if err != nil {
		return nil, failure(ref, err)
	}
	defer func() { _ = body.Close() }()
	kept, err := call.Blobs.Put(ctx, tool.Blob{}, body)
	if err != nil {
		return nil, failure(ref, err)
	}
	return &tool.Result{Stored: kept}, nil
}

// open reads a result from a byte on; without a place for large data it must be
// one that can be held.
func (t *Tool) open(ctx context.Context, call *tool.Call, ref string, offset, length int64) (io.ReadCloser, error) {
	if call.Blobs != nil {
		body, err := call.Blobs.Open(ctx, ref, offset, length)
		if err != nil {
			return nil, failure(ref, err)
		}
		return body, nil
	}
	data, err := t.from.Result(ctx, ref)
	if err != nil {
		return nil, failure(ref, err)
	}
	data = data[min(offset, int64(len(data))):]
	if length > 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (t *Tool) reference(call *tool.Call) (string, error) {
	ref, err := call.Fields().String("result_ref", "ref", "uri")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"uri", "ref", "result_ref"} { // the later one wins
		raw, ok := call.Args[name].(json.RawMessage)
		if !ok || string(raw) == "null" {
			continue
		}
		if err := json.Unmarshal(raw, &ref); err != nil {
			return "", tool.ConfigErrorf("input.%s must be text", name)
		}
	}
	if ref = strings.TrimSpace(ref); ref == "" {
		return "", tool.ConfigErrorf("%s needs result_ref, for example {{ step._ref }}; a result small enough to travel in the event has none", t.kind)
	}
	return ref, nil
}

func failure(ref string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	e := &tool.Error{Kind: tool.KindConnection, Code: "REFERENCE_NOT_AVAILABLE", Retryable: true}
	coded, ok := errors.AsType[*event.Error](err)
	switch {
	case ok && coded.Code == event.NotFound:
		e.Kind, e.Retryable = tool.KindNotFound, false
	case ok && coded.Code == event.Limit:
		e.Kind, e.Retryable = tool.KindResourceLimit, false
	case ok && (coded.Code == event.Invalid || coded.Code == event.BadRequest):
		e.Kind, e.Retryable = tool.KindConfig, false
	}
	e.Message = "the result " + ref + " is not available: " + err.Error()
	return e
}
