package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// TestAcceptance is what a worker and its tools must be able to do, through the
// program as it is shipped.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for name, check := range map[string]func(*testing.T, *bed){
		"01 python: every style of result":                     acceptPython,
		"02 templates keep types on their way":                 acceptTypes,
		"03 pipelines: siblings, set, jump, retry, bounds":     acceptPipelines,
		"04 policies of single tools":                          acceptPolicies,
		"05 postgres: splitting, RETURNING, types, SQLSTATE":   acceptPostgres,
		"06 http: parameters, classification, redirects, size": acceptHTTP,
		"07 a result of 1.7 MB":                                acceptLarge,
		"08 credentials that are missing or named in tasks":    acceptCredentials,
		"09 cancel stops a sleeping step":                      acceptCancel,
		"10 a child's step without a slot":                     acceptChild,
		"11 keychain text that is data":                        acceptKeychainText,
		"12 scrubbing leaves data alone":                       acceptScrub,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, b)
		})
	}
}

func acceptPython(t *testing.T, b *bed) {
	_, d := b.completes(t, "python", `
workflow:
  - {step: start, tool: {kind: python, code: "result = {'n': 1}"}, next: returned}
  - {step: returned, tool: {kind: python, input: {x: 3}, code: "return {'n': x}"}, next: called}
  - step: called
    tool:
      kind: python
      input: {x: 4, y: 5}
      code: |
        def main(x, **kw):
            return {'x': x, 'others': sorted(kw)}
    next: awaited
  - step: awaited
    tool:
      kind: python
      input: {x: 6}
      code: |
        import asyncio
        async def main(x):
            await asyncio.sleep(0)
            return {'x': x}
    next: whole
  - {step: whole, tool: {kind: python, input: {a: 7}, code: "result = input_data.get('a')"}, next: libs}
  - step: libs
    tool:
      kind: python
      libs: {js: json, datetime: {from: datetime, import: datetime}}
      code: "result = {'j': js.dumps([1]), 'y': datetime(2026, 1, 2).year}"
    next: list
  - {step: list, tool: {kind: python, libs: [math], code: "result = math.floor(2.5)"}, next: prints}
  - {step: prints, tool: {kind: python, code: "print('hello')"}, next: end}
  - step: end
    tool: {kind: python, code: "raise ValueError('no good')"}
    next: {arcs: [{step: caught, when: "{{ output.error.code == 'PY_ValueError' and 'no good' in output.error.message }}"}]}
  - {step: caught, tool: {kind: noop, result: {kind: "{{ end.error.kind }}"}}}
`, nil)
	result(t, d, "start", `{"n":1}`)
	result(t, d, "returned", `{"n":3}`)
	result(t, d, "called", `{"others":["y"],"x":4}`)
	result(t, d, "awaited", `{"x":6}`)
	result(t, d, "whole", `7`)
	result(t, d, "libs", `{"j":"[1]","y":2026}`)
	result(t, d, "list", `2`)
	result(t, d, "prints", `{"stderr":"","stdout":"hello\n"}`)
	result(t, d, "caught", `{"kind":"schema"}`)
}

func acceptTypes(t *testing.T, b *bed) {
	_, d := b.completes(t, "types", `
workload: {initial_value: 100}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.value: "{{ initial_value }}"}
    next: end
  - {step: end, tool: {kind: python, input: {v: "{{ ctx.value }}", w: "{{ initial_value }}"}, code: "result = [type(v).__name__, v + w]"}}
`, nil)
	result(t, d, "end", `["int",200]`)
}

