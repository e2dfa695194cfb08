package control_test

import (
	"encoding/json"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func TestARestartedWorkerDoesNotKeepTheLeasesOfItsFormerSelf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, then string // what it says of itself
		ended       bool
	}{
		"another run":                 {`{"boot_id":"a"}`, `{"boot_id":"b"}`, true},
		"the same run":                {`{"boot_id":"a"}`, `{"boot_id":"a","more":1}`, false},
		"it has worked already":       {`{"boot_id":"a"}`, `{"boot_id":"b","resumed":true}`, false},
		"the former one did not say":  {`{}`, `{"boot_id":"b"}`, false},
		"the later one does not say":  {`{"boot_id":"a"}`, `{"kind":"other"}`, false},
		"a runtime that is no object": {`{"boot_id":"a"}`, `"python"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet)
				r.register(p, single)
				enlist := func(worker, runtime string) {
					t.Helper()
					if _, err := p.Enlist(t.Context(), event.Registration{Name: worker, Runtime: json.RawMessage(runtime)}); err != nil {
						t.Fatal(err)
					}
				}
				enlist("w1", c.first)
				r.start(p, "test/single")
				r.start(p, "test/single")
				mine, others := r.pending()[0].EventID, r.pending()[1].EventID
				claimFor(t, p, mine, "w1")
				claimFor(t, p, others, "w1-b") // no name but a longer one
				enlist("w1", c.then)
				_, err := p.Claim(t.Context(), event.ClaimRequest{EventID: others, WorkerID: "w2", Heartbeats: true})
				wantCode(t, err, event.Conflict, "active_claim")
				if !c.ended {
					_, err := p.Claim(t.Context(), event.ClaimRequest{EventID: mine, WorkerID: "w2", Heartbeats: true})
					wantCode(t, err, event.Conflict, "active_claim")
					return
				}
				if cmd := claimFor(t, p, mine, "w1"); cmd.Meta.Attempt != 2 {
					t.Errorf("attempt is %d, want 2", cmd.Meta.Attempt)
				}
			})
		})
	}
}
