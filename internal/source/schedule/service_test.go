package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// However often replicas die between any two steps, the store and the control
// plane refuse or lose their answers, and clocks differ: each tick has one
// execution.
func TestEachTickIsStartedOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *rig) {
				rng, faults := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
				var mu sync.Mutex
				roll := func() memstore.Fault {
					mu.Lock()
					defer mu.Unlock()
					return chance(faults, .05)()
				}
				r.x.takes = 1500 * time.Millisecond
				began := time.Now()
				admin := r.service(0)
				c := r.create(admin, event.ScheduleSpec{Every: "1s", Overlap: "allow", CatchUp: "all"})
				r.store.Inject(memstore.Faults{Hook: func(string) memstore.Fault { return roll() }})
				r.x.fault = roll
				var stops []func()
				for i := range 3 {
					stops = append(stops, r.run(r.service(time.Duration(i-1)*2*time.Second)))
				}
				for range 30 { // kill one after the other
					sleep(time.Duration(rng.IntN(1500)) * time.Millisecond)
					i := rng.IntN(len(stops))
					stops[i]()
					stops[i] = r.run(r.service(time.Duration(i-1) * 2 * time.Second))
				}
				r.store.Inject(memstore.Faults{})
				r.x.mu.Lock()
				r.x.fault = nil
				r.x.mu.Unlock()
				sleep(10 * time.Second)
				if _, err := admin.Pause(t.Context(), c.Name, "done", ""); err != nil {
					t.Fatal(err)
				}
				paused := time.Now()
				sleep(10 * time.Second)
				for _, stop := range stops {
					stop()
				}
				_, count := r.x.seen()
				for tick := began.Add(time.Second); tick.Before(paused.Add(-2 * time.Second)); tick = tick.Add(time.Second) {
					if n := count[tick.UTC().Format(time.RFC3339Nano)]; n != 1 {
						t.Errorf("tick %s has %d executions", tick, n)
					}
				}
				for tick, n := range count {
					if n != 1 {
						t.Errorf("tick %s has %d executions", tick, n)
					}
				}
				if states := r.states(admin, c.Name); states["completed"] != len(count) || len(states) != 1 {
					t.Errorf("%d executions, runs %v", len(count), states)
				}
			})
		})
	}
}

func TestOverlappingRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec event.ScheduleSpec
		want string // how the runs stand after 10 ticks, each run takes 2.5 of them
		busy int    // how many executions there are
	}{
		"are skipped":          {event.ScheduleSpec{Overlap: "skip"}, "map[completed:3 skipped:6 started:1]", 4},
		"wait in line":         {event.ScheduleSpec{Overlap: "queue", QueueLimit: 3}, "map[completed:3 queued:3 skipped:3 started:1]", 4},
		"end the earlier ones": {event.ScheduleSpec{Overlap: "cancel_old"}, "map[cancelled:9 started:1]", 10},
		"run beside":           {event.ScheduleSpec{Overlap: "allow"}, "map[completed:7 started:3]", 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *rig) {
				r.x.takes = 25 * time.Second
				s := r.service(0)
				c.spec.Every = "10s"
				v := r.create(s, c.spec)
				stop := r.run(s)
				sleep(104 * time.Second)
				stop()
				if got := fmt.Sprint(r.states(s, v.Name)); got != c.want || len(r.x.started) != c.busy {
					t.Errorf("runs %s, want %s; %d executions, want %d", got, c.want, len(r.x.started), c.busy)
				}
			})
		})
	}
}

// What waits in line is started in order, by whoever is there by then.
func TestTheQueueSurvivesARestart(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = 25 * time.Second
		s := r.service(0)
		c := r.create(s, event.ScheduleSpec{Every: "10s", Overlap: "queue", End: time.Now().Add(41 * time.Second).UTC().Format(time.RFC3339)})
		stop := r.run(s)
		sleep(45 * time.Second)
		stop()
		stop = r.run(r.service(0))
		sleep(3 * time.Minute)
		stop()
		order, count := r.x.seen()
		if len(order) != 4 || len(count) != 4 || fmt.Sprint(r.states(s, c.Name)) != "map[completed:4]" {
			t.Errorf("executions %v, runs %v", order, r.states(s, c.Name))
		}
		for i := 1; i < len(order); i++ {
			if order[i] <= order[i-1] || r.x.started[i].at.Before(r.x.started[i-1].at.Add(r.x.takes)) {
				t.Errorf("executions %v overlap or are out of order", order)
			}
		}
		if v := r.get(s, c.Name); v.State != "ended" || v.NextAt != nil {
			t.Errorf("a schedule past its end is %s", v.State)
		}
	})
}

func TestTicksNobodyWasThereFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec    event.ScheduleSpec
		started int
		want    string
	}{
		"are missed":             {event.ScheduleSpec{Every: "1m", CatchUp: "none"}, 0, "map[missed:60]"},
		"are run but the last":   {event.ScheduleSpec{Every: "1m", CatchUp: "latest"}, 1, "map[completed:1 missed:59]"},
		"are run":                {event.ScheduleSpec{Every: "1m", CatchUp: "all", Overlap: "allow"}, 60, "map[completed:60]"},
		"are run up to a number": {event.ScheduleSpec{Every: "1m", CatchUp: "all", CatchUpLimit: 7, Overlap: "allow"}, 7, "map[completed:7 missed:53]"},
		"are run up to an age":   {event.ScheduleSpec{Every: "1m", CatchUp: "all", CatchUpWindow: "10m", Overlap: "queue"}, 10, "map[completed:10 missed:50]"},
		"are too old":            {event.ScheduleSpec{Every: "1m", CatchUp: "latest", CatchUpWindow: "31s"}, 0, "map[missed:60]"},
		"of cron":                {event.ScheduleSpec{Cron: "*/5 * * * *", CatchUp: "latest"}, 1, "map[completed:1 missed:11]"},
		"by the thousand":        {event.ScheduleSpec{Cron: "* * * * * *", CatchUp: "none"}, 31, "map[completed:31 missed:3614]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, r *rig) {
				r.x.takes = time.Second
				s := r.service(0)
				if c.spec.Cron == "* * * * * *" {
					c.spec.Overlap = "allow"
				}
				c.spec.End = time.Now().Add(time.Hour + 46*time.Second).UTC().Format(time.RFC3339)
				v := r.create(s, c.spec)
				sleep(time.Hour + 45*time.Second) // nobody runs
				stop := r.run(s)
				sleep(time.Minute)
				stop()
				if got := fmt.Sprint(r.states(s, v.Name)); got != c.want || len(r.x.started) != c.started {
					t.Errorf("runs %s, want %s; %d executions, want %d", got, c.want, len(r.x.started), c.started)
				}
			})
		})
	}
}

func TestAnOutageOfTheStoreDelaysAndLosesNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = time.Second
		s := r.service(0)
		c := r.create(s, event.ScheduleSpec{Every: "10s", CatchUp: "all", Overlap: "queue", QueueLimit: 20})
		stop := r.run(s)
		sleep(15 * time.Second)
		r.store.Inject(memstore.Faults{Hook: func(string) memstore.Fault { return memstore.Refuse }})
		sleep(2 * time.Minute)
		r.store.Inject(memstore.Faults{})
		sleep(30 * time.Second)
		stop()
		if _, count := r.x.seen(); len(count) != 16 || len(r.x.started) != 16 {
			t.Errorf("%d executions of %d ticks in 165 s, want 16; runs %v", len(r.x.started), len(count), r.states(s, c.Name))
		}
	})
}

func TestAScheduleTellsThePlaybookItsTick(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = time.Second
		s := r.service(0)
		c := r.create(s, event.ScheduleSpec{
			Name: "nightly", Cron: "0 2 * * *", Timezone: "Europe/Berlin", Payload: []byte(`{"n": 7}`), Pool: "system", Version: 4, Jitter: "30m", Overlap: "allow",
		})
		next, err := s.Next(t.Context(), "nightly", 2)
		if err != nil || len(next) != 2 {
			t.Fatal(next, err)
		}
		stop := r.run(s)
		sleep(26 * time.Hour)
		stop()
		if len(r.x.started) != 2 {
			t.Fatalf("%d executions in two days", len(r.x.started))
		}
		for i, e := range r.x.started {
			if late := e.at.Sub(next[i]); late < 0 || late > time.Second {
				t.Errorf("run %d began at %s, announced for %s", i, e.at, next[i])
			}
		}
		e := r.x.started[1]
		if e.tick.Name != "nightly" || e.tick.ID != event.ID(c.ID).String() || e.tick.Kind != "tick" || e.tick.Local != "2000-01-02T02:00:00+01:00" ||
			e.tick.Tick != "2000-01-02T01:00:00Z" || e.tick.Previous == nil || *e.tick.Previous != "2000-01-01T01:00:00Z" {
			t.Errorf("the playbook is told %+v", e.tick)
		}
		if !strings.Contains(string(e.Payload), `"n":7`) || e.Pool != "system" || e.Version != 4 || e.Path != "etl/job" {
			t.Errorf("start %+v with %s", e.Start, e.Payload)
		}
	})
}