func acceptPipelines(t *testing.T, b *bed) {
	_, d := b.completes(t, "pipelines", `
workflow:
  - step: start
    tool:
      - {name: first, kind: noop, result: {field: 7}}
      - {name: second, kind: python, input: {f: "{{ first.field }}"}, code: "result = {'got': f}", set: {iter.page: "{{ output.got }}", ctx.seen.deep: "{{ output.got + 1 }}"}}
      - {name: third, kind: noop, result: {page: "{{ iter.page }}", deep: "{{ ctx.seen.deep }}"}}
    next: after
  - {step: after, tool: {kind: noop, result: {deep: "{{ ctx.seen.deep }}"}}, next: looped}
  - step: looped
    tool:
      - {name: begin, kind: noop, spec: {policy: {rules: [{else: {then: {do: continue, set: {iter.n: 0}}}}]}}}
      - name: count
        kind: python
        input: {n: "{{ iter.n }}"}
        code: "result = {'n': int(n) + 1}"
        spec:
          policy:
            rules:
              - {when: "{{ output.data.n >= 4 }}", then: {do: break, set: {ctx.total: "{{ output.data.n }}"}}}
              - {else: {then: {do: continue, set: {iter.n: "{{ output.data.n }}"}}}}
      - {name: back, kind: noop, spec: {policy: {rules: [{when: true, then: {do: jump, to: previous}}]}}}
    next: tried
  - step: tried
    tool:
      kind: http
      url: "{{ api }}/api/v1/errors?error_type=500"
      spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, backoff: fixed, delay: 0.05}}]}}
    next: {arcs: [{step: end, when: "{{ output.status == 'error' }}"}]}
  - {step: end, tool: {kind: noop, result: {total: "{{ ctx.total }}"}}}
`, map[string]any{"api": b.api.URL})
	result(t, d, "after", `{"deep":8}`)
	result(t, d, "end", `{"total":4}`)
	if got := string(d.Steps["start"].Result); !strings.Contains(got, `"page":7`) || !strings.Contains(got, `"deep":8`) {
		t.Errorf("the pipeline gives %s", got)
	}
	failures := 0
	for _, r := range b.api.Requests() {
		if r.Path == "/api/v1/errors" && r.Query == "error_type=500" {
			failures++
		}
	}
	if failures != 3 {
		t.Errorf("%d requests, want the three that attempts: 3 means", failures)
	}
}

func acceptPolicies(t *testing.T, b *bed) {
	marker := t.TempDir() + "/tries"
	retry := `spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, backoff: fixed, delay: 0.05}}]}}`
	_, d := b.completes(t, "policies", `
workflow:
  - step: start
    tool:
      kind: python
      input: {marker: "`+marker+`"}
      code: |
        with open(marker, 'a') as f: f.write('x')
        n = len(open(marker).read())
        if n < 3: raise RuntimeError('not yet')
        result = n
      `+retry+`
    next: sql
  - step: sql
    tool:
      kind: postgres
      auth: pg_test
      command: |
        CREATE SEQUENCE IF NOT EXISTS tries;
        SELECT 1 / (CASE WHEN nextval('tries') < 3 THEN 0 ELSE 1 END) AS one;
      `+retry+`
    next: web
  - step: web
    tool: {kind: http, url: "{{ api }}/api/v1/flaky?page=77&fail_on=77", `+retry+`}
`, map[string]any{"api": b.api.URL})
	result(t, d, "start", `3`)
	if !strings.Contains(string(d.Steps["sql"].Result), `"one":1`) || !strings.Contains(string(d.Steps["web"].Result), `"status_code":200`) {
		t.Errorf("sql %s\nweb %s", d.Steps["sql"].Result, d.Steps["web"].Result)
	}
}

func acceptPostgres(t *testing.T, b *bed) {
	_, d := b.completes(t, "postgres", `
workflow:
  - step: start
    tool:
      kind: postgres
      auth: pg_test
      command: |
        -- it's a comment; with an apostrophe
        CREATE TABLE IF NOT EXISTS acc (id serial primary key, small int2, f float4, list int[], words text[]);
        CREATE OR REPLACE FUNCTION acc_twice(n int) RETURNS int AS $$ BEGIN PERFORM 1; RETURN n * 2; END $$ LANGUAGE plpgsql;
        INSERT INTO acc (small, f, list, words) VALUES (7, 1.5, '{1,2}', '{"a;b","c"}') RETURNING id, small, f, list, words;
        SELECT acc_twice(21) AS n;
    next: returning
  - {step: returning, tool: {kind: postgres, auth: pg_test, query: "INSERT INTO acc (small) VALUES (1), (2) RETURNING small"}, next: conflict}
  - step: conflict
    tool:
      kind: postgres
      auth: pg_test
      command: "DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$"
    next: {arcs: [{step: end, when: "{{ output.pg.code == '40001' and output.error.retryable and output.error.kind == 'db_deadlock' }}"}]}
  - {step: end, tool: {kind: noop, result: {n: "{{ start.rows[0].n }}", row: "{{ start.command_2.rows[0] }}", count: "{{ returning.row_count }}"}}}
`, nil)
	result(t, d, "end", `{"count":2,"n":42,"row":{"f":1.5,"id":1,"list":[1,2],"small":7,"words":["a;b","c"]}}`)
}

