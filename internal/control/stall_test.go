package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// verdictOf is what the report of the sweeps says of an execution; "" when it
// does not mention it.
func verdictOf(t *testing.T, p *running, id event.ID) control.StalledExecution {
	t.Helper()
	r, err := p.Sweeps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Stalled {
		if event.ID(x.ExecutionID) == id {
			return x
		}
	}
	return control.StalledExecution{}
}

// seldom is for a plane that looks around rarely enough for days to pass quickly.
func seldom(o *control.Options) {
	o.Sweep, o.Republish, o.Recover = 10*time.Minute, 10*time.Minute, 10*time.Minute
}

func TestAnExecutionNobodyServesEndsWithItsCause(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, seldom)
		r.register(p, single)
		id := r.start(p, "test/single")
		time.Sleep(23 * time.Hour)
		if row, err := p.Execution(t.Context(), id); err != nil || row.Status != event.StatusRunning {
			t.Fatalf("before the grace is over: %+v, %v", row, err)
		}
		time.Sleep(2 * time.Hour)
		row := r.await(p, id)
		if row.Status != event.StatusFailed || !strings.HasPrefix(row.Error, "no progress for 24h") ||
			!strings.Contains(row.Error, `of step "start" waits in pool shared, which no worker serves`) {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		events, err := p.Events(t.Context(), id, 0, 0)
		if last := events[len(events)-1]; err != nil || last.Type != event.PlaybookFailed || !strings.Contains(string(last.Meta), engine.ReasonNoProgress) {
			t.Errorf("last event is %+v, %v", last, err)
		}
		r.verify(id)
		if x := verdictOf(t, p, id); x.Verdict != control.VerdictFailed {
			t.Errorf("the report says %+v", x)
		}
	})
}

func TestReplicasEndAStalledExecutionOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p, q := r.plane(nil, seldom), r.plane(nil, seldom)
		r.register(p, single)
		id := r.start(p, "test/single")
		time.Sleep(25 * time.Hour)
		r.await(q, id)
		time.Sleep(time.Hour)
		r.verify(id)
	})
}

func TestReportOnlyEndsNothing(t *testing.T) {
	for _, mode := range []string{control.StallReport, control.StallOff} {
		t.Run(mode, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, seldom, func(o *control.Options) { o.Stall.Mode = mode })
				r.register(p, single)
				id := r.start(p, "test/single")
				time.Sleep(72 * time.Hour)
				if row, err := p.Execution(t.Context(), id); err != nil || row.Status != event.StatusRunning {
					t.Errorf("row is %+v, %v", row, err)
				}
				if x := verdictOf(t, p, id); x.Verdict != control.VerdictWouldFail || x.Nudges < 5 || x.IdleSeconds < 71*3600 {
					t.Errorf("the report says %+v", x)
				}
			})
		})
	}
}

func TestWhoHasAReasonToWaitIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		verdict string
		park    string // what the first command waits for
		yaml    string
		meet    func(t *testing.T, r *rig, p *running, cmd *event.Command)
	}{
		"a worker that beats": {verdict: control.VerdictLiveClaim, meet: func(t *testing.T, r *rig, p *running, cmd *event.Command) {
			for range 26 * 60 * 2 {
				beat(t, p, cmd)
				time.Sleep(30 * time.Second)
			}
			beat(t, p, cmd)
		}},
		"a worker that beats for itself": {verdict: control.VerdictLiveClaim, meet: func(t *testing.T, r *rig, p *running, cmd *event.Command) {
			for range 26 * 60 * 2 {
				_, err := r.store.PutRuntime(t.Context(), store.Runtime{
					RuntimeID: 1, Name: "w", Kind: event.KindWorkerPool, Status: "ready", Heartbeat: time.Now(),
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second)
			}
		}},
		"a callback": {verdict: control.VerdictCallback, park: `{"callback":"approval"}`},
		"a timer":    {verdict: control.VerdictTimer, park: `{"delay_seconds":864000}`},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, seldom)
				r.register(p, single)
				id := r.start(p, "test/single")
				cmd := claimFor(t, p, r.pending()[0].EventID, "w")
				if test.park != "" {
					in := completed(r.ids.Next(), cmd)
					in.Type, in.Payload = event.CommandParked, []byte(`{"command_id":"`+cmd.Meta.CommandID+`","park":`+test.park+`}`)
					if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{in}}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(72 * time.Hour)
				} else {
					test.meet(t, r, p, cmd)
				}
				if x := verdictOf(t, p, id); x.Verdict != test.verdict || x.Cause == "" {
					t.Errorf("the report says %+v", x)
				}
				if row, err := p.Execution(t.Context(), id); err != nil || row.Status != event.StatusRunning {
					t.Errorf("row is %+v, %v", row, err)
				}
			})
		})
	}
}