func TestAPauseSkipsAndAResumeGoesOn(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = time.Second
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s", CatchUp: "all"})
		stop := r.run(r.service(0)) // another replica than the one that is told
		sleep(25 * time.Second)
		if v, err := s.Pause(t.Context(), "a", "a flood", "ann"); err != nil || v.State != "paused" || v.PauseReason != "a flood" || v.PausedBy != "ann" || v.NextAt != nil {
			t.Fatal(v, err)
		}
		sleep(time.Minute)
		v, err := s.Resume(t.Context(), "a")
		if err != nil || v.State != "active" || v.PauseReason != "" || !v.NextAt.After(time.Now()) {
			t.Fatal(v, err)
		}
		sleep(20 * time.Second)
		stop()
		if _, count := r.x.seen(); len(count) != 4 || len(r.x.started) != 4 {
			t.Errorf("executions of %v, want 4", count)
		}
	})
}

func TestTooManyFailuresPause(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = time.Second
		r.x.fails = func(n int) bool { return n != 3 }
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s", MaxFailures: 3})
		stop := r.run(s)
		sleep(5 * time.Minute)
		if v := r.get(s, "a"); v.State != "paused" || v.Failures != 3 || !strings.Contains(v.PauseReason, "3 runs in a row failed") || len(r.x.started) != 6 {
			t.Errorf("%+v after %d executions", v, len(r.x.started))
		}
		if v, err := s.Resume(t.Context(), "a"); err != nil || v.Failures != 0 {
			t.Error(v, err)
		}
		stop()
	})
}

func TestAPlaybookThatCannotBeStartedIsAFailedRun(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.refuse = event.Errorf(event.NotFound, "no such playbook")
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s", MaxFailures: 2})
		stop := r.run(s)
		sleep(time.Minute)
		stop()
		v := r.get(s, "a")
		if states := r.states(s, "a"); states["failed"] != 2 || v.State != "paused" || v.LastStatus != "failed" {
			t.Errorf("runs %v of %+v", states, v)
		}
		if _, err := s.RunNow(t.Context(), "a"); event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), "no such playbook") {
			t.Errorf("run now = %v", err)
		}
	})
}

// A start whose answer was lost belongs to the tick even when the schedule is
// changed before it is asked for again.
func TestAChangeWhileATickIsFired(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = time.Second
		lose := true
		r.x.fault = func() memstore.Fault {
			if lose {
				return memstore.LoseAck
			}
			return memstore.None
		}
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s"})
		stop := r.run(s)
		sleep(11 * time.Second)
		if _, err := s.Update(t.Context(), "a", event.ScheduleSpec{Name: "b", Path: "etl/other", Every: "1h"}); err != nil {
			t.Fatal(err)
		}
		r.x.mu.Lock()
		lose = false
		r.x.mu.Unlock()
		sleep(time.Minute)
		stop()
		if len(r.x.started) != 1 || fmt.Sprint(r.states(s, "b")) != "map[completed:1]" {
			t.Errorf("%d executions, runs %v", len(r.x.started), r.states(s, "b"))
		}
	})
}

func TestARemovalWhileATickIsFired(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s"})
		r.x.fault = func() memstore.Fault { return memstore.LoseAck }
		stop := r.run(s)
		sleep(11 * time.Second)
		if _, err := s.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		r.create(s, event.ScheduleSpec{Name: "a", Every: "1h"})
		sleep(time.Minute)
		stop()
		if len(r.x.started) != 1 || len(r.states(s, "a")) != 0 {
			t.Errorf("%d executions, runs of the new one %v", len(r.x.started), r.states(s, "a"))
		}
	})
}

