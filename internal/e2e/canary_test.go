package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// canaries are secrets that must not be seen anywhere: one that is written the
// same way everywhere, and one that is written differently almost everywhere.
var canaries = []string{"CANARY9f8e7d6c5b4a3", `c4n"ry\p@ss w'rd/é+zq81`}

// writings are the ways in which a secret could be seen.
func writings(secret string) []string {
	plain, _ := json.Marshal(secret)
	var unescaped bytes.Buffer
	enc := json.NewEncoder(&unescaped)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(secret)
	return []string{
		secret, strings.Trim(string(plain), `"`), strings.Trim(strings.TrimSpace(unescaped.String()), `"`),
		url.QueryEscape(secret), url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
	}
}

const canaryPlaybook = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: canary, path: e2e/canary}
workload: {site: ""}
keychain:
  - {name: kc, kind: credential, credential: canary_api_%[1]d}
workflow:
  - {step: start, tool: {kind: http, url: "{{ site }}/echo", auth: canary_api_%[1]d}, next: header}
  - {step: header, tool: {kind: http, method: POST, url: "{{ site }}/echo", headers: {X-Key: "{{ keychain.kc.token }}"}, json: {t: "{{ keychain.kc.token }}"}}, next: address}
  - {step: address, tool: {kind: http, url: "{{ site }}/echo", params: {key: "{{ keychain.kc.token }}", n: 1}}, next: fails}
  - step: fails
    tool: {kind: http, url: "{{ site }}/fails?key={{ keychain.kc.token | urlencode }}"}
    next: {arcs: [{step: unreachable, when: "{{ output.status == 'error' }}"}]}
  - step: unreachable
    tool: {kind: http, timeout: 5, url: "http://127.0.0.1:1/{{ keychain.kc.token | urlencode }}"}
    next: {arcs: [{step: sql, when: "{{ output.status == 'error' }}"}]}
  - {step: sql, tool: {kind: postgres, auth: canary_pg_%[1]d, query: "SELECT $1::text AS s, 'CANARY' AS w", params: ["{{ keychain.kc.token }}"]}, next: badsql}
  - step: badsql
    tool: {kind: postgres, auth: canary_pg_%[1]d, query: "SELECT {{ keychain.kc.token }} FROM nowhere"}
    next: {arcs: [{step: nodb, when: "{{ output.status == 'error' }}"}]}
  - step: nodb
    tool: {kind: postgres, auth: canary_nodb_%[1]d, query: "SELECT 1", timeout: 10}
    next: {arcs: [{step: environment, when: "{{ output.status == 'error' }}"}]}
  - {step: environment, tool: {kind: shell, auth: canary_api_%[1]d, env: {T: "{{ keychain.kc.token }}"}, cmds: ["echo \"t=$T\"", "env | sort >&2"]}, next: argument}
  - step: argument
    tool: {kind: shell, env: {T: "{{ keychain.kc.token }}"}, cmds: ["echo \"$T\"; exit 3"]}
    next: {arcs: [{step: raises, when: "{{ output.status == 'error' }}"}]}
  - step: raises
    tool: {kind: python, input: {t: "{{ keychain.kc.token }}"}, code: "print(t)\nraise ValueError('no ' + t)"}
    next: {arcs: [{step: large, when: "{{ output.error.code == 'PY_ValueError' }}"}]}
  - step: large
    tool:
      kind: python
      input: {t: "{{ keychain.kc.token }}"}
      code: |
        for i in range(2000): print(i, t)
        result = {'author': 'Ada', 'next_page_token': 'CAUQAA1234567890', 'total_tokens': 17, t: t,
                  'rows': [{'id': i, 'text': t + 'x' * 1000} for i in range(400)]}
    set: {ctx.kept: "{{ keychain.kc.token | default('none') }}"}
    next: pipeline
  - step: pipeline
    tool:
      - {name: one, kind: python, input: {t: "{{ keychain.kc.token }}"}, code: "result = {'t': t}", set: {ctx.mine: "{{ keychain.kc.token }}", iter.mine: "{{ keychain.kc.token }}"}}
      - {name: two, kind: noop, result: {t: "{{ one.t }}", m: "{{ keychain.kc.token }}"}}
    next: child
  - {step: child, tool: {kind: playbook, path: e2e/canary_child, wait: true, payload: {t: "{{ keychain.kc.token }}"}}, next: end}
  - {step: end, tool: {kind: noop, result: {a: "{{ large.author }}", p: "{{ large.next_page_token }}", n: "{{ large.total_tokens }}", rows: "{{ large.rows[399].id }}"}}}
