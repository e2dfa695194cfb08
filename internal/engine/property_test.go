package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noetl/noetl-go/internal/event"
)

// TestAnyPlaybookInAnyOrder runs random playbooks with random answers in
// random order, claims lost and taken over, reports repeated and late, and
// proves for each finished log: it folds to the live state, every decision is
// reproduced from its prefix, there is one terminal event, no command is left
// open, and each command has one accepted end.
func TestAnyPlaybookInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		src := genPlaybook(rt)
		h := newHost(rapidTB{t, rt}, src, Limits{StepRuns: 6, LoopWindow: 3})
		if err := h.start(""); err != nil {
			rt.Fatalf("start: %v\n%s", err, src)
		}
		past := map[string]event.Event{}
		for i := 0; !h.state.Final(); i++ {
			if i > 3000 {
				rt.Fatalf("does not end:\n%s\n%s", src, h.state.dump())
			}
			h.randomEvent(rt, past)
		}
		h.verify()
		h.checkEnds(rt, src)
	})
}

// randomEvent lets one thing happen to one of the open commands, or to a past one.
func (h *host) randomEvent(rt *rapid.T, past map[string]event.Event) {
	open := h.state.OpenCommands()
	if len(open) == 0 {
		if at := h.state.WakeAt(); !at.IsZero() {
			h.now = at
			h.input()
			return
		}
		rt.Fatalf("stuck: nothing is open and nothing has ended\n%s", h.state.dump())
	}
	if rapid.IntRange(0, 19).Draw(rt, "time") == 0 {
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(rt, "seconds")) * time.Second)
		h.input()
		return
	}
	c := open[rapid.IntRange(0, len(open)-1).Draw(rt, "command")]
	if rapid.IntRange(0, 14).Draw(rt, "sends") == 0 {
		h.randomSignal(rt, rapid.SampledFrom([]string{"go", "yes", "other"}).Draw(rt, "signal"), c)
		return
	}
	if c.wait != nil {
		h.randomNews(rt, past, c)
		return
	}
	switch rapid.IntRange(0, 11).Draw(rt, "what") {
	case 11:
		h.input(h.report(c, event.CommandParked, map[string]any{"park": json.RawMessage(rapid.SampledFrom([]string{
			`{"delay_seconds": 3, "resume": {"at": 1}}`,
			`{"resume": {"at": 1}}`,
			`{"callback": "x"}`,
			`{"callback": "x", "resume": {"at": 2}}`,
			`{"callback": "x", "delay_seconds": 5, "resume": {"at": 2}}`,
			`{"delay_seconds": 4, "elapsed": {"data": {"n": 2}}}`,
			`{"delay_seconds": 4, "elapsed": {"error": {"kind": "timeout", "message": "late"}}, "resume": {"at": 4}}`,
			`{"signal": {"name": "go"}}`,
			`{"signal": {"name": "go", "form": "n"}, "resume": {"at": 5}}`,
			`{"signal": {"name": "yes", "approve": "fail"}, "delay_seconds": 6, "elapsed": {"error": {"message": "nobody answered"}}}`,
			`{"signal": {"name": "yes", "approve": "continue"}, "delay_seconds": 6, "resume": {"at": 6}}`,
			`{"child": {"path": "sub", "wait": true}}`,
			`{"child": {"path": "sub", "wait": true, "timeout_seconds": 9}}`,
			`{"child": {"path": "sub"}, "resume": {"at": 3}}`,
		}).Draw(rt, "park"))}))
	case 0:
		if e, err := Claim(h.state, c, rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "worker"), h.now.Add(time.Minute), h.env()); err == nil {
			h.input(e)
		}
	case 1:
		h.now = h.now.Add(2 * time.Minute)
		if c.Attempt >= c.MaxAttempts {
			h.input(Lost(h.state, c, "lease_expired", h.env()))
		}
	case 2:
		h.end(past, c, h.failure(c, "bad luck"))
	case 3:
		for _, id := range sortedKeys(past) {
			e := past[id]
			e.Seq, e.EventID = 0, h.env().NewID()
			h.input(e)
			break
		}
	case 4:
		e := h.success(c, json.RawMessage(`"stale"`))
		e.WorkerID = "somebody else"
		if c.Attempt > 0 {
			h.input(e)
		}
	case 5:
		if c.Worker != "" {
			h.input(Release(h.state, c, h.env()))
		}
	default:
		n := rapid.IntRange(0, 2).Draw(rt, "n")
		updates := ""
		if rapid.Bool().Draw(rt, "updates") {
			updates = fmt.Sprintf(`,"_context_updates":{"ctx.v":%d,"iter.x":1}`, n)
		}
		h.end(past, c, h.success(c, json.RawMessage(fmt.Sprintf(`{"n":%d,"rows":%s%s}`, n, []string{"[]", "[1,2]", "[3]"}[n], updates))))
	}
}

