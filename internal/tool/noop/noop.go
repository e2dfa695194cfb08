// Package noop is the tool that does nothing: an anchor for policy rules and a
// way to give a step a fixed value. It must not know of anything outside its
// call.
package noop

import (
	"context"

	"github.com/noetl/noetl-go/internal/tool"
)

// Tool answers with its own config.
type Tool struct{}

var _ tool.Tool = Tool{}

// New makes the tool.
func New() Tool { return Tool{} }

// Kind is "noop".
func (Tool) Kind() string { return "noop" }

// Run answers with the result field when the author gave one, even null, else
// with {"status": "ok", "message": ...}. It fails only when ctx has ended or a
// field cannot be read.
func (Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "noop", 0)
	}
	if _, given := call.Config["result"]; given {
		data, err := call.Encoded("result")
		if err != nil {
			return nil, err
		}
		return &tool.Result{Data: data}, nil
	}
	message, err := call.Fields().String("message")
	if err != nil {
		return nil, err
	}
	if message == "" {
		message = "noop"
	}
	data, err := tool.Encode(struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}{"ok", message})
	if err != nil {
		return nil, err
	}
	return &tool.Result{Data: data}, nil
}
