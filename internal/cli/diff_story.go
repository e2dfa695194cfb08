package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// story is what happened in an execution, in terms that can be held against
// another one.
type story struct {
	detail   client.Detail
	progress *progress
	facts    []fact
	byKey    map[string]int
	children map[string]event.ID // by step and iteration
}

// fact is one thing that happened, without what differs between any two
// executions: ids, times and who did it.
type fact struct {
	key   string
	what  string
	step  string
	index *int
	run   int
	seq   int64
	value json.RawMessage
}

// readStory reads the whole log of an execution.
func readStory(ctx context.Context, cl *client.Client, id event.ID) (*story, error) {
	detail, err := cl.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	s := &story{detail: detail, progress: newProgress(&Env{Stdout: io.Discard}, true), byKey: map[string]int{}, children: map[string]event.ID{}}
	for after := int64(0); ; {
		events, err := cl.Events(ctx, id, after, 1000)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			s.progress.apply(e)
			s.tell(e)
			after = e.Seq
		}
		if len(events) == 0 {
			return s, nil
		}
	}
}

// kindsOfFacts says what an event tells; others are how the engine works, or
// follow from these.
var kindsOfFacts = map[event.Type]string{
	event.StepEnter: "reached", event.CommandIssued: "input", event.CommandCompleted: "outcome", event.CommandFailed: "outcome",
	event.CommandCancelled: "outcome", event.CallDone: "outcome", event.NextEvaluated: "route", event.StepSkipped: "end", event.StepFailed: "end",
	event.StepExit: "end", event.LoopDone: "end", event.PlaybookCompleted: "end", event.PlaybookFailed: "end", event.PlaybookCancelled: "end",
}

// tell takes in one event.
func (s *story) tell(e event.Event) {
	t := e.Type.Canonical()
	index := indexOf(e.CommandID)
	if t == event.ChildIssued {
		s.children[place(e.NodeName, index)] = e.EventID
		return
	}
	what, ok := kindsOfFacts[t]
	if !ok {
		return
	}
	f := fact{what: what, step: e.NodeName, index: index, seq: e.Seq, value: s.essence(e, what)}
	for f.run = 1; ; f.run++ {
		f.key = fmt.Sprintf("%s/%s/%d", what, place(f.step, index), f.run)
		if _, taken := s.byKey[f.key]; !taken {
			break
		}
	}
	s.byKey[f.key] = len(s.facts)
	s.facts = append(s.facts, f)
}

func place(step string, index *int) string {
	if index == nil {
		return step
	}
	return step + "[" + strconv.Itoa(*index) + "]"
}

// indexOf is the iteration that a command id ends in, as …:i3.
func indexOf(command string) *int {
	_, last, ok := cutLast(command, ":i")
	n, err := strconv.Atoi(last)
	if !ok || err != nil {
		return nil
	}
	return &n
}

// essence is what of an event can be compared.
func (s *story) essence(e event.Event, what string) json.RawMessage {
	var raw json.RawMessage
	switch what {
	case "input":
		raw = e.Context
	default:
		raw = e.Result
	}
	var v any
	if decodeNumbers(raw, &v) != nil {
		return raw
	}
	v = s.strip(v)
	if what == "end" || what == "outcome" {
		v = map[string]any{"status": e.Status, "error": s.strip(e.Error), "result": v}
	}
	return encoded(v, v != nil)
}

// volatile are keys whose values differ between any two executions.
var volatile = map[string]bool{
	"command_id": true, "event_id": true, "execution_id": true, "parent_execution_id": true, "catalog_id": true, "worker_id": true, "emitted_at": true,
	"started_at": true, "completed_at": true, "created_at": true, "duration": true, "duration_ms": true, "elapsed": true, "ref": true, "uri": true, "timing": true,
}

// strip takes out what is volatile, and the execution's own id wherever it is.
func (s *story) strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if volatile[k] {
				delete(v, k)
				continue
			}
			v[k] = s.strip(x)
		}
		return v
	case []any:
		for i, x := range v {
			v[i] = s.strip(x)
		}
		return v
	case string:
		return strings.ReplaceAll(v, s.detail.ExecutionID.String(), "<execution>")
	}
	return v
}

// diverge is the first fact of one story that the other does not have in the
// same way. What happened at the same time may be told in any order, so facts
// are found by what they are about.
func diverge(a, b *story) *divergence {
	for i := range max(len(a.facts), len(b.facts)) {
		if i < len(a.facts) {
			f := a.facts[i]
			at, ok := b.byKey[f.key]
			if !ok {
				return f.apart(nil, false)
			}
			if !bytes.Equal(f.value, b.facts[at].value) {
				return f.apart(&b.facts[at], false)
			}
		}
		if i < len(b.facts) {
			if _, ok := a.byKey[b.facts[i].key]; !ok {
				return b.facts[i].apart(nil, true)
			}
		}
	}
	return nil
}

// apart tells of a fact that is another one in the other story, or not there.
func (f fact) apart(other *fact, onlyB bool) *divergence {
	d := &divergence{Step: f.step, Index: f.index, What: f.what, A: f.value, SeqA: f.seq}
	if f.run > 1 {
		d.Run = f.run
	}
	switch {
	case onlyB:
		d.A, d.SeqA, d.B, d.SeqB = nil, 0, f.value, f.seq
	case other != nil:
		d.B, d.SeqB = other.value, other.seq
	}
	return d
}

func (s *story) side() side {
	d := s.detail
	return side{d.ExecutionID, d.Path, d.Version, d.Status, durationOf(d.StartedAt, d.CompletedAt), d.Error}
}

func (s *story) result(step string) json.RawMessage {
	var v any
	raw := s.detail.Steps[step].Result
	if decodeNumbers(raw, &v) != nil {
		return raw
	}
	return encoded(s.strip(v), len(raw) > 0)
}

// child is the execution that the step of a divergence started; 0 for none.
func (s *story) child(d *divergence) event.ID { return s.children[place(d.Step, d.Index)] }