// A tick whose start is unknown for longer than its claim is held must not be
// started: it may have been.
func TestATickIsNotStartedAfterItsClaim(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "10s", End: time.Now().Add(11 * time.Second).UTC().Format(time.RFC3339)})
		r.x.fault = func() memstore.Fault { return memstore.LoseAck }
		stop := r.run(s)
		sleep(11 * time.Second)
		stop()
		r.x.mu.Lock()
		r.x.fault = nil
		r.x.mu.Unlock()
		time.Sleep(31 * 24 * time.Hour)
		stop = r.run(s)
		sleep(time.Minute)
		stop()
		if len(r.x.started) != 1 || fmt.Sprint(r.states(s, "a")) != "map[missed:1]" {
			t.Errorf("%d executions, runs %v", len(r.x.started), r.states(s, "a"))
		}
	})
}

func TestABackfillRunsWhatWasNotRun(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		r.x.takes = 3 * time.Second
		s := r.service(0)
		began := time.Now()
		r.create(s, event.ScheduleSpec{Name: "a", Every: "1m", CatchUp: "none"})
		stop := r.run(s)
		sleep(5*time.Minute + time.Second) // 5 regular ticks
		stop()
		sleep(10 * time.Minute) // missed
		stop = r.run(s)
		sleep(time.Second)
		v, err := s.Backfill(t.Context(), "a", event.ScheduleBackfill{From: began.Add(-3 * time.Minute), To: time.Now().Add(time.Hour), Concurrency: 2})
		if err != nil || v.Backfill == nil || v.Backfill.Ticks != 3+1+15 {
			t.Fatal(v.Backfill, err)
		}
		if _, err := s.Backfill(t.Context(), "a", event.ScheduleBackfill{From: began}); event.CodeOf(err) != event.Conflict {
			t.Errorf("a second backfill = %v", err)
		}
		sleep(5 * time.Second)
		stop() // in the middle of it
		stop = r.run(r.service(0))
		sleep(50 * time.Second)
		stop()
		order, count := r.x.seen()
		for tick, n := range count {
			if n != 1 {
				t.Errorf("tick %s has %d executions", tick, n)
			}
		}
		if len(order) < 19 || r.get(s, "a").Backfill != nil {
			t.Errorf("%d executions, the backfill is %+v", len(order), r.get(s, "a").Backfill)
		}
		for i, e := range r.x.started {
			if e.tick.Kind == "backfill" && i > 0 && r.x.started[i-1].tick.Kind == "backfill" && e.tick.Tick < r.x.started[i-1].tick.Tick {
				t.Errorf("backfill is out of order: %v", order)
			}
		}
		for what, b := range map[string]event.ScheduleBackfill{
			"no begin": {}, "empty": {From: time.Now().Add(time.Hour)}, "too long": {From: began.AddDate(-1, 0, 0)}, "too wide": {From: began, Concurrency: 51},
			"no tick": {From: began.Add(time.Second), To: began.Add(2 * time.Second)},
		} {
			if _, err := s.Backfill(t.Context(), "a", b); event.CodeOf(err) != event.Invalid {
				t.Errorf("a backfill with %s = %v", what, err)
			}
		}
	})
}

func TestARunBesideTheTicks(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Cron: "@daily"})
		first, err := s.RunNow(t.Context(), "a")
		if err != nil || first.State != "started" || first.ExecutionID == 0 || first.Kind != "manual" {
			t.Fatal(first, err)
		}
		if _, err := s.Pause(t.Context(), "a", "", ""); err != nil {
			t.Fatal(err)
		}
		second, err := s.RunNow(t.Context(), "a")
		if err != nil || second.ExecutionID == first.ExecutionID {
			t.Fatal(second, err)
		}
		if v := r.get(s, "a"); v.State != "paused" || len(r.x.started) != 2 {
			t.Errorf("%+v, %d executions", v, len(r.x.started))
		}
	})
}

func TestAPlaybookDeclaresItsSchedules(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s, spec := r.service(0), func(name, every string) event.ScheduleSpec {
			return event.ScheduleSpec{Name: name, Path: "etl/job", Every: every}
		}
		declare := func(specs ...event.ScheduleSpec) string {
			t.Helper()
			if err := s.Declare(t.Context(), "etl/job", specs); err != nil {
				t.Fatal(err)
			}
			all, err := s.List(t.Context(), schedulesOf("etl/job"))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, v := range all {
				names = append(names, v.Name+" "+v.Every+" "+v.State)
			}
			return strings.Join(names, ", ")
		}
		if got := declare(spec("a", "1h"), spec("b", "2h")); got != "a 1h active, b 2h active" {
			t.Error(got)
		}
		if _, err := s.Pause(t.Context(), "a", "", ""); err != nil {
			t.Fatal(err)
		}
		id := r.get(s, "a").ID
		if got := declare(spec("a", "3h"), spec("c", "1h")); got != "a 3h paused, c 1h active" || r.get(s, "a").ID != id {
			t.Error(got)
		}
		for what, do := range map[string]func() error{
			"change": func() error { _, err := s.Update(t.Context(), "a", spec("a", "1h")); return err },
			"remove": func() error { _, err := s.Delete(t.Context(), "a"); return err },
		} {
			if err := do(); event.CodeOf(err) != event.Conflict {
				t.Errorf("%s = %v", what, err)
			}
		}
		if got := declare(); got != "" {
			t.Error(got)
		}
		r.create(s, event.ScheduleSpec{Name: "a", Every: "1h"})
		if err := s.Declare(t.Context(), "etl/job", []event.ScheduleSpec{spec("a", "1h")}); event.CodeOf(err) != event.Conflict {
			t.Errorf("a name that is taken = %v", err)
		}
	})
}

