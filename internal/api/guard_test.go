package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/store"
)

// emptyKeychain holds nothing.
type emptyKeychain struct{ api.Keychain }

func (emptyKeychain) SealSecrets(context.Context, event.SecretRequest) (event.SecretAnswer, error) {
	return event.SecretAnswer{}, nil
}

func (emptyKeychain) SealedCredential(context.Context, string, string, event.ID) (event.Sealed, error) {
	return event.Sealed{EphemeralKey: []byte("x"), Ciphertext: []byte("x")}, nil
}

func (emptyKeychain) KeptValues(context.Context, event.ID) ([]store.KeychainEntry, error) {
	return nil, nil
}

func (emptyKeychain) KeptValue(context.Context, control.KeptSecret) (keychain.Held, error) {
	return keychain.Held{Status: "expired"}, nil
}

func (emptyKeychain) KeepValue(context.Context, control.KeptSecret, keychain.Deposit) (key string, until time.Time, err error) {
	return "", until, nil
}

func (emptyKeychain) DropValue(context.Context, control.KeptSecret) (string, bool, error) {
	return "", false, nil
}

func TestWrongEvidenceAlwaysLooksTheSame(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	first := g.as("", "GET", "/api/executions", "")
	for _, token := range []string{"wrong", "noetl_pat_1_wrong", "a.b.c", strings.Repeat("x", 5000)} {
		a := g.as(token, "GET", "/api/executions", "")
		if a.status != 401 || a.body != first.body || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%.20s: %d %s, without a token %s", token, a.status, a.body, first.body)
		}
	}
	g.desk.limited = true
	if a := g.as("wrong", "GET", "/api/executions", ""); a.status != 429 || a.header.Get("Retry-After") == "" {
		t.Errorf("after too many failures: %d %v", a.status, a.header)
	}
	if a := g.as("viewer", "GET", "/api/executions", ""); a.status != 200 {
		t.Errorf("a good token meanwhile: %d", a.status)
	}
}

func TestACookieChangesThingsOnlyFromOurOwnPage(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	cancel := fmt.Sprintf("/api/executions/%d/cancel", g.execution["team/a/etl"])
	cookie := []string{"Cookie", "noetl_session=session-operator"}
	for name, tc := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"reading":                    {"GET", "/api/executions", nil, 200},
		"nobody says where from":     {"POST", cancel, nil, 403},
		"another site":               {"POST", cancel, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403},
		"another site of ours":       {"POST", cancel, []string{"Sec-Fetch-Site", "same-site"}, 403},
		"an origin with our name":    {"POST", cancel, []string{"Origin", "http://evil.example"}, 403},
		"no page":                    {"POST", cancel, []string{"Origin", "null"}, 403},
		"typed by hand":              {"POST", cancel, []string{"Sec-Fetch-Site", "none"}, 403},
		"allowed origin with cookie": {"POST", cancel, []string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if a := g.as("", tc.method, tc.path, "{}", append(tc.headers, cookie...)...); a.status != tc.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, tc.status)
		}
	}
	if a := g.as("", "POST", cancel, "{}", append(cookie, "Sec-Fetch-Site", "same-origin")...); a.status != 200 {
		t.Errorf("our own page: %d %s", a.status, a.body)
	}
	other := fmt.Sprintf("/api/executions/%d/cancel", g.execution["team/b/etl"])
	if a := g.as("", "POST", other, "{}", "X-Session-Token", "session-operator"); a.status != 200 {
		t.Errorf("the header for sessions: %d %s", a.status, a.body)
	}
}

