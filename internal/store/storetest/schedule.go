package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newSchedule(name string) store.Schedule {
	return store.Schedule{
		ScheduleID: newID(), Name: name, Revision: 1, Path: "etl/daily", Version: 3, Cron: "0 2 * * *", Timezone: "Europe/Berlin", Enabled: true,
		Owner: "etl/daily", Payload: []byte(`{"n":1}`), Policy: []byte(`{"overlap":"skip"}`), State: []byte(`{"failures":2}`),
		NextAt: after(60), LastAt: after(1), LastStatus: "COMPLETED", WakeAt: after(61), CreatedAt: epoch, UpdatedAt: after(2),
	}
}

func newRun(tick time.Time, state string) store.ScheduleRun {
	r := store.ScheduleRun{Tick: tick, Kind: "tick", State: state, Path: "etl/daily", Version: 3, DecidedAt: after(1), Previous: epoch.Add(-time.Hour), Ticks: 1}
	if state == "ended" {
		r.ExecutionID, r.StartedAt, r.EndedAt, r.Note = newID(), after(2), after(3), "done ü"
	}
	return r
}

// wantSchedule compares schedules; JSON counts as equal when it means the same.
func wantSchedule(t *testing.T, what string, want, got store.Schedule) {
	t.Helper()
	for _, docs := range [][2]*[]byte{{&want.Payload, &got.Payload}, {&want.Policy, &got.Policy}, {&want.State, &got.State}} {
		wantSame(t, what+" document", meaning(*docs[0]), meaning(*docs[1]))
		*docs[0], *docs[1] = nil, nil
	}
	wantSame(t, what, want, got)
}

