package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// dump is a complete, deterministic text of a state: two states with the same
// dump decide alike from here on.
func (s *State) dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seq=%d status=%s preparing=%t unhandled=%d error=%q current=%s\n", s.seq, s.status, s.preparing, s.unhandled, s.errorText, s.currentStep)
	for _, name := range s.order {
		st := s.steps[name]
		fmt.Fprintf(&b, "step %s runs=%d", name, st.runs)
		if r := st.cur; r != nil {
			fmt.Fprintf(&b, " gen=%d %s applied=%d entered=%d ended=%d routed=%t handled=%t open=%d next=%d ok=%d bad=%d err=%q updates=%s",
				r.gen, r.phase, r.applied, r.entered, r.ended, r.routed, r.handled, r.openCmd, r.next, r.succeeded, r.faulted, r.errText, r.updates)
			if l := r.loop; l != nil {
				fmt.Fprintf(&b, " loop total=%d itemsRef=%s errors=%v updates=%v shared=%s window=%d slots=",
					l.total, l.itemsRef, l.errors, l.updates, l.shared, l.window)
				for i := range l.total {
					if l.slots.pages != nil {
						v := l.slots.get(i)
						fmt.Fprintf(&b, "%d:%s ", v.mark, v.result)
					}
				}
			}
			if c := r.cursor; c != nil {
				fmt.Fprintf(&b, " cursor %+v next=%d drained=%t empty=%d rows=%d failed=%d err=%q", c.cursorDetail, c.next, c.drained, c.empty, c.rows, c.failed, c.errText)
				for _, f := range c.frames {
					fmt.Fprintf(&b, " frame %d claimed=%t next=%d open=%d ended=%d updates=%v", f.number, f.claimed, f.next, f.open, f.ended, f.updates)
				}
			}
		}
		if st.result != nil {
			fmt.Fprintf(&b, " result=%s", st.result.JSON())
		}
		b.WriteByte('\n')
	}
	for _, c := range s.OpenCommands() {
		fmt.Fprintf(&b, "open %s %s worker=%s attempt=%d vars=%s data=%s error=%s\n", c.ID, c.Status, c.Worker, c.Attempt, c.vars, c.data, c.errRaw)
	}
	for _, c := range s.OpenCommands() {
		if c.wait != nil {
			park, _ := json.Marshal(c.wait.park)
			fmt.Fprintf(&b, "waiting %s %s timer=%d child=%d arranged=%t\n", c.ID, park, c.wait.timer, c.wait.child, c.wait.arranged)
		}
		if c.resume != nil {
			fmt.Fprintf(&b, "resumes %s %s %s\n", c.ID, c.resume.State, c.resume.Wake.Data)
		}
	}
	for _, c := range s.signalled {
		fmt.Fprintf(&b, "signalled %s %d\n", c.ID, c.wait.signal.id)
	}
	for _, g := range s.signals {
		fmt.Fprintf(&b, "signal %d %s\n", g.id, encode(&g.sent))
	}
	for _, c := range s.parked {
		fmt.Fprintf(&b, "parked %s\n", c.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(s.timers)) {
		fmt.Fprintf(&b, "timer %+v\n", *s.timers[id])
	}
	for _, c := range s.Pending(1 << 30) {
		fmt.Fprintf(&b, "pending %s\n", c.ID)
	}
	for _, id := range s.endRing {
		c := s.ended[id].cmd
		fmt.Fprintf(&b, "ended %s %s worker=%s attempt=%d error=%q\n", c.ID, c.Status, c.Worker, c.Attempt, c.Error)
	}
	for _, k := range sortedKeys(s.vars) {
		if v := s.vars[k]; v.ref != "" {
			fmt.Fprintf(&b, "var %s at %s\n", k, v.ref)
		} else {
			fmt.Fprintf(&b, "var %s=%s\n", k, v.raw)
		}
	}
	for _, o := range s.offers {
		fmt.Fprintf(&b, "offer %s from %s\n", o.target, o.from)
	}
	for _, r := range s.unrouted {
		fmt.Fprintf(&b, "unrouted %s\n", r.step)
	}
	for _, r := range s.loops {
		fmt.Fprintf(&b, "looping %s\n", r.step)
	}
	w, _ := json.Marshal(s.workload)
	fmt.Fprintf(&b, "workload %s\n", w)
	return b.String()
}

