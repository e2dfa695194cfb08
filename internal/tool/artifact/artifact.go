// Package artifact reads results that are kept outside the log, for steps that
// want all of one. It must not know where they are kept.
package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

// Fetcher finds the data behind a reference. Errors are coded; an uncoded one
// counts as a network failure.
type Fetcher interface {
	Result(ctx context.Context, ref string) (json.RawMessage, error)
}

// Tool reads one stored result.
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
// in the config. Data that is not there is an *Error of kind not_found; one
// that cannot be had now is retryable. Both have the code
// REFERENCE_NOT_AVAILABLE.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, t.kind, limit)
	}
	ref, err := t.reference(call)
	if err != nil {
		return nil, err
	}
	data, err := t.from.Result(ctx, ref)
	if err == nil {
		return &tool.Result{Data: data}, nil
	}
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, t.kind, limit)
	}
	return nil, failure(ref, err)
}

func (t *Tool) reference(call *tool.Call) (string, error) {
	f := call.Fields()
	action, err := f.String("action")
	if err != nil {
		return "", err
	}
	switch strings.ToLower(action) {
	case "", "get":
	case "put":
		return "", tool.ConfigErrorf("action put is not available: large results are stored without being asked to, and other data is written with a tool of its own")
	default:
		return "", tool.ConfigErrorf("action %q is not one of get", action)
	}
	ref, err := f.String("result_ref", "ref")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"ref", "result_ref"} { // the later one wins
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
	e := &tool.Error{Kind: tool.KindConnection, Code: "REFERENCE_NOT_AVAILABLE", Retryable: true}
	coded, ok := errors.AsType[*event.Error](err)
	switch {
	case ok && coded.Code == event.NotFound:
		e.Kind, e.Retryable = tool.KindNotFound, false
	case ok && (coded.Code == event.Invalid || coded.Code == event.BadRequest):
		e.Kind, e.Retryable = tool.KindConfig, false
	}
	e.Message = "the result " + ref + " is not available: " + err.Error()
	return e
}
