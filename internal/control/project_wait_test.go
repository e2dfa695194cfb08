package control_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// A pause and a child are waited for by the control plane alone. An envelope
// that names the command beside its meta must not end such a wait either.
func TestAnEnvelopeCannotEndAWaitThatIsNotItsOwn(t *testing.T) {
	for _, kind := range []event.Type{event.CallDone, event.CommandCompleted} {
		for _, meta := range []string{"", `{"command_id":%q}`} {
			t.Run(string(kind)+meta, func(t *testing.T) {
				simulate(t, func(t *testing.T) {
					r := newRig(t)
					p := r.plane(nil)
					r.register(p, single)
					id := r.start(p, "test/single")
					cmd := claimFor(t, p, r.pending()[0].EventID, "w")
					in := completed(r.ids.Next(), cmd)
					in.Type, in.Payload = event.CommandParked, []byte(`{"command_id":"`+cmd.Meta.CommandID+`","park":{"delay_seconds":3600}}`)
					if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{in}}); err != nil {
						t.Fatal(err)
					}
					e := event.Event{
						ExecutionID: id, EventID: r.ids.Next(), Type: kind, NodeName: "start", Status: event.StatusCompleted,
						CommandID: cmd.Meta.CommandID, Result: []byte(`{"status":"COMPLETED","context":{"status":"success","data":{}}}`),
					}
					if meta != "" {
						e.Meta = []byte(`{"command_id":"` + cmd.Meta.CommandID + `"}`)
					}
					r.project(p, e)
					row, err := r.store.Command(t.Context(), id, cmd.EventID)
					if err != nil || row.Status != event.StatusWaiting {
						t.Errorf("the command is %+v, %v", row, err)
					}
				})
			})
		}
	}
}