`

const canaryChild = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: canary_child, path: e2e/canary_child}
workload: {t: ""}
workflow: [{step: start, tool: {kind: python, input: {t: "{{ t }}"}, code: "print(t)\nresult = t"}}]
`

func TestASecretIsSeenNowhere(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		t.Run(map[bool]string{false: "in one process", true: "with a worker of its own"}[remote], func(t *testing.T) {
			t.Parallel()
			canaryRun(t, remote)
		})
	}
}

func canaryRun(t *testing.T, remote bool) {
	var (
		mu      sync.Mutex
		reached []string
	)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		reached = append(reached, r.Header.Get("Authorization")+r.Header.Get("X-Key")+string(body)+r.URL.Query().Get("key"))
		mu.Unlock()
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		w.Header().Set("Set-Cookie", "session="+r.Header.Get("X-Key"))
		_ = json.NewEncoder(w).Encode(map[string]any{"headers": r.Header, "query": r.URL.RawQuery, "body": string(body)})
	}))
	t.Cleanup(site.Close)
	s := measured(t)
	b := &bed{system: s, pg: testkit.Postgres(t)}
	processes := []*testkit.Process{}
	if remote {
		nats, args := s.natsFor()
		b.server = s.server(0, append(args, "--no-worker")...)
		processes = append(processes, s.worker("canary", b.server.url, nats, 4))
	} else {
		b.server = s.server(0, "--slots", "4")
	}
	processes = append(processes, b.server.Process)
	if _, err := b.server.client.Register(s.ctx(), canaryChild); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer // everything the server answers
	var executions []event.ID
	for i, secret := range canaries {
		b.credential(fmt.Sprintf("canary_api_%d", i), "bearer", map[string]any{"token": secret})
		b.credential(fmt.Sprintf("canary_pg_%d", i), "postgres", withPassword(t, b.pg, secret))
		b.credential(fmt.Sprintf("canary_nodb_%d", i), "postgres", map[string]any{"host": "127.0.0.1", "port": 1, "user": "u", "password": secret, "database": "d"})
		id := b.startWith(b.server, fmt.Sprintf(canaryPlaybook, i), map[string]any{"site": site.URL})
		executions = append(executions, id)
		d := s.ended(b.server, id, event.StatusCompleted)
		result(t, d, "end", `{"a":"Ada","n":17,"p":"CAUQAA1234567890","rows":399}`)
		mu.Lock()
		if !strings.Contains(strings.Join(reached, "\n"), secret) {
			t.Errorf("the secret did not reach the server it is for")
		}
		mu.Unlock()
		for _, path := range []string{
			"", "/events", "/status", "/explain", "/logs", "/waits", "/commands",
		} {
			_, answer := b.call(http.MethodGet, fmt.Sprintf("/api/executions/%s%s", id, path), "")
			seen.WriteString(answer + "\n")
		}
		_, state := b.call(http.MethodGet, fmt.Sprintf("/api/replay/state?execution_id=%s", id), "")
		seen.WriteString(state)
	}
	for _, path := range []string{
		"/api/executions", "/api/credentials", "/metrics", "/api/credentials/canary_api_0", "/api/credentials/canary_api_0?include_data=true",
		"/api/worker/pools", "/api/catalog/list", "/api/internal/secret-audit",
	} {
		_, answer := b.call(http.MethodGet, path, "")
		seen.WriteString(answer + "\n")
	}
	places := map[string]string{"an answer": seen.String()}
	for _, id := range executions {
		for _, e := range s.log(b.server, id) {
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			places[fmt.Sprintf("event %d, %s of %s", e.Seq, e.Type, e.NodeName)] = string(raw)
		}
	}
	for _, p := range processes {
		p.Terminate()
		if err := p.Wait(patience); err != nil {
			t.Errorf("a process ends with %v", err)
		}
		places["the output of a process"] += p.Output()
	}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		places["the file "+path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, text := range places {
		for _, secret := range canaries {
			for _, way := range writings(secret) {
				if at := strings.Index(text, way); at >= 0 {
					t.Errorf("a secret is in %s: …%s…", place, text[max(0, at-120):min(len(text), at+len(way)+40)])
					break
				}
			}
		}
	}
}

// withPassword is the address of a database as a credential, with a password
// that the server does not ask for.
func withPassword(t *testing.T, dsn, password string) map[string]any {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	host := u.Hostname()
	if host == "" {
		host = u.Query().Get("host")
	}
	data := map[string]any{"db_host": host, "db_user": u.User.Username(), "db_password": password, "db_name": strings.TrimPrefix(u.Path, "/")}
	if p := u.Port(); p != "" {
		data["db_port"] = p
	} else if p := u.Query().Get("port"); p != "" {
		data["db_port"] = p
	}
	return data
}
