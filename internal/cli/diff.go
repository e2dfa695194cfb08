package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type diffCommand struct {
	serverFlags
	A event.ID `arg:"" help:"One execution."`
	B event.ID `arg:"" help:"The other one."`
	outputFlags
}

// difference is how two executions differ.
type difference struct {
	A          side         `json:"a"`
	B          side         `json:"b"`
	Same       bool         `json:"same"`
	Inputs     []change     `json:"changed_inputs"`
	Divergence *divergence  `json:"first_divergence"`
	Steps      []stepTiming `json:"steps"`
	Results    []change     `json:"changed_results"`
}

// side is one of the two.
type side struct {
	ID         event.ID `json:"execution_id"`
	Path       string   `json:"path"`
	Version    int      `json:"version"`
	Status     string   `json:"status"`
	DurationMS int64    `json:"duration_ms"`
	Error      string   `json:"error,omitempty"`
}

// change is a value that is another one. Nil is missing.
type change struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// divergence is the first thing that went another way.
type divergence struct {
	Step  string          `json:"step"`
	Index *int            `json:"iteration,omitempty"`
	Run   int             `json:"run,omitempty"`
	What  string          `json:"what"` // input, outcome, route, end, or reached
	SeqA  int64           `json:"seq_a,omitempty"`
	SeqB  int64           `json:"seq_b,omitempty"`
	A     json.RawMessage `json:"a"`
	B     json.RawMessage `json:"b"`
	Child *difference     `json:"child,omitempty"` // of the executions that the step started
}

// stepTiming is a step side by side.
type stepTiming struct {
	Step    string `json:"step"`
	StatusA string `json:"status_a,omitempty"`
	StatusB string `json:"status_b,omitempty"`
	RunsA   int    `json:"runs_a,omitempty"`
	RunsB   int    `json:"runs_b,omitempty"`
	AMS     int64  `json:"duration_a_ms"`
	BMS     int64  `json:"duration_b_ms"`
}

// Run compares two executions.
func (c *diffCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	d, err := compare(ctx, cl, c.A, c.B, 0)
	if err != nil {
		return err
	}
	if c.form() == "name" {
		if d.Divergence != nil {
			fmt.Fprintln(env.Stdout, d.Divergence.Step)
		}
		return nil
	}
	return c.object(env, d, "", func() error { return d.show(env) })
}

// maxNesting bounds how deep children are followed.
const maxNesting = 5

// compare reads both logs and holds them against each other.
func compare(ctx context.Context, cl *client.Client, a, b event.ID, depth int) (*difference, error) {
	one, err := readStory(ctx, cl, a)
	if err != nil {
		return nil, err
	}
	other, err := readStory(ctx, cl, b)
	if err != nil {
		return nil, err
	}
	d := &difference{
		A: one.side(), B: other.side(), Steps: timings(one, other),
		Inputs: changes("", one.detail.Workload, other.detail.Workload), Results: []change{},
	}
	for _, name := range unionKeys(one.detail.Steps, other.detail.Steps) {
		d.Results = append(d.Results, changes(name, one.result(name), other.result(name))...)
	}
	d.Divergence = diverge(one, other)
	if x := d.Divergence; x != nil && depth < maxNesting {
		if childA, childB := one.child(x), other.child(x); childA != 0 && childB != 0 {
			if x.Child, err = compare(ctx, cl, childA, childB, depth+1); err != nil {
				x.Child = nil // the children may be gone; what the parents say holds
			}
		}
	}
	d.Same = d.Divergence == nil && len(d.Inputs) == 0 && len(d.Results) == 0 && d.A.Status == d.B.Status && d.A.Path == d.B.Path && d.A.Version == d.B.Version
	return d, nil
}

// changes lists the values below two documents that differ, by their paths. A
// list that became longer or shorter is one change.
func changes(path string, a, b json.RawMessage) []change {
	out := []change{}
	var x, y any
	if decodeNumbers(a, &x) != nil || decodeNumbers(b, &y) != nil {
		if !bytes.Equal(a, b) {
			out = append(out, change{path, a, b})
		}
		return out
	}
	walkChanges(path, x, y, len(a) > 0, len(b) > 0, &out)
	return out
}

func walkChanges(path string, a, b any, hasA, hasB bool, out *[]change) {
	mapA, okA := a.(map[string]any)
	mapB, okB := b.(map[string]any)
	if okA && okB {
		for _, k := range unionKeys(mapA, mapB) {
			x, inA := mapA[k]
			y, inB := mapB[k]
			walkChanges(joined(path, k), x, y, inA, inB, out)
		}
		return
	}
	listA, okA := a.([]any)
	listB, okB := b.([]any)
	if okA && okB && len(listA) == len(listB) {
		for i := range listA {
			walkChanges(fmt.Sprintf("%s[%d]", path, i), listA[i], listB[i], true, true, out)
		}
		return
	}
	x, y := encoded(a, hasA), encoded(b, hasB)
	if !bytes.Equal(x, y) {
		*out = append(*out, change{path, x, y})
	}
}

func encoded(v any, has bool) json.RawMessage {
	if !has {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// decodeNumbers reads JSON without losing digits; nothing is nil.
func decodeNumbers(raw json.RawMessage, into *any) error {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// timings puts the steps side by side, in the order they were reached.
func timings(a, b *story) []stepTiming {
	out := []stepTiming{}
	at := map[string]int{}
	row := func(name string) *stepTiming {
		if _, ok := at[name]; !ok {
			at[name] = len(out)
			out = append(out, stepTiming{Step: name})
		}
		return &out[at[name]]
	}
	for _, s := range a.progress.steps {
		r := row(s.name)
		r.StatusA, r.RunsA, r.AMS = s.status, s.runs, s.took().Milliseconds()
	}
	for _, s := range b.progress.steps {
		r := row(s.name)
		r.StatusB, r.RunsB, r.BMS = s.status, s.runs, s.took().Milliseconds()
	}
	return out
}

// took is how long the last run of a step took, so far.
func (s *stepLine) took() time.Duration {
	if s.over.Before(s.began) {
		return 0
	}
	return s.over.Sub(s.began)
}
