package wire

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit/oidcd"
)

// openCalls is what a server answers where authentication is off.
var openCalls = []call{
	{by: gui, ask: "GET /api/auth/methods", status: 200, shape: `{required: false, token: false, oidc: false, !}`},
	{by: gui, ask: "GET /api/auth/me", status: 200, shape: `{id: "local", name: "local", by: "none", grants: [{role: "admin", !}+], !}`},
	{by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":"x.y.z"}`, status: 200, shape: `{status: "error", data: {error: "auth_off", message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"x"}`, status: 200, shape: `{status: "error", valid: false, error: text, !}`},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"x","playbook_path":"demo/two","action":"execute"}`, status: 200, shape: `{status: "error", data: {allowed: false, message: text, !}, !}`},
	{by: gui, ask: "GET /api/auth/oidc/start", status: 404, shape: `@error`},
	{by: gui, ask: "GET /api/auth/oidc/callback?state=a&code=b", status: 404, shape: `@error`},
	{by: gui, ask: "POST /api/auth/logout", status: 404, shape: `@error`},
	{by: cli, ask: "GET /api/tokens", status: 503, shape: `@error`},
}

// tokenCalls makes tokens with the first one.
var tokenCalls = []call{
	{by: gui, ask: "GET /api/auth/methods", status: 200, shape: `{required: true, token: true, oidc: true, issuer: text, client_id: "noetl-page", !}`},
	{by: probe, ask: "GET /api/health", status: 200, shape: `{status: "ok"}`},
	{by: gui, ask: "GET /api/auth/me", status: 401, shape: `@error`},
	{by: admin, ask: "GET /api/auth/me", status: 200, shape: `{id: text, name: text, by: "token", grants: [{role: "admin", !}+], !}`},
	{
		by: admin, ask: "POST /api/tokens", body: `{"name":"the team","grants":[{"role":"operator","prefix":"demo"}],"expires_in":3600}`, status: 201,
		shape: `{token: text, id: sid, name: "the team", grants: [{role: "operator", prefix: "demo", !}+], created_at: time, created_by: text, expires_at: time, !}`, keep: "team_token=token team_id=id",
	},
	{by: admin, ask: "POST /api/tokens", body: `{"name":"ci","role":"viewer"}`, status: 201, shape: `{token: text, id: sid, name: "ci", grants: [{role: "viewer", !}+], created_at: time, created_by: text, !}`, keep: "ci=id"},
	{by: admin, ask: "POST /api/tokens", body: `{"name":"x","role":"emperor"}`, status: 422, shape: `@error`},
	{by: admin, ask: "POST /api/tokens", body: `{"name":"x"}`, status: 422, shape: `@error`},
	{by: admin, ask: "POST /api/tokens", body: `{"name":"x","role":"viewer","expires_at":"2001-01-01T00:00:00Z"}`, status: 422, shape: `@error`},
	{by: team, ask: "POST /api/tokens", body: `{"name":"x","role":"admin"}`, status: 403, shape: `@error`},
	{by: team, ask: "GET /api/tokens", status: 403, shape: `@error`},
	{by: team, ask: "GET /api/audit", status: 403, shape: `@error`},
	{by: admin, ask: "GET /api/tokens", status: 200, shape: `{tokens: [{id: sid, name: text, grants: [{role: text}+], created_at: time}+], !}`},
	{by: team, ask: "GET /api/auth/me", status: 200, shape: `{id: text, name: "the team", by: "token", grants: [{role: "operator", prefix: "demo", !}+], expires: time, !}`},
}

// sessionCalls is what gateways of older servers ask, word for word. What those
// left to the caller, who vouches for it and which database is asked, has no effect.
var sessionCalls = []call{
	{
		by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":"$team_token"}`, status: 200,
		shape: `{status: "success", data: {status: "authenticated", session_token: text, user: {user_id: text, email: "", display_name: "the team", roles: ["operator"+], !}, expires_at: time, !}, !}`,
		keep:  "session=data.session_token",
	},
	{
		by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":"$person_token"}`, status: 200,
		shape: `{status: "success", data: {status: "authenticated", session_token: text, user: {user_id: text, email: "ann@example.com", display_name: "ann@example.com", roles: ["viewer"+], !}, expires_at: time, !}, !}`,
		keep:  "other_session=data.session_token",
	},
	{by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":"$team_token","auth0_domain":"other.example.com","client_ip":"10.0.0.7","credential":"pg_auth"}`, status: 200, shape: `{status: "success", data: {user: {display_name: "the team"}}}`},
	{by: gateway, ask: "POST /api/auth/login", body: `{"token":"$team_token","cookie":true}`, status: 200, shape: `{status: "success", data: {status: "authenticated", user: any, expires_at: time, !}, !}`},
	{by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":"$forged_token","auth0_domain":"other.example.com"}`, status: 200, shape: `{status: "error", data: {error: "authentication_failed", message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":""}`, status: 200, shape: `{status: "error", data: {error: text, message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/login", body: `{"auth0_token":`, status: 400, shape: `@error`},
	{
		by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"$session"}`, status: 200,
		shape: `{status: "ok", valid: true, user: {user_id: text, email: str, display_name: "the team", roles: ["operator"+], !}, expires_at: time, !}`,
	},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"0123456789abcdef"}`, status: 200, shape: `{status: "error", valid: false, error: text, !}`},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"$session","credential":"pg_auth"}`, status: 200, shape: `{status: "ok", valid: true}`},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{}`, status: 200, shape: `{status: "error", valid: false, error: text, !}`},
	{
		by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"$session","playbook_path":"demo/two","action":"execute"}`, status: 200,
		shape: `{status: "success", data: {allowed: true, user: {user_id: text, email: str, display_name: text, roles: [text+], !}, message: text, !}, !}`,
	},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"$session","playbook_path":"demonstration/two","action":"view","credential":"pg_auth"}`, status: 200, shape: `{status: "success", data: {allowed: false, user: any, message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"$other_session","playbook_path":"demo/two","action":"execute"}`, status: 200, shape: `{status: "success", data: {allowed: false, user: any, message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"$other_session","playbook_path":"demo/two","action":"view"}`, status: 200, shape: `{status: "success", data: {allowed: true}}`},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"$session","playbook_path":"demo/two","action":"own"}`, status: 200, shape: `{status: "error", data: {allowed: false, message: text, !}, !}`},
	{by: gateway, ask: "POST /api/auth/check-playbook-access", body: `{"session_token":"no","playbook_path":"demo/two","action":"view"}`, status: 200, shape: `{status: "error", data: {allowed: false, message: text, !}, !}`},
	{by: browser, ask: "GET /api/auth/me", status: 200, shape: `{id: text, name: "the team", by: "session", grants: [{role: "operator", prefix: "demo", !}+], expires: time, !}`},
	{by: person, ask: "GET /api/auth/me", status: 200, shape: `{id: text, name: "ann@example.com", by: "oidc", grants: [{role: "viewer", !}+], expires: time, !}`},
	{by: browser, ask: "POST /api/auth/logout", body: ``, status: 200, shape: `{status: "ok", !}`},
	{by: browser, ask: "GET /api/auth/me", status: 401, shape: `@error`},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"$session"}`, status: 200, shape: `{status: "error", valid: false, error: text, !}`},
	{by: gateway, ask: "POST /api/auth/logout", body: `{"session_token":"$other_session"}`, status: 200, shape: `{status: "ok", !}`},
	{by: gateway, ask: "POST /api/auth/session/validate", body: `{"session_token":"$other_session"}`, status: 200, shape: `{status: "error", valid: false, error: text, !}`},
	{by: gateway, ask: "POST /api/auth/logout", body: `{"session_token":"no"}`, status: 200, shape: `{status: "ok", !}`},
}

