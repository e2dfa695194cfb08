package worker_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// shop runs commands whose kind is told by their number: 1n is python, 2n http
// and 3n a sequence. It notes how many of each ran at once.
type shop struct {
	mu      sync.Mutex
	now     map[string]int
	most    map[string]int
	began   []event.ID
	lengths map[string]time.Duration
}

func (s *shop) kind(id event.ID) string { return []string{"python", "http", "task_sequence"}[id/100-1] }

func (s *shop) command(id event.ID) *event.Command {
	cmd := command(id)
	cmd.Action = s.kind(id)
	if id/100 == 3 {
		cmd.Context.ToolConfig = json.RawMessage(`[{"a":{"kind":"http"}},{"name":"b","kind":"postgres"}]`)
	}
	if id%100 >= 50 { // a sequence that computes
		cmd.Context.ToolConfig = json.RawMessage(`[{"a":{"kind":"http"}},{"b":{"kind":"python"}}]`)
	}
	return cmd
}

func (s *shop) run(ctx context.Context, cmd *event.Command) event.Incoming {
	s.count(cmd, 1)
	defer s.count(cmd, -1)
	return last(s.lengths[cmd.Action])(ctx, cmd)
}

func (s *shop) count(cmd *event.Command, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 {
		s.began = append(s.began, cmd.EventID)
	}
	s.now[cmd.Action] += n
	s.most[cmd.Action] = max(s.most[cmd.Action], s.now[cmd.Action])
}

func (s *shop) ran(ids ...event.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id event.ID) bool { return !slices.Contains(s.began, id) })
}

// sent is what was reported so far.
func (p *plane) sent() []event.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reports)
}

// open starts a worker of four slots that runs what the shop has.
func open(t *testing.T, cpu, io int, report func(event.Report) (event.ReportAnswer, error)) (*shop, *plane, *fixture) {
	t.Helper()
	s := &shop{now: map[string]int{}, most: map[string]int{}, lengths: map[string]time.Duration{
		"python": time.Minute, "http": time.Second, "task_sequence": time.Second,
	}}
	p := &plane{claim: func(r event.ClaimRequest) (*event.Command, error) { return s.command(r.EventID), nil }, report: report}
	f := start(t, p, s.run, func(o *worker.Options) { o.Slots, o.SlotsCPU, o.SlotsIO = 4, cpu, io })
	return s, p, f
}

// announce publishes commands with their kinds, unless foreign.
func announce(t *testing.T, f *fixture, foreign bool, ids ...event.ID) {
	t.Helper()
	for _, id := range ids {
		n := event.Notification{ExecutionID: id / 10, EventID: id, CommandID: commandID(id), ToolKind: (&shop{}).kind(id)}
		if foreign {
			n.ToolKind = ""
		}
		if err := f.bus.Publish(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCommandsThatWaitForOthersPassThoseThatCompute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, f := open(t, 2, 0, nil)
		announce(t, f, false, 101, 102, 103, 104, 105, 106, 107, 108, 201, 202, 203, 204)
		elapse(10 * time.Second)
		if !s.ran(201, 202, 203, 204) {
			t.Error("http waits behind python")
		}
		elapse(10 * time.Minute)
		if !s.ran(101, 102, 103, 104, 105, 106, 107, 108) {
			t.Errorf("began %v: some python never ran", s.began)
		}
		if s.most["python"] != 2 {
			t.Errorf("%d python ran at once, want 2", s.most["python"])
		}
	})
}

func TestBothClassesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, f := open(t, 1, 2, nil)
		announce(t, f, false, 201, 202, 203, 204, 205, 101, 102)
		elapse(10 * time.Minute)
		if len(s.began) != 7 || s.most["http"] != 2 || s.most["python"] != 1 {
			t.Errorf("%d ran, at once %v", len(s.began), s.most)
		}
	})
}

func TestASequenceCountsByItsTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, f := open(t, 1, 0, nil)
		s.lengths["task_sequence"] = time.Minute
		announce(t, f, false, 301) // waits for others
		elapse(time.Second)
		announce(t, f, false, 101)
		elapse(time.Second)
		if !s.ran(301, 101) {
			t.Error("want python beside a sequence of http")
		}
		announce(t, f, false, 351) // computes
		elapse(5 * time.Second)
		if s.ran(351) {
			t.Error("a sequence was begun without a place for it")
		}
		elapse(5 * time.Minute)
		if !s.ran(351) {
			t.Error("the sequence never ran")
		}
	})
}

func TestANotificationWithoutAKindWaitsForAPlaceOfEitherClass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, f := open(t, 1, 0, nil)
		announce(t, f, true, 101, 102, 201)
		elapse(10 * time.Minute)
		if !s.ran(101, 102, 201) || s.most["python"] != 1 {
			t.Errorf("began %v, at once %v", s.began, s.most)
		}
		if len(p.released) != 0 {
			t.Errorf("%v were given back", p.released)
		}
	})
}

func TestHandedOverCommandsKeepToTheClasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *shop
		s, p, f := open(t, 1, 0, func(r event.Report) (event.ReportAnswer, error) {
			if r.Eager > 0 && r.Events[0].Step != "" && slices.Contains(r.EagerNot, "python") {
				// A plane that does not listen.
				return event.ReportAnswer{Commands: []*event.Command{s.command(109)}}, nil
			}
			return event.ReportAnswer{}, nil
		})
		announce(t, f, false, 101)
		elapse(time.Second)
		announce(t, f, false, 201)
		elapse(10 * time.Second)
		p.mu.Lock()
		equal(t, "given back", p.released, []event.ID{109})
		p.mu.Unlock()
		equal(t, "not wanted", p.sent()[0].EagerNot, []string{"task_sequence", "duckdb", "python", "shell"})
		elapse(5 * time.Minute)
		sent := p.sent()
		if got := sent[len(sent)-1]; len(got.EagerNot) != 0 {
			t.Errorf("the last python does not want %v although it makes room", got.EagerNot)
		}
		if s.most["python"] != 1 {
			t.Errorf("%d python at once", s.most["python"])
		}
	})
}

func TestSlotsAreReservedByKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, f := open(t, 1, 0, nil)
		synctest.Wait()
		if !f.ReserveFor("python") || f.ReserveFor("shell") || f.ReserveFor("task_sequence") || !f.ReserveFor("http") {
			t.Fatal("one place to compute was not given once")
		}
		f.UnreserveFor("http")
		f.Deliver(s.command(101))
		elapse(time.Second)
		if f.ReserveFor("duckdb") {
			t.Error("a place was given that python has")
		}
		elapse(2 * time.Minute)
		if !f.ReserveFor("duckdb") {
			t.Fatal("the place was not given back")
		}
		f.UnreserveFor("duckdb")
	})
}