// randomNews wakes a parked command, or reports about it as somebody without a say.
func (h *host) randomNews(rt *rapid.T, past map[string]event.Event, c *Command) {
	switch {
	case rapid.IntRange(0, 4).Draw(rt, "stranger") == 0:
		e := h.success(c, json.RawMessage(`"stale"`))
		e.WorkerID = "its former holder"
		h.input(e)
	case c.wait.park.Child != nil:
		var failure json.RawMessage
		if rapid.Bool().Draw(rt, "child failed") {
			failure = json.RawMessage(`{"message":"no"}`)
		}
		if e, ok := ChildNews(h.state, Child{ID: c.wait.child, Command: c.ID}, json.RawMessage(`{"n":1,"rows":[1]}`), failure, nil, h.env()); ok {
			h.end(past, c, e)
		}
	case c.wait.park.Signal != nil && (c.wait.timer == 0 || rapid.Bool().Draw(rt, "sent in time")):
		h.randomSignal(rt, c.wait.park.Signal.Name, c)
	case c.wait.park.Callback == "":
		h.now = h.state.timers[c.wait.timer].at
		h.input()
	default:
		e, err := Ingest(h.state, event.Incoming{
			Type: event.CallDone, Step: c.Step, Meta: encode(map[string]string{"command_id": c.ID}),
			Payload: json.RawMessage(`{"status":"success","result":{"context":{"data":{"n":1}}}}`),
		}, "", h.env())
		if err != nil {
			rt.Fatal(err)
		}
		h.end(past, c, e)
	}
}

// randomSignal sends a signal, now and then for one step or iteration only, and
// now and then twice.
func (h *host) randomSignal(rt *rapid.T, name string, c *Command) {
	sent := event.SentSignal{Name: name, By: "somebody", Data: json.RawMessage(rapid.SampledFrom([]string{
		`{"approved":true,"n":1}`, `{"approved":false,"comment":"no"}`, `null`, `{"n":2}`,
	}).Draw(rt, "sent"))}
	if rapid.Bool().Draw(rt, "step only") {
		sent.Step = c.Step
	}
	if c.Index >= 0 && rapid.Bool().Draw(rt, "iteration only") {
		sent.Index = &c.Index
	}
	for range rapid.IntRange(1, 2).Draw(rt, "times") {
		env := h.env()
		h.input(Received(h.state, sent, env.NewID(), env))
	}
}

func (h *host) end(past map[string]event.Event, c *Command, e event.Event) {
	past[c.ID] = e
	h.input(e)
}

// checkEnds counts the terminal events and the accepted ends of each command.
func (h *host) checkEnds(rt *rapid.T, src string) {
	terminals := 0
	issued := map[string]int{}
	s := NewState(executionID)
	for _, e := range reread(h.log) {
		eff := s.Apply(&e)
		if e.Type.IsTerminal() {
			terminals++
		}
		if e.Type == event.CommandIssued {
			issued[e.CommandID] = 0
		}
		if eff.Ended {
			issued[e.CommandID]++
		}
	}
	if terminals != 1 {
		rt.Fatalf("%d terminal events\n%s", terminals, src)
	}
	for id, n := range issued {
		if n != 1 {
			rt.Fatalf("command %s has %d accepted ends\n%s", id, n, src)
		}
	}
}

