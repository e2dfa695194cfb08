package engine

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// wireEvent is an event as a fuzzer writes it: one JSON object per line.
type wireEvent struct {
	ID      int64           `json:"id"`
	Type    string          `json:"type"`
	Step    string          `json:"step"`
	Status  string          `json:"status"`
	Command string          `json:"command"`
	Worker  string          `json:"worker"`
	Error   string          `json:"error"`
	Context json.RawMessage `json:"context"`
	Result  json.RawMessage `json:"result"`
	Meta    json.RawMessage `json:"meta"`
}

// readLog turns lines into a log; a line that is no event ends it.
func readLog(text []byte) []event.Event {
	var out []event.Event
	for line := range bytes.Lines(text) {
		var w wireEvent
		if json.Unmarshal(line, &w) != nil {
			break
		}
		out = append(out, event.Event{
			ExecutionID: executionID, EventID: event.ID(w.ID), Type: event.Type(w.Type), NodeName: w.Step, Status: w.Status,
			CommandID: w.Command, WorkerID: w.Worker, Error: w.Error, Context: w.Context, Result: w.Result, Meta: w.Meta,
		})
	}
	return out
}

// FuzzApply folds whatever a log may hold. It never panics, folding twice gives
// the same state, a stretch that is rolled back leaves no trace, and what the
// state has to show can be shown.
func FuzzApply(f *testing.F) {
	for _, seed := range fuzzSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		log := readLog(text)
		first := fold(executionID, log)
		if diff := cmp.Diff(first.dump(), fold(executionID, log).dump()); diff != "" {
			t.Fatalf("folding twice differs:\n%s", diff)
		}
		s := NewState(executionID)
		for _, e := range reread(log) {
			before, again := s.dump(), e
			s.Begin()
			s.Apply(&again)
			s.Rollback()
			if diff := cmp.Diff(before, s.dump()); diff != "" {
				t.Fatalf("rollback of %s leaves traces:\n%s", e.Type, diff)
			}
			s.Begin()
			s.Apply(&e)
			s.Commit()
		}
		if diff := cmp.Diff(first.dump(), s.dump()); diff != "" {
			t.Fatalf("folding in stretches differs:\n%s", diff)
		}
		showAll(s)
		decideOn(first)
	})
}

// showAll looks at everything a state has to show.
func showAll(s *State) {
	_, _ = s.Summary(), s.Outcome()
	_, _ = Explain(fuzzProgram, s, "")
	_, _ = Returned(s, event.ChildRequest{ReturnResult: true})
	_, _ = Returned(s, event.ChildRequest{ReturnStep: "s"})
	_ = s.Children()
	for _, c := range s.OpenCommands() {
		_, _ = Dispatch(fuzzProgram, s, c)
	}
}

// decideOn decides on whatever the log has led to, as long as it leads on.
func decideOn(s *State) {
	ids := event.ID(1 << 40)
	env := Env{Now: time.Unix(1_900_000_000, 0).UTC(), NewID: func() event.ID { ids++; return ids }}
	Decide(fuzzProgram, s, env)
}

// fuzzProgram has the steps that logs of the fuzzer are about.
var fuzzProgram = func() *Program {
	pb, problems := playbook.Parse("fuzz.yaml", []byte(`{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: fuzz}, workflow: [
  {step: s, tool: {kind: noop, message: "{{ a }}"}, loop: {in: [1, 2], iterator: i, spec: {mode: parallel}}, next: t},
  {step: t, tool: {kind: noop}, spec: {timeout: 1s}, next: c},
  {step: c, tool: {kind: noop}, loop: {cursor: {kind: postgres, auth: a, claim: SELECT 1}, iterator: r, spec: {mode: cursor}}, next: end},
  {step: end, tool: {kind: noop, message: "{{ c.rows }}"}}]}`))
	if err := problems.Err(); err != nil {
		panic(err)
	}
	p, err := CompileWith(pb, Limits{StepRuns: 3})
	if err != nil {
		panic(err)
	}
	return p
}()