func addSchedule(t *testing.T, s store.Store, c store.Schedule) store.Schedule {
	t.Helper()
	if err := s.AddSchedule(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func saveSchedule(t *testing.T, s store.Store, c store.Schedule, runs ...store.ScheduleRun) store.Schedule {
	t.Helper()
	if err := s.SaveSchedule(t.Context(), c, runs); err != nil {
		t.Fatal(err)
	}
	c.Revision++
	return c
}

var scheduleTests = map[string]func(*testing.T, store.Store){
	"a schedule comes back with every field, by id and by name": func(t *testing.T, s store.Store) {
		full := addSchedule(t, s, newSchedule("full ü"))
		wantSchedule(t, "by id", full, must[store.Schedule](t)(s.Schedule(t.Context(), full.ScheduleID)))
		wantSchedule(t, "by name", full, must[store.Schedule](t)(s.ScheduleByName(t.Context(), "full ü")))
		bare := addSchedule(t, s, store.Schedule{ScheduleID: newID(), Name: "bare", Revision: 1, Path: "p", Every: 90 * time.Second, CreatedAt: epoch, UpdatedAt: epoch})
		wantSchedule(t, "bare", bare, must[store.Schedule](t)(s.Schedule(t.Context(), bare.ScheduleID)))
		_, err := s.Schedule(t.Context(), newID())
		wantErr(t, "unknown id", err, store.ErrNotFound)
		_, err = s.ScheduleByName(t.Context(), "Bare")
		wantErr(t, "unknown name", err, store.ErrNotFound)
	},
	"a schedule's name belongs to one": func(t *testing.T, s store.Store) {
		first := addSchedule(t, s, newSchedule("a"))
		wantErr(t, "the same name", s.AddSchedule(t.Context(), newSchedule("a")), store.ErrNameTaken)
		second := addSchedule(t, s, newSchedule("b"))
		twin := newSchedule("c")
		twin.ScheduleID = first.ScheduleID
		if err := s.AddSchedule(t.Context(), twin); event.CodeOf(err) != event.Conflict || errors.Is(err, store.ErrNameTaken) {
			t.Errorf("the same id = %v, want a conflict", err)
		}
		second.Name = "a"
		wantErr(t, "renamed", s.SaveSchedule(t.Context(), second, []store.ScheduleRun{newRun(epoch, "due")}), store.ErrNameTaken)
		wantSame(t, "runs of a refused change", 0, len(must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), store.ScheduleRunFilter{ScheduleID: second.ScheduleID}))))
	},
	"a schedule changes with its runs, only from the revision that was read": func(t *testing.T, s store.Store) {
		c := addSchedule(t, s, newSchedule("a"))
		old := c
		c.Enabled, c.Cron, c.Every, c.NextAt, c.State, c.UpdatedAt = false, "", time.Minute, time.Time{}, nil, after(9)
		c.CreatedAt = after(8) // is kept
		run := newRun(after(60), "due")
		c = saveSchedule(t, s, c, run)
		c.CreatedAt = epoch
		wantSchedule(t, "saved", c, must[store.Schedule](t)(s.Schedule(t.Context(), c.ScheduleID)))
		run.ScheduleID = c.ScheduleID
		runs := must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), store.ScheduleRunFilter{ScheduleID: c.ScheduleID}))
		wantSame(t, "runs", []store.ScheduleRun{run}, runs)
		wantErr(t, "from an old revision", s.SaveSchedule(t.Context(), old, []store.ScheduleRun{newRun(after(70), "due")}), store.ErrConflict)
		wantErr(t, "of one that is not there", s.SaveSchedule(t.Context(), newSchedule("b"), nil), store.ErrNotFound)
		done := newRun(after(60), "ended")
		c = saveSchedule(t, s, c, done, newRun(after(61), "lost"), newRun(after(61), "ended"))
		done.ScheduleID = c.ScheduleID
		runs = must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), store.ScheduleRunFilter{ScheduleID: c.ScheduleID}))
		if len(runs) != 2 || runs[0].State != "ended" {
			t.Fatalf("runs after the second change: %+v", runs)
		}
		wantSame(t, "run written anew", done, runs[1])
	},
	"of many changes from one revision one is made": func(t *testing.T, s store.Store) {
		c := addSchedule(t, s, newSchedule("a"))
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				err := s.SaveSchedule(context.WithoutCancel(t.Context()), c, []store.ScheduleRun{newRun(after(i), "due")})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("SaveSchedule = %v", err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "changes made", int32(1), won.Load())
		wantSame(t, "runs", 1, len(must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), store.ScheduleRunFilter{ScheduleID: c.ScheduleID}))))
	},
	"schedules are listed by id, path, owner and when they are due": func(t *testing.T, s store.Store) {
		var ids []event.ID
		for i := range 6 {
			c := newSchedule(fmt.Sprint("s", i))
			c.Path, c.WakeAt = fmt.Sprint("p", i%2), after(10-i)
			if i == 3 {
				c.WakeAt, c.Owner = time.Time{}, ""
			}
			ids = append(ids, addSchedule(t, s, c).ScheduleID)
		}
		pick := func(places ...int) (out []event.ID) {
			for _, i := range places {
				out = append(out, ids[i])
			}
			return out
		}
		names := func(rows []store.Schedule, err error) (out []event.ID) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range rows {
				out = append(out, c.ScheduleID)
			}
			return out
		}
		wantSame(t, "all", ids, names(s.ListSchedules(t.Context(), store.ScheduleFilter{})))
		wantSame(t, "a page", pick(2, 3), names(s.ListSchedules(t.Context(), store.ScheduleFilter{After: ids[1], Limit: 2})))
		wantSame(t, "of a path", pick(1, 3, 5), names(s.ListSchedules(t.Context(), store.ScheduleFilter{Path: "p1"})))
		wantSame(t, "of an owner", pick(1, 5), names(s.ListSchedules(t.Context(), store.ScheduleFilter{Path: "p1", Owner: "etl/daily"})))
		wantSame(t, "due", pick(5, 4, 2), names(s.DueSchedules(t.Context(), after(8), 0)))
		wantSame(t, "the first due", pick(5), names(s.DueSchedules(t.Context(), after(8), 1)))
		wantSame(t, "none due", pick(), names(s.DueSchedules(t.Context(), after(4), 0)))
	},
	"the runs of a schedule are found by tick": func(t *testing.T, s store.Store) {
		c, other := addSchedule(t, s, newSchedule("a")), addSchedule(t, s, newSchedule("b"))
		var runs []store.ScheduleRun
		for i := range 6 {
			runs = append(runs, newRun(after(i), []string{"due", "ended"}[i%2]))
		}
		c = saveSchedule(t, s, c, runs...)
		saveSchedule(t, s, other, newRun(after(2), "due"))
		ticks := func(f store.ScheduleRunFilter) (out []int) {
			t.Helper()
			f.ScheduleID = c.ScheduleID
			for _, r := range must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), f)) {
				out = append(out, int(r.Tick.Sub(epoch)/time.Second))
			}
			return out
		}
		wantSame(t, "all", []int{5, 4, 3, 2, 1, 0}, ticks(store.ScheduleRunFilter{}))
		wantSame(t, "open", []int{4, 2, 0}, ticks(store.ScheduleRunFilter{Open: true}))
		wantSame(t, "a range", []int{4, 3, 2}, ticks(store.ScheduleRunFilter{From: after(2), Before: after(5)}))
		wantSame(t, "a page", []int{4, 3}, ticks(store.ScheduleRunFilter{Before: after(5), Limit: 2}))
		wantSame(t, "purged", 1, must[int](t)(s.PurgeScheduleRuns(t.Context(), after(4), 1)))
		wantSame(t, "purged", 2, must[int](t)(s.PurgeScheduleRuns(t.Context(), after(4), 10)))
		wantSame(t, "what is open stays", []int{4, 2, 0}, ticks(store.ScheduleRunFilter{}))
	},
	"a schedule goes with its runs": func(t *testing.T, s store.Store) {
		c := addSchedule(t, s, newSchedule("a"))
		c = saveSchedule(t, s, c, newRun(after(1), "due"))
		wantSame(t, "deleted", true, must[bool](t)(s.DeleteSchedule(t.Context(), c.ScheduleID)))
		wantSame(t, "deleted again", false, must[bool](t)(s.DeleteSchedule(t.Context(), c.ScheduleID)))
		wantSame(t, "runs", 0, len(must[[]store.ScheduleRun](t)(s.ScheduleRuns(t.Context(), store.ScheduleRunFilter{ScheduleID: c.ScheduleID}))))
		wantErr(t, "save", s.SaveSchedule(t.Context(), c, []store.ScheduleRun{newRun(after(2), "due")}), store.ErrNotFound)
		addSchedule(t, s, newSchedule("a"))
	},
	"schedules are counted by state": func(t *testing.T, s store.Store) {
		wantSame(t, "none", 0, len(must[map[string]int64](t)(s.CountSchedules(t.Context()))))
		for i, change := range []func(*store.Schedule){
			func(*store.Schedule) {},
			func(*store.Schedule) {},
			func(c *store.Schedule) { c.Enabled = false },
			func(c *store.Schedule) { c.NextAt = time.Time{} },
		} {
			c := newSchedule(fmt.Sprint(i))
			change(&c)
			addSchedule(t, s, c)
		}
		wantSame(t, "counts", map[string]int64{"active": 2, "paused": 1, "ended": 1}, must[map[string]int64](t)(s.CountSchedules(t.Context())))
	},
}

// callSchedules makes the calls of callAll that concern schedules.
func callSchedules(ctx context.Context, s store.Store, errs map[string]error) {
	errs["AddSchedule"] = s.AddSchedule(ctx, newSchedule("life"))
	errs["SaveSchedule"] = s.SaveSchedule(ctx, newSchedule("life"), nil)
	_, errs["Schedule"] = s.Schedule(ctx, 1)
	_, errs["ScheduleByName"] = s.ScheduleByName(ctx, "life")
	_, errs["ListSchedules"] = s.ListSchedules(ctx, store.ScheduleFilter{})
	_, errs["DueSchedules"] = s.DueSchedules(ctx, epoch, 1)
	_, errs["DeleteSchedule"] = s.DeleteSchedule(ctx, 1)
	_, errs["ScheduleRuns"] = s.ScheduleRuns(ctx, store.ScheduleRunFilter{ScheduleID: 1})
	_, errs["CountSchedules"] = s.CountSchedules(ctx)
	_, errs["PurgeScheduleRuns"] = s.PurgeScheduleRuns(ctx, epoch, 1)
}