// genPlaybook draws a small workflow: any arcs, cycles included, with
// conditions on data, variables and failures; loops of each kind; guards.
func genPlaybook(rt *rapid.T) string {
	n := rapid.IntRange(1, 6).Draw(rt, "steps")
	var b strings.Builder
	b.WriteString("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: random}\nworkload: {k: 1}\n")
	if rapid.IntRange(0, 3).Draw(rt, "final") == 0 {
		fmt.Fprintf(&b, "executor: {spec: {final_step: s%d}}\n", rapid.IntRange(0, n-1).Draw(rt, "final step"))
	}
	b.WriteString("workflow:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - step: s%d\n", i)
		if rapid.IntRange(0, 4).Draw(rt, "tool") > 0 || i == n-1 {
			fmt.Fprintf(&b, "    tool: {kind: noop, message: \"{{ k }} {{ s%d.n }}\"}\n", rapid.IntRange(0, n-1).Draw(rt, "reads"))
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{
					"", "", "",
					"    loop: {in: [1, 2, 3, 4], iterator: it}\n",
					"    loop: {in: [1, 2, 3, 4, 5], iterator: it, spec: {mode: parallel, max_in_flight: 2}}\n",
					"    loop: {in: \"{{ s0.rows }}\", iterator: it, spec: {mode: parallel}}\n",
					"    loop: {in: [], iterator: it}\n",
					"    loop: {in: 3, iterator: it, spec: {mode: parallel}}\n",
					"    loop: {cursor: {kind: postgres, auth: a, claim: SELECT 1}, iterator: it, spec: {mode: cursor, max_in_flight: 2, frame: {max_rows: 2, row_concurrency: 2}}}\n",
				}).Draw(rt, "loop"))
			}
		}
		b.WriteString(rapid.SampledFrom([]string{
			"", "", "", "    spec: {timeout: 30s}\n", "    spec: {policy: {failure: {mode: best_effort}}}\n",
			"    spec: {policy: {admit: {on_deny: wait, rules: [{when: \"{{ v is defined }}\", then: {allow: true}}, {else: {then: {allow: false}}}]}}}\n",
		}).Draw(rt, "spec"))
		b.WriteString(rapid.SampledFrom([]string{
			"", "", "", "    when: \"{{ s0.n != 1 }}\"\n", "    when: \"{{ v is not defined or v < 2 }}\"\n",
		}).Draw(rt, "guard"))
		b.WriteString(rapid.SampledFrom([]string{
			"", "", "    set: {ctx.v: \"{{ output.n }}\"}\n", "    set: {ctx.v: \"{{ v | default(0) + 1 }}\"}\n",
		}).Draw(rt, "set"))
		genArcs(rt, &b, n)
	}
	return b.String()
}

func genArcs(rt *rapid.T, b *strings.Builder, n int) {
	arcs := rapid.IntRange(0, 3).Draw(rt, "arcs")
	if arcs == 0 {
		return
	}
	mode := rapid.SampledFrom([]string{"exclusive", "inclusive"}).Draw(rt, "mode")
	fmt.Fprintf(b, "    next:\n      spec: {mode: %s}\n      arcs:\n", mode)
	for range arcs {
		fmt.Fprintf(b, "        - step: s%d\n", rapid.IntRange(0, n-1).Draw(rt, "target"))
		b.WriteString(rapid.SampledFrom([]string{
			"", "",
			"          when: \"{{ output.n == 0 }}\"\n",
			"          when: \"{{ output.n > 0 }}\"\n",
			"          when: \"{{ v is defined and v > 0 }}\"\n",
			"          when: \"{{ event.name == 'call.error' }}\"\n",
			"          when: \"{{ output.status == 'error' }}\"\n          set: {ctx.v: 9}\n",
		}).Draw(rt, "when"))
	}
}

// rapidTB lets the harness fail the drawn case, so that rapid can shrink it.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (r rapidTB) Fatal(args ...any)                 { r.rt.Fatal(args...) }
func (r rapidTB) Fatalf(format string, args ...any) { r.rt.Fatalf(format, args...) }
func (r rapidTB) Helper()                           {}