func TestNarrowedCallersSeeTheirOwnInLists(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	paths := func(caller, query string) string {
		var rows []struct {
			Path string `json:"path"`
		}
		if err := json.Unmarshal([]byte(g.as(caller, "GET", "/api/executions"+query, "").body), &rows); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, r := range rows {
			list = append(list, r.Path)
		}
		return strings.Join(list, " ")
	}
	for _, tc := range []struct{ caller, query, want string }{
		{"viewer", "", "system/clean team/ab team/b/etl team/a/etl"},
		{"narrowed", "", "team/a/etl"},
		{"reader", "", "team/b/etl team/a/etl"},
		{"reader", "?limit=1", "team/b/etl"},
		{"reader", "?limit=1&offset=1", "team/a/etl"},
		{"reader", "?page=2&page_size=1", "team/a/etl"},
		{"reader", "?path_prefix=team/b", "team/b/etl"},
		{"reader", "?path_prefix=team/b/e", "team/b/etl"},
		{"reader", "?path_prefix=system", ""},
		{"narrowed", "?path_prefix=team/b", ""},
		{"narrowed", "?path=ab", ""},
		{"reader", "?before=" + g.execution["team/b/etl"].String(), "team/a/etl"},
	} {
		if got := paths(tc.caller, tc.query); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.caller, tc.query, got, tc.want)
		}
	}
	entries := g.as("narrowed", "POST", "/api/catalog/list", "{}").body
	if strings.Contains(entries, "team/b") || strings.Contains(entries, "team/ab") || !strings.Contains(entries, "team/a/etl") {
		t.Errorf("catalog: %s", entries)
	}
	if got := g.as("narrowed", "GET", "/api/catalog/list/playbook", "").body; strings.TrimSpace(got) != `["team/a/etl"]` {
		t.Errorf("paths: %s", got)
	}
	stats := g.as("reader", "GET", "/api/dashboard/stats", "")
	if fmt.Sprintf("%v %v", stats.at(t, "total_executions"), stats.at(t, "total_playbooks")) != "2 2" || strings.Contains(stats.body, "system/") {
		t.Errorf("stats: %s", stats.body)
	}
}

func TestRolesAreThoseOfThePath(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	x := func(path, rest string) string { return fmt.Sprintf("/api/executions/%d%s", g.execution[path], rest) }
	for _, tc := range []struct {
		caller, method, path, body string
		status                     int
	}{
		{"reader", "GET", x("team/a/etl", "/status"), "", 200},
		{"reader", "POST", x("team/a/etl", "/cancel"), "{}", 403}, // seen, but only to look at
		{"reader", "POST", x("team/ab", "/cancel"), "{}", 404},
		{"reader", "POST", x("team/b/etl", "/cancel"), "{}", 200},
		{"reader", "GET", "/api/executions/77/status", "", 404},
		{"reader", "POST", "/api/execute", fmt.Sprintf(`{"catalog_id": %d}`, g.catalog["team/b/etl"]), 200},
		{"reader", "POST", "/api/execute", fmt.Sprintf(`{"catalog_id": %d}`, g.catalog["team/a/etl"]), 403},
		{"reader", "POST", "/api/execute", fmt.Sprintf(`{"catalog_id": %d}`, g.catalog["system/clean"]), 404},
		{"reader", "POST", "/api/execute", fmt.Sprintf(`{"path": "team/b/etl", "parent_execution_id": %d}`, g.execution["team/ab"]), 404},
		{"reader", "POST", "/api/execute", `{"path": "/team/b/etl/"}`, 200},
		{"reader", "POST", "/api/execute", `{"path": "team/b/../a/etl"}`, 404},
		{"operator", "POST", "/api/execute", `{"path": "system/clean"}`, 403},
		{"operator", "POST", "/api/execute", `{"path": "/system/clean"}`, 403},
		{"operator", "POST", "/api/execute", fmt.Sprintf(`{"catalog_id": %d}`, g.catalog["system/clean"]), 403},
		{"operator", "POST", x("system/clean", "/rerun"), `{}`, 403},
		{"operator", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("system/new")), 403},
		{"operator", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("/system/new")), 403},
		{"operator", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("systematic")), 200},
		{"admin", "POST", "/api/execute", `{"path": "system/clean"}`, 200},
		{"admin", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("system/new")), 200},
		{"narrowed", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("team/ab/x")), 403},
	} {
		if a := g.as(tc.caller, tc.method, tc.path, tc.body); a.status != tc.status {
			t.Errorf("%s %s %s %s: %d %s, want %d", tc.caller, tc.method, tc.path, tc.body, a.status, a.body, tc.status)
		}
	}
	if _, err := g.plane.Entry(t.Context(), control.EntryRef{Path: "team/ab/x"}); err == nil {
		t.Error("what was refused is in the catalog")
	}
	batch := g.as("reader", "POST", "/api/execute/batch", `{"executions": [{"path": "team/b/etl"}, {"path": "team/a/etl"}, {"path": "system/clean"}]}`)
	if fmt.Sprintf("%v %v", batch.at(t, "started"), batch.at(t, "failed")) != "1 2" || batch.at(t, "results", 0, "status") != "started" {
		t.Errorf("each item stands for itself: %s", batch.body)
	}
}

