package control_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// tampered is a store in which something is not as it was written. Writing the
// rows of an execution anew takes back what was done to them.
type tampered struct {
	store.Store
	execution func(*store.Execution) bool           // false: the row is gone
	commands  func([]store.Command) []store.Command // the rows of all executions
	events    func([]event.Event) []event.Event
	stray     []store.Execution
	pending   []store.Command // of executions that do not exist
}

func (s *tampered) PendingCommands(ctx context.Context, before time.Time, limit int) ([]store.Command, error) {
	rows, err := s.Store.PendingCommands(ctx, before, limit)
	return append(rows, s.pending...), err
}

func (s *tampered) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	row, err := s.Store.Execution(ctx, id)
	if err == nil && s.execution != nil && !s.execution(&row) {
		return store.Execution{}, store.ErrNotFound
	}
	return row, err
}

func (s *tampered) ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]store.Execution, error) {
	rows, err := s.Store.ProjectedExecutions(ctx, after, limit)
	for _, row := range s.stray {
		if row.ExecutionID > after {
			rows = append(rows, row)
		}
	}
	return rows, err
}

func (s *tampered) CommandsOf(ctx context.Context, id event.ID) ([]store.Command, error) {
	rows, err := s.Store.CommandsOf(ctx, id)
	if s.commands != nil {
		rows = s.commands(rows)
	}
	return rows, err
}

func (s *tampered) Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error) {
	if s.events == nil {
		return s.Store.Events(ctx, id, after, limit)
	}
	all, err := s.Store.Events(ctx, id, 0, 0)
	var out []event.Event
	for _, e := range s.events(all) {
		if e.Seq > after && (limit == 0 || len(out) < limit) {
			out = append(out, e)
		}
	}
	return out, err
}

func (s *tampered) Reproject(ctx context.Context, x store.Execution, commands []store.Command) error {
	s.execution, s.commands = nil, nil
	return s.Store.Reproject(ctx, x, commands)
}

// provable is a rig with one linear and one looping execution that have ended.
func provable(t *testing.T) (*rig, *running) {
	r := newRig(t)
	p := r.plane(nil)
	r.hire("w", 2, 1, p)
	for _, yaml := range []string{linear, fanout} {
		e := r.register(p, yaml)
		r.await(p, r.start(p, e.Path))
	}
	return r, p
}

func verify(t *testing.T, db store.Store) control.VerifyReport {
	t.Helper()
	got, err := control.Verify(t.Context(), control.VerifyOptions{Store: db})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnHonestStoreIsClean(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p := provable(t)
		r.start(p, "test/linear")
		got := verify(t, r.store)
		if !got.Clean || got.Executions != 3 || got.Commands < 15 || got.Events < 60 || got.ByStatus[event.StatusCompleted] < 2 {
			t.Errorf("report is %+v", got)
		}
	})
}

