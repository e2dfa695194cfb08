package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/otlpd"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

// traced calls a service, tries a loop again, and asks for another playbook.
const traced = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: traced, path: e2e/traced}
workload: {service: none}
workflow:
  - step: ask
    tool: {kind: http, method: GET, url: "{{ service }}/ask"}
    next: each
  - step: each
    loop: {in: [0, 1, 2], iterator: n, spec: {mode: parallel}}
    tool:
      kind: http
      method: GET
      url: "{{ service }}/flaky/{{ n }}"
      spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, backoff: fixed, delay: 0.01}}]}}
    next: inner
  - step: inner
    tool: {kind: playbook, path: e2e/traced_child, return_step: say}
    next: done
  - {step: done, tool: {kind: python, code: "import os\nresult = {'trace': os.environ.get('TRACEPARENT')}"}}
`

const tracedChild = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: traced_child, path: e2e/traced_child}
workflow:
  - {step: say, tool: {kind: shell, command: "echo $TRACEPARENT"}}
`

// collector takes the spans of a test. With NOETL_TEST_OTELCOL they pass the
// receiver of the OpenTelemetry project on their way.
func collector(t *testing.T) (r *otlpd.Receiver, url string) {
	t.Helper()
	r = otlpd.Start(t)
	if os.Getenv("NOETL_TEST_OTELCOL") == "" {
		return r, r.URL
	}
	bin := filepath.Join(t.TempDir(), "otelcol")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".")
	build.Dir = "../testkit/otelcol"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the collector: %v\n%s", err, out)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	p := testkit.Start(t, testkit.Command{Path: bin, Args: []string{addr, r.URL + "/v1/traces"}})
	p.WaitOutput("otelcol: listening", patience)
	return r, "http://" + addr
}

// tracedSystem is a server without a worker of its own, and what starts workers
// for it; all of them send their spans to url.
func (s *system) tracedSystem(url string) (server *process, worker func(id string) *testkit.Process) {
	s.t.Helper()
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"}
	addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(s.t))
	server = s.serverWith(env, 0, "--no-worker", "--nats-listen", addr)
	return server, func(id string) *testkit.Process {
		p := testkit.Start(s.t, testkit.Command{Path: s.bin, Env: env, Args: []string{
			"worker", "--id", id, "--server-url", server.url, "--nats-url", "nats://" + addr, "--slots", "4", "--heartbeat", "500ms",
		}})
		p.WaitOutput("noetl worker", patience)
		return p
	}
}