func TestTheLogSaysWhoChangedAnExecution(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	actors := func(id string) map[string]string {
		var log struct {
			Events []struct {
				Type string `json:"event_type"`
				Meta struct {
					Actor *event.Actor `json:"actor"`
				} `json:"meta"`
			} `json:"events"`
		}
		if err := json.Unmarshal([]byte(g.as("viewer", "GET", "/api/executions/"+id+"/events", "").body), &log); err != nil {
			t.Fatal(err)
		}
		who := map[string]string{}
		for _, e := range log.Events {
			if e.Meta.Actor != nil {
				who[e.Type] = e.Meta.Actor.ID + " " + e.Meta.Actor.By
			}
		}
		return who
	}
	id := fmt.Sprint(g.as("operator", "POST", "/api/execute", `{"path": "team/a/etl"}`).at(t, "execution_id"))
	g.as("admin", "POST", "/api/executions/"+id+"/signals/go", `{}`).status2xx(t)
	again := fmt.Sprint(g.as("admin", "POST", "/api/executions/"+id+"/rerun", `{}`).at(t, "execution_id"))
	g.as("operator", "POST", "/api/executions/"+id+"/cancel", `{"cancelled_by": "somebody else"}`).status2xx(t)
	g.as("operator", "POST", "/api/executions/"+again+"/finalize", `{}`).status2xx(t)
	if got := fmt.Sprint(actors(id)); got != "map[playbook.cancelled:token:operator token playbook_started:token:operator token signal.received:token:admin token]" &&
		!strings.Contains(got, "playbook.cancelled:token:operator token") {
		t.Errorf("actors of the first: %s", got)
	}
	if got := actors(again); got["playbook_started"] != "token:admin token" && got["playbook.initialized"] != "token:admin token" {
		t.Errorf("actors of the second: %v", got)
	}
	if got := actors(g.execution["team/b/etl"].String()); len(got) != 0 {
		t.Errorf("nobody asked over the API: %v", got)
	}
	for _, a := range g.desk.actions {
		if a.Outcome == "ok" {
			t.Errorf("what stands in the log is recorded again: %+v", a)
		}
	}
}

func TestWhatOperatorsChangeAndWhatIsRefusedIsRecorded(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	g.as("operator", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, playbookAt("team/a/new")), "X-Request-ID", "req-17")
	a := g.desk.last()
	if a.Type != "catalog.registered" || a.Actor != "token:operator" || a.Target != "team/a/new" || a.Outcome != "ok" || a.RequestID != "req-17" || a.Remote == "" || a.Route != "/api/catalog/register" {
		t.Errorf("registered: %+v", a)
	}
	g.as("viewer", "POST", "/api/catalog/register", "{}")
	if a := g.desk.last(); a.Type != "access.denied" || a.Actor != "token:viewer" || a.Outcome != "refused" || a.Status != 403 {
		t.Errorf("denied: %+v", a)
	}
	g.as("narrowed", "GET", fmt.Sprintf("/api/executions/%d", g.execution["team/b/etl"]), "")
	if a := g.desk.last(); a.Type != "access.denied" || a.Actor != "token:narrowed" || a.Status != 404 {
		t.Errorf("hidden: %+v", a)
	}
	g.as("secret-of-somebody", "GET", "/api/executions", "")
	if a := g.desk.last(); a.Type != "access.denied" || a.Actor != "unknown" || strings.Contains(fmt.Sprintf("%+v", a), "secret-of-somebody") {
		t.Errorf("unknown: %+v", a)
	}
	before := len(g.desk.actions)
	g.as("viewer", "POST", "/api/catalog/list", "{}")
	g.as("worker", "POST", "/api/worker/pool/register", `{"name": "w"}`)
	if len(g.desk.actions) != before {
		t.Errorf("reading or a worker was recorded: %+v", g.desk.last())
	}
	audit := g.as("admin", "GET", "/api/audit?type=catalog.registered", "")
	if audit.at(t, "items", 0, "target") != "team/a/new" {
		t.Errorf("audit: %s", audit.body)
	}
}

