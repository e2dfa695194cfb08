package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// What is large is stored beside the log, whatever brings it there, and comes
// back whole wherever it is read.
func TestLargeValuesStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	h := newHost(t, `{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: large}, workflow: [
  {step: start, tool: {kind: noop}, set: {ctx.text: "{{ output.text }}"}, next: {arcs: [{step: each, when: "{{ text | length == 700000 }}", set: {ctx.list: "{{ output.list }}"}}]}},
  {step: each, loop: {in: "{{ list }}", iterator: item}, tool: {kind: noop, message: "{{ item }} {{ text }}"}, next: end},
  {step: end, tool: {kind: noop, message: "{{ text }}"}}]}`, Limits{})
	if err := h.start(""); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 700_000)
	items := make([]string, 3)
	for i := range items {
		items[i] = fmt.Sprint(i) + strings.Repeat("y", 30_000)
	}
	data, _ := json.Marshal(map[string]any{"text": text, "list": items})
	reported := h.success(find(h, "start", -1), data)
	h.input(reported)
	for i := range items {
		c := find(h, "each", i)
		cmd, err := Dispatch(h.prog, h.state, c)
		if err != nil {
			t.Fatal(err)
		}
		var ctx map[string]any
		if err := json.Unmarshal(cmd.Context.RenderContext, &ctx); err != nil {
			t.Fatal(err)
		}
		if ctx["item"] != items[i] || ctx["text"] != text {
			t.Errorf("iteration %d got an item of %d and a text of %d bytes", i, len(fmt.Sprint(ctx["item"])), len(fmt.Sprint(ctx["text"])))
		}
		h.input(h.success(c, json.RawMessage("1")))
	}
	for _, e := range h.log {
		if size := len(e.Context) + len(e.Result) + len(e.Meta); size > 10_000 && e.EventID != reported.EventID {
			t.Errorf("%s of %s has %d bytes", e.Type, e.NodeName, size)
		}
	}
	h.input(h.success(find(h, "end", -1), json.RawMessage("1")))
	if got := h.state.Summary(); got.Status != event.StatusCompleted {
		t.Errorf("%s: %s", got.Status, got.Error)
	}
	h.verify()
}

// A value that is gone fails the step that needs it, and no other.
func TestAValueThatIsGoneFailsTheStepThatNeedsIt(t *testing.T) {
	t.Parallel()
	h := newHost(t, `{apiVersion: noetl.io/v2, kind: Playbook, metadata: {name: gone}, workflow: [
  {step: start, tool: {kind: noop}, set: {ctx.text: "{{ output.text }}"}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}},
  {step: a, tool: {kind: noop}, next: {arcs: [{step: end, when: "{{ 1 == 1 }}"}]}},
  {step: b, tool: {kind: noop}, next: {arcs: [{step: end, when: "{{ text == 'x' }}"}]}},
  {step: end, tool: {kind: noop}}]}`, Limits{})
	if err := h.start(""); err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(map[string]any{"text": strings.Repeat("x", 70_000)})
	h.input(h.success(find(h, "start", -1), data))
	clear(h.stored)
	h.state.vars["text"].val, h.state.vars["text"].raw = nil, nil // as after a restart
	h.input(h.success(find(h, "a", -1), json.RawMessage("1")))
	h.input(h.success(find(h, "b", -1), json.RawMessage("1")))
	got := h.state.Summary()
	if got.Status != event.StatusFailed || !strings.Contains(got.Error, `Failed steps: b`) || !strings.Contains(got.Error, "not available any more") {
		t.Errorf("%s: %s", got.Status, got.Error)
	}
}