func beat(t *testing.T, p *running, cmd *event.Command) {
	t.Helper()
	answers, err := p.Heartbeat(t.Context(), []event.Heartbeat{{ExecutionID: cmd.ExecutionID, EventID: cmd.EventID, WorkerID: "w", Attempt: 1}})
	if err != nil || answers[0].Cancel {
		t.Fatalf("heartbeat: %+v, %v", answers, err)
	}
}

func TestAFamilyEndsFromItsYoungest(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, seldom)
		r.register(p, parent)
		r.register(p, child)
		park := asks(`{"path":"test/child","wait":true,"return_step":"work"}`)
		id := r.start(p, "test/parent")
		first := claimFor(t, p, r.pending()[0].EventID, "w")
		in := park(first)
		in.EventID, in.Step, in.Meta = r.ids.Next(), first.NodeName, completed(0, first).Meta
		if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{*in}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(23*time.Hour + 50*time.Minute)
		kids, err := p.Executions(t.Context(), store.ExecutionFilter{ParentID: id})
		if err != nil || len(kids) != 1 {
			t.Fatalf("children: %+v, %v", kids, err)
		}
		time.Sleep(2 * time.Hour)
		kid := r.await(p, kids[0].ExecutionID)
		row := r.await(p, id)
		if kid.Status != event.StatusFailed || !strings.Contains(kid.Error, "no progress") ||
			row.Status != event.StatusFailed || strings.HasPrefix(row.Error, "no progress") || !strings.Contains(row.Error, kid.ExecutionID.String()) {
			t.Errorf("child: %s\nparent: %s", kid.Error, row.Error)
		}
		r.verify(id)
	})
}

func TestTheSweepReportNamesWaitingAndLostCommands(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet, func(o *control.Options) { o.Republish = time.Second })
		r.register(p, linear)
		r.start(p, "test/linear")
		r.start(p, "test/linear")
		claimFor(t, p, r.pending()[0].EventID, "gone")
		time.Sleep(10 * time.Minute)
		got, err := p.Sweeps(t.Context())
		if err != nil || got.Mode != control.StallEnforce || got.GraceSeconds != 86400 || len(got.Pending) != 1 || len(got.Expired) != 1 || len(got.Stalled) != 0 {
			t.Fatalf("report is %+v, %v", got, err)
		}
		if x := got.Expired[0]; x.WorkerID != "gone" || x.Verdict != "retried" || x.AgeSeconds != 540 {
			t.Errorf("expired: %+v", x)
		}
		if x := got.Pending[0]; x.AgeSeconds != 600 || x.Pool != "shared" || x.Verdict != "announced" {
			t.Errorf("pending: %+v", x)
		}
	})
}

func TestAtMostSoManyAreEndedPerSweep(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, seldom, func(o *control.Options) { o.Stall.Limit, o.Stall.Interval = 2, time.Hour })
		r.register(p, single)
		for range 7 {
			r.start(p, "test/single")
		}
		ended := func() (n int) {
			rows, err := p.Executions(t.Context(), store.ExecutionFilter{Status: event.StatusFailed})
			if err != nil {
				t.Fatal(err)
			}
			return len(rows)
		}
		seen := 0
		for range 12 * 40 {
			time.Sleep(5 * time.Minute)
			if n := ended(); n-seen > 2 {
				t.Fatalf("%d ended at once", n-seen)
			} else {
				seen = n
			}
		}
		if seen != 7 {
			t.Errorf("%d of 7 ended", seen)
		}
	})
}

func TestAGraceThatWouldEndHealthyExecutionsIsRefused(t *testing.T) {
	t.Parallel()
	r := &rig{t: t}
	for name, o := range map[string]control.StallOptions{
		"short grace":  {Grace: 59 * time.Minute},
		"unknown mode": {Mode: "aggressive"},
	} {
		_, err := control.New(control.Options{Store: &tampered{}, Bus: r.bus, IDs: func() event.ID { return 1 }, Stall: o})
		if err == nil {
			t.Errorf("%s is accepted", name)
			continue
		}
		wantCode(t, err, event.Invalid, "")
	}
}
