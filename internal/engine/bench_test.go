package engine

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// chainOf is a playbook of n steps in a row.
func chainOf(n int) string {
	var b strings.Builder
	b.WriteString("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: chain}\nworkload: {k: 1}\nworkflow:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - step: s%d\n    tool: {kind: noop, message: \"{{ k }}\"}\n", i)
		if i < n-1 {
			fmt.Fprintf(&b, "    next: {arcs: [{step: s%d, when: \"{{ output.n == 1 }}\"}]}\n", i+1)
		}
	}
	return b.String()
}

// finish answers open commands until the execution has ended.
func (h *host) finish() {
	for !h.state.Final() {
		for _, c := range h.state.Pending(256) {
			h.step(h.success(c, json.RawMessage(`{"n":1}`)))
		}
	}
}

// step applies an event and decides, as the control plane does, without the
// proofs that input makes.
func (h *host) step(e event.Event) {
	h.state.Begin()
	h.state.Apply(&e)
	h.log = append(h.log, e)
	plan := Decide(h.prog, h.state, h.env())
	h.log = append(h.log, plan.Events...)
	h.state.Commit()
}

func BenchmarkApply(b *testing.B) {
	h := newHost(b, chainOf(10), Limits{})
	if err := h.start(""); err != nil {
		b.Fatal(err)
	}
	h.finish()
	log := reread(h.log)
	b.ReportAllocs()
	for b.Loop() {
		s := NewState(executionID)
		for i := range log {
			log[i].Detail = nil // a stored event carries none
			s.Apply(&log[i])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(log)), "ns/event")
}

func BenchmarkDecideChain(b *testing.B) {
	h := newHost(b, chainOf(10), Limits{})
	b.ReportAllocs()
	for b.Loop() {
		h.state, h.log = NewState(executionID), h.log[:0]
		e, err := Start(h.prog, StartInput{ExecutionID: executionID, CatalogID: 9, Path: "chain"}, h.env())
		if err != nil {
			b.Fatal(err)
		}
		h.step(e)
		h.finish()
	}
}

// BenchmarkLoop runs loops of growing size; the cost of an iteration must not
// grow with them. live-B/iteration is what a finished iteration leaves in memory.
func BenchmarkLoop(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := newHost(b, fmt.Sprintf(`{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: loop}, workflow: [
  {step: start, tool: {kind: noop}, next: each},
  {step: each, tool: {kind: noop, message: "{{ i }}"}, loop: {in: %d, iterator: i, spec: {mode: parallel}}}]}`, n), Limits{})
			b.ReportAllocs()
			var live uint64
			for b.Loop() {
				live = runLoop(b, h)
			}
			each := float64(b.N) * float64(n)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/each, "ns/iteration")
			b.ReportMetric(float64(live)/float64(n), "live-B/iteration")
		})
	}
}

// runLoop runs the playbook once, keeping nothing of the log, and returns the
// memory the state holds just before the loop is done.
func runLoop(b *testing.B, h *host) (live uint64) {
	h.state, h.log = NewState(executionID), nil
	e, err := Start(h.prog, StartInput{ExecutionID: executionID, CatalogID: 9, Path: "loop"}, h.env())
	if err != nil {
		b.Fatal(err)
	}
	h.step(e)
	base := heap(b)
	for !h.state.Final() {
		for _, c := range h.state.Pending(256) {
			if c.Step == "each" && c.Index == h.state.steps["each"].cur.loop.total-1 {
				live = heap(b) - base
			}
			e := event.Event{
				ExecutionID: executionID, EventID: h.env().NewID(), CreatedAt: h.now, Type: event.CommandCompleted, Status: "success",
				NodeName: c.Step, CommandID: c.ID, Result: json.RawMessage(`{"status":"success","context":{"status":"success","data":{"n":1}}}`),
			}
			h.step(e)
			h.log = h.log[:0]
		}
	}
	return live
}

func heap(b *testing.B) uint64 {
	b.StopTimer()
	defer b.StartTimer()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
