package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

const oneStep = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one}
workflow:
  - {step: start, tool: {kind: noop}}
`

// TestReportedEventsFoldAsTheyAreStored reports the end of a command in many
// shapes. Whoever reads the log later must come to the state of the one who
// took the report in.
func TestReportedEventsFoldAsTheyAreStored(t *testing.T) {
	t.Parallel()
	yes := true
	for _, tc := range []struct {
		name   string
		in     event.Incoming
		status string
	}{
		{"data", event.Incoming{Payload: json.RawMessage(`{"status":"success","data":{"n":1}}`)}, event.StatusCompleted},
		{"no payload", event.Incoming{}, event.StatusCompleted},
		{"a payload that is no object", event.Incoming{Payload: json.RawMessage(`[1]`)}, event.StatusCompleted},
		{"a reference", event.Incoming{
			ResultKind: "ref", ResultURI: "gs://bucket/key", Payload: json.RawMessage(`{"status":"success","context_updates":{"v":1}}`),
		}, event.StatusCompleted},
		{"a reference to the output of a failure", event.Incoming{
			ResultKind: "ref", ResultURI: "gs://bucket/key", Payload: json.RawMessage(`{"status":"error","error":"no"}`),
		}, event.StatusFailed},
		{"references to parts", event.Incoming{
			ResultKind: "refs", EventIDs: []event.ID{3, 4}, Payload: json.RawMessage(`{"status":"timeout"}`),
		}, event.StatusFailed},
		{"an error that is null", event.Incoming{
			Payload: json.RawMessage(`{"status":"error","result":{"context":{"error":null}}}`),
		}, event.StatusFailed},
		{"a status of the event itself", event.Incoming{Status: "FAILED"}, event.StatusFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, oneStep, Limits{})
			if err := h.start(""); err != nil {
				t.Fatal(err)
			}
			tc.in.Type, tc.in.Actionable = event.CommandCompleted, &yes
			tc.in.Meta = json.RawMessage(`{ "command_id": "` + h.state.OpenCommands()[0].ID + `" }`)
			e, err := Ingest(h.state, tc.in, "w", h.env())
			if err != nil {
				t.Fatal(err)
			}
			h.input(e)
			h.verify()
			if sum := h.state.Summary(); sum.Status != tc.status || (sum.Error == "") == (tc.status == event.StatusFailed) {
				t.Errorf("the execution is %s (%s), want %s", sum.Status, sum.Error, tc.status)
			}
		})
	}
}

func TestReportedMetaIsKeptAsValidJSON(t *testing.T) {
	t.Parallel()
	h := newHost(t, oneStep, Limits{})
	if err := h.start(""); err != nil {
		t.Fatal(err)
	}
	yes := true
	for meta, want := range map[string]string{
		``:             `{"actionable":true}`,
		`{ }`:          `{"actionable":true}`,
		`[1]`:          `{"actionable":true}`,
		` { "a": 1 } `: `{"a": 1,"actionable":true}`,
	} {
		e, err := Ingest(h.state, event.Incoming{Type: "note", Meta: json.RawMessage(meta), Actionable: &yes}, "w", h.env())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(e.Meta)); diff != "" {
			t.Errorf("meta %q is stored differently:\n%s", meta, diff)
		}
	}
}

func TestPayloadsOfAllMakesEndACommand(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, payload, want string }{
		{"ours", `{"status":"success","result":{"status":"success","context":{"status":"success","data":{"n":1},"duration_ms":3}}}`, `{"n":1}`},
		{"data beside", `{"data":[1,2]}`, `[1,2]`},
		{"data in the result", `{"result":{"status":"success","data":"x"}}`, `"x"`},
		{"null data", `{"result":{"status":"success","context":{"data":null}}}`, `null`},
		{"a result that is the data", `{"result":{"a":1}}`, `{"a":1}`},
		{"a list as result", `{"result":[1]}`, `[1]`},
		{"a text as result", `{"result":"done"}`, `"done"`},
		{"a context without data", `{"result":{"status":"success","context":{"x":1}}}`, `{"x":1}`},
		{"a context that is no object", `{"result":{"status":"success","context":7}}`, `7`},
		{"a status that is a number", `{"status":200,"result":{"ok":true}}`, `{"ok":true}`},
		{"nothing", `{}`, `null`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t}\nworkflow:\n  - {step: start, tool: {kind: noop}}\n", Limits{})
			if err := h.start(""); err != nil {
				t.Fatal(err)
			}
			c := h.state.OpenCommands()[0]
			e, err := Ingest(h.state, event.Incoming{
				Type: event.CommandCompleted, Step: "start", Payload: json.RawMessage(tc.payload),
				Meta: json.RawMessage(`{"command_id":"` + c.ID + `","attempt":"first"}`),
			}, "", h.env())
			if err != nil {
				t.Fatal(err)
			}
			h.input(e)
			h.verify()
			if got := h.state.Outcome()[0]; string(got.Result) != tc.want || got.Status != event.StatusCompleted {
				t.Errorf("%s ends %s with %s, want %s", tc.payload, got.Status, got.Result, tc.want)
			}
		})
	}
}