func acceptHTTP(t *testing.T, b *bed) {
	const size = 50 << 20
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"query": r.URL.RawQuery}})
		case "/inside":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusFound)
		case "/large":
			w.Header().Set("Content-Type", "application/octet-stream")
			chunk := make([]byte, 1<<20)
			for range size >> 20 {
				_, _ = w.Write(chunk)
			}
		}
	}))
	t.Cleanup(site.Close)
	_, d := b.completes(t, "http", `
workflow:
  - step: start
    tool:
      - {name: params, kind: http, url: "{{ site }}/echo", params: {page: 2, none: null, text: "a b"}}
      - {name: look, kind: noop, result: "{{ params.data.data.query }}"}
    next: classes
  - step: classes
    loop: {in: ["404", "429", "503"], iterator: kind}
    tool:
      - name: call
        kind: http
        url: "{{ api }}/api/v1/errors?error_type={{ kind }}&retry_after=3"
        spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: continue, set: {iter.after: "{{ output.error.retry_after | default(0) }}"}}}]}}
      - {name: class, kind: noop, result: "{{ [call.error.kind, call.error.retryable, iter.after | int] }}"}
    next: inside
  - step: inside
    tool: {kind: http, url: "{{ site }}/inside"}
    next: {arcs: [{step: large, when: "{{ output.error.code == 'EGRESS_DENIED' }}"}]}
  - {step: large, tool: {kind: http, url: "{{ site }}/large"}, next: end}
  - {step: end, tool: {kind: noop, result: {classes: "{{ [classes[0].class, classes[1].class, classes[2].class] }}", query: "{{ start.look }}", bytes: "{{ large.data.bytes }}", ref: "{{ large.data._ref is defined }}"}}}
`, map[string]any{"site": site.URL, "api": b.api.URL})
	result(t, d, "end", fmt.Sprintf(`{"bytes":%d,"classes":[["not_found",false,0],["rate_limit",true,3],["server_error",true,3]],"query":"page=2\u0026text=a+b","ref":true}`, size))
}

func acceptLarge(t *testing.T, b *bed) {
	id, d := b.completes(t, "large", `
workflow:
  - step: start
    tool: {kind: python, code: "result = {'count': 160, 'data': {'rows': [{'id': i, 'text': 'x' * 10625} for i in range(160)]}}"}
    next: counted
  - {step: counted, tool: {kind: noop, result: {count: "{{ start.count }}", first: "{{ start.data.rows[0].id }}"}}, next: fetched}
  - {step: fetched, tool: {kind: artifact, action: get, input: {result_ref: "{{ start._ref }}"}}, next: end}
  - {step: end, tool: {kind: python, input: {all: "{{ fetched }}"}, code: "result = len(str(all)) > 1700000"}}
`, nil)
	result(t, d, "counted", `{"count":160,"first":0}`)
	result(t, d, "end", `true`)
	for _, e := range b.log(b.server, id) {
		if n := len(e.Result) + len(e.Meta) + len(e.Context); n > largestEvent && e.Type != event.CommandIssued {
			t.Errorf("event %d, %s of %s, has %d bytes", e.Seq, e.Type, e.NodeName, n)
		}
		if e.NodeName == "start" && e.Type == event.CommandCompleted && !strings.Contains(string(e.Result), `"extracted":{"count":160,"data":{"rows":[{"id":0`) {
			t.Errorf("the event has no navigable summary: %.400s", e.Result)
		}
	}
}