// auditCalls takes a token away and looks at what was done.
var auditCalls = []call{
	{by: admin, ask: "DELETE /api/tokens/$ci", status: 200, shape: `{id: "$ci", name: "ci", grants: [{role: "viewer", !}+], created_at: time, created_by: text, revoked_at: time, !}`},
	{by: admin, ask: "DELETE /api/tokens/$team_id", status: 200, shape: `{id: "$team_id", name: "the team", revoked_at: time}`},
	{by: team, ask: "GET /api/auth/me", status: 401, shape: `@error`},
	{by: admin, ask: "DELETE /api/tokens/77", status: 404, shape: `@error`},
	{
		by: admin, ask: "GET /api/audit?type=token.created&target=$team_id", status: 200,
		shape: `{items: [{id: sid, at: time, type: "token.created", actor: text, actor_name: text, by: "token", remote: text, request_id: text, method: "POST", route: "/api/tokens", target: "$team_id", outcome: "ok", status: 201, detail: {name: "the team", grants: [any+]}, !}+], !}`,
		keep:  "action=items.0.id actor=items.0.actor",
	},
	{by: admin, ask: "GET /api/audit?actor=$actor&type=token.revoked&from=2020-01-01T00:00:00Z&limit=1", status: 200, shape: `{items: [{actor: "$actor", type: "token.revoked"}+], next: sid}`},
	{by: admin, ask: "GET /api/audit?before=$action&type=token.revoked", status: 200, shape: `{items: [], !}`},
	{by: admin, ask: "GET /api/audit?type=session.began", status: 200, shape: `{items: [{type: "session.began", outcome: "ok"}+]}`},
	{by: admin, ask: "GET /api/audit?from=yesterday", status: 422, shape: `@error`},
}

