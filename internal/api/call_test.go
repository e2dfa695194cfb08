package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

// unwrapped does what the playbook tool of other workers does to a result: it
// follows context and result objects, at most five, and takes data.
func unwrapped(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for range 5 {
		m, ok := v.(map[string]any)
		if !ok {
			break
		}
		if inner, ok := m["context"].(map[string]any); ok {
			v = inner
		} else if inner, ok := m["result"].(map[string]any); ok {
			v = inner
		} else {
			break
		}
	}
	m, _ := v.(map[string]any)
	return m["data"]
}

// resultOf finds the result of an execution the way that tool does: the last
// call.done of the step, or of any step when none is named, that has data.
func resultOf(t *testing.T, rows []row, step string) any {
	t.Helper()
	for _, r := range slices.Backward(rows) {
		if r.Type != event.CallDone || r.Node == "playbook" || step != "" && r.Node != step {
			continue
		}
		if data := unwrapped(t, r.Result); data != nil {
			return data
		}
	}
	return nil
}

func (w *world) detail(id event.ID, query string) []row {
	w.t.Helper()
	var a struct {
		Events []row `json:"events"`
	}
	if err := json.Unmarshal([]byte(w.get(fmt.Sprintf("/api/executions/%d%s", id, query)).ok(w.t).body), &a); err != nil {
		w.t.Fatal(err)
	}
	return a.Events
}

func TestOtherWorkersFindTheDataOfAnExecutionInItsDetail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.run(`{"rows":[1,{"context":{"result":2}}],"text":"<b>"}`)
	rows := w.detail(id, "")
	want := tree(t, `{"rows":[1,{"context":{"result":2}}],"text":"<b>"}`)
	for _, step := range []string{"", "start", "finish"} {
		if diff := cmp.Diff(want, resultOf(t, rows, step)); diff != "" {
			t.Errorf("step %q (-want +got):\n%s", step, diff)
		}
	}
	for i, r := range rows {
		if r.Type != event.CallDone {
			continue
		}
		if end := rows[i+1]; !r.Derived || r.Status != event.StatusCompleted || end.Type != event.CommandCompleted || end.EventID != r.EventID || end.Derived {
			t.Errorf("row %d is %+v, then %+v", i, r, end)
		}
	}
	if n := count(rows, event.CallDone); n != 2 {
		t.Errorf("%d calls, want one per step", n)
	}
	if n := count(w.rows(id), event.CallDone); n != 0 {
		t.Errorf("the log shows %d calls it does not hold", n)
	}
	calls := w.detail(id, "?event_type=call.done")
	if len(calls) != 2 || count(calls, event.CallDone) != 2 || calls[0].Node != "start" {
		t.Errorf("asked for calls alone: %+v", calls)
	}
	if got := w.get(fmt.Sprintf("/api/executions/%d?event_type=call.done&page_size=1&page=2", id)).ok(t).id(t, "pagination", "total_events"); got != 2 {
		t.Errorf("%d calls counted", got)
	}
}

func TestACallReportedOnItsOwnIsNotDoubled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	commandID := w.claim(command, "w1").ok(t).at(t, "meta", "command_id").(string)
	w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":"%d","worker_id":"w1","events":[
		{"step":"start","event_type":"command.started","payload":{"command_id":%q}},
		{"step":"start","event_type":"call.done","payload":{"command_id":%q,"call_index":0,"result":{"status":"success","context":{"data":{"n":7}}}}},
		{"step":"start","event_type":"command.completed","status":"success","payload":{"command_id":%q,"status":"success","result":{"status":"success","context":{"data":{"n":7}}}}}]}`,
		id, commandID, commandID, commandID)).ok(t)
	rows := w.detail(id, "")
	if n := count(rows, event.CallDone); n != 1 {
		t.Errorf("%d calls", n)
	}
	if diff := cmp.Diff(tree(t, `{"n":7}`), resultOf(t, rows, "start")); diff != "" {
		t.Error(diff)
	}
	// An end without data of its own has none to show.
	commandID = w.claim(w.lastCommand(id), "w1").ok(t).at(t, "meta", "command_id").(string)
	w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"finish","event_type":"command.completed","worker_id":"w1","payload":{"command_id":%q,"status":"success"}}`, id, commandID)).ok(t)
	if n := count(w.detail(id, ""), event.CallDone); n != 1 {
		t.Errorf("%d calls after an end without data", n)
	}
}

