package wire

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/api"
)

func TestUnknownIdsAreNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const unknown = "612489553370251264"
	for _, c := range []struct{ ask, body, part string }{
		{"GET /api/executions/$", "", "Execution not found"},
		{"GET /api/executions/$/events", "", "Execution not found"},
		{"GET /api/executions/$/status", "", "Execution not found"},
		{"GET /api/executions/$/explain", "", "Execution not found"},
		{"GET /api/executions/$/stream", "", "Execution not found"},
		{"POST /api/executions/$/cancel", "", "Execution not found"},
		{"POST /api/executions/$/stop", "", "Execution not found"},
		{"POST /api/executions/$/finalize", `{"status":"FAILED"}`, "Execution not found"},
		{"POST /api/executions/$/rerun", "", "not found"},
		{"POST /api/events", `{"execution_id":$,"step":"s","event_type":"note"}`, "Execution not found: " + unknown},
		{"POST /api/events/batch", `{"execution_id":"$","events":[{"step":"s","event_type":"note"}]}`, "Execution not found: " + unknown},
		{"GET /api/commands/$", "", "command.issued event not found: " + unknown},
		{"POST /api/commands/$/claim", `{"worker_id":"w"}`, "command.issued event not found: " + unknown},
		{"POST /api/catalog/resource", `{"catalog_id":"$"}`, "Catalog entry not found: " + unknown},
		{"POST /api/catalog/resource", `{"path":"no/where"}`, "not found: no/where"},
		{"POST /api/execute", `{"path":"no/where"}`, "Playbook not found: no/where"},
		{"POST /api/execute", `{"catalog_id":$}`, "Catalog entry not found: " + unknown},
		{"GET /api/catalog/no/where/ui_schema", "", "not found: no/where"},
		{"GET /api/catalog/versions?path=no/where", "", "not found: no/where"},
		{"PUT /api/result/$", `{"name":"n","data":1}`, "Execution not found: " + unknown},
		{"GET /api/result/resolve?ref=noetl://execution/$/result/x/1", "", "result not found"},
		{"PUT /api/result/$/blob?name=n", `x`, "Execution not found: " + unknown},
		{"GET /api/result/$/list", "", "Execution not found: " + unknown},
		{"DELETE /api/result/$", "", "Execution not found: " + unknown},
		{"POST /api/executions/$/signals/x", `{}`, "Execution not found"},
		{"GET /api/executions/$/waits", "", "Execution not found"},
		{"GET /api/executions/$/logs", "", "Execution not found"},
		{"GET /api/credentials/$", "", unknown},
		{"GET /api/credentials/$/check", "", unknown},
		{"DELETE /api/credentials/$", "", unknown},
		{"GET /api/vars/$/x", "", "not found"},
		{"POST /api/vars/$", `{"x":1}`, "Execution not found"},
		{"GET /api/nowhere", "", "no such route"},
	} {
		method, path, _ := strings.Cut(strings.ReplaceAll(c.ask, "$", unknown), " ")
		w.send(method, path, strings.ReplaceAll(c.body, "$", unknown)).refused(404, c.part)
	}
}

// idFields are all members and parameters that hold an id, each with a request
// in which $ stands for the id.
var idFields = []struct{ ask, body string }{
	{"POST /api/execute", `{"catalog_id":$}`},
	{"POST /api/execute", `{"path":"demo/one","parent_execution_id":$}`},
	{"POST /api/catalog/resource", `{"catalog_id":$}`},
	{"POST /api/events", `{"execution_id":$,"step":"s","event_type":"note"}`},
	{"POST /api/events", `{"execution_id":1,"step":"s","event_type":"note","event_id":$}`},
	{"POST /api/events", `{"execution_id":1,"step":"s","event_type":"note","result_kind":"refs","event_ids":[$]}`},
	{"POST /api/events/batch", `{"execution_id":$,"events":[{"step":"s","event_type":"note"}]}`},
	{"POST /api/events/batch", `{"execution_id":1,"events":[{"step":"s","event_type":"note","event_id":$}]}`},
	{"POST /api/commands/1/claim", `{"worker_id":"w","execution_id":$}`},
	{"POST /api/commands/claim", `{"worker_id":"w","commands":[{"event_id":$}]}`},
	{"POST /api/commands/claim", `{"worker_id":"w","commands":[{"event_id":1,"execution_id":$}]}`},
	{"POST /api/commands/1/heartbeat", `{"worker_id":"w","execution_id":$}`},
	{"POST /api/commands/1/release", `{"worker_id":"w","execution_id":$}`},
	{"POST /api/commands/heartbeat", `{"worker_id":"w","commands":[{"event_id":$}]}`},
	{"POST /api/worker/pool/heartbeat", `{"name":"w","commands":[$]}`},
	{"POST /api/worker/pool/heartbeat", `{"name":"w","commands":[{"event_id":$}]}`},
	{"POST /api/internal/outbox/mark-published", `{"outbox_ids":[$]}`},
	{"POST /api/internal/outbox/mark-failed", `{"outbox_id":$,"error":"e"}`},
	{"POST /api/internal/projection/advance", `{"execution_ids":[$]}`},
	{"POST /api/secrets/resolve", `{"worker_id":"w","attempt":1,"event_id":1,"aliases":["a"],"execution_id":$}`},
	{"POST /api/secrets/resolve", `{"worker_id":"w","attempt":1,"execution_id":1,"aliases":["a"],"event_id":$}`},
	{"POST /api/executions/1/signals/go", `{"event_id":$}`},
	{"POST /api/keychain/1/tok", `{"data":{"a":1},"execution_id":$}`},
	{"POST /api/keychain/1/tok", `{"data":{"a":1},"parent_execution_id":$}`},
	{"POST /api/db/verify", `{"execution_id":$}`},
	{"POST /api/db/rebuild", `{"execution_id":$,"dry_run":true}`},
}

func TestIdsAreNumbersOrStringsAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(oneStep)
	send := func(ask, body string) answer {
		t.Helper()
		method, path, _ := strings.Cut(ask, " ")
		return w.internal(method, path, body)
	}
	for _, f := range idFields {
		for _, good := range []string{`612489553370251264`, `"612489553370251264"`} {
			if a := send(f.ask, strings.ReplaceAll(f.body, "$", good)); a.status == 422 || a.status >= 500 {
				t.Errorf("%s with %s: %d %s", f.ask, good, a.status, a.body)
			}
		}
		for _, bad := range []string{`1.5`, `1e3`, `[1]`, `{"id":1}`, `"12x"`, `"1.0"`, `true`, `99999999999999999999`} {
			if f.ask == "POST /api/worker/pool/heartbeat" && strings.Contains(f.body, "[$]") && bad == `{"id":1}` {
				continue // an object is another form of the same; the id is missing in it
			}
			send(f.ask, strings.ReplaceAll(f.body, "$", bad)).refused(422, "")
		}
	}
	for _, parameter := range []string{
		"/api/executions?catalog_id=$", "/api/executions?parent_execution_id=$", "/api/executions?before=$", "/api/commands/1?execution_id=$",
		"/api/credentials/x?include_data=true&execution_id=$", "/api/credentials/x/sealed?worker_id=w&execution_id=$", "/api/internal/secret-audit?execution_id=$",
		"/api/keychain/1/tok?execution_id=$",
	} {
		for _, bad := range []string{"1.5", "x", "1e3"} {
			w.internal("GET", strings.ReplaceAll(parameter, "$", bad), "").refused(422, bad)
		}
	}
	for _, place := range []string{
		"GET /api/executions/$", "GET /api/executions/$/status", "POST /api/executions/$/cancel", "GET /api/commands/$", "POST /api/commands/$/claim",
		"PUT /api/result/$", "GET /api/vars/$", "POST /api/internal/container-callback/$/s", "PUT /api/result/$/blob?name=n", "GET /api/result/$/list", "DELETE /api/result/$",
		"POST /api/executions/$/signals/x", "GET /api/executions/$/waits", "GET /api/executions/$/logs",
		"GET /api/keychain/catalog/$", "GET /api/keychain/$/tok", "POST /api/keychain/$/tok", "DELETE /api/keychain/$/tok",
	} {
		for _, bad := range []string{"1.5", "abc", "99999999999999999999"} {
			send(strings.ReplaceAll(place, "$", bad), `{}`).refused(400, bad)
		}
	}
}

func TestValuesOfTheWrongTypeAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		path, body string
		status     int
		part       string
	}{
		{"/api/execute", `{"path":7}`, 422, "path"},
		{"/api/execute", `{}`, 422, "path"},
		{"/api/execute", `{"path":"x","payload":[1]}`, 422, "payload"},
		{"/api/execute", `{"path":"x","resource_kind":"robot"}`, 422, "resource_kind"},
		{"/api/execute", `[]`, 422, "object"},
		{"/api/execute", `{"path":`, 400, "JSON"},
		{"/api/execute", ``, 400, "empty"},
		{"/api/execute/batch", `{"executions":[]}`, 422, "1 to 1000"},
		{"/api/execute/batch", `{"executions":[` + strings.Repeat(`{},`, 1000) + `{}]}`, 422, "1001"},
		{"/api/events", `{"step":"s","event_type":"e"}`, 422, "execution_id"},
		{"/api/events", `{"execution_id":1,"event_type":"e"}`, 422, "step"},
		{"/api/events", `{"execution_id":1,"step":"s"}`, 422, "event_type"},
		{"/api/events", `{"execution_id":1,"step":"s","event_type":"e","result_kind":"blob"}`, 422, "result_kind"},
		{"/api/events", `{"execution_id":1,"step":"s","event_type":"e","created_at":"yesterday"}`, 422, "created_at"},
		{"/api/events/batch", `{"execution_id":1,"events":[` + strings.Repeat(`{},`, 1000) + `{}]}`, 422, "1000"},
		{"/api/commands/1/claim", `{}`, 422, "worker_id"},
		{"/api/catalog/register", `{"content":""}`, 422, "content"},
		{"/api/catalog/register", `{"content":"kind: Playbook"}`, 422, ""},
		{"/api/catalog/register", `{"content":"kind: Robot\nmetadata:\n  path: x/y\n"}`, 422, "kind"},
		{"/api/catalog/resource", `{}`, 422, "catalog_id"},
		{"/api/catalog/resource", `{"path":"x","version":"new"}`, 422, "version"},
		{"/api/executions/cleanup", `{"older_than_minutes":0}`, 422, "older_than_minutes"},
		{"/api/credentials", ``, 400, "empty"},
		{"/api/credentials", `[]`, 422, "type"},
		{"/api/credentials", `{"type":"secret","data":{"a":1}}`, 422, "name"},
		{"/api/credentials", `{"name":"a","data":{"a":1}}`, 422, "type"},
		{"/api/credentials", `{"name":"a","type":"secret"}`, 422, "data"},
		{"/api/secrets/resolve", `{"event_id":1,"aliases":["a"]}`, 422, "worker_id"},
		{"/api/secrets/resolve", `{"event_id":1,"worker_id":"w","aliases":[]}`, 422, "aliases"},
		{"/api/secrets/resolve", `{"event_id":1,"worker_id":"w","aliases":"a"}`, 422, "aliases"},
		{"/api/secrets/resolve", `{"event_id":1,"worker_id":"w","aliases":[""]}`, 422, "aliases[0]"},
		{"/api/executions/1/signals/go", `{"index":-1}`, 422, "index"},
		{"/api/executions/1/signals/go", `{"step":7}`, 422, "step"},
		{"/api/executions/1/signals/go", `{"data":`, 400, "JSON"},
		{"/api/executions/1/signals/%20", `{}`, 422, "name"},
	} {
		w.post(c.path, c.body).refused(c.status, c.part)
	}
	w.get("/api/executions?status=WON").refused(422, "status")
	w.get("/api/executions?limit=x").refused(422, "limit")
}

// TestTheHeadOfARequest is about what stands around the body.
func TestTheHeadOfARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(oneStep)
	for _, kind := range []string{"", "Content-Type: application/json", "Content-Type: text/plain", "Content-Type: application/x-www-form-urlencoded"} {
		w.send("POST", "/api/execute", `{"path":"demo/one","nobody":{"knows":"this"}}`, header(kind)...).ok()
	}
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	for _, r := range w.server.Routes() {
		a := w.send("PATCH", parameter.ReplaceAllString(r.Pattern, "1"), "")
		if strings.Contains(r.Pattern, "...") {
			continue // it takes the rest of the path, of which most means nothing
		}
		a.refused(405, "PATCH is not allowed")
		if allow := a.header.Get("Allow"); !strings.Contains(allow, r.Method) {
			t.Errorf("%s %s: Allow is %q", r.Method, r.Pattern, allow)
		}
	}
}

func TestBodiesAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	big := func(n int) string {
		return `{"name":"n","data":"` + strings.Repeat("x", n) + `","step":"s","event_type":"note","execution_id":` + id.String() + `}`
	}
	w.post("/api/events", big(2<<20)).refused(413, "2097152 bytes")
	w.post("/api/events", big(1<<20)).ok()
	w.send("PUT", fmt.Sprintf("/api/result/%d", id), big(3<<20)).ok()
	w.send("PUT", fmt.Sprintf("/api/result/%d", id), big(64<<20)).refused(413, "67108864 bytes")
}

