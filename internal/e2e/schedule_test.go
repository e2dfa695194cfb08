package e2e

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// ticked is started every second by the schedule it declares.
const ticked = `
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: ticked
  path: e2e/ticked
  schedule: {every: 1s, overlap: allow, catch_up: all, payload: {who: cron}}
workload: {who: nobody}
workflow:
  - step: start
    tool: {kind: noop, result: {who: "{{ workload.who }}", tick: "{{ workload.schedule.tick }}"}}
`

// TestEachTickOfAScheduleIsRunOnceWhateverDies kills -9 three servers in turn
// while they share a schedule and other work, and proves by the log that each
// tick has one execution.
func TestEachTickOfAScheduleIsRunOnceWhateverDies(t *testing.T) {
	t.Parallel()
	s := newSystem(t, backends[1])
	c := &chaos{t: t, s: s}
	for range 3 {
		c.servers = append(c.servers, c.server())
	}
	for _, text := range []string{busy, ticked} {
		if _, err := c.servers[0].client.Register(s.ctx(), text); err != nil {
			t.Fatal(err)
		}
	}
	c.inTurn(8)
	<-time.After(2500 * time.Millisecond) // ticks of the last moments may be made up for
	admin := c.servers[0].client
	paused, err := admin.PauseSchedule(s.ctx(), "e2e/ticked", "enough")
	if err != nil || paused.State != "paused" || paused.PauseReason != "enough" {
		t.Fatal(paused, err)
	}
	c.awaitRuns(admin)
	for _, id := range c.ids {
		s.completed(c.servers[1], id)
	}
	for _, p := range c.servers {
		p.Terminate()
		_ = p.Wait(patience)
	}
	ticks := ticksOf(t, s.open(), "e2e/ticked")
	first, last := time.Time{}, time.Time{}
	for tick, n := range ticks {
		if n != 1 {
			t.Errorf("tick %s has %d executions", tick, n)
		}
		if first.IsZero() || tick.Before(first) {
			first = tick
		}
		if tick.After(last) {
			last = tick
		}
	}
	if want := int(last.Sub(first)/time.Second) + 1; len(ticks) != want || want < 10 {
		t.Errorf("%d ticks were run from %s to %s, want %d", len(ticks), first, last, want)
	}
	t.Logf("%d ticks survived %d kills beside %d executions", len(ticks), c.kills, len(c.ids))
}

// inTurn kills and restarts one server after the other, with load all along.
func (c *chaos) inTurn(kills int) {
	for i := range kills {
		var load sync.WaitGroup
		for _, p := range c.servers {
			load.Go(func() { c.post(p, 2) })
		}
		<-time.After(time.Duration(700+150*i) * time.Millisecond)
		c.servers[i%len(c.servers)].Kill()
		c.kills++
		load.Wait()
		c.servers[i%len(c.servers)] = c.server()
	}
}

// awaitRuns waits until the schedule's runs have ended and are known as such.
func (c *chaos) awaitRuns(admin *client.Client) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(100 * time.Millisecond) {
		runs, err := admin.ScheduleRuns(c.s.ctx(), "e2e/ticked", time.Time{}, 1000)
		open := 0
		for _, r := range runs {
			if r.EndedAt == nil {
				open++
			} else if r.State != "completed" {
				c.t.Fatalf("the run of %s %s: %s", r.Tick, r.State, r.Note)
			}
		}
		if err == nil && open == 0 && len(runs) > 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d of %d runs have not ended, %v", open, len(runs), err)
		}
	}
}

// ticksOf counts the executions of a path by the tick their log begins with.
func ticksOf(t *testing.T, db store.Store, path string) map[time.Time]int {
	t.Helper()
	out := map[time.Time]int{}
	rows, err := db.ListExecutions(t.Context(), store.ExecutionFilter{PathPrefix: path, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range rows {
		events, err := db.Events(t.Context(), x.ExecutionID, 0, 1)
		if err != nil || len(events) != 1 {
			t.Fatal(x.ExecutionID, err)
		}
		out[tickOf(t, events[0])]++
		if x.Status != event.StatusCompleted {
			t.Errorf("execution %s is %s", x.ExecutionID, x.Status)
		}
	}
	return out
}

func tickOf(t *testing.T, start event.Event) time.Time {
	t.Helper()
	var doc any
	if err := json.Unmarshal(start.Context, &doc); err != nil {
		t.Fatal(err)
	}
	text, _ := find(doc, "schedule").(map[string]any)["tick"].(string)
	tick, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("the log begins with %s: %v", start.Context, err)
	}
	return tick
}

// find is the value of a key, wherever in a document it is.
func find(doc any, key string) any {
	m, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	if v, ok := m[key]; ok {
		return v
	}
	for _, v := range m {
		if found := find(v, key); found != nil {
			return found
		}
	}
	return nil
}