func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	for _, tc := range []struct {
		caller, body string
		status       int
	}{
		{"admin", `{"name": "ci", "role": "operator", "prefix": "team/a/", "expires_in": 3600}`, 201},
		{"narrowed", `{"name": "ci", "grants": [{"role": "admin", "prefix": "team/a/x"}]}`, 201},
		{"narrowed", `{"name": "ci", "role": "viewer"}`, 403},
		{"narrowed", `{"name": "ci", "grants": [{"role": "viewer", "prefix": "team/a"}, {"role": "viewer", "prefix": "team/b"}]}`, 403},
		{"admin", `{"name": "ci", "role": "viewer", "prefix": "/"}`, 422},
		{"admin", `{"name": "", "role": "viewer"}`, 422},
		{"admin", `{"name": "ci", "role": "root"}`, 422},
		{"admin", `{"name": "ci"}`, 422},
		{"admin", `{"name": "ci", "role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}`, 422},
		{"operator", `{"name": "ci", "role": "viewer"}`, 403},
	} {
		if a := g.as(tc.caller, "POST", "/api/tokens", tc.body); a.status != tc.status {
			t.Errorf("%s %s: %d %s, want %d", tc.caller, tc.body, a.status, a.body, tc.status)
		} else if tc.status == 201 && (a.header.Get("Cache-Control") != "no-store" || !strings.HasPrefix(fmt.Sprint(a.at(t, "token")), "noetl_pat_")) {
			t.Errorf("%s: %v %s", tc.caller, a.header, a.body)
		}
	}
	g.as("admin", "POST", "/api/tokens", `{"name": "all", "role": "viewer"}`)
	if list := g.as("narrowed", "GET", "/api/tokens", "").body; strings.Contains(list, `"all"`) || strings.Contains(list, "secret") {
		t.Errorf("tokens of others: %s", list)
	}
	if a := g.as("narrowed", "DELETE", "/api/tokens/3", ""); a.status != 404 {
		t.Errorf("revoking somebody's token: %d", a.status)
	}
	if a := g.as("admin", "DELETE", "/api/tokens/3", ""); a.status != 200 || a.at(t, "revoked_at") == nil {
		t.Errorf("revoke: %d %s", a.status, a.body)
	}
	if a := g.desk.last(); a.Type != "token.revoked" || a.Target != "3" {
		t.Errorf("recorded: %+v", a)
	}
}