var fuzzSeeds = []string{
	`{"id":1,"type":"playbook_started","context":{"path":"p"}}
{"id":2,"type":"step.enter","step":"t","result":{"context":{"gen":1}}}
{"id":3,"type":"command.issued","step":"t","command":"c","meta":{"gen":1,"max_attempts":3}}
{"id":4,"type":"timer.set","step":"t","result":{"context":{"timer":"timeout","gen":1,"fires_at":"2027-01-01T00:00:00Z"}}}
{"id":5,"type":"command.claimed","command":"c","worker":"w","meta":{"attempt":1}}
{"id":6,"type":"command.parked","command":"c","worker":"w","meta":{"attempt":1},"result":{"context":{"park":{"child":{"path":"q","wait":true},"resume":{}}}}}
{"id":7,"type":"child.issued","step":"t","result":{"context":{"command_id":"c"}}}
{"id":8,"type":"call.done","command":"c","result":{"context":{"child_execution_id":"7","data":{"n":1}}}}
{"id":9,"type":"timer.fired","step":"t","result":{"context":{"timer":"timeout","gen":1}}}
`,
	`{"id":1,"type":"playbook_started","context":{"path":"p"}}
{"id":2,"type":"step.enter","step":"c","result":{"context":{"gen":1,"iterator_var":"r","max_in_flight":2,"cursor":{"max_rows":2,"row_concurrency":2}}}}
{"id":3,"type":"command.issued","step":"c","command":"k","meta":{"gen":1,"cursor":{"phase":"claim","frame":0}}}
{"id":4,"type":"command.completed","command":"k","result":{"context":{"data":{"rows":[1,2]}}}}
{"id":5,"type":"command.issued","step":"c","command":"b","meta":{"gen":1,"cursor":{"phase":"body","frame":0,"row":-1}}}
{"id":6,"type":"command.issued","step":"c","command":"b9","meta":{"gen":1,"cursor":{"phase":"body","frame":9,"row":3}}}
{"id":7,"type":"frame.committed","step":"c","result":{"context":{"gen":1,"frame":0,"row_count":2}}}
`,
	`{"id":1,"type":"playbook_started","context":{"path":"p","workload":{"a":1}}}
{"id":2,"type":"step.enter","step":"s","result":{"context":{"gen":1}}}
{"id":3,"type":"command.issued","step":"s","command":"c","meta":{"gen":1,"max_attempts":3}}
{"id":4,"type":"command.claimed","step":"s","command":"c","worker":"w","meta":{"attempt":1}}
{"id":5,"type":"call.done","command":"c","worker":"w","result":{"context":{"result":{"context":{"data":{"n":1}}}}}}
{"id":6,"type":"command.released","command":"c"}
{"id":7,"type":"action_completed","command":"c","worker":"w","meta":{"attempt":1},"result":{"context":{"status":"error"}}}
{"id":8,"type":"next.evaluated","step":"s","result":{"context":{"step":"s","gen":1,"matched":["t"],"handled":true}}}
{"id":9,"type":"step.skipped","step":"t","result":{"context":{"gen":1,"reason":"guard"}}}
{"id":10,"type":"playbook_failed","error":"no"}
`,
	`{"id":1,"type":"playbook_started","context":{"workload":[]}}
{"id":2,"type":"step.enter","step":"s","result":{"context":{"gen":1,"iterations_expected":2,"items":[1,2],"mode":"parallel","max_in_flight":9,"vars":{"a":1}}}}
{"id":3,"type":"command.issued","step":"s","command":"c0","worker":"w","meta":{"gen":1,"iteration_index":0}}
{"id":4,"type":"command.issued","step":"s","command":"c1","meta":{"gen":1,"iteration_index":1}}
{"id":5,"type":"command.completed","command":"c0","worker":"w","result":{"context":{"data":{"_context_updates":{"ctx.v":1}}}}}
{"id":6,"type":"ctx.updated","step":"s","result":{"context":{"step":"s","gen":1,"iteration_index":0,"values":{"v":1}}}}
{"id":7,"type":"command.failed","command":"c1","result":{"context":{"error":{"message":"no"}}}}
{"id":8,"type":"step.failed","step":"s","result":{"context":{"gen":1,"reason":"iteration","error":"no"}}}
{"id":9,"type":"loop.done","step":"s","result":{"context":{"gen":1}}}
`,
	`{"id":1,"type":"playbook_started"}
{"id":2,"type":"step.enter","step":"s","result":{"context":{"gen":1,"iterations_expected":-1}}}
{"id":3,"type":"step.enter","step":"t","result":{"context":{"gen":1,"iterations_expected":99999999999,"items":[1]}}}
{"id":4,"type":"command.issued","step":"t","command":"c","meta":{"gen":1,"iteration_index":-1}}
{"id":5,"type":"command.issued","step":"t","command":"d","meta":{"gen":1,"iteration_index":9223372036854775807}}
{"id":6,"type":"command.completed","command":"c","result":{"context":{"data":1}}}
{"id":7,"type":"ctx.updated","step":"t","result":{"context":{"step":"t","iteration_index":-9223372036854775808,"values":{"v":null}}}}
{"id":8,"type":"step.failed","step":"u","result":{"context":{"gen":-1}}}
{"id":9,"type":"step.skipped","step":"t","result":{"context":{"gen":9223372036854775807}}}
{"id":10,"type":"next.evaluated","result":{"context":{"step":"s","gen":1,"matched":["nowhere"]}}}
`,
}
