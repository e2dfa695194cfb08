package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/scope"
)

type renderCommand struct {
	serverFlags
	File string `arg:"" help:"Playbook file; - is standard input." placeholder:"FILE"`
	Step string `short:"s" required:"" help:"Step whose templates are shown." placeholder:"STEP"`
	payloadFlags
	From event.ID `help:"Take the workload and the results of steps from this execution." placeholder:"EXECUTION"`
	outputFlags
}

// renderedField is one template of a step and what it gives.
type renderedField struct {
	Field  string `json:"field"`
	Line   int    `json:"line"`
	Col    int    `json:"col"`
	Source string `json:"source"`
	Value  any    `json:"value,omitempty"`
	Waits  string `json:"unknown,omitempty"` // why it cannot be known yet
	Error  string `json:"error,omitempty"`
}

// Run evaluates what can be evaluated before the step runs.
func (c *renderCommand) Run(ctx context.Context, env *Env) error {
	src, pb, problems, err := readInput(env, c.File)
	if err != nil {
		return err
	}
	if pb == nil {
		return problems
	}
	step, err := stepOf(pb, c.Step)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return invalidf("%s: %v", shownName(c.File), err)
	}
	node := stepNode(&doc, c.Step)
	if node == nil {
		return invalidf("%s: the step %q is not written out in the workflow", shownName(c.File), c.Step)
	}
	known, err := c.names(ctx, pb)
	if err != nil {
		return err
	}
	r := &renderer{file: shownName(c.File), pb: pb, step: step, known: known}
	r.loop()
	r.input(node)
	r.walk("", node)
	return c.report(env, r)
}

func (c *renderCommand) report(env *Env, r *renderer) error {
	if err := c.object(env, r.fields, c.Step, func() error { return r.show(env) }); err != nil {
		return err
	}
	for _, f := range r.fields {
		if f.Error != "" {
			return exit(ExitInvalid)
		}
	}
	return nil
}

// stepOf finds a step and proposes the nearest one when there is none.
func stepOf(pb *playbook.Playbook, name string) (*playbook.Step, error) {
	if s, ok := pb.Step(name); ok {
		return s, nil
	}
	var names []string
	for _, s := range pb.Steps {
		names = append(names, s.Name)
	}
	return nil, invalidf("there is no step %q%s: the steps are %s", name, nearest(name, names), strings.Join(names, ", "))
}

// stepNode is a step as it is written.
func stepNode(doc *yaml.Node, name string) *yaml.Node {
	if len(doc.Content) == 0 {
		return nil
	}
	flow := valueOf(doc.Content[0], "workflow")
	if flow == nil {
		return nil
	}
	for _, n := range flow.Content {
		for _, key := range []string{"step", "name"} {
			if v := valueOf(n, key); v != nil && v.Value == name {
				return n
			}
		}
	}
	return nil
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// names are what templates can mention: the workload with what was given for
// it, and the results of an execution when one was named.
func (c *renderCommand) names(ctx context.Context, pb *playbook.Playbook) (jinja.Vars, error) {
	workload := pb.Workload.Clone()
	given, err := c.value()
	if err != nil {
		return nil, err
	}
	results := map[string]any{}
	if c.From != 0 {
		cl, err := c.client()
		if err != nil {
			return nil, err
		}
		d, err := cl.Execution(ctx, c.From)
		if err != nil {
			return nil, err
		}
		if err := overlay(workload, d.Workload); err != nil {
			return nil, err
		}
		for name, s := range d.Steps {
			if len(s.Result) > 0 && event.IsFinal(s.Status) {
				results[name] = scope.Step(s.Result, scope.Info{Failed: s.Status == event.StatusFailed})
			}
		}
	}
	if err := overlay(workload, given); err != nil {
		return nil, err
	}
	if c.From == 0 { // one that started has rendered its workload
		if err := renderWorkload(pb, workload, given); err != nil {
			return nil, err
		}
	}
	known := jinja.Vars{"workload": workload, "path": pb.Metadata.Path}
	for k, v := range workload.All() {
		known[k] = v
	}
	for k, v := range results {
		known[k] = v
	}
	if c.From != 0 {
		known["execution_id"] = c.From.String()
	}
	everything := jinja.NewDict(len(known))
	for _, k := range slices.Sorted(maps.Keys(known)) {
		everything.Set(k, known[k])
	}
	known["ctx"], known["vars"] = everything, everything
	return known, nil
}

// overlay lays the keys of an object over a workload.
func overlay(workload *jinja.Dict, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return fmt.Errorf("read the workload: %w", err)
	}
	if d, ok := v.(*jinja.Dict); ok {
		for k, v := range d.All() {
			workload.Set(k, v)
		}
	}
	return nil
}

// renderWorkload evaluates the templates of a workload, as the start of an
// execution does, but for the keys that were given.
func renderWorkload(pb *playbook.Playbook, workload *jinja.Dict, given []byte) error {
	replaced := jinja.NewDict(0)
	if err := overlay(replaced, given); err != nil {
		return err
	}
	for _, a := range pb.Rendered {
		if _, ok := replaced.Get(a.Key); ok {
			continue
		}
		v, err := a.Value.Eval(jinja.Vars{"workload": workload, "path": pb.Metadata.Path})
		if err != nil {
			return invalidf("%d:%d: workload.%s: %v", a.Pos.Line, a.Pos.Col, a.Key, templateError(err))
		}
		workload.Set(a.Key, v)
	}
	return nil
}

// templateError is the message of a template without its own place: the field
// is named already.
func templateError(err error) string {
	var e *jinja.Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return err.Error()
}
