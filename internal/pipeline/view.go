package pipeline

import (
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// view is what the templates of one task see at one try.
type view struct {
	*names
	run     *run
	task    *playbook.Task
	attempt int
	input   *jinja.Dict // nil until rendered
	local   bool        // input keys are names of their own
	output  any         // the outcome, while `set` and rules look at it
	token   jinja.Func  // token(alias)
}

// Lookup implements jinja.Scope.
func (v *view) Lookup(name string) (any, bool) {
	switch name {
	case "output", "outcome":
		if v.output != nil {
			return v.output, true
		}
	case "input", "args":
		if v.input != nil {
			return v.input, true
		}
	case "_attempt":
		return int64(v.attempt), true
	case "token":
		if v.token != nil {
			return v.hiddenBy("token", v.token)
		}
	case "_task":
		return v.task.Label, true
	case "_prev":
		if v.run.last == nil {
			return nil, true
		}
		return v.run.last.value(), true
	}
	if v.local {
		if x, ok := v.input.Get(name); ok {
			return x, true
		}
	}
	if x, ok := v.names.Lookup(name); ok {
		return x, true
	}
	return v.fallback(name)
}

// hiddenBy is a function of ours, unless the author uses its name.
func (v *view) hiddenBy(name string, f jinja.Func) (any, bool) {
	if x, ok := v.named(name); ok {
		return x, true
	}
	return f, true
}

// fallback answers names that an author's own would hide.
func (v *view) fallback(name string) (any, bool) {
	switch name {
	case "results":
		return v.run.results.dict(), true
	case "output", "outcome":
		if v.run.last != nil {
			return envelope{v.run.last}, true
		}
	case "result", "response":
		if v.output != nil {
			return v.output, true
		}
	case "event":
		if v.output != nil {
			return v.run.last.event(v.step()), true
		}
	}
	return v.input.Get(name)
}
