package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/form"
)

func TestASignalIsPassedOn(t *testing.T) {
	t.Parallel()
	index := 2
	for name, tc := range map[string]struct {
		body   string
		header http.Header
		want   control.SignalRequest
		answer control.SignalAnswer
		status int
	}{
		"nothing but its name": {``, nil, control.SignalRequest{SentSignal: event.SentSignal{Name: "go on"}}, control.SignalAnswer{Status: "buffered", EventID: 7}, 202},
		"everything": {
			`{"data":{"n":1},"step":"ask","index":2,"sender":"ann","event_id":"9","later":1}`, nil,
			control.SignalRequest{EventID: 9, SentSignal: event.SentSignal{Name: "go on", Data: []byte(`{"n":1}`), Step: "ask", Index: &index, By: "ann"}},
			control.SignalAnswer{Status: "delivered", Woken: 3, EventID: 9},
			200,
		},
		"a key": {
			`{}`,
			http.Header{"Idempotency-Key": {"k"}},
			control.SignalRequest{SentSignal: event.SentSignal{Name: "go on", Key: "k"}},
			control.SignalAnswer{Status: "duplicate", EventID: 7},
			200,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got control.SignalRequest
			p := &apitest.Plane{OnSignal: func(_ event.ID, r control.SignalRequest) (control.SignalAnswer, error) {
				got = r
				return tc.answer, nil
			}}
			a := post(t, newServer(t, p, nil), "/api/executions/5/signals/go%20on", tc.body, tc.header)
			if a.status != tc.status || !strings.Contains(a.body, `"status":"`+tc.answer.Status+`"`) {
				t.Errorf("answer %d %s", a.status, a.body)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASignalThatDoesNotFitSaysWhere(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnSignal: func(event.ID, control.SignalRequest) (control.SignalAnswer, error) {
		return control.SignalAnswer{}, &event.Error{Code: event.Invalid, Message: "no", Err: form.Misfits{{Path: "/n", Message: "want integer"}}}
	}}
	a := post(t, newServer(t, p, nil), "/api/executions/5/signals/go", `{}`, nil)
	if a.status != 422 || !strings.Contains(a.body, `"misfits":[{"path":"/n","message":"want integer"}]`) {
		t.Errorf("answer %d %s", a.status, a.body)
	}
}

func TestWaitsAreListed(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnWaits: func(event.ID) ([]event.SignalWait, error) {
		return []event.SignalWait{{Step: "ask", CommandID: "c", For: "signal", Signal: "go", Form: []byte(`{"type":"object"}`)}}, nil
	}}
	body := strings.TrimSpace(fetch(t, newServer(t, p, nil), "/api/executions/5/waits", "*/*"))
	if body != `{"execution_id":"5","waits":[{"step":"ask","command_id":"c","for":"signal","signal":"go","form":{"type":"object"}}]}` {
		t.Errorf("answer %s", body)
	}
}