func TestInternalRoutesAreGuarded(t *testing.T) {
	t.Parallel()
	open := newWorld(t)
	closed := newWorld(t, setting{api: func(o *api.Options) { o.InternalToken = "" }})
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	guarded := 0
	var outside []string
	for _, r := range open.server.Routes() {
		path := parameter.ReplaceAllString(r.Pattern, "1")
		switch {
		case strings.HasPrefix(path, "/api/internal/"):
			if r.Role != api.Internal {
				t.Errorf("%s %s: role %s", r.Method, r.Pattern, r.Role)
			}
		case r.Role == api.Internal:
			outside = append(outside, r.Method+" "+r.Pattern)
		default:
			continue
		}
		guarded++
		for _, wrong := range []string{"", "Authorization: Bearer wrong", "Authorization: Basic " + token, "Authorization: " + token, "Authorization: Bearer"} {
			open.send(r.Method, path, `{}`, header(wrong)...).refused(403, "token")
		}
		closed.send(r.Method, path, `{}`, "Authorization: Bearer "+token).refused(503, "no internal token")
		for _, right := range []string{"Authorization: bearer " + token, "Authorization: BEARER   " + token + "  "} {
			if a := open.send(r.Method, path, `{}`, right); a.status == http.StatusForbidden || a.status == http.StatusServiceUnavailable {
				t.Errorf("%s with %q: %d %s", a.what, right, a.status, a.body)
			}
		}
	}
	if guarded < 10 {
		t.Errorf("only %d guarded routes", guarded)
	}
	// Whatever their path, these change what only the owner of a server may.
	want := []string{"DELETE /api/keychain/{catalog_id}/{name}", "POST /api/catalog/delete", "POST /api/catalog/restore", "POST /api/keychain/{catalog_id}/{name}"}
	if slices.Sort(outside); !slices.Equal(outside, want) {
		t.Errorf("guarded elsewhere are %q, want %q", outside, want)
	}
}

// TestSecretsAreShownToTheInternalTokenAlone is about routes that are open
// unless they are asked for a secret.
func TestSecretsAreShownToTheInternalTokenAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const hidden = "canary-5c1d77"
	catalog := w.register(oneStep).text("catalog_id")
	w.post("/api/credentials", `{"name":"key","type":"secret","data":{"value":"`+hidden+`"}}`).ok()
	w.internal("POST", "/api/keychain/"+catalog+"/kept", `{"data":{"value":"`+hidden+`"}}`).ok()
	for _, path := range []string{"/api/credentials/key?include_data=true", "/api/keychain/" + catalog + "/kept"} {
		for _, wrong := range []string{"", "Authorization: Bearer wrong", "Authorization: Basic " + token, "Authorization: " + token, "Authorization: Bearer"} {
			if a := w.send("GET", path, "", header(wrong)...).refused(403, "not shown"); strings.Contains(a.body, hidden) {
				t.Errorf("%s with %q shows it: %s", a.what, wrong, a.body)
			}
		}
		a := w.internal("GET", path, "").ok().equal("data.value", hidden)
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be kept by whoever carries it", a.what)
		}
	}
	for _, path := range []string{"/api/credentials", "/api/credentials/key", "/api/credentials/key?include_data=false", "/api/credentials/key/check", "/api/keychain/catalog/" + catalog} {
		if a := w.get("%s", path).ok(); strings.Contains(a.body, hidden) {
			t.Errorf("%s shows it: %s", a.what, a.body)
		}
	}
}

func header(h string) []string {
	if h == "" {
		return nil
	}
	return []string{h}
}

// TestIdsCanBeStrings is the switch for pages that cannot hold the numbers: it
// changes answers about executions and nothing a worker reads.
func TestIdsCanBeStrings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{api: func(o *api.Options) { o.StringIDs = true }})
	id := w.start(oneStep)
	child := w.again("demo/one", `,"parent_execution_id":`+id.String())
	w.get("/api/executions").ok().shaped(`[{execution_id: sid, execution_id_str: sid, catalog_id: sid, parent_execution_id: sid|null}+]`)
	w.get("/api/executions/%d", child).ok().shaped(`{execution_id: sid, catalog_id: sid, parent_execution_id: sid, events: [{event_id: sid, execution_id: sid, catalog_id: sid}+]}`)
	w.get("/api/executions/%d/events", id).ok().shaped(`{events: [{event_id: sid, execution_id: sid}+]}`)
	w.get("/api/executions/%d/status", id).ok().shaped(`{execution_id: sid, execution_id_str: sid}`)
	w.get("/api/executions/%d/cancellation-check", id).ok().shaped(`{execution_id: sid}`)
	w.get("/api/dashboard/stats").ok().shaped(`{recent_executions: [{execution_id: sid}+]}`)
	w.claim(w.command(id, "start"), "w").ok().shaped(`{event_id: id, execution_id: id}`)
	w.post("/api/events", fmt.Sprintf(`{"execution_id":"%d","step":"s","event_type":"note"}`, id)).ok().shaped(`{event_id: id}`)
	w.get("/api/replay/state?execution_id=%d", id).ok().shaped(`{execution_id: id, last_event_id: id}`)
	w.post("/api/executions/"+id.String()+"/finalize", `{"status":"COMPLETED"}`).ok().shaped(`{execution_id: sid}`)
	w.post("/api/executions/"+child.String()+"/cancel", ``).ok().shaped(`{execution_id: sid, cancelled_executions: [sid+]}`)
}
