package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/store"
)

// RerunRequest says how an execution is run again.
type RerunRequest struct {
	Payload  json.RawMessage // object whose keys replace those of the original's workload; may be empty
	FromStep string          // reuse what ended before this step; "" runs everything
	Latest   bool            // the latest version of the playbook instead of the one the original ran
	Version  int             // this version; 0 = see Latest
	Trace    json.RawMessage // the original's when empty
	Actor    *event.Actor    // who asks, for the log; nil where nobody is known
}

// Rerun starts a new execution of what another one ran, with its workload, pool
// and trace. The original may still run; it is left alone. NotFound when it is
// unknown; Invalid when the step to run from does not exist or was not reached.
func (p *Plane) Rerun(ctx context.Context, id event.ID, r RerunRequest) (ExecuteAnswer, error) {
	if err := checkTrace(r.Trace); err != nil {
		return ExecuteAnswer{}, err
	}
	began := p.tracing()
	// The original stays until the rerun has begun and refers to what it uses.
	if err := p.store.HoldExecution(ctx, id, p.now().Add(holdTime)); errors.Is(err, store.ErrNotFound) {
		return ExecuteAnswer{}, p.missing(ctx, id)
	} else if err != nil {
		return ExecuteAnswer{}, storeError("hold the execution", err)
	}
	first, err := p.startOf(ctx, id)
	if err != nil {
		return ExecuteAnswer{}, err
	}
	was, err := readStart(&first)
	if err != nil {
		return ExecuteAnswer{}, err
	}
	ran, what, err := p.rerunnable(ctx, was, r)
	if err != nil {
		return ExecuteAnswer{}, err
	}
	in := engine.StartInput{
		CatalogID: what.catalogID, ParentExecutionID: was.parent, Path: what.path, Version: what.version,
		Pool: was.meta.Pool, Trace: firstGiven(r.Trace, was.meta.Trace),
		Rerun: &engine.Rerun{Of: id, FromStep: r.FromStep, ParentIter: was.meta.ParentIter, Depth: was.meta.Depth},
	}
	if changed(ran, what) && in.Pool == ran.program.Playbook().Executor.Pool {
		in.Pool = "" // it was the playbook's, and this version may name another
	}
	if in.Payload, err = was.workloadWith(r.Payload, ran, what); err != nil {
		return ExecuteAnswer{}, err
	}
	var lost []string
	input := &startInput{actor: r.Actor, lost: func(ref string) { lost = append(lost, ref) }}
	if r.FromStep != "" {
		if input.reuse, err = p.harvest(ctx, id, ran, what, r.FromStep); err != nil {
			return ExecuteAnswer{}, err
		}
	}
	answer, err := p.requested(ctx, began, in.Trace, func(trace json.RawMessage) (ExecuteAnswer, error) {
		in.Trace = trace
		return p.begins(ctx, what.program, input, in)
	})
	if err == nil {
		answer.Warnings = append(what.program.Undeclared(r.Payload), gone(lost)...)
	}
	return answer, err
}

// startedWith is what an execution's start says.
type startedWith struct {
	catalog, parent event.ID
	path            string
	workload        json.RawMessage
	meta            struct {
		Pool       string          `json:"execution_pool"`
		Trace      json.RawMessage `json:"trace"`
		ParentIter json.RawMessage `json:"parent_iter"`
		Depth      int             `json:"depth"`
	}
}

func readStart(e *event.Event) (*startedWith, error) {
	w := &startedWith{catalog: e.CatalogID, parent: e.ParentExecutionID}
	var c struct {
		Path     string          `json:"path"`
		Workload json.RawMessage `json:"workload"`
	}
	if err := json.Unmarshal(e.Context, &c); err != nil {
		return nil, event.Errorf(event.Internal, "read start of execution %s: %w", e.ExecutionID, err)
	}
	if len(e.Meta) > 0 {
		if err := json.Unmarshal(e.Meta, &w.meta); err != nil {
			return nil, event.Errorf(event.Internal, "read start of execution %s: %w", e.ExecutionID, err)
		}
	}
	w.path, w.workload = cmp.Or(c.Path, e.NodeName), c.Workload
	return w, nil
}

