package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/scope"
)

const executionID event.ID = 71

// host drives the engine the way the control plane does, in memory, and
// remembers for every decision the prefix it was taken on.
type host struct {
	t      testing.TB
	prog   *Program
	state  *State
	log    []event.Event
	ids    event.ID
	now    time.Time
	passes []pass
	stored map[string]json.RawMessage // values beside the log
}

// pass is one decision: plan events log[from:to] were decided on log[:from].
type pass struct {
	from, to int
	now      time.Time
}

func newHost(t testing.TB, src string, limits Limits) *host {
	t.Helper()
	pb, problems := playbook.Parse("test.yaml", []byte(src))
	if err := problems.Err(); err != nil {
		t.Fatalf("playbook:\n%s\n%v", src, err)
	}
	prog, err := CompileWith(pb, limits)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, prog: prog, now: time.Unix(1_800_000_000, 0).UTC(), stored: map[string]json.RawMessage{}}
	h.state = h.lend(NewState(executionID))
	return h
}

// lend gives a state access to the values beside the log.
func (h *host) lend(s *State) *State {
	s.Lend(func(ref *scope.Reference) json.RawMessage { return h.stored[ref.Ref] })
	return s
}

func (h *host) env() Env {
	return Env{Now: h.now, NewID: func() event.ID { h.ids++; return h.ids }, Fits: fits}
}

// fits stands for a check against a JSON Schema: the form names the one member
// that what is sent must have.
func fits(form, data json.RawMessage) error {
	var want string
	if json.Unmarshal(form, &want) != nil || !bytes.Contains(data, []byte(want)) {
		return fmt.Errorf("%s is missing", form)
	}
	return nil
}

func (h *host) start(payload string) error {
	e, err := Start(h.prog, StartInput{
		ExecutionID: executionID, CatalogID: 9, Path: h.prog.pb.Metadata.Path, Version: 1, Payload: json.RawMessage(payload),
	}, h.env())
	if err != nil {
		return err
	}
	h.input(e)
	return nil
}

// input applies events, decides, and keeps both; it returns the new part of
// the log. Every pass is first tried and rolled back, which must leave no trace.
func (h *host) input(events ...event.Event) []event.Event {
	before, ids := h.state.dump(), h.ids
	h.state.Begin()
	for _, e := range events {
		h.state.Apply(&e)
	}
	Decide(h.prog, h.state, h.env())
	h.state.Rollback()
	h.ids = ids
	if diff := cmp.Diff(before, h.state.dump()); diff != "" {
		h.t.Fatalf("rollback leaves traces (-before +after):\n%s", diff)
	}

	at := len(h.log)
	h.state.Begin()
	for _, e := range events {
		h.state.Apply(&e)
		h.log = append(h.log, e)
	}
	from := len(h.log)
	plan := Decide(h.prog, h.state, h.env())
	h.log = append(h.log, plan.Events...)
	for _, s := range plan.Stored {
		h.stored[s.Ref] = s.Data
	}
	h.state.Commit()
	h.passes = append(h.passes, pass{from, len(h.log), h.now})
	return h.log[at:]
}

// report makes a worker's event about a command.
func (h *host) report(c *Command, t event.Type, payload map[string]any) event.Event {
	payload["command_id"] = c.ID
	raw, err := json.Marshal(payload)
	if err != nil {
		h.t.Fatal(err)
	}
	meta := fmt.Sprintf(`{"command_id":%q,"attempt":%d}`, c.ID, c.Attempt)
	e, err := Ingest(h.state, event.Incoming{Type: t, Step: c.Step, Payload: raw, Meta: json.RawMessage(meta)}, c.Worker, h.env())
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

func (h *host) success(c *Command, data json.RawMessage) event.Event {
	return h.report(c, event.CommandCompleted, map[string]any{
		"status": "success", "result": map[string]any{"status": "success", "context": map[string]any{"data": data}},
	})
}

func (h *host) failure(c *Command, text string) event.Event {
	return h.report(c, event.CommandFailed, map[string]any{
		"error": map[string]any{"kind": "logic", "code": "E1", "message": text, "retryable": false},
	})
}

// verify proves the log: it folds to the state the live run has, deciding
// again yields nothing, and every decision is reproduced from its prefix.
func (h *host) verify() {
	h.t.Helper()
	folded := h.lend(fold(executionID, h.log))
	if diff := cmp.Diff(h.state.dump(), folded.dump()); diff != "" {
		h.t.Fatalf("folding the log differs from the live state (-live +folded):\n%s", diff)
	}
	if again := Decide(h.prog, folded, h.env()); len(again.Events) > 0 {
		h.t.Fatalf("deciding again yields %s", describe(&again.Events[0]))
	}
	log := reread(h.log)
	s := h.lend(NewState(executionID))
	done := 0
	for _, p := range h.passes {
		for ; done < p.from; done++ {
			s.Apply(&log[done])
		}
		recorded := log[p.from:p.to]
		next := 0
		plan := Decide(h.prog, s, Env{Now: p.now, NewID: func() event.ID {
			next++
			if next > len(recorded) {
				return 1 << 40
			}
			return recorded[next-1].EventID
		}, Fits: fits})
		if diff := cmp.Diff(lines(recorded), lines(plan.Events)); diff != "" {
			h.t.Fatalf("the decision after event %d differs when replayed (-live +replayed):\n%s", p.from, diff)
		}
		done = p.to
	}
	for i, e := range h.log {
		if e.Seq != int64(i+1) {
			h.t.Fatalf("event %d has seq %d", i+1, e.Seq)
		}
	}
}

func lines(events []event.Event) []string {
	out := make([]string, len(events))
	for i := range events {
		out[i] = describe(&events[i])
	}
	return out
}