func TestWrongRequestsAreRefused(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "a", Every: "1h"})
		for what, c := range map[string]struct {
			spec event.ScheduleSpec
			code event.Code
		}{
			"no path": {event.ScheduleSpec{Name: "x", Every: "1h"}, event.Invalid}, "no time": {event.ScheduleSpec{Name: "x", Path: "p"}, event.Invalid},
			"a place as name":    {event.ScheduleSpec{Name: "..", Path: "p", Every: "1h"}, event.Invalid},
			"a name to mislead":  {event.ScheduleSpec{Name: "a\u202eb", Path: "p", Every: "1h"}, event.Invalid},
			"a path of controls": {event.ScheduleSpec{Name: "x", Path: "\tp", Every: "1h"}, event.Invalid},
			"a number as name":   {event.ScheduleSpec{Name: "12", Path: "p", Every: "1h"}, event.Invalid}, "a name twice": {event.ScheduleSpec{Name: "a", Path: "p", Every: "1h"}, event.Conflict},
		} {
			if _, err := s.Create(t.Context(), c.spec); event.CodeOf(err) != c.code {
				t.Errorf("%s = %v", what, err)
			}
		}
		if _, err := s.Get(t.Context(), "nobody"); event.CodeOf(err) != event.NotFound {
			t.Error(err)
		}
		if _, err := s.Next(t.Context(), "a", 0); event.CodeOf(err) != event.Invalid {
			t.Error(err)
		}
		if _, err := s.Pause(t.Context(), "a", strings.Repeat("x", 501), ""); event.CodeOf(err) != event.Invalid {
			t.Error(err)
		}
		if err := errors.Join(s.Count(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatAScheduleStartsMayDoNoMoreThanWhoMadeIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		maker := &event.Actor{ID: "token:1", Within: []string{"team/a"}, Without: []string{"system"}}
		spec := event.ScheduleSpec{Name: "a", Path: "team/a/etl", Every: "1h"}
		view, err := s.Create(schedule.By(t.Context(), maker), spec)
		if err != nil {
			t.Fatal(err)
		}
		runs := func() string {
			t.Helper()
			if _, err := s.RunNow(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			by := r.x.started[len(r.x.started)-1].By
			if by == nil {
				return "nobody"
			}
			return fmt.Sprint(by.ID, by.Within, by.Without)
		}
		if got := runs(); got != "token:1[team/a] [system]" {
			t.Errorf("started by %s", got)
		}
		if _, err := s.Pause(t.Context(), "a", "", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Resume(schedule.By(t.Context(), &event.Actor{ID: "token:2"}), "a"); err != nil {
			t.Fatal(err)
		}
		if got := runs(); got != "token:1[team/a] [system]" {
			t.Errorf("after a pause started by %s", got)
		}
		if _, err := s.Update(schedule.By(t.Context(), &event.Actor{ID: "token:2"}), event.ID(view.ID).String(), spec); err != nil {
			t.Fatal(err)
		}
		if got := runs(); got != "token:2[] []" {
			t.Errorf("after a change started by %s", got)
		}
	})
}

func TestATimeTooFarAwayToBeWrittenIsNotShown(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, r *rig) {
		s := r.service(0)
		r.create(s, event.ScheduleSpec{Name: "far", Every: "1h", Start: "9999-12-31T23:59:59Z"})
		times, err := s.Next(t.Context(), "far", 5)
		if _, bad := json.Marshal(times); err != nil || bad != nil {
			t.Errorf("%v %v", err, bad)
		}
	})
}