// consoleCalls is what those ask who look into the database of a credential.
var consoleCalls = []call{
	{by: gui, ask: "POST /api/postgres/execute", body: `{"query":"SELECT n, name FROM t WHERE n = $1","parameters":[7],"credential":"pg_demo","schema":"public"}`, status: 200, shape: `{status: "ok", result: [{n: 7, name: "seven", !}+], command: "SELECT 1", !}`},
	{by: cli, ask: "POST /api/postgres/execute", body: `{"query_base64":"U0VMRUNUIDE=","credential":"pg_demo"}`, status: 200, shape: `{status: "ok", result: [any+], command: "SELECT 1", !}`},
	{by: gui, ask: "POST /api/postgres/execute", body: `{"query":"SELEKT","credential":"pg_demo"}`, status: 200, shape: `{status: "error", result: [], error: text, !}`},
	{by: gui, ask: "POST /api/postgres/execute", body: `{"query":"SELECT 1"}`, status: 422, shape: `@error`},
	{by: gui, ask: "POST /api/postgres/execute", body: `{"query":"SELECT 1","connection_string":"postgres://x"}`, status: 422, shape: `@error`},
	{by: gui, ask: "POST /api/postgres/execute", body: `{"query_base64":"?","credential":"pg_demo"}`, status: 422, shape: `@error`},
	{by: gui, ask: "POST /api/postgres/execute", body: `{"credential":"pg_demo"}`, status: 422, shape: `@error`},
}

// oneRow answers for a database.
type oneRow struct{}

func (oneRow) Query(_ context.Context, q api.ConsoleQuery) (api.ConsoleAnswer, error) {
	if !strings.HasPrefix(q.SQL, "SELECT") {
		return api.ConsoleAnswer{}, event.Errorf(event.Invalid, "42601: syntax error")
	}
	return api.ConsoleAnswer{Rows: []json.RawMessage{[]byte(`{"n":7,"name":"seven"}`)}, Tag: "SELECT 1"}, nil
}

func withConsole(o *api.Options) { o.Console = oneRow{} }

const firstToken = "TheFirstTokenOfThisServer0123456789"

// guarded is a world whose callers have to show who they are.
func guarded(t *testing.T, issuer *oidcd.Issuer) *world {
	t.Helper()
	return newWorld(t, setting{parts: func(w *world, o *api.Options) func(context.Context) error {
		rules, err := auth.ParseRules("role=viewer->viewer")
		if err != nil {
			t.Fatal(err)
		}
		access, err := auth.New(auth.Options{
			Mode: auth.ModeOIDC, Store: w.store, IDs: w.ids, Clock: w.now, RedirectURL: "http://noetl.test" + auth.CallbackPath,
			Issuers: []auth.Issuer{{URL: issuer.URL, Audience: []string{issuer.Audience}, Rules: rules, ClientID: "noetl-page"}},
		})
		if err == nil {
			_, _, err = access.Bootstrap(t.Context(), firstToken)
		}
		if err != nil {
			t.Fatal(err)
		}
		o.Access, o.BrowserLogin, o.LoginIssuer, o.LoginClient = access, true, issuer.URL, "noetl-page"
		return access.Run
	}})
}

// playGuarded plays what is asked of a server that wants to know its callers.
func playGuarded(t *testing.T, called map[string]bool) {
	t.Helper()
	issuer := oidcd.Start(t)
	w := guarded(t, issuer)
	s := newScript(w)
	s.called = called
	ann := issuer.Claims("viewer", oidcd.Claims{"email": "ann@example.com", "email_verified": true})
	s.values["admin_token"], s.values["person_token"], s.values["forged_token"] = firstToken, issuer.Token(ann), issuer.None("none", ann)
	s.play(tokenCalls)
	s.play(sessionCalls)
	s.play(auditCalls)
	issuer.SignIn(ann)
	signInWithABrowser(s)
}

// signInWithABrowser goes to the issuer and back, as a browser does.
func signInWithABrowser(s *script) {
	t := s.t
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, url: s.url, http: &http.Client{
		Transport: s.http.Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	ask := func(path string) answer {
		s.note("GET", path)
		return w.send("GET", path, "")
	}
	began := ask("/api/auth/oidc/start?return_to=/%23/executions").want(http.StatusFound)
	resp, err := w.http.Get(began.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound || back.Path != auth.CallbackPath {
		t.Fatalf("the issuer answers %d with %q", resp.StatusCode, resp.Header.Get("Location"))
	}
	to := func(path, want string) {
		t.Helper()
		if got := ask(path).want(http.StatusSeeOther).header.Get("Location"); got != want {
			t.Errorf("GET %s leads to %q, want %q", path, got, want)
		}
	}
	to(back.RequestURI(), "/#/executions")
	w.send("GET", "/api/auth/me", "").ok().shaped(`{name: "ann@example.com", by: "session", grants: [{role: "viewer", !}+], expires: time}`)
	to(back.RequestURI(), "/#sign-in-failed") // a code counts once
	to("/api/auth/oidc/callback?state=x&code=y", "/#sign-in-failed")
	w.send("POST", "/api/auth/logout", "", "Origin: "+w.url).ok()
	w.send("GET", "/api/auth/me", "").refused(http.StatusUnauthorized, "")
}