func TestLoginAnswersInTheWordsOfOlderClients(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	a := g.as("", "POST", "/api/auth/login", `{"auth0_token": "viewer", "auth0_domain": "evil.example", "credential": "other_db"}`)
	if a.at(t, "status") != "success" || a.at(t, "data", "status") != "authenticated" || a.at(t, "data", "session_token") != "session-viewer" ||
		a.at(t, "data", "user", "roles", 0) != "viewer" || a.at(t, "data", "expires_at") == nil || a.header.Get("Set-Cookie") != "" {
		t.Errorf("login: %s", a.body)
	}
	if a := g.as("", "POST", "/api/auth/login", `{"auth0_token": "forged"}`); a.status != 200 || a.at(t, "status") != "error" || a.at(t, "data", "error") == nil || strings.Contains(a.body, "row 7") {
		t.Errorf("a forged token: %d %s", a.status, a.body)
	}
	a = g.as("", "POST", "/api/auth/login", `{"token": "viewer", "cookie": true}`)
	set := a.header.Get("Set-Cookie")
	if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || strings.Contains(set, "Secure") || strings.Contains(a.body, "session-viewer") {
		t.Errorf("cookie: %s %s", set, a.body)
	}
	valid := g.as("", "POST", "/api/auth/session/validate", `{"session_token": "session-viewer"}`)
	if valid.at(t, "status") != "ok" || valid.at(t, "valid") != true || valid.at(t, "user", "user_id") != "token:viewer" {
		t.Errorf("validate: %s", valid.body)
	}
	if a := g.as("", "POST", "/api/auth/session/validate", `{"session_token": "x"}`); a.status != 200 || a.at(t, "status") != "error" || a.at(t, "valid") != false {
		t.Errorf("validate: %d %s", a.status, a.body)
	}
	for _, tc := range []struct {
		body    string
		allowed any
	}{
		{`{"session_token": "session-reader", "playbook_path": "team/b/etl", "action": "execute"}`, true},
		{`{"session_token": "session-reader", "playbook_path": "team/a/etl", "action": "execute"}`, false},
		{`{"session_token": "session-reader", "playbook_path": "team/a/etl", "action": "view"}`, true},
		{`{"session_token": "session-operator", "playbook_path": "/system/clean", "action": "execute"}`, false},
		{`{"session_token": "session-operator", "playbook_path": "x", "action": "fly"}`, false},
		{`{"session_token": "wrong", "playbook_path": "x", "action": "view"}`, false},
	} {
		if a := g.as("", "POST", "/api/auth/check-playbook-access", tc.body); a.status != 200 || a.at(t, "data", "allowed") != tc.allowed {
			t.Errorf("%s: %d %s", tc.body, a.status, a.body)
		}
	}
	g.as("", "POST", "/api/auth/logout", "", "X-Session-Token", "session-viewer").status2xx(t)
	if a := g.as("", "GET", "/api/auth/me", "", "X-Session-Token", "session-viewer"); a.status != 401 {
		t.Errorf("after the logout: %d", a.status)
	}
}

func TestALoginIsFinishedByTheBrowserThatBeganIt(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, func(o *api.Options) { o.BrowserLogin = true })
	a := g.as("", "GET", "/api/auth/oidc/start?return_to=//evil.example", "")
	if a.status != 302 || !strings.HasSuffix(a.header.Get("Location"), "to=/") || !strings.Contains(a.header.Get("Set-Cookie"), "noetl_login=state-1") {
		t.Fatalf("start: %d %v", a.status, a.header)
	}
	a = g.as("", "GET", "/api/auth/oidc/callback?state=state-1&code=code-1", "")
	if a.header.Get("Location") != "/#sign-in-failed" || strings.Contains(fmt.Sprint(a.header["Set-Cookie"]), "noetl_session") {
		t.Errorf("another browser: %d %v", a.status, a.header)
	}
	a = g.as("", "GET", "/api/auth/oidc/callback?state=state-1&code=code-1", "", "Cookie", "noetl_login=state-1")
	if a.status != 303 || a.header.Get("Location") != "/" || !strings.Contains(fmt.Sprint(a.header["Set-Cookie"]), "SameSite=Lax") {
		t.Errorf("the same browser: %d %v", a.status, a.header)
	}
}

