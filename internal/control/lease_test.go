package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// quietClaim claims as workers do that never beat for their commands.
func quietClaim(t *testing.T, p *running, eventID event.ID, worker string) (*event.Command, error) {
	t.Helper()
	return p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: worker})
}

func enlist(t *testing.T, p *running, name, status string) {
	t.Helper()
	if _, err := p.Enlist(t.Context(), event.Registration{Name: name, Status: status}); err != nil {
		t.Fatal(err)
	}
}

// beatFor lets a worker beat for itself, and for nothing else, for a while.
func beatFor(t *testing.T, p *running, name string, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(15 * time.Second)
		if _, err := p.Beat(t.Context(), event.Pulse{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheLeaseOfAQuietWorkerDependsOnItsPulse(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(t *testing.T, p *running)
		want   time.Duration
	}{
		"unknown":                   {func(*testing.T, *running) {}, 30 * time.Minute},
		"registered and beating":    {func(t *testing.T, p *running) { enlist(t, p, "w1", "ready") }, 2 * time.Minute},
		"registered and silent":     {func(t *testing.T, p *running) { enlist(t, p, "w1", "ready"); time.Sleep(31 * time.Second) }, 30 * time.Minute},
		"another one is registered": {func(t *testing.T, p *running) { enlist(t, p, "w10", "ready") }, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet)
				r.register(p, single)
				r.start(p, "test/single")
				tc.before(t, p)
				cmd, err := quietClaim(t, p, r.pending()[0].EventID, "w1")
				if err != nil {
					t.Fatal(err)
				}
				if got := time.Until(cmd.LeaseUntil).Round(time.Second); got != tc.want {
					t.Errorf("the lease lasts %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestATakenOverCommandTellsWhyItWasLost(t *testing.T) {
	for reason, tc := range map[string]struct {
		before, after func(t *testing.T, p *running)
	}{
		"lease_expired": {
			func(*testing.T, *running) {},
			func(*testing.T, *running) { time.Sleep(31 * time.Minute) },
		},
		"worker_heartbeat_stale": {
			func(t *testing.T, p *running) { enlist(t, p, "w1", "ready") },
			func(t *testing.T, p *running) { beatFor(t, p, "w1", 10*time.Minute); time.Sleep(121 * time.Second) },
		},
		"worker_inactive": {
			func(t *testing.T, p *running) { enlist(t, p, "w1", "ready") },
			func(t *testing.T, p *running) { enlist(t, p, "w1", "draining"); time.Sleep(121 * time.Second) },
		},
		"healthy_worker_hard_timeout": {
			func(t *testing.T, p *running) { enlist(t, p, "w1", "ready") },
			func(t *testing.T, p *running) { beatFor(t, p, "w1", 33*time.Minute) },
		},
	} {
		t.Run(reason, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet)
				r.register(p, single)
				id := r.start(p, "test/single")
				eventID := r.pending()[0].EventID
				tc.before(t, p)
				if _, err := quietClaim(t, p, eventID, "w1"); err != nil {
					t.Fatal(err)
				}
				tc.after(t, p)
				taken, err := quietClaim(t, p, eventID, "w2")
				if err != nil {
					t.Fatal(err)
				}
				if taken.Meta.Attempt != 2 {
					t.Errorf("attempt is %d", taken.Meta.Attempt)
				}
				wantReclaim(t, p, id, "w1", reason)
			})
		})
	}
}

// wantReclaim checks what the newest claim in the log says of the one before.
func wantReclaim(t *testing.T, p *running, id event.ID, from, reason string) {
	t.Helper()
	events, err := p.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		Reclaimed bool   `json:"reclaimed"`
		From      string `json:"reclaimed_from_worker"`
		Reason    string `json:"reclaimed_reason"`
	}
	for _, e := range events {
		if e.Type == event.CommandClaimed {
			if err := json.Unmarshal(e.Meta, &meta); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !meta.Reclaimed || meta.From != from || meta.Reason != reason {
		t.Errorf("the claim says %+v, want it taken from %s for %s", meta, from, reason)
	}
}

func TestThePulseOfAWorkerKeepsItsCommands(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		enlist(t, p, "w1", "ready")
		cmd, err := quietClaim(t, p, eventID, "w1")
		if err != nil {
			t.Fatal(err)
		}
		beatFor(t, p, "w1", 25*time.Minute)
		_, err = quietClaim(t, p, eventID, "w2")
		wantCode(t, err, event.Conflict, "active_claim")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w1", 0, cmd)); err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		r.verify(id)
	})
}

func TestALostCommandThatIsHandedOverTellsWhyToo(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		desk := newDesk(r, 1)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		enlist(t, p, "w1", "ready")
		if _, err := quietClaim(t, p, r.pending()[0].EventID, "w1"); err != nil {
			t.Fatal(err)
		}
		p.stop()
		time.Sleep(3 * time.Minute)
		next := r.plane(desk, func(o *control.Options) { o.Republish, o.Recover = 24*time.Hour, 24*time.Hour })
		if cmd := <-desk.got; cmd.Meta.Attempt != 2 {
			t.Errorf("attempt is %d", cmd.Meta.Attempt)
		}
		wantReclaim(t, next, id, "w1", "worker_heartbeat_stale")
	})
}