// startTraced starts a playbook as a caller that traces does.
func (s *system) startTraced(p *process, reg client.Registration, payload string) event.ID {
	s.t.Helper()
	body := fmt.Sprintf(`{"catalog_id":"%d","payload":%s}`, reg.CatalogID, payload)
	q, err := http.NewRequestWithContext(s.ctx(), http.MethodPost, p.url+"/api/execute", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		ID json.Number `json:"execution_id"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("execute: %s, %v", resp.Status, err)
	}
	id, err := event.ParseID(answer.ID.String())
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// stopAll ends processes, which send what they have not sent yet.
func stopAll(t *testing.T, list ...*testkit.Process) {
	t.Helper()
	for _, p := range list {
		p.Terminate()
		if err := p.Wait(patience); err != nil {
			t.Errorf("a process ended with %v", err)
		}
	}
}

// whole demands one trace below the caller without a gap, in which nothing
// begins before its parent.
func whole(t *testing.T, spans []otlpd.Span) {
	t.Helper()
	t.Logf("the trace:\n%s", otlpd.Tree(spans))
	byID := map[string]otlpd.Span{}
	for _, s := range spans {
		if s.Trace != callersTrace {
			t.Errorf("%s is in trace %s", s.Name, s.Trace)
		}
		if _, twice := byID[s.ID]; twice {
			t.Errorf("%s (%s) came twice", s.Name, s.ID)
		}
		byID[s.ID] = s
	}
	for _, s := range otlpd.Orphans(spans, callersSpan) {
		t.Errorf("%s is an orphan below %s", s.Name, s.Parent)
	}
	for _, s := range spans {
		if p, ok := byID[s.Parent]; ok && s.Start.Before(p.Start) {
			t.Errorf("%s begins %s before its parent %s", s.Name, p.Start.Sub(s.Start), p.Name)
		}
	}
}

// only picks the spans whose name begins so.
func only(spans []otlpd.Span, name string) []otlpd.Span {
	var out []otlpd.Span
	for _, s := range spans {
		if strings.HasPrefix(s.Name, name) {
			out = append(out, s)
		}
	}
	return out
}

// line demands spans of these names, each below the one before it.
func line(t *testing.T, spans []otlpd.Span, names ...string) {
	t.Helper()
	parent := callersSpan
	for _, name := range names {
		found := ""
		for _, s := range spans {
			if s.Name == name && s.Parent == parent {
				found = s.ID
			}
		}
		if found == "" {
			t.Errorf("there is no %q below %q", name, names)
			return
		}
		parent = found
	}
}

// TestTraceJoinsCallerServerWorkerAndChild follows one request through two
// processes, a loop with retries and another playbook.
func TestTraceJoinsCallerServerWorkerAndChild(t *testing.T) {
	t.Parallel()
	receiver, url := collector(t)
	var asked [3]atomic.Int32
	got := make(chan string, 16)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Traceparent")
		if n, flaky := strings.CutPrefix(r.URL.Path, "/flaky/"); flaky && asked[n[0]-'0'].Add(1) == 1 && n != "0" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer service.Close()
	s := newSystem(t, "sqlite")
	server, worker := s.tracedSystem(url)
	w := worker("w")
	s.register(server, tracedChild)
	id := s.startTraced(server, s.register(server, traced), fmt.Sprintf(`{"service":%q}`, service.URL))
	s.completed(server, id)
	stopAll(t, w, server.Process)

	spans := receiver.Spans()
	whole(t, spans)
	outer := []string{"playbook.execute", "execution e2e/traced"}
	line(t, spans, append(outer, "command ask", "tool.dispatch.http")...)
	line(t, spans, append(outer, "command ask", "event.ingest")...)
	line(t, spans, append(outer, "command ask", "command.claim")...)
	line(t, spans, append(outer, "command each", "tool.dispatch.http")...)
	line(t, spans, append(outer, "command inner", "execution e2e/traced_child", "command say", "tool.dispatch.shell")...)
	line(t, spans, append(outer, "command done", "tool.dispatch.python")...)
	if loops := only(spans, "command each"); len(loops) != 3 {
		t.Errorf("%d iterations have a span, want 3", len(loops))
	}
	tries := only(spans, "tool.dispatch.http")
	if len(tries) != 6 { // one of the first step, and 1, 2 and 2 of the loop
		t.Errorf("%d calls have a span, want 6", len(tries))
	}
	failed := 0
	for _, s := range tries {
		if s.Service != "noetl-worker" {
			t.Errorf("%s comes from %s", s.Name, s.Service)
		}
		if s.Failed {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d calls failed, want 2", failed)
	}
	close(got)
	for parent := range got {
		if !strings.HasPrefix(parent, "00-"+callersTrace+"-") || !has(tries, parent) {
			t.Errorf("the service was told %q, which is no span of a call", parent)
		}
	}
}

// has tells whether a traceparent names one of the spans.
func has(spans []otlpd.Span, parent string) bool {
	for _, s := range spans {
		if parent == "00-"+s.Trace+"-"+s.ID+"-01" {
			return true
		}
	}
	return false
}

// A worker that dies takes its spans along; what is left must fit together.
func TestTraceOfAKilledWorkerIsConsistent(t *testing.T) {
	t.Parallel()
	receiver, url := collector(t)
	s := newSystem(t, "sqlite")
	server, worker := s.tracedSystem(url)
	doomed := worker("doomed")
	gate := s.register(server, gated)
	id := s.startTraced(server, gate, `{"gate":"g"}`)
	testkit.Eventually(t, func() error { _, err := os.Stat(filepath.Join(s.dir, "g.pid")); return err }, patience)
	doomed.Kill()
	if err := os.WriteFile(filepath.Join(s.dir, "g.open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	heir := worker("heir")
	s.completed(server, id)
	stopAll(t, heir, server.Process)

	spans := receiver.Spans()
	whole(t, spans)
	line(t, spans, "playbook.execute", "execution e2e/gated", "command start", "tool.dispatch.shell")
	lost := only(spans, "command.attempt")
	if len(lost) != 1 || lost[0].Attributes["worker"] != "doomed" || !lost[0].Failed {
		t.Errorf("the lost attempt is told as %+v", lost)
	}
	for _, c := range only(spans, "command start") {
		if c.Attributes["attempt"] != "2" || c.Attributes["worker"] != "heir" {
			t.Errorf("the command says %v", c.Attributes)
		}
	}
}

// A collector that is away costs spans and nothing else; when it comes, what
// happens then is told.
func TestTraceWithoutACollectorHoldsNothingUp(t *testing.T) {
	t.Parallel()
	addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	s := newSystem(t, "sqlite")
	server := s.serverWith([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + addr}, 0)
	s.completed(server, s.start(server, quick))
	testkit.Eventually(t, func() bool {
		return strings.Contains(s.metrics(server), "noetl_trace_spans_exported_total 0") && !strings.Contains(s.metrics(server), "noetl_trace_spans_dropped_total 0\n")
	}, patience)
	receiver := otlpd.StartAt(t, addr)
	s.completed(server, s.start(server, quick))
	receiver.Await(t, 1, func(s otlpd.Span) bool { return s.Name == "execution e2e/quick" }, patience)
	stopAll(t, server.Process)
}

// metrics is what a server shows of itself.
func (s *system) metrics(p *process) string {
	s.t.Helper()
	resp, err := http.Get(p.url + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

// noetl run is a part of its caller's trace, too.
func TestTraceOfARunInOneProcess(t *testing.T) {
	t.Parallel()
	receiver, url := collector(t)
	file := filepath.Join(t.TempDir(), "quick.yaml")
	if err := os.WriteFile(file, []byte(quick), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testkit.Start(t, testkit.Command{Path: testkit.BuildNoetl(t), Args: []string{"run", file}, Env: []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + url + "/v1/traces", "OTEL_SERVICE_NAME=mine", "TRACEPARENT=00-" + callersTrace + "-" + callersSpan + "-01",
	}})
	if err := p.Wait(patience); err != nil {
		t.Fatalf("noetl run: %v\n%s", err, p.Output())
	}
	spans := receiver.Spans()
	whole(t, spans)
	line(t, spans, "playbook.execute", "execution e2e/quick", "command start", "tool.dispatch.shell")
	if spans[0].Service != "mine" {
		t.Errorf("the service is %q", spans[0].Service)
	}
}

func TestTraceSettingsThatCannotBeFollowedStopTheStart(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"grpc":    {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"sampler": {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_TRACES_SAMPLER=jaeger_remote"},
		"zipkin":  {"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER=zipkin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testkit.Start(t, testkit.Command{Path: testkit.BuildNoetl(t), Args: []string{"server", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, Env: env})
			if err := p.Wait(patience); err == nil || !strings.Contains(p.Output(), "OTEL_") {
				t.Errorf("the server ended with %v and said\n%s", err, p.Output())
			}
		})
	}
}