func TestEveryAnswerIsMarkedAndTraceable(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, func(o *api.Options) { o.AllowedOrigins = []string{"https://app.example"} })
	for _, path := range []string{"/", "/page.js", "/page.css", "/api/health", "/api/executions"} {
		h := g.as("", "GET", path, "").header
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
			strings.Contains(h.Get("Content-Security-Policy"), "unsafe") || h.Get("Referrer-Policy") == "" || h.Get("X-Request-ID") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if page := g.as("", "GET", "/", "").body; strings.Contains(page, "<style") || strings.Contains(page, "onclick=") || strings.Contains(page, "style=") {
		t.Error("the page has something inline, which its policy refuses")
	}
	for id, kept := range map[string]bool{"abc-1": true, "a b": false, strings.Repeat("x", 65): false, "a<b": false} {
		if got := g.as("viewer", "GET", "/api/health", "", "X-Request-ID", id).header.Get("X-Request-ID"); (got == id) != kept || got == "" {
			t.Errorf("request id %q became %q", id, got)
		}
	}
	h := g.as("viewer", "GET", "/api/executions", "", "Origin", "https://app.example").header
	if h.Get("Access-Control-Allow-Origin") != "https://app.example" || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("an allowed origin: %v", h)
	}
	if h := g.as("viewer", "GET", "/api/executions", "", "Origin", "https://evil.example").header; h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", h)
	}
}

func TestTheAPIIsAlsoBelowNoetl(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	for _, tc := range []struct {
		caller, path string
		status       int
	}{
		{"viewer", "/noetl/executions", 200},
		{"", "/noetl/executions", 401},
		{"viewer", "/noetl/internal/outbox/pending-count", 403},
		{"", "/noetl/health", 200},
		{"viewer", "/noetl/catalog/team%2Fa%2Fetl/ui_schema", 200},
		{"viewer", "/noetl/nothing", 404},
	} {
		if a := g.as(tc.caller, "GET", tc.path, ""); a.status != tc.status {
			t.Errorf("%s %s: %d %s", tc.caller, tc.path, a.status, a.body)
		}
	}
}

func TestOnlyKnownProxiesSayForWhomTheyCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trusted []string
		header  string
		want    string
	}{
		"nobody is trusted":     {nil, "1.2.3.4", "127.0.0.1"},
		"a proxy":               {[]string{"127.0.0.0/8"}, "1.2.3.4", "1.2.3.4"},
		"two proxies":           {[]string{"127.0.0.0/8", "10.0.0.0/8"}, "6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"},
		"not an address":        {[]string{"127.0.0.0/8"}, "1.2.3.4, <script>", "127.0.0.1"},
		"a proxy says nothing":  {[]string{"127.0.0.0/8"}, "", "127.0.0.1"},
		"all of them are known": {[]string{"0.0.0.0/0"}, "9.9.9.9", "9.9.9.9"},
	} {
		g := newGuarded(t, func(o *api.Options) {
			for _, p := range tc.trusted {
				o.TrustedProxies = append(o.TrustedProxies, netip.MustParsePrefix(p))
			}
		})
		headers := []string{}
		if tc.header != "" {
			headers = []string{"X-Forwarded-For", tc.header}
		}
		g.as("wrong", "GET", "/api/executions", "", headers...)
		if got := g.desk.last().Remote; got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestWithoutAuthenticationEverythingIsAsBefore(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, func(o *api.Options) { o.InternalToken = "" })
	g.desk.off = true
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/api/executions", 200},
		{"GET", "/metrics", 200},
		{"GET", "/api/db/validate", 200},
		{"GET", "/api/tokens", 200},
		{"GET", "/api/internal/outbox/pending-count", 503},
		{"POST", "/api/postgres/execute", 403},
	} {
		if a := g.as("", tc.method, tc.path, "{}"); a.status != tc.status {
			t.Errorf("%s: %d %s", tc.path, a.status, a.body)
		}
	}
	if a := g.as("", "GET", "/api/auth/me", ""); a.at(t, "id") != auth.Local.ID {
		t.Errorf("me: %s", a.body)
	}
	id := fmt.Sprint(g.as("", "POST", "/api/execute", `{"path": "system/clean"}`).at(t, "execution_id"))
	if log := g.as("", "GET", "/api/executions/"+id+"/events", "").body; strings.Contains(log, `"actor"`) {
		t.Error("an actor where nobody had to say who they are")
	}
}

func (a answer) status2xx(t *testing.T) {
	t.Helper()
	if a.status < 200 || a.status > 299 {
		t.Fatalf("%d %s", a.status, a.body)
	}
}
