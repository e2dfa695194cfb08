// Package playbooktool asks for the execution of another playbook. It only
// writes the request: the control plane starts the child and knows when it has
// ended, so that no worker waits for it. It must not know how playbooks run.
package playbooktool

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

// Tool turns its config into a request for a child execution.
type Tool struct{}

var _ tool.Tool = Tool{}

// New makes the tool.
func New() Tool { return Tool{} }

// Kind is "playbook".
func (Tool) Kind() string { return "playbook" }

// Run answers with a Park that names the child. The child is waited for when
// return_step, return_result or wait asks for it; poll_interval means nothing
// here, because nobody polls. It fails only when ctx has ended or the config is
// wrong.
func (Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "playbook", 0)
	}
	r := reader{f: call.Fields()}
	child := &event.ChildRequest{
		Path:         strings.TrimSpace(r.text("path")),
		CatalogID:    r.catalogID(),
		Version:      r.version(),
		Pool:         r.text("execution_pool", "pool"),
		ReturnStep:   r.text("return_step"),
		ReturnResult: r.flag("return_result"),
		ResultStep:   r.text("result_step"),
		Timeout:      r.seconds("timeout", "timeout_seconds"),
	}
	child.Wait = r.wait(child)
	if child.Path == "" && child.CatalogID == 0 {
		r.fail(tool.ConfigErrorf("playbook needs a path or a catalog_id; an expression that gave nothing looks the same as a missing one"))
	}
	if r.err != nil {
		return nil, r.err
	}
	var err error
	if child.Payload, err = payload(call); err != nil {
		return nil, err
	}
	return &tool.Result{Park: &event.Park{Child: child}}, nil
}

// payload is what the child gets as its workload: the input unless it is
// empty, else the payload field, else nothing.
func payload(call *tool.Call) (json.RawMessage, error) {
	if len(call.Args) > 0 {
		return tool.Encode(call.Args)
	}
	for _, field := range []string{"with", "payload"} {
		m, err := call.Fields().Object(field)
		if err != nil {
			return nil, err
		}
		if len(m) > 0 {
			return call.Encoded(field)
		}
	}
	return json.RawMessage("{}"), nil
}

// reader reads fields and keeps the first complaint.
type reader struct {
	f   tool.Fields
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) text(names ...string) string {
	s, err := r.f.String(names...)
	if err != nil {
		r.fail(err)
	}
	return s
}

func (r *reader) flag(name string) bool {
	b, err := r.f.Bool(false, name)
	if err != nil {
		r.fail(err)
	}
	return b
}

func (r *reader) seconds(names ...string) float64 {
	d, err := r.f.Duration(names...)
	if err != nil {
		r.fail(err)
	}
	return d.Seconds()
}

func (r *reader) catalogID() event.StringID {
	text := strings.TrimSpace(r.text("catalog_id"))
	if text == "" {
		return 0
	}
	id, err := event.ParseID(text)
	if err != nil {
		r.fail(tool.ConfigErrorf("catalog_id %q is not a number", text))
	}
	return event.StringID(id)
}

// version is the number of a version, 0 for the newest.
func (r *reader) version() int {
	text := strings.TrimSpace(r.text("version"))
	if text == "" || text == "latest" {
		return 0
	}
	n, err := event.ParseID(text)
	if err != nil || n <= 0 || n > 1<<31-1 {
		r.fail(tool.ConfigErrorf("version %q is neither a number nor latest", text))
	}
	return int(n)
}

// wait tells whether the step goes on when the child has ended, or at once.
func (r *reader) wait(c *event.ChildRequest) bool {
	wanted := c.ReturnStep != "" || c.ReturnResult
	wait, err := r.f.Bool(wanted, "wait")
	switch {
	case err != nil:
		r.fail(err)
	case wanted && !wait:
		r.fail(tool.ConfigErrorf("wait is false, but return_step or return_result ask for what only the end of the child can give; remove one of them"))
	}
	return wait
}
