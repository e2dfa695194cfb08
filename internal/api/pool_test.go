package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestWorkersOfAnyMakeMakeThemselvesKnown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, want string }{
		"what the Rust worker sends": {
			`{"name":"pod-1","kind":"worker_pool","status":"ready","labels":{"pool_name":"shared"},"capabilities":["http","shell"],"capacity":8,
			  "runtime":{"kind":"rust","worker_public_key":"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="},"hostname":"node-1"}`,
			`pod-1 worker_pool <nil> ready map[pool_name:shared] [http shell] 8 map[hostname:node-1 kind:rust worker_public_key:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=]`,
		},
		"older names": {
			`{"name":"pod-1","component_type":"server_api","base_url":"http://a","runtime":null,"labels":null,"capacity":null}`,
			`pod-1 server_api http://a active <nil> <nil> <nil> <nil>`,
		},
		"the name alone": {`{"name":"pod-1"}`, `pod-1 worker_pool <nil> active <nil> <nil> <nil> <nil>`},
		"a host that is known": {
			`{"name":"pod-1","hostname":"b","runtime":{"hostname":"a"}}`,
			`pod-1 worker_pool <nil> active <nil> <nil> <nil> map[hostname:a]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiving(t, nil, nil)
			row := ask(t, l.Server, "POST", "/api/worker/pool/register", tc.body)
			if row.status != 200 || shown(t, row.body) != tc.want {
				t.Fatalf("%d %s\n got %s\nwant %s", row.status, row.body, shown(t, row.body), tc.want)
			}
			if _, ok := row.field(t, "runtime_id").(json.Number); !ok {
				t.Errorf("runtime_id is no number: %s", row.body)
			}
			list := ask(t, l.Server, "GET", "/api/worker/pools", "")
			rows, ok := tree(t, list.body).([]any)
			if !ok || len(rows) != 1 {
				t.Errorf("list: %s", list.body)
			}
			again := ask(t, l.Server, "POST", "/api/worker/pool/register", tc.body)
			if again.field(t, "runtime_id") != row.field(t, "runtime_id") {
				t.Errorf("registered twice: %s and %s", row.body, again.body)
			}
		})
	}
}

// shown is a runtime without what differs from run to run.
func shown(t *testing.T, body string) string {
	t.Helper()
	m, _ := tree(t, body).(map[string]any)
	words := fmt.Sprintln(m["name"], m["kind"], m["uri"], m["status"], m["labels"], m["capabilities"], m["capacity"], m["runtime"])
	return strings.TrimSpace(words)
}

func TestRegistrationsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	for body, want := range map[string]struct {
		status int
		part   string
	}{
		`{}`:                                          {422, "name"},
		`{"name":"w","kind":"toaster"}`:               {422, "kind"},
		`{"name":"w","capacity":-1}`:                  {422, "capacity"},
		`{"name":"w","capacity":"many"}`:              {422, "capacity"},
		`{"name":"` + strings.Repeat("n", 300) + `"}`: {422, "name"},
		`{"name":"w","labels":{"x":"` + strings.Repeat("n", 100000) + `"}}`: {413, "registration"},
	} {
		ask(t, l.Server, "POST", "/api/worker/pool/register", body).wantError(t, want.status, want.part)
	}
	ask(t, l.Server, "POST", "/api/worker/pool/heartbeat", `{}`).wantError(t, 422, "name")
	ask(t, l.Server, "POST", "/api/worker/pool/heartbeat", `{"name":"w","kind":"toaster"}`).wantError(t, 422, "kind")
	ask(t, l.Server, "POST", "/api/worker/pool/heartbeat", `{"name":"w","commands":[1.5]}`).wantError(t, 422, "commands")
	ask(t, l.Server, "POST", "/api/worker/pool/deregister", ``).wantError(t, 422, "name")
	ask(t, l.Server, "GET", "/api/worker/pools", "").want(t, 200, `[]`)
}

func TestSilentWorkersAreOfflineAndHeartbeatsHeal(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	find := func(query string) string {
		t.Helper()
		rows, _ := tree(t, ask(t, l.Server, "GET", "/api/worker/pools"+query, "").body).([]any)
		var words []string
		for _, r := range rows {
			m := r.(map[string]any)
			words = append(words, fmt.Sprintf("%v:%v", m["name"], m["status"]))
		}
		return strings.Join(words, " ")
	}
	beat := func(body string) {
		t.Helper()
		ask(t, l.Server, "POST", "/api/worker/pool/heartbeat", body).want(t, 200, `{"status":"ok","message":"Heartbeat recorded"}`)
	}
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"a-1","status":"ready"}`)
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"b-1","status":"ready","kind":"broker"}`)
	l.pass(50 * time.Second)
	beat(`{"name":"a-1"}`)
	l.pass(20 * time.Second)
	if got := find(""); got != "b-1:offline a-1:ready" {
		t.Errorf("after silence of one: %s", got)
	}
	if got := find("?status=offline"); got != "b-1:offline" {
		t.Errorf("the silent ones: %s", got)
	}
	if got := find("?status=READY&kind=worker_pool&name=a-%25"); got != "a-1:ready" {
		t.Errorf("by kind, status and pattern: %s", got)
	}
	beat(`{"name":"b-1","component_type":"broker"}`)
	beat(`{"name":"c-1"}`)
	beat(`{"name":"d-1","registration":{"name":"d-1","status":"ready","labels":{"pool_name":"x"}}}`)
	beat(`{"registration":{"name":"e-1","status":"ready"}}`)
	if got := find(""); got != "b-1:ready a-1:ready c-1:active d-1:ready e-1:ready" {
		t.Errorf("after everybody was heard of: %s", got)
	}
	for _, method := range []string{"POST", "DELETE"} {
		gone := ask(t, l.Server, method, "/api/worker/pool/deregister", `{"name":"c-1","component_type":"worker_pool"}`)
		if gone.status != 200 || gone.field(t, "deleted") != (method == "POST") {
			t.Errorf("%s: %s", method, gone.body)
		}
	}
	ask(t, l.Server, "DELETE", "/api/worker/pool/deregister?name=d-1", "")
	if got := find("?kind=worker_pool"); got != "a-1:ready e-1:ready" {
		t.Errorf("after two left: %s", got)
	}
	l.pass(25 * time.Hour)
	beat(`{"name":"a-1"}`)
	if got := find(""); got != "a-1:ready" {
		t.Errorf("a day later: %s", got)
	}
}

func TestAPulseRenewsTheLeasesOfItsCommands(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	run := l.execute(t, "demo/two")
	id := l.command(t, run)
	if a := ask(t, l.Server, "POST", fmt.Sprintf("/api/commands/%d/claim", id), `{"worker_id":"w1","heartbeats":true}`); a.status != 200 {
		t.Fatal(a.body)
	}
	lease := func() time.Time {
		t.Helper()
		row, err := l.store.Command(t.Context(), 0, id)
		if err != nil {
			t.Fatal(err)
		}
		return row.LeaseUntil
	}
	pulse := func(body, want string) {
		t.Helper()
		ask(t, l.Server, "POST", "/api/worker/pool/heartbeat", body).want(t, 200, want)
	}
	const ok = `{"status":"ok","message":"Heartbeat recorded"}`
	first := lease()
	l.pass(10 * time.Second)
	pulse(`{"name":"w1","commands":[]}`, ok)
	pulse(`{"name":"w2"}`, ok)
	if got := lease(); !got.Equal(first) {
		t.Errorf("a pulse that speaks for no command moved its lease from %s to %s", first, got)
	}
	pulse(fmt.Sprintf(`{"name":"w1","commands":[%d]}`, id), ok)
	second := lease()
	if !second.After(first) {
		t.Errorf("the lease of a named command was not renewed: %s", second)
	}
	pulse(fmt.Sprintf(`{"name":"w1","commands":[{"event_id":"%d","attempt":1}]}`, id), ok)
	pulse(`{"name":"w1"}`, ok)
	if got := lease(); !got.After(second) {
		t.Errorf("the pulse of a worker that names no commands did not renew its lease: %s", got)
	}
	pulse(fmt.Sprintf(`{"name":"w2","commands":["%d"]}`, id), fmt.Sprintf(`{"status":"ok","message":"Heartbeat recorded","cancel":[%d]}`, id))
	ask(t, l.Server, "POST", "/api/executions/"+run+"/cancel", `{}`)
	pulse(fmt.Sprintf(`{"name":"w1","commands":[%d]}`, id), fmt.Sprintf(`{"status":"ok","message":"Heartbeat recorded","cancel":[%d]}`, id))
}
