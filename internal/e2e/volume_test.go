package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// peak is the most memory a process has had, in bytes.
func peak(t *testing.T, p *testkit.Process) int64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("the system does not tell how much memory a process has had")
	return 0
}

// measured is a system whose memory can be measured: its programs do not have
// the race detector, which would multiply it.
func measured(t *testing.T) *system {
	t.Helper()
	return newSystem(t, "sqlite")
}

// TestA200MBResultIsHeldByNobody sends it from a server through a step into the
// store, and from there into python, with a server and a worker that never had
// the memory for it.
func TestA200MBResultIsHeldByNobody(t *testing.T) {
	t.Parallel()
	const rows, most = 200_000, 190 << 20
	row := strings.Repeat("r", 1000)
	write := func(w io.Writer) {
		out := bufio.NewWriterSize(w, 1<<20)
		_, _ = out.WriteString(`{"count":` + strconv.Itoa(rows) + `,"rows":[`)
		for i := range rows {
			if i > 0 {
				_ = out.WriteByte(',')
			}
			_, _ = fmt.Fprintf(out, `{"id":%d,"text":"%s"}`, i, row)
		}
		_, _ = out.WriteString(`]}`)
		_ = out.Flush()
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		write(w)
	}))
	t.Cleanup(site.Close)

	s := measured(t)
	nats, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	worker := s.worker("far", server.url, nats, 2)
	b := &bed{system: s, server: server}
	id := b.startWith(server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: huge, path: e2e/huge}
workload: {site: ""}
workflow:
  - {step: fetch, tool: {kind: http, url: "{{ site }}", timeout: 120}, next: look}
  - {step: look, tool: {kind: noop, result: {count: "{{ fetch.data.count }}", first: "{{ fetch.data.rows[0].id }}"}}, next: read}
  - step: read
    tool:
      kind: python
      files: {all: "{{ fetch._ref }}"}
      code: |
        import os
        with open(files['all'], 'rb') as f:
            f.seek(-1, os.SEEK_END)
            result = {'bytes': os.path.getsize(files['all']), 'last': f.read().decode()}
    next: made
  - {step: made, tool: {kind: python, code: "result = {'count': 3, 'text': 'y' * 200000000}", timeout: 120}, next: end}
  - {step: end, tool: {kind: noop, result: {count: "{{ made.count }}"}}}
`, map[string]any{"site": site.URL})
	d := s.ended(server, id, event.StatusCompleted)
	result(t, d, "look", `{"count":200000,"first":0}`)
	result(t, d, "end", `{"count":3}`)
	var read struct {
		Bytes int64
		Last  string
	}
	if err := json.Unmarshal(d.Steps["read"].Result, &read); err != nil || read.Bytes < 200_000_000 || read.Last != "}" {
		t.Errorf("python read %s, %v", d.Steps["read"].Result, err)
	}
	s.small(server, id)
	for name, p := range map[string]*testkit.Process{"server": server.Process, "worker": worker} {
		if got := peak(t, p); got > most {
			t.Errorf("the %s has had %d MB", name, got>>20)
		}
	}
}

// TestAThousandParallelCallsAreBounded has as many connections as the worker has
// slots, and memory to match.
func TestAThousandParallelCallsAreBounded(t *testing.T) {
	t.Parallel()
	const calls, slots, most = 1000, 32, 300 << 20
	var (
		mu          sync.Mutex
		open, worst int
		answered    int
	)
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		answered++
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"i": r.URL.Query().Get("i"), "pad": strings.Repeat("p", 2<<10)})
	}))
	site.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch s {
		case http.StateNew:
			open++
			worst = max(worst, open)
		case http.StateClosed, http.StateHijacked:
			open--
		}
	}
	site.Start()
	t.Cleanup(site.Close)

	s := measured(t)
	server := s.server(0, "--slots", strconv.Itoa(slots))
	b := &bed{system: s, server: server}
	id := b.startWith(server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: thousand, path: e2e/thousand}
workload: {site: ""}
workflow:
  - {step: start, tool: {kind: noop}, next: calls}
  - step: calls
    loop: {in: 1000, iterator: i, spec: {mode: parallel, max_in_flight: 1000}}
    tool: {kind: http, url: "{{ site }}/?i={{ i }}"}
    next: end
  - {step: end, tool: {kind: noop, result: {n: "{{ calls.stats.success }}", last: "{{ calls[999].data.i }}"}}}
`, map[string]any{"site": site.URL})
	s.completed(server, id)
	had := peak(t, server.Process) // before anybody asks for all of it at once
	result(t, s.ended(server, id, event.StatusCompleted), "end", `{"last":"999","n":1000}`)
	mu.Lock()
	defer mu.Unlock()
	if answered != calls || worst > slots+4 {
		t.Errorf("%d calls over up to %d connections at once", answered, worst)
	}
	if had > most {
		t.Errorf("the server has had %d MB", had>>20)
	}
}

