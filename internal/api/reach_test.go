package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func TestASchedulesPathAndNameAreTheCallersToUse(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	for _, tc := range []struct {
		caller, path, name string
		status             int
	}{
		{"operator", "team/a/etl", "plain", 200},
		{"operator", "/team/a/etl/ ", "slashes", 200},
		{"operator", "system/clean", "s1", 403},
		{"operator", " /system/clean", "s2", 403},
		{"operator", "\tsystem/clean", "s3", 422},
		{"operator", "system/clean\n", "s4", 403},
		{"operator", "team/a/etl", "system/clean:nightly", 403},
		{"admin", "system/clean", "s5", 200},
		{"narrowed", "team/a/etl", "team/a/etl:mine", 200},
		{"narrowed", "team/a/etl", "mine", 200},
		{"narrowed", "team/a/etl", "team/b/etl", 403},
		{"narrowed", "team/a/etl", " team/b/etl:x", 403},
		{"narrowed", "team/ab", "beside", 403},
	} {
		body, _ := json.Marshal(map[string]string{"path": tc.path, "name": tc.name, "every": "1h"})
		if a := g.as(tc.caller, "POST", "/api/schedules", string(body)); a.status != tc.status {
			t.Errorf("%s %s: %d %s, want %d", tc.caller, body, a.status, a.body, tc.status)
		}
	}
	nbsp := g.as("operator", "POST", "/api/schedules", "{\"path\": \"\u00a0system/clean\", \"name\": \"nb\", \"every\": \"1h\"}")
	if nbsp.status == 200 && nbsp.at(t, "path") == "system/clean" {
		t.Errorf("a blank of another kind leads to system/: %s", nbsp.body)
	}
	if a := g.as("narrowed", "PUT", "/api/schedules/mine", `{"name": "team/b/etl", "every": "1h"}`); a.status != 403 {
		t.Errorf("renamed: %d %s", a.status, a.body)
	}
}

func TestANarrowedWorkerSpeaksForItself(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	g.as("worker", "POST", "/api/worker/pool/register", `{"name": "theirs"}`).status2xx(t)
	for _, tc := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "register", `{"name": "theirs"}`, 403},
		{"POST", "register", `{"name": "theirs", "kind": "worker_pool", "runtime": {"registered_by": "token:worker"}}`, 403},
		{"POST", "heartbeat", `{"name": "theirs"}`, 403},
		{"POST", "heartbeat", `{"registration": {"name": "theirs"}}`, 403},
		{"POST", "heartbeat", `{"name": "theirs", "registration": {"name": "mine"}}`, 403},
		{"POST", "deregister", `{"name": "theirs"}`, 403},
		{"DELETE", "deregister?name=theirs", "", 403},
		{"POST", "register", `{"name": "mine", "runtime": {"pid": 7}}`, 200},
		{"POST", "register", `{"name": "mine", "runtime": 7}`, 422},
		{"POST", "register", `{"name": "mine"}`, 200},
		{"POST", "heartbeat", `{"name": "mine", "commands": []}`, 200},
		{"POST", "heartbeat", `{"name": "new", "registration": {"name": "new", "runtime": {"registered_by": "token:worker"}}}`, 200},
		{"POST", "heartbeat", `{"name": "new"}`, 200},
		{"POST", "deregister", `{"name": "mine"}`, 200},
	} {
		if a := g.as("narrowed", tc.method, "/api/worker/pool/"+tc.path, tc.body); a.status != tc.status {
			t.Errorf("%s %s %s: %d %s, want %d", tc.method, tc.path, tc.body, a.status, a.body, tc.status)
		}
	}
	if list := g.as("viewer", "GET", "/api/worker/pools", "").body; !strings.Contains(list, "theirs") || strings.Contains(list, `"mine"`) {
		t.Errorf("workers: %s", list)
	}
}

func TestDataOfOthersIsNotReadThroughAReference(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	put := func(path string) string {
		stored, err := g.plane.PutBlob(t.Context(), g.execution[path], event.ResultOptions{Name: "x"}, strings.NewReader(`{"told": "`+path+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		return stored.Ref
	}
	for _, path := range []string{"team/a/etl", "team/b/etl"} {
		id, command := g.execution["team/a/etl"], g.command["team/a/etl"]
		if path != "team/a/etl" {
			x, err := g.plane.Execute(t.Context(), control.ExecuteRequest{Path: "team/a/etl"})
			if err != nil {
				t.Fatal(err)
			}
			events, err := g.plane.Events(t.Context(), x.ExecutionID, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			id, command = x.ExecutionID, events[len(events)-1].EventID
		}
		claimed := g.as("worker", "POST", fmt.Sprintf("/api/commands/%d/claim", command), `{"worker_id": "w"}`).at(t, "meta", "command_id")
		g.as("worker", "POST", "/api/events", fmt.Sprintf(`{"execution_id": %d, "step": "start", "event_type": "command.completed", "worker_id": "w",
			"payload": {"command_id": %q, "status": "success", "result": {"status": "success", "context": {"data": {"_ref": %q}}}}}`, id, claimed, put(path))).status2xx(t)
		for caller, seen := range map[string]bool{"viewer": true, "narrowed": path == "team/a/etl"} {
			a := g.as(caller, "GET", fmt.Sprintf("/api/executions/%d", id), "")
			if a.status != 200 || strings.Contains(strings.ReplaceAll(a.body, " ", ""), `"told":"`+path+`"`) != seen {
				t.Errorf("%s reads a value of %s: %d %s", caller, path, a.status, a.body)
			}
		}
	}
}

func TestAnExecutionMayStartWhatItsStarterMay(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	for _, tc := range []struct{ caller, want string }{
		{"narrowed", "[team/a] [system]"}, {"operator", "[] [system]"}, {"admin", "[] []"},
	} {
		id := fmt.Sprint(g.as(tc.caller, "POST", "/api/execute", `{"path": "team/a/etl"}`).at(t, "execution_id"))
		batch := fmt.Sprint(g.as(tc.caller, "POST", "/api/execute/batch", `{"executions": [{"path": "team/a/etl"}]}`).at(t, "results", 0, "execution_id"))
		again := fmt.Sprint(g.as(tc.caller, "POST", "/api/executions/"+id+"/rerun", `{}`).at(t, "execution_id"))
		for _, one := range []string{id, batch, again} {
			if who := starterOf(t, g.plane, one); fmt.Sprint(who.Within, who.Without) != tc.want {
				t.Errorf("%s: %+v, want %s", tc.caller, who, tc.want)
			}
		}
	}
}

func starterOf(t *testing.T, p *control.Plane, id string) event.Actor {
	t.Helper()
	execution, err := event.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	events, err := p.Events(t.Context(), execution, 0, 1)
	if err != nil || len(events) == 0 {
		t.Fatalf("%s: %v", id, err)
	}
	var meta struct{ Actor event.Actor }
	if err := json.Unmarshal(events[0].Meta, &meta); err != nil {
		t.Fatal(err)
	}
	return meta.Actor
}

func TestAPathLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	cl := realServer(t)
	for path, ok := range map[string]bool{"team/a/../b": false, "..": false, "./x": true, "team/..a/b.c": true} {
		_, err := cl.Register(t.Context(), playbookAt(path))
		if ok != (err == nil) || err != nil && event.CodeOf(err) != event.Invalid {
			t.Errorf("%s: %v", path, err)
		}
	}
}