func acceptCredentials(t *testing.T, b *bed) {
	b.fails(t, "alias_missing", `
workflow: [{step: start, tool: {kind: postgres, auth: nobody_knows_this, query: "SELECT 1"}}]
`, "nobody_knows_this")
	_, d := b.completes(t, "aliases", `
workflow:
  - step: start
    tool:
      - {name: made, kind: postgres, auth: pg_test, command: "CREATE TABLE IF NOT EXISTS moved (n int); SELECT 5 AS n"}
      - name: moved
        kind: transfer
        source: {type: postgres, auth: pg_test, query: "SELECT generate_series(1, 10) AS n"}
        target: {type: postgres, auth: pg_test, table: moved}
      - {name: counted, kind: postgres, auth: pg_test, query: "SELECT count(*) AS n FROM moved"}
`, nil)
	if got := string(d.Steps["start"].Result); !strings.Contains(got, `"rows_transferred":10`) {
		t.Errorf("%s", got)
	}
}

func acceptCancel(t *testing.T, b *bed) {
	marker := filepath.Join(t.TempDir(), "asleep")
	id := b.start(b.server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sleeps, path: acceptance/sleeps}
workflow:
  - step: start
    tool:
      kind: python
      code: |
        import time
        open('`+marker+`', 'w').close()
        time.sleep(600)
`)
	testkit.Eventually(t, func() error { _, err := os.Stat(marker); return err }, patience)
	if _, err := b.server.client.Cancel(b.ctx(), id, client.CancelRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		for _, e := range b.log(b.server, id) {
			if e.Type == event.CommandCancelled {
				return nil
			}
		}
		return errors.New("the command still runs")
	}, 6*time.Second)
}

func acceptChild(t *testing.T, b *bed) {
	if _, err := b.server.client.Register(b.ctx(), `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: scorer, path: acceptance/scorer}
workflow:
  - {step: start, tool: {kind: noop}, next: finalize_result}
  - {step: finalize_result, tool: {kind: noop, result: {profile_score: 42}}, next: end}
  - {step: end, tool: {kind: noop}}
`); err != nil {
		t.Fatal(err)
	}
	_, d := b.completes(t, "parent", `
workflow:
  - step: start
    tool:
      - {name: save_profile, kind: playbook, path: acceptance/scorer, return_step: finalize_result}
      - {name: score, kind: noop, result: "{{ save_profile.profile_score }}"}
    next: end
  - {step: end, tool: {kind: noop, result: {score: "{{ start.score }}"}}}
`, nil)
	result(t, d, "end", `{"score":42}`)
}

func acceptKeychainText(t *testing.T, b *bed) {
	_, d := b.completes(t, "keychain_text", `
workload: {given: ""}
workflow:
  - {step: start, tool: {kind: python, input: {x: "{{ given }}"}, code: "result = x"}, next: end}
  - {step: end, tool: {kind: shell, cmds: ["printf '%s' \"$X\""], env: {X: "{{ start }}"}}}
`, map[string]any{"given": "{{ keychain.a.b }}"})
	result(t, d, "start", `"{{ keychain.a.b }}"`)
	if !strings.Contains(string(d.Steps["end"].Result), `"stdout":"{{ keychain.a.b }}"`) {
		t.Errorf("%s", d.Steps["end"].Result)
	}
}

func acceptScrub(t *testing.T, b *bed) {
	id, d := b.completes(t, "scrub", `
workflow:
  - step: start
    tool:
      kind: python
      code: |
        print('Authorization: Bearer abc123def456ghi789')
        result = {'author': 'Ada', 'next_page_token': 'CAUQAA1234567890', 'total_tokens': 17}
    next: end
  - {step: end, tool: {kind: noop, result: {a: "{{ start.author }}", p: "{{ start.next_page_token }}", n: "{{ start.total_tokens }}"}}}
`, nil)
	result(t, d, "end", `{"a":"Ada","n":17,"p":"CAUQAA1234567890"}`)
	for _, e := range b.log(b.server, id) {
		if strings.Contains(string(e.Result), "abc123def456") {
			t.Errorf("the bearer token is in event %d: %s", e.Seq, e.Result)
		}
	}
}
