package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/form"
)

const asking = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: asking, path: test/asking}
workflow:
  - step: ask
    tool: {kind: noop}
`

// parksOn is a worker that parks every command on what park says.
func parksOn(park string) func(*event.Command) *event.Incoming {
	return func(cmd *event.Command) *event.Incoming {
		return &event.Incoming{
			Type: event.CommandParked, Step: cmd.NodeName, Status: event.StatusWaiting,
			Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","park":` + park + `}`),
			Meta:    json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","attempt":1}`),
		}
	}
}

// asks starts an execution whose step is parked on what park says.
func (r *rig) asks(p *running, park string) event.ID {
	r.t.Helper()
	w := &crew{r: r, id: "parks", planes: []*control.Plane{p.Plane}, says: parksOn(park)}
	r.employ(w, 1)
	r.register(p, asking)
	id := r.start(p, "test/asking")
	synctest.Wait()
	return id
}

func signal(name, data string) control.SignalRequest {
	return control.SignalRequest{SentSignal: event.SentSignal{Name: name, By: "ann", Data: json.RawMessage(data)}}
}

func (r *rig) signal(p *running, id event.ID, s control.SignalRequest) control.SignalAnswer {
	r.t.Helper()
	a, err := p.Signal(context.Background(), id, s)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

const askForm = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

func TestASignalWakesWhoWaitsForIt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.asks(p, `{"signal":{"name":"go","message":"How many?","form":`+askForm+`}}`)
		waits, err := p.Waits(t.Context(), id)
		if err != nil || len(waits) != 1 || waits[0].Signal != "go" || waits[0].Message != "How many?" || waits[0].Step != "ask" || waits[0].Since.IsZero() {
			t.Fatalf("waits %+v, %v", waits, err)
		}
		_, err = p.Signal(t.Context(), id, signal("go", `{"n":"x"}`))
		misfits, ok := errors.AsType[form.Misfits](err)
		if event.CodeOf(err) != event.Invalid || !ok || misfits[0].Path != "/n" {
			t.Errorf("what does not fit the form: %v", err)
		}
		if a := r.signal(p, id, signal("go", `{ "n": 3 }`)); a.Status != "delivered" || a.Woken != 1 {
			t.Errorf("answer %+v", a)
		}
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		if got := r.data(id, "ask"); !strings.Contains(got, `"data":{"n":3}`) || !strings.Contains(got, `"by":"ann"`) {
			t.Errorf("the step's data is %s", got)
		}
		if _, err := p.Signal(t.Context(), id, signal("go", `{"n":3}`)); event.CodeOf(err) != event.Conflict {
			t.Errorf("a signal to an execution that is over: %v", err)
		}
		if _, err := p.Signal(t.Context(), 5, signal("go", ``)); event.CodeOf(err) != event.NotFound {
			t.Errorf("a signal to nobody: %v", err)
		}
		r.verify(id)
	})
}

func TestSignalsSentTooEarlyAreKeptAndTakenOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, asking)
		id := r.start(p, "test/asking")
		for _, data := range []string{`{"n":"no number"}`, `{"n":1}`} {
			if a := r.signal(p, id, signal("go", data)); a.Status != "buffered" || a.Woken != 0 {
				t.Errorf("answer %+v", a)
			}
		}
		r.employ(&crew{r: r, id: "parks", planes: []*control.Plane{p.Plane}, says: parksOn(`{"signal":{"name":"go","form":` + askForm + `}}`)}, 1)
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		if got := r.data(id, "ask"); !strings.Contains(got, `"data":{"n":1}`) {
			t.Errorf("the step's data is %s", got)
		}
		r.verify(id)
	})
}

func TestASignalIsSentOnceUnderItsKey(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, asking)
		id := r.start(p, "test/asking")
		keyed, named := signal("go", `1`), signal("go", `2`)
		keyed.Key, named.EventID = "k", 77
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.signal(p, id, keyed); r.signal(p, id, named) })
		}
		wg.Wait()
		if a := r.signal(p, id, keyed); a.Status != "duplicate" || a.EventID == 0 {
			t.Errorf("answer %+v", a)
		}
		if got := r.fold(id).KeptSignals(); got != 2 {
			t.Errorf("%d signals are kept, want 2", got)
		}
	})
}

func TestSignalsNobodyWaitsForHaveABound(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, asking)
		id := r.start(p, "test/asking")
		for range 100 {
			r.signal(p, id, signal("go", `1`))
		}
		if _, err := p.Signal(t.Context(), id, signal("go", `1`)); event.CodeOf(err) != event.Conflict {
			t.Errorf("one more: %v", err)
		}
		if _, err := p.Signal(t.Context(), id, signal("go", `"`+strings.Repeat("x", 300<<10)+`"`)); event.CodeOf(err) != event.Limit {
			t.Errorf("a large one: %v", err)
		}
		for name, bad := range map[string]control.SignalRequest{"no name": signal(" ", "1"), "no JSON": signal("go", "{")} {
			if _, err := p.Signal(t.Context(), id, bad); event.CodeOf(err) != event.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestAWaitOutlastsItsServerAndEndsOnTime(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.asks(p, `{"signal":{"name":"go","approve":"fail"},"delay_seconds":3600,"elapsed":{"error":{"kind":"timeout","code":"TIMEOUT","message":"nobody answered"}}}`)
		began := time.Now()
		p.stop()
		time.Sleep(30 * time.Minute)
		p = r.plane(nil)
		row := r.await(p, id)
		if took := time.Since(began); row.Status != event.StatusFailed || !strings.Contains(row.Error, "nobody answered") || took < time.Hour || took > time.Hour+2*time.Minute {
			t.Errorf("%s after %v: %s", row.Status, took, row.Error)
		}
		r.verify(id)
	})
}

func TestAnApprovalThatIsRejectedFailsItsStep(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.asks(p, `{"signal":{"name":"go","approve":"fail"}}`)
		r.signal(p, id, signal("go", `{"approved":false,"comment":"too risky"}`))
		if row := r.await(p, id); row.Status != event.StatusFailed || !strings.Contains(row.Error, "go was rejected by ann: too risky") {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		r.verify(id)
	})
}