// mixed makes a table of rows of many types.
const mixed = `
CREATE TABLE src (
  id int8 PRIMARY KEY, small int2, whole int4, big int8, exact numeric(40, 12), single float4, double float8, yes bool, words text,
  at timestamptz, local timestamp, day date, clock time, key uuid, doc jsonb, numbers int[], names text[], raw bytea, took interval, addr inet);
INSERT INTO src SELECT i, i % 32000, i * 7, 9007199254740993 + i, i * 1234567890123.000000000001, i / 8.0, i / 3.0, i % 2 = 0,
  CASE WHEN i % 10 = 0 THEN NULL ELSE 'row ''' || i || ''' "é" \ {{ x }} $1 ;' END,
  '2026-01-01T00:00:00.123456Z'::timestamptz + i * interval '1.000001 hour', '2026-01-01'::timestamp + i * interval '1 minute', '2026-01-01'::date + i,
  '00:00:00.000001'::time + i * interval '1 second', md5(i::text)::uuid, jsonb_build_object('i', i, 'big', 9007199254740993, 'deep', jsonb_build_array(NULL, true, '"')),
  ARRAY[i, NULL, -i], ARRAY['a,b', NULL, '{}', i::text], decode(md5(i::text), 'hex'), i * interval '1 day 2 hours 3.5 seconds', ('10.0.' || (i / 256) % 256 || '.' || i % 256)::inet
FROM generate_series(1, 10000) AS i;
CREATE TABLE dst (LIKE src);
`

func TestTenThousandRowsOfMixedTypesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := newBedOn(t, measured(t))
	conn, err := pgx.Connect(b.ctx(), b.pg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(b.ctx()) })
	if _, err := conn.Exec(b.ctx(), mixed); err != nil {
		t.Fatal(err)
	}
	_, d := b.completes(t, "mixed", `
workflow:
  - {step: read, tool: {kind: postgres, auth: pg_test, query: "SELECT * FROM src ORDER BY id"}, next: pass}
  - {step: pass, tool: {kind: python, input: {rows: "{{ read.rows }}"}, code: "result = {'rows': rows, 'n': len(rows)}"}, next: write}
  - step: write
    tool:
      kind: postgres
      auth: pg_test
      params: ["{{ pass.rows | tojson }}"]
      query: |
        INSERT INTO dst
        SELECT (r).id, (r).small, (r).whole, (r).big, (r).exact, (r).single, (r).double, (r).yes, (r).words, (r).at, (r).local, (r).day, (r).clock,
          (r).key, (r).doc, (r).numbers, (r).names, decode(o ->> 'raw', 'base64'), (r).took, (r).addr
        FROM (SELECT o, jsonb_populate_record(NULL::dst, o - 'raw') AS r FROM jsonb_array_elements($1::jsonb) AS o) AS x
`, nil)
	if !strings.Contains(string(d.Steps["write"].Result), `"affected_rows":10000`) {
		t.Errorf("%s", d.Steps["write"].Result)
	}
	var same, differ int
	err = conn.QueryRow(b.ctx(), `SELECT count(*) FILTER (WHERE s IS NOT DISTINCT FROM d), count(*) FILTER (WHERE s IS DISTINCT FROM d)
		FROM (SELECT s::text AS s, d::text AS d FROM src AS s FULL JOIN dst AS d USING (id)) AS x`).Scan(&same, &differ)
	if err != nil || same != 10000 || differ != 0 {
		t.Errorf("%d rows are the same, %d differ: %v", same, differ, err)
	}
}