func TestACheckNamesTheFirstDifference(t *testing.T) {
	last := func(s []store.Command) *store.Command { return &s[len(s)-1] }
	for name, test := range map[string]struct {
		tamper     tampered
		what, want string
		got        string
	}{
		"no row": {
			tamper: tampered{execution: func(*store.Execution) bool { return false }},
			what:   control.DifferentNoRow, want: "COMPLETED", got: "none",
		},
		"wrong status": {
			tamper: tampered{execution: func(x *store.Execution) bool { x.Status = "RUNNING"; return true }},
			what:   control.DifferentRow, want: `"COMPLETED"`, got: `"RUNNING"`,
		},
		"a row behind the log": {
			tamper: tampered{execution: func(x *store.Execution) bool { x.LastSeq--; return true }},
			what:   control.DifferentRow,
		},
		"a row ahead of the log": {
			tamper: tampered{execution: func(x *store.Execution) bool { x.LastSeq++; return true }},
			what:   control.DifferentRow,
		},
		"wrong command": {
			tamper: tampered{commands: func(s []store.Command) []store.Command { last(s).Status = "PENDING"; return s }},
			what:   control.DifferentCommand, want: `"COMPLETED"`, got: `"PENDING"`,
		},
		"a lease nobody has": {
			tamper: tampered{commands: func(s []store.Command) []store.Command { last(s).LeaseUntil = time.Now(); return s }},
			what:   control.DifferentCommand, want: "none",
		},
		"a command too many": {
			tamper: tampered{commands: func(s []store.Command) []store.Command {
				return append(s, store.Command{ExecutionID: s[0].ExecutionID, EventID: 7, CommandID: "x", Status: "PENDING"})
			}},
			what: control.DifferentExtraCommand, want: "no row", got: "PENDING",
		},
		"a hole in the log": {
			tamper: tampered{events: func(s []event.Event) []event.Event { return append(s[:3:3], s[4:]...) }},
			what:   control.DifferentGap, want: "event 4", got: "event 5",
		},
		"no start": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[0].Type = event.StepEnter; return s }},
			what:   control.DifferentStart, got: "step.enter",
		},
		"a second end": {
			tamper: tampered{events: func(s []event.Event) []event.Event {
				again := s[len(s)-1]
				again.Seq, again.EventID = again.Seq+1, 7
				return append(s, again)
			}},
			what: control.DifferentTerminal, got: "playbook.completed",
		},
		"the same id twice": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[4].EventID = s[3].EventID; return s }},
			what:   control.DifferentEventID, got: "several",
		},
		"a context that is not JSON": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[0].Context = []byte(`{bad`); return s }},
			what:   control.DifferentContent, want: "what was written",
		},
		"a result that is not JSON": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[4].Result = []byte(`[[`); return s }},
			what:   control.DifferentContent, got: "something that cannot be read",
		},
		"an event of no type": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[2].Type = ""; return s }},
			what:   control.DifferentContent,
		},
		"an event of another execution": {
			tamper: tampered{events: func(s []event.Event) []event.Event { s[4].ExecutionID = 7; return s }},
			what:   control.DifferentForeign, got: "execution 7",
		},
		"a command without an execution": {
			tamper: tampered{pending: []store.Command{{ExecutionID: 1 << 50, CommandID: "x", Status: "PENDING"}}},
			what:   control.DifferentStrayCommand, got: "PENDING",
		},
		"a row without a log": {
			tamper: tampered{stray: []store.Execution{{ExecutionID: 1 << 50, Status: "RUNNING"}}},
			what:   control.DifferentNoLog,
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r, _ := provable(t)
				test.tamper.Store = r.store
				got := verify(t, &test.tamper)
				if got.Clean || got.Different == 0 {
					t.Fatalf("nothing was found: %+v", got)
				}
				d := got.Differences[0]
				if d.What != test.what || test.want != "" && d.Want != test.want || test.got != "" && d.Got != test.got {
					t.Errorf("found %s", d)
				}
			})
		})
	}
}

func TestAMissingCommandOfAnOpenExecutionIsFound(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		r.start(p, "test/single")
		db := &tampered{Store: r.store, commands: func([]store.Command) []store.Command { return nil }}
		got := verify(t, db)
		if got.Clean || got.Differences[0].What != control.DifferentNoCommand {
			t.Errorf("report is %+v", got)
		}
	})
}

func TestEndedCommandsMayBeCleanedAway(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, _ := provable(t)
		if n, err := r.store.PurgeCommands(t.Context(), time.Now().Add(time.Hour), 1000); err != nil || n == 0 {
			t.Fatalf("purged %d: %v", n, err)
		}
		if got := verify(t, r.store); !got.Clean || got.Purged != got.Commands {
			t.Errorf("report is %+v", got)
		}
	})
}

func TestReferencesAreFollowed(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		r.excused = []string{control.DifferentReference}
		p := r.plane(nil, quiet)
		r.register(p, single)
		for _, test := range []struct {
			ref   func(id event.ID) string
			clean bool
		}{
			{func(id event.ID) string { return r.put(p, id, `{"n":1}`) }, true},
			{func(event.ID) string { return "gs://bucket/object" }, true},
			{func(id event.ID) string { return strings.Replace(r.put(p, id, `{}`), "start", "gone", 1) }, false},
		} {
			id := r.start(p, "test/single")
			claim := claimFor(t, p, r.pending()[0].EventID, "w")
			ref := test.ref(id)
			r.ends(p, claim, "w", refers(ref, `{"n":1}`))
			r.await(p, id)
			got, err := control.Verify(t.Context(), control.VerifyOptions{Store: r.store, Execution: id})
			if err != nil || got.Clean != test.clean || got.References == 0 {
				t.Errorf("%s: report is %+v, %v", ref, got, err)
			}
			if !test.clean && got.Differences[0].Where != ref {
				t.Errorf("found %s", got.Differences[0])
			}
		}
	})
}