// rerunnable finds what the original ran, nil when that cannot be run any more,
// and what is to be run now.
func (p *Plane) rerunnable(ctx context.Context, was *startedWith, r RerunRequest) (ran, now *runnable, err error) {
	ran, err = p.runnable(ctx, EntryRef{CatalogID: was.catalog})
	if !r.Latest && r.Version == 0 {
		return ran, ran, err
	}
	if err != nil && event.CodeOf(err) == event.Unavailable {
		return nil, nil, err
	}
	now, err = p.runnable(ctx, EntryRef{Path: was.path, Version: r.Version})
	return ran, now, err
}

// workloadWith is the original's workload with the keys of payload in place of
// its own. For another version of the playbook the defaults of the old one do
// not count as asked for.
func (w *startedWith) workloadWith(payload json.RawMessage, ran, now *runnable) (json.RawMessage, error) {
	over, err := objectOf("payload", payload)
	if err != nil {
		return nil, err
	}
	out, err := objectOf("the original's workload", w.workload)
	if err != nil {
		return nil, err
	}
	if changed(ran, now) {
		out = beyond(out, ran.program.Playbook().Workload)
	}
	for k, v := range over.All() {
		out.Set(k, v)
	}
	return jinja.ToJSON(out)
}

// changed tells whether another version is run than the original ran.
func changed(ran, now *runnable) bool { return ran != nil && ran.catalogID != now.catalogID }

// beyond leaves out what is as the defaults have it.
func beyond(d, defaults *jinja.Dict) *jinja.Dict {
	out := jinja.NewDict(d.Len())
	for k, v := range d.All() {
		usual, ok := defaults.Get(k)
		if !ok || !sameJSON(usual, v) {
			out.Set(k, v)
		}
	}
	return out
}

func sameJSON(a, b any) bool {
	x, err := jinja.ToJSON(a)
	if err != nil {
		return false
	}
	y, err := jinja.ToJSON(b)
	return err == nil && string(x) == string(y)
}

func objectOf(name string, raw json.RawMessage) (*jinja.Dict, error) {
	if len(raw) == 0 {
		return jinja.NewDict(0), nil
	}
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, event.Errorf(event.Invalid, "%s is not JSON: %w", name, err)
	}
	switch d := v.(type) {
	case nil:
		return jinja.NewDict(0), nil
	case *jinja.Dict:
		return d, nil
	}
	return nil, event.Errorf(event.Invalid, "%s must be a JSON object", name)
}

// harvest reads the original's log for what can be reused from a step on.
func (p *Plane) harvest(ctx context.Context, id event.ID, ran, now *runnable, from string) (*engine.Harvest, error) {
	var old *engine.Program
	if ran != nil {
		old = ran.program
	}
	h, err := engine.NewHarvest(id, now.program, old, from)
	if err != nil {
		return nil, err
	}
	for after := int64(0); ; {
		page, err := p.Events(ctx, id, after, foldPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			h.Apply(&page[i])
			after = page[i].Seq
		}
		if len(page) < foldPage {
			break
		}
	}
	return h, h.Check(now.program)
}

// takeOver puts into the log what a rerun reuses. Values that are kept elsewhere
// stay where they are, and are kept as long as this execution may need them;
// lost is told of those that are gone.
func (ps *pass) takeOver(ctx context.Context, h *engine.Harvest, lost func(ref string)) error {
	events := h.TakeOver(ps.live.program, ps.state, ps.env).Events
	ps.events = append(ps.events, events...)
	for i := range events {
		for _, r := range referencesOf(&events[i]) {
			at, err := event.ParseResultRef(r.ref)
			if err != nil || at.Execution == ps.id {
				continue // not ours to keep
			}
			err = ps.p.store.PinResult(ctx, at.Execution, at.String(), ps.id)
			switch {
			case errors.Is(err, store.ErrNotFound):
				lost(at.String())
			case err != nil:
				return storeError("keep the result "+at.String(), err)
			}
		}
	}
	return nil
}

// gone is what the answer to a rerun says of results that are not there any more.
func gone(refs []string) []string {
	slices.Sort(refs)
	var out []string
	for _, ref := range slices.Compact(refs) {
		out = append(out, "the result "+ref+" that is reused was collected: a step that needs all of it will fail; run from an earlier step to make it again")
	}
	return out
}

func firstGiven(all ...json.RawMessage) json.RawMessage {
	for _, raw := range all {
		if len(raw) > 0 {
			return raw
		}
	}
	return nil
}
