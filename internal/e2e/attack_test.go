package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/oidcd"
)

// TestAnAttackerGetsNothing plays an attacker against the real server: what
// they send, what they get, and that nothing changed. The table is in the log.
func TestAnAttackerGetsNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"token", "oidc"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFortress(t, mode)
			slow := f.slowHeaders()
			before := f.state()
			f.withoutRights()
			f.withWrongTokens()
			f.withForgedTokens()
			f.withPathTricks()
			f.withBadProtocol()
			f.fromOtherPages()
			f.withLargeBodies()
			f.withManyGuesses()
			if after := f.state(); after != before {
				t.Errorf("something changed:\nbefore %s\nafter  %s", before, after)
			}
			f.throughTools()
			slow()
			t.Logf("authentication by %s\n%s", mode, strings.Join(f.table, "\n"))
		})
	}
}

// fortress is a server under attack.
type fortress struct {
	t      *testing.T
	mode   string
	addr   string
	admin  string // a good token
	issuer *oidcd.Issuer
	tokens map[string]string
	source atomic.Int32 // the last of the addresses the attacker comes from
	table  []string
	fell   *testkit.Process
}

const theInternalToken = "internal-0123456789abcdef0123456789abcdef"

func newFortress(t *testing.T, mode string) *fortress {
	t.Helper()
	f := &fortress{t: t, mode: mode, admin: "bootstrap0123456789abcdef0123456789abcdef", tokens: map[string]string{}}
	env := []string{
		"NOETL_AUTH=" + mode, "NOETL_BOOTSTRAP_TOKEN=" + f.admin, "NOETL_INTERNAL_API_TOKEN=" + theInternalToken, "NOETL_EGRESS_PROFILE=public",
	}
	if f.issuer = oidcd.Start(t); mode == "oidc" {
		env = append(env, "NOETL_OIDC_ISSUER="+f.issuer.URL, "NOETL_OIDC_AUDIENCE="+f.issuer.Audience,
			"NOETL_OIDC_GRANTS=role=admin->admin; role=viewer->viewer; role=operator->operator")
	}
	f.fell = testkit.Start(t, testkit.Command{
		Path: testkit.BuildNoetl(t), Env: env, Args: []string{"server", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(t.TempDir(), "data")},
	})
	f.addr = strings.Fields(f.fell.WaitOutput(": http://", patience))[0]
	for name, body := range map[string]string{
		"viewer": `{"name": "v", "role": "viewer"}`, "operator": `{"name": "o", "role": "operator"}`, "worker": `{"name": "w", "role": "worker"}`,
		"narrowed": `{"name": "n", "role": "operator", "prefix": "team/a"}`, "short": `{"name": "s", "role": "admin", "expires_in": 1}`,
		"revoked": `{"name": "r", "role": "admin"}`,
	} {
		f.tokens[name] = f.newToken(body)
	}
	f.must("POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, victim("team/b/secret")))
	f.must("POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, victim("system/danger")))
	f.must("POST", "/api/execute", `{"path": "team/b/secret"}`)
	f.quiet()
	return f
}

func victim(path string) string {
	return "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: v\n  path: " + path + "\nworkflow:\n  - step: start\n    tool:\n      kind: noop\n"
}

func (f *fortress) newToken(body string) string {
	f.t.Helper()
	var made struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(f.must("POST", "/api/tokens", body)), &made); err != nil {
		f.t.Fatal(err)
	}
	if strings.Contains(body, `"name": "r"`) {
		f.must("DELETE", "/api/tokens/"+made.ID, "")
	}
	return made.Token
}

// must asks as the admin.
func (f *fortress) must(method, path, body string) string {
	f.t.Helper()
	status, answer := f.ask(method, path, body, "Authorization", "Bearer "+f.admin)
	if status > 299 {
		f.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// quiet waits until nothing runs.
func (f *fortress) quiet() {
	f.t.Helper()
	testkit.Eventually(f.t, func() bool {
		return !strings.Contains(f.must("GET", "/api/executions", ""), `"RUNNING"`)
	}, patience)
}

// state is everything an attacker could have changed.
func (f *fortress) state() string {
	f.t.Helper()
	var all []string
	for _, path := range []string{"/api/executions", "/api/catalog/list/playbook", "/api/credentials", "/api/schedules", "/api/worker/pools?kind=none"} {
		all = append(all, f.must("GET", path, ""))
	}
	var list struct {
		Tokens []struct {
			ID      string `json:"id"`
			Revoked string `json:"revoked_at"`
		} `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(f.must("GET", "/api/tokens", "")), &list); err != nil {
		f.t.Fatal(err)
	}
	slices.SortFunc(list.Tokens, func(a, b struct {
		ID      string `json:"id"`
		Revoked string `json:"revoked_at"`
	},
	) int {
		return strings.Compare(a.ID, b.ID)
	})
	return strings.Join(append(all, fmt.Sprint(list.Tokens)), "\n")
}

// dialer connects from an address nobody used before, so that the limit of one
// attack does not hide the answer to the next.
func (f *fortress) dialer() *net.Dialer {
	n := f.source.Add(1)
	return &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1+byte(n>>8), byte(n))}}
}

// ask sends a request from a new address.
func (f *fortress) ask(method, path, body string, headers ...string) (int, string) {
	f.t.Helper()
	return f.askFrom(f.dialer(), method, path, body, headers...)
}

func (f *fortress) askFrom(d *net.Dialer, method, path, body string, headers ...string) (int, string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+f.addr+path, strings.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	transport := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(answer)
}

// raw sends bytes as they are and returns the statuses that come back.
func (f *fortress) raw(text string) []int {
	f.t.Helper()
	conn, err := f.dialer().DialContext(f.t.Context(), "tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte(text)); err != nil {
		return nil
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.CloseWrite()
	}
	var statuses []int
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		statuses = append(statuses, resp.StatusCode)
	}
}

// note puts an attack into the table and complains when it got through. After
// each the server must still be there.
func (f *fortress) note(attack string, status int, wanted ...int) {
	f.t.Helper()
	verdict := "refused"
	if status == http.StatusOK {
		verdict = "served, nothing gained"
	}
	if !slices.Contains(wanted, status) {
		verdict = "GOT THROUGH"
		f.t.Errorf("%s: answered with %d, want one of %v", attack, status, wanted)
	}
	f.table = append(f.table, fmt.Sprintf("  %-62s %3d  %s", attack, status, verdict))
	if alive, _ := f.ask("GET", "/health", ""); alive != 200 {
		f.t.Fatalf("after %q the server does not answer: %d\n%s", attack, alive, f.fell.Output())
	}
}

func (f *fortress) withoutRights() {
	execute := `{"path": "team/b/secret"}`
	for _, a := range []struct {
		name, method, path, body string
		headers                  []string
		wanted                   []int
	}{
		{"no token: list", "GET", "/api/executions", "", nil, []int{401}},
		{"no token: execute", "POST", "/api/execute", execute, nil, []int{401}},
		{"no token: metrics", "GET", "/metrics", "", nil, []int{401}},
		{"no token: internal", "POST", "/api/internal/outbox/claim", "{}", nil, []int{401}},
		{"no token: secrets", "GET", "/api/credentials/x?include_data=true", "", nil, []int{401}},
		{"no token: stream", "GET", "/api/executions/1/stream", "", nil, []int{401}},
		{"no token, behind the alias", "POST", "/noetl/execute", execute, nil, []int{401}},
		{"viewer executes", "POST", "/api/execute", execute, f.as("viewer"), []int{403}},
		{"viewer makes itself a token", "POST", "/api/tokens", `{"name": "x", "role": "admin"}`, f.as("viewer"), []int{403}},
		{"operator makes itself an admin", "POST", "/api/tokens", `{"name": "x", "role": "admin"}`, f.as("operator"), []int{403}},
		{"operator registers below system/", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, victim("system/x")), f.as("operator"), []int{403}},
		{"operator executes below system/", "POST", "/api/execute", `{"path": "system/danger"}`, f.as("operator"), []int{403}},
		{"operator executes below system/ with slashes", "POST", "/api/execute", `{"path": "//system/danger/"}`, f.as("operator"), []int{403}},
		{"operator claims a command", "POST", "/api/commands/1/claim", `{"worker_id": "w"}`, f.as("operator"), []int{403}},
		{"operator forges an event", "POST", "/api/events", `{"execution_id": 1, "step": "s", "event_type": "playbook.failed"}`, f.as("operator"), []int{403}},
		{"worker executes", "POST", "/api/execute", execute, f.as("worker"), []int{403}},
		{"worker reads the audit", "GET", "/api/audit", "", f.as("worker"), []int{403}},
		{"narrowed operator executes elsewhere", "POST", "/api/execute", execute, f.as("narrowed"), []int{403}},
		{"narrowed operator climbs out of its path", "POST", "/api/execute", `{"path": "team/a/../b/secret"}`, f.as("narrowed"), []int{404}},
		{"narrowed operator registers beside its path", "POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, victim("team/ab")), f.as("narrowed"), []int{403}},
		{"admin runs SQL where it is closed", "POST", "/api/postgres/execute", `{"query": "select 1", "credential": "x"}`, []string{"Authorization", "Bearer " + f.admin}, []int{403}},
		{"internal token makes a token", "POST", "/api/tokens", `{"name": "x", "role": "admin"}`, []string{"Authorization", "Bearer " + theInternalToken}, []int{403}},
	} {
		status, _ := f.ask(a.method, a.path, a.body, a.headers...)
		f.note(a.name, status, a.wanted...)
	}
}

func (f *fortress) as(name string) []string {
	return []string{"Authorization", "Bearer " + f.tokens[name]}
}

func (f *fortress) withWrongTokens() {
	first := ""
	good := f.tokens["viewer"]
	testkit.Eventually(f.t, func() bool {
		status, _ := f.ask("GET", "/api/executions", "", f.as("short")...)
		return status == 401
	}, patience)
	for name, token := range map[string]string{
		"expired token": f.tokens["short"], "revoked token": f.tokens["revoked"], "token with another secret": good[:len(good)-4] + "0000",
		"token of another id": "noetl_pat_99_" + strings.Repeat("a", 64), "half a token": good[:len(good)/2], "token of another case": strings.ToUpper(good),
		"very long token": strings.Repeat("a", 20_000), "token with a NUL": "noetl_pat_1_%00", "token as SQL": "' OR '1'='1", "empty token": " ",
	} {
		status, answer := f.ask("GET", "/api/executions", "", "Authorization", "Bearer "+token)
		f.note(name, status, 401)
		if first == "" {
			first = answer
		}
		if answer != first {
			f.t.Errorf("%s is told apart: %s, not %s", name, answer, first)
		}
	}
	for name, headers := range map[string][]string{
		"token in a query": {"X-None", "1"}, "session of somebody's making": {"X-Session-Token", strings.Repeat("f", 64)},
		"cookie of somebody's making": {"Cookie", "noetl_session=" + strings.Repeat("f", 64)}, "basic authentication": {"Authorization", "Basic YWRtaW46YWRtaW4="},
		"claims in headers": {"X-Forwarded-User", "admin"}, "certificate in headers": {"X-SSL-Client-Verify", "SUCCESS"},
	} {
		status, _ := f.ask("GET", "/api/executions?token="+good+"&session_token="+good, "", headers...)
		f.note(name, status, 401)
	}
}

func (f *fortress) withForgedTokens() {
	i, other := f.issuer, oidcd.Start(f.t)
	admin := i.Claims("admin", nil)
	status, _ := f.ask("GET", "/api/tokens", "", "Authorization", "Bearer "+i.Token(admin))
	if f.mode == "oidc" && status != 200 {
		f.t.Fatalf("a good JWT: %d", status)
	}
	if f.mode == "token" {
		f.note("good JWT where none count", status, 401)
	}
	past, future := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	for _, a := range []struct{ name, token string }{
		{"JWT, alg none", i.None("none", admin)},
		{"JWT, alg nOnE", i.None("nOnE", admin)},
		{"JWT, no alg", i.None("", admin)},
		{"JWT, HS256 with the public key", i.Confused(admin)},
		{"JWT of another issuer", other.Token(other.Claims("admin", nil))},
		{"JWT of another issuer in our name", other.Token(admin)},
		{"JWT with its key in the header", other.Signed(map[string]any{"jwk": other.PublicJWK()}, admin)},
		{"JWT with the address of its keys", other.Signed(map[string]any{"jku": other.URL + "/keys"}, admin)},
		{"JWT, kid is a path", i.Signed(map[string]any{"kid": "../../../../dev/null"}, admin)},
		{"JWT, expired", i.Token(i.Claims("admin", oidcd.Claims{"exp": past}))},
		{"JWT, without an end", i.Token(i.Claims("admin", oidcd.Claims{"exp": nil}))},
		{"JWT, not yet valid", i.Token(i.Claims("admin", oidcd.Claims{"nbf": future}))},
		{"JWT for somebody else", i.Token(i.Claims("admin", oidcd.Claims{"aud": "other"}))},
		{"JWT for nobody", i.Token(i.Claims("admin", oidcd.Claims{"aud": nil}))},
		{"JWT of nobody", i.Token(i.Claims("admin", oidcd.Claims{"sub": nil}))},
		{"JWT, critical extension", i.Signed(map[string]any{"crit": []string{"exp"}}, admin)},
		{"JWT without its signature", strings.Join(strings.Split(i.Token(admin), ".")[:2], ".") + "."},
		{"JWT of four parts", i.Token(admin) + ".x"},
	} {
		status, _ := f.ask("GET", "/api/tokens", "", "Authorization", "Bearer "+a.token)
		f.note(a.name, status, 401)
	}
	if f.mode == "oidc" {
		status, _ := f.ask("GET", "/api/executions", "", "Authorization", "Bearer "+i.Token(i.Claims("stranger", nil)))
		f.note("good JWT without a role here", status, 401, 403)
	}
	status, body := f.ask("POST", "/api/auth/login", fmt.Sprintf(`{"auth0_token": %q, "auth0_domain": %q}`, other.Token(other.Claims("admin", nil)), other.URL))
	if strings.Contains(body, "session_token") {
		f.t.Errorf("a login with an issuer of the caller's choosing: %s", body)
	}
	f.note("login with an issuer of the caller's choosing", status, 200)
}

func (f *fortress) withPathTricks() {
	for _, path := range []string{
		"//api/executions", "/api//executions", "/api/../api/executions", "/api/./executions", "/api/%2e%2e/api/executions", "/%61pi/executions", "/API/executions",
		"/api/executions/", "/api/executions.", "/api/executions%00", "/api/executions;x=1", "/api%2fexecutions", "/health/../api/executions", "/health/%2e%2e/api/executions",
		"/api/internal%2foutbox/pending-count", "/api/health/../internal/outbox/pending-count", "/noetl/../api/executions", "/noetl/internal/outbox/pending-count",
		"/page.js/../api/executions", "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/api/catalog/../internal/secret-audit/ui_schema", "/api/docs/../../internal/secret-audit",
	} {
		statuses := f.raw("GET " + path + " HTTP/1.1\r\nHost: " + f.addr + "\r\nConnection: close\r\n\r\n")
		f.note("path "+path, one(statuses), 301, 307, 308, 400, 401, 404)
	}
	for _, headers := range [][]string{{"X-HTTP-Method-Override", "POST"}, {"X-Original-URL", "/api/internal/secret-audit"}, {"X-Rewrite-URL", "/api/tokens"}} {
		status, body := f.ask("GET", "/api/health", "", headers...)
		if strings.Contains(body, "tokens") || strings.Contains(body, "items") {
			f.t.Errorf("%s was heeded: %s", headers[0], body)
		}
		f.note("header "+headers[0]+" on an open route", status, 200)
	}
	for _, method := range []string{"TRACE", "CONNECT", "PROPFIND", "get"} {
		statuses := f.raw(method + " /api/executions HTTP/1.1\r\nHost: " + f.addr + "\r\nConnection: close\r\n\r\n")
		f.note("method "+method, one(statuses), 400, 401, 404, 405, 501)
	}
}

func one(statuses []int) int {
	if len(statuses) == 0 {
		return 0
	}
	return statuses[len(statuses)-1]
}

func (f *fortress) withBadProtocol() {
	host := "Host: " + f.addr + "\r\n"
	inner := "POST /api/execute HTTP/1.1\r\n" + host + "Content-Length: 25\r\n\r\n{\"path\":\"team/b/secret\"}\n"
	for _, a := range []struct {
		name, text string
		wanted     []int
	}{
		{"length and chunks", "POST /api/auth/logout HTTP/1.1\r\n" + host + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, []int{0, 400, 401, 404}},
		{"two lengths", "POST /api/auth/logout HTTP/1.1\r\n" + host + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inner, []int{400}},
		{"odd transfer encoding", "POST /api/auth/logout HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n" + inner, []int{400, 501}},
		{"transfer encoding with a blank", "POST /api/auth/logout HTTP/1.1\r\n" + host + "Transfer-Encoding : chunked\r\n\r\n" + inner, []int{400}},
		{"negative length", "POST /api/auth/logout HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", []int{400}},
		{"bare line feeds", "GET /api/executions HTTP/1.1\nHost: " + f.addr + "\nConnection: close\n\n", []int{400, 401}},
		{"two hosts", "GET /api/executions HTTP/1.1\r\n" + host + host + "\r\n", []int{400}},
		{"no host", "GET /api/executions HTTP/1.1\r\n\r\n", []int{400}},
		{"another host", "GET /api/executions HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", []int{403}},
		{"another host, with a good token", "GET /api/executions HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer " + f.tokens["viewer"] + "\r\nConnection: close\r\n\r\n", []int{403}},
		{"a folded header", "GET /api/executions HTTP/1.1\r\n" + host + "X-A: b\r\n c\r\nConnection: close\r\n\r\n", []int{400, 401}},
		{"two tokens", "GET /api/executions HTTP/1.1\r\n" + host + "Authorization: Bearer " + f.tokens["viewer"] + "\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n", []int{401}},
		{"headers of 1 MB", "GET /api/executions HTTP/1.1\r\n" + host + "X-A: " + strings.Repeat("a", 1<<20) + "\r\n\r\n", []int{0, 431}},
		{"ten thousand headers", "GET /api/executions HTTP/1.1\r\n" + host + strings.Repeat("X-A: b\r\n", 10_000) + "\r\n", []int{0, 431}},
		{"HTTP/0.9", "GET /api/executions\r\n\r\n", []int{400}},
		{"no HTTP", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", []int{0, 400}},
	} {
		f.note(a.name, one(f.raw(a.text)), a.wanted...)
	}
}

func (f *fortress) fromOtherPages() {
	_, body := f.ask("POST", "/api/auth/login", fmt.Sprintf(`{"token": %q}`, f.admin))
	var in struct {
		Data struct {
			Token string `json:"session_token"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil || in.Data.Token == "" {
		f.t.Fatalf("login: %s", body)
	}
	cookie := "noetl_session=" + in.Data.Token
	for name, headers := range map[string][]string{
		"form of another page, with the admin's cookie":  {"Origin", "https://evil.example", "Content-Type", "text/plain"},
		"fetch of another page, with the admin's cookie": {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"page of a sibling domain":                       {"Sec-Fetch-Site", "same-site"},
		"sandboxed page":                                 {"Origin", "null"},
		"cookie without any origin":                      {},
	} {
		status, _ := f.ask("POST", "/api/execute", `{"path": "team/b/secret"}`, append(headers, "Cookie", cookie)...)
		f.note(name, status, 403)
	}
	status, _ := f.ask("GET", "/api/executions", "", "Cookie", cookie, "Host", "rebound.example")
	f.note("page that points its own name at us", status, 403)
	if status, _ := f.ask("POST", "/api/auth/logout", "", "X-Session-Token", in.Data.Token); status != 200 {
		f.t.Errorf("logout: %d", status)
	}
	status, _ = f.ask("GET", "/api/auth/me", "", "Cookie", cookie)
	f.note("cookie of a session that has ended", status, 401)
}

func (f *fortress) withLargeBodies() {
	large := `{"content": "` + strings.Repeat("a", 20<<20) + `"}`
	status, _ := f.ask("POST", "/api/catalog/register", large)
	f.note("20 MB without a token", status, 0, 401)
	status, _ = f.ask("POST", "/api/catalog/register", large, f.as("operator")...)
	f.note("20 MB with a token", status, 0, 413)
	status, _ = f.ask("POST", "/api/execute", strings.Repeat("[", 1<<20), f.as("operator")...)
	f.note("a million brackets", status, 400)
	// Bodies that never end hold nothing up but their own connection.
	var open []net.Conn
	for range 50 {
		conn, err := f.dialer().DialContext(f.t.Context(), "tcp", f.addr)
		if err != nil {
			f.t.Fatal(err)
		}
		open = append(open, conn)
		_, _ = fmt.Fprintf(conn, "POST /api/execute HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{", f.addr, f.tokens["operator"])
	}
	status, _ = f.ask("GET", "/api/executions", "", f.as("viewer")...)
	f.note("others while 50 bodies never end", status, 200)
	for _, c := range open {
		_ = c.Close()
	}
}

// slowHeaders opens connections whose headers never end; what it returns waits
// until the server has hung up on all of them.
func (f *fortress) slowHeaders() func() {
	var all sync.WaitGroup
	var kept atomic.Int32
	for range 20 {
		conn, err := f.dialer().DialContext(f.t.Context(), "tcp", f.addr)
		if err != nil {
			f.t.Fatal(err)
		}
		all.Go(func() {
			defer conn.Close()
			_, _ = fmt.Fprintf(conn, "GET /api/executions HTTP/1.1\r\nHost: %s\r\nX-A: ", f.addr)
			_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
			_, err := io.Copy(io.Discard, conn)
			if e, ok := err.(net.Error); ok && e.Timeout() {
				kept.Add(1)
			}
		})
	}
	return func() {
		all.Wait()
		if kept.Load() > 0 {
			f.t.Errorf("%d connections whose headers never end are still open", kept.Load())
		}
		f.note("20 connections whose headers never end", 0, 0)
	}
}

func (f *fortress) withManyGuesses() {
	d, refused := f.dialer(), 0
	for range 40 {
		status, _ := f.askFrom(&net.Dialer{LocalAddr: d.LocalAddr.(*net.TCPAddr)}, "GET", "/api/executions", "", "Authorization", "Bearer noetl_pat_7_"+strings.Repeat("b", 64))
		if status == 429 {
			refused++
		} else if status != 401 {
			f.t.Errorf("a guess: %d", status)
		}
	}
	status := 0
	if refused > 0 {
		status = 429
	}
	f.note(fmt.Sprintf("40 guesses of one address, %d unheard", refused), status, 429)
	status, _ = f.ask("GET", "/api/executions", "", f.as("viewer")...)
	f.note("a good token of another address meanwhile", status, 200)
}

// throughTools lets a playbook reach for what only the server can reach.
func (f *fortress) throughTools() {
	var reached atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	f.t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndex(inside.URL, ":")+1:]
	targets := []string{
		inside.URL, "http://localhost:" + port, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port, "http://127.1:" + port,
		"http://2130706433:" + port, "http://0x7f.1:" + port, "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/latest/meta-data/",
		"http://metadata.google.internal/computeMetadata/v1/", "http://user@127.0.0.1:" + port, "file:///etc/passwd", "gopher://127.0.0.1:" + port,
	}
	ids := map[string]string{}
	for i, target := range targets {
		path := fmt.Sprintf("team/a/ssrf%d", i)
		book := "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: x\n  path: " + path + "\nworkflow:\n  - step: start\n    tool:\n      kind: http\n      method: GET\n      url: \"" + target + "\"\n"
		if status, body := f.ask("POST", "/api/catalog/register", fmt.Sprintf(`{"content": %q}`, book), f.as("narrowed")...); status != 200 {
			f.note("tool to "+target+": "+body[:min(len(body), 20)], status, 422)
			continue
		}
		status, body := f.ask("POST", "/api/execute", fmt.Sprintf(`{"path": %q}`, path), f.as("narrowed")...)
		var x struct {
			ID string `json:"execution_id"`
		}
		if err := json.Unmarshal([]byte(body), &x); err != nil || status != 200 {
			f.t.Fatalf("execute: %d %s", status, body)
		}
		ids[target] = x.ID
	}
	f.quiet()
	for _, target := range targets {
		id, ok := ids[target]
		if !ok {
			continue
		}
		status := 403
		if body := f.must("GET", "/api/executions/"+id+"/status", ""); !strings.Contains(body, `"FAILED"`) {
			status = 200
		}
		f.note("tool to "+target, status, 403)
	}
	if n := reached.Load(); n > 0 {
		f.t.Errorf("%d requests of tools reached a server on loopback", n)
	}
}