// describe is an event in one readable line, without ids and times.
func describe(e *event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", e.Type)
	if e.NodeName != "" && !e.Type.IsTerminal() {
		fmt.Fprintf(&b, " %s", e.NodeName)
	}
	switch e.Type {
	case event.PlaybookStarted:
		var d startDetail
		_ = json.Unmarshal(e.Context, &d)
		fmt.Fprintf(&b, " workload=%s", d.Workload)
	case event.StepEnter:
		d := resultOf[enterDetail](e)
		fmt.Fprintf(&b, " run=%d", d.Gen)
		if d.Expected != nil {
			fmt.Fprintf(&b, " items=%d window=%d", *d.Expected, d.MaxInFlight)
		}
		if d.Cursor != nil {
			fmt.Fprintf(&b, " cursor frames=%d rows=%d concurrency=%d", d.MaxInFlight, d.Cursor.MaxRows, d.Cursor.RowConcurrency)
		}
	case event.StepSkipped, event.StepFailed:
		d := resultOf[endDetail](e)
		fmt.Fprintf(&b, " (%s)", d.Reason)
		if d.Error != "" {
			fmt.Fprintf(&b, " %s", d.Error)
		}
	case event.LoopDone:
		d := resultOf[endDetail](e)
		fmt.Fprintf(&b, " iterations=%d failed=%d", *d.Iterations, d.Failed)
	case event.NextEvaluated:
		d := resultOf[routeDetail](e)
		fmt.Fprintf(&b, " -> [%s]", strings.Join(d.Matched, " "))
		if d.Failed {
			fmt.Fprintf(&b, " handled=%t", d.Handled)
		}
	case event.CtxUpdated:
		d := resultOf[ctxDetail](e)
		for _, k := range sortedKeys(d.Values) {
			fmt.Fprintf(&b, " %s=%s", k, d.Values[k])
		}
		for _, w := range d.Warnings {
			fmt.Fprintf(&b, " warning: %s", w)
		}
	case event.CommandIssued:
		d := metaOf[issueDetail](e)
		if d.Index != nil {
			fmt.Fprintf(&b, " i%d", *d.Index)
		}
		if p := d.Cursor; p != nil {
			fmt.Fprintf(&b, " frame=%d %s", p.Frame, placeName(p))
		}
		if e.WorkerID != "" {
			fmt.Fprintf(&b, " to=%s", e.WorkerID)
		}
		if len(e.Context) > 0 {
			var c issueContext
			_ = json.Unmarshal(e.Context, &c)
			fmt.Fprintf(&b, " vars=%s", c.RenderContext)
		}
	case event.CommandClaimed:
		fmt.Fprintf(&b, " by=%s attempt=%d", e.WorkerID, metaOf[claimDetail](e).Attempt)
	case event.TimerSet, event.TimerFired:
		fmt.Fprintf(&b, " %s", resultOf[timerDetail](e).Timer)
	case event.StepReused:
		d := resultOf[reusedDetail](e)
		fmt.Fprintf(&b, " run=%d %s", d.Gen, d.Status)
		if d.Part > 0 {
			fmt.Fprintf(&b, "part=%d items=%d", d.Part, len(d.Items))
		}
		if d.Unrouted {
			b.WriteString(" unrouted")
		}
		if len(d.Result) > 0 {
			fmt.Fprintf(&b, " result=%s", d.Result)
		}
	case event.RerunPrepared:
		for _, t := range resultOf[preparedDetail](e).Tokens {
			fmt.Fprintf(&b, " %s->%s", t.From, t.Step)
		}
	case event.FrameCommitted:
		d := resultOf[frameDetail](e)
		fmt.Fprintf(&b, " frame=%d rows=%d", d.Frame, d.Rows)
	case event.ChildIssued:
		d := resultOf[childDetail](e)
		fmt.Fprintf(&b, " %s wait=%t", d.Path, d.Wait)
	case event.PlaybookFailed:
		fmt.Fprintf(&b, ": %s", e.Error)
	case event.CommandFailed:
		fmt.Fprintf(&b, ": %s", e.Error)
	}
	return b.String()
}

// reread is the log as a reader of the store sees it: payloads as JSON only.
func reread(log []event.Event) []event.Event {
	out := slices.Clone(log)
	for i := range out {
		out[i].Detail = nil
	}
	return out
}

// fold replays a log from nothing.
func fold(id event.ID, log []event.Event) *State {
	s := NewState(id)
	for _, e := range reread(log) {
		s.Apply(&e)
	}
	return s
}