func TestAPlaybookThatIsGoneIsToldOf(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, _ := provable(t)
		got := verify(t, noCatalog{r.store})
		if got.Clean || got.Different != 2 || got.Differences[0].What != control.DifferentPlaybook {
			t.Errorf("report is %+v", got)
		}
	})
}

type noCatalog struct{ store.Store }

func (noCatalog) Entry(context.Context, event.ID) (store.Entry, error) {
	return store.Entry{}, store.ErrNotFound
}

// writing is a store somebody appends to between any two reads of a row.
type writing struct {
	store.Store
	seq int64
}

func (s *writing) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	row, err := s.Store.Execution(ctx, id)
	s.seq++
	row.LastSeq += s.seq
	return row, err
}

func TestAnExecutionThatIsWrittenToRaisesNoFalseAlarm(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, _ := provable(t)
		got := verify(t, &writing{Store: r.store})
		if got.Different != 0 || got.Busy != got.Executions || got.Busy == 0 {
			t.Errorf("report is %+v", got)
		}
	})
}

func TestChecksBesideLiveWorkFindNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.hire("w", 4, 1, p)
		r.register(p, fanout)
		var last event.ID
		for range 20 {
			last = r.start(p, "test/fanout")
			if got := verify(t, r.store); got.Different != 0 {
				t.Fatalf("found %s", got.Differences[0])
			}
		}
		r.await(p, last)
	})
}

// TestAnyChangeOfARowIsFound changes a random field of a random row: whatever
// it is, a check finds it, and writing the rows anew takes it back.
func TestAnyChangeOfARowIsFound(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p := provable(t)
		open := r.plane(nil, quiet)
		r.register(open, linear)
		p.stop() // so that one execution stays open
		r.start(open, "test/linear")
		rows, err := r.store.ProjectedExecutions(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			row := rows[rng.IntN(len(rows))]
			commands, err := r.store.CommandsOf(t.Context(), row.ExecutionID)
			if err != nil {
				t.Fatal(err)
			}
			var what string
			if rng.IntN(2) == 0 {
				x := row
				what = change(rng, &x, "ExecutionID", "LastSeq")
				err = r.store.Reproject(t.Context(), x, commands)
			} else {
				c := &commands[rng.IntN(len(commands))]
				what = fmt.Sprintf("command %s: %s", c.CommandID, change(rng, c, "ExecutionID", "LeaseUntil"))
				err = r.store.Reproject(t.Context(), row, commands)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := verify(t, r.store); got.Clean {
				t.Fatalf("not found: execution %s, %s", row.ExecutionID, what)
			}
			if _, err := control.Rebuild(t.Context(), control.RebuildOptions{Store: r.store}); err != nil {
				t.Fatal(err)
			}
			if got := verify(t, r.store); !got.Clean {
				t.Fatalf("not mended: %s: %s", what, got.Differences[0])
			}
			after, err := r.store.Execution(t.Context(), row.ExecutionID)
			if diff := cmp.Diff(row, after); err != nil || diff != "" {
				t.Fatalf("mended to something else: %v\n%s", err, diff)
			}
		}
	})
}

// change gives a random field of a row another value and returns its name.
func change(rng *rand.Rand, row any, except ...string) string {
	v := reflect.ValueOf(row).Elem()
	for {
		i := rng.IntN(v.NumField())
		name := v.Type().Field(i).Name
		if strings.Contains(strings.Join(except, " "), name) {
			continue
		}
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + "x")
		case reflect.Int, reflect.Int64:
			f.SetInt(f.Int() + 1_000_000_007)
		case reflect.Struct:
			f.Set(reflect.ValueOf(time.Now().UTC().Add(time.Hour).Truncate(time.Microsecond)))
		default:
			panic("a field of an unknown kind: " + name)
		}
		return name
	}
}