func TestTheDetailHoldsDataThatIsKeptElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.start("")
	put := func(data string) string {
		a := ask(t, w.Server, "PUT", fmt.Sprintf("/api/result/%d", id), `{"name":"big","data":`+data+`}`).ok(t)
		return a.at(t, "ref").(string)
	}
	whole := put(`{"rows":[1,2,3],"html":"<&>"}`)
	link := put(`{"_ref":"` + whole + `"}`)
	far := put(`{"kind":"result_ref","ref":"` + link + `"}`)
	gone := fmt.Sprintf("noetl://execution/%d/result/big/1", id)
	want := tree(t, `{"rows":[1,2,3],"html":"<&>"}`)
	for name, tc := range map[string]struct {
		payload string
		want    any
	}{
		"in the place of the data": {`"result":{"status":"success","context":{"data":{"_ref":"` + whole + `"}},"reference":{"kind":"result_ref","ref":"` + whole + `","meta":{"bytes":30}}}`, want},
		"beside the status":        {`"result":{"status":"success","reference":{"kind":"result_ref","ref":"` + whole + `"}}`, want},
		"of the payload":           {`"reference":{"kind":"result_ref","ref":"` + whole + `"}`, want},
		"through another":          {`"result":{"status":"success","context":{"data":{"_ref":"` + link + `"}}}`, want},
		"through too many":         {`"result":{"status":"success","context":{"data":{"_ref":"` + far + `"}}}`, tree(t, `{"_ref":"`+far+`"}`)},
		"of nothing":               {`"result":{"status":"success","context":{"data":{"_ref":"` + gone + `"}}}`, tree(t, `{"_ref":"`+gone+`"}`)},
		"to somewhere else":        {`"result":{"status":"success","context":{"data":{"_ref":"gs://bucket/x"}}}`, tree(t, `{"_ref":"gs://bucket/x"}`)},
		"too large":                {`"result":{"status":"success","context":{"data":{}},"reference":{"ref":"` + whole + `","meta":{"bytes":99000000}}}`, tree(t, `{}`)},
	} {
		a := w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":%q,"event_type":"call.done","worker_id":"w1","payload":{"command_id":"x:y:1",%s}}`, id, name, tc.payload)).ok(t)
		if a.id(t, "event_id") == 0 {
			t.Fatalf("%s was not kept", name)
		}
		if diff := cmp.Diff(tc.want, resultOf(t, w.detail(id, ""), name)); diff != "" {
			t.Errorf("a reference %s (-want +got):\n%s", name, diff)
		}
	}
	for _, r := range w.rows(id) {
		if r.Type == event.CallDone && strings.Contains(string(r.Result), "rows") {
			t.Errorf("the log itself shows %s", r.Result)
		}
	}
}

func TestALargeResultOfOurWorkerIsFoundToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	claim := w.claim(command, "w1")
	ref := ask(t, w.Server, "PUT", fmt.Sprintf("/api/result/%d", id), `{"name":"start","data":{"n":1}}`).ok(t).at(t, "ref").(string)
	commandID := claim.at(t, "meta", "command_id").(string)
	w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","status":"success","worker_id":"w1","payload":{
		"command_id":%q,"status":"success","result":{"status":"success","context":{"data":{"_ref":%q}},"reference":{"kind":"result_ref","ref":%q,"store":"db","extracted":{}}}}}`, id, commandID, ref, ref)).ok(t)
	if diff := cmp.Diff(tree(t, `{"n":1}`), resultOf(t, w.detail(id, ""), "start")); diff != "" {
		t.Error(diff)
	}
}
