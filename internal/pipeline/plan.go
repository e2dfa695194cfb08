package pipeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// plan is a compiled tool configuration. It is immutable and shared by all
// commands that carry the same one.
type plan struct {
	tasks  []*task
	single bool // one tool object: its data is the command's data
}

var noPlan = &plan{single: true}

// task is a compiled task and what is known of it before it runs.
type task struct {
	*playbook.Task
	keychain []string // aliases its fields read
	lasting  bool     // somebody may look at its outcome: a sibling, set or policy
}

// input is the compiled step-level input; a nil tree means there is none.
type input struct {
	tree     *jinja.Tree
	keychain []string
}

// planFor compiles the tool configuration of a command, once per distinct one.
func (r *Runner) planFor(cmd *event.Command) (*plan, error) {
	var space [1024]byte
	key := append(append(space[:0], cmd.Action...), 0)
	key = append(key, cmd.Context.ToolConfig...)
	p, ok := r.plans.get(key)
	if !ok {
		var err error
		if p, err = compile(cmd.Action, cmd.Context.ToolConfig); err != nil {
			return nil, err
		}
		r.plans.put(key, p)
	}
	if cmd.Meta.Single && !p.single && len(p.tasks) == 1 {
		return &plan{tasks: p.tasks, single: true}, nil
	}
	return p, nil
}

func compile(kind string, config json.RawMessage) (*plan, error) {
	v, err := decode(config)
	if err != nil {
		return nil, fmt.Errorf("read the tool configuration: %w", err)
	}
	parsed, single, err := playbook.ParseTasks(kind, v)
	if err != nil {
		return nil, err
	}
	if len(parsed) == 0 {
		return nil, errors.New("the command has no task to run")
	}
	p := &plan{single: single, tasks: make([]*task, len(parsed))}
	for i, t := range parsed {
		p.tasks[i] = &task{
			Task:     t,
			keychain: aliases(t.Config, t.Input),
			lasting:  !single || len(t.Set) > 0 || t.Policy != nil,
		}
	}
	return p, nil
}

// inputFor compiles a step-level input, once per distinct one.
func (r *Runner) inputFor(raw json.RawMessage) (*input, error) {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}":
		return &noInput, nil
	}
	if in, ok := r.inputs.get(raw); ok {
		return in, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read the step's input: %w", err)
	}
	tree, problems := jinja.CompileTree(v, jinja.TreeOptions{})
	if len(problems) > 0 {
		return nil, &jinja.EvalError{Path: problems[0].Path, Err: problems[0].Err}
	}
	in := &input{tree: tree, keychain: aliases(tree)}
	r.inputs.put(raw, in)
	return in, nil
}

var noInput input

// decode reads JSON; a string is taken for JSON within JSON, which some
// producers send.
func decode(raw json.RawMessage) (any, error) {
	v, err := jinja.FromJSON(raw)
	if text, ok := v.(string); ok && err == nil {
		return jinja.FromJSON([]byte(text))
	}
	return v, err
}

// anyAlias stands for the keychain as a whole.
const anyAlias = "(any)"

// aliases lists the keychain entries that templates read.
func aliases(trees ...*jinja.Tree) []string {
	var out []string
	for _, t := range trees {
		if t == nil {
			continue
		}
		for _, path := range t.Free() {
			if len(path) > 0 && path[0] == "keychain" {
				out = append(out, append(path[1:len(path):len(path)], anyAlias)[0])
			}
		}
	}
	return out
}

func asEvalError(err error) (*jinja.EvalError, bool) { return errors.AsType[*jinja.EvalError](err) }

func asTemplateError(err error) (*jinja.Error, bool) { return errors.AsType[*jinja.Error](err) }
