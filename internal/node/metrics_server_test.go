package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/obs/otlp"
	"github.com/noetl/noetl-go/internal/result/s3"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/otlpd"
	"github.com/noetl/noetl-go/internal/testkit/s3d"
)

const meteredToken = "metered-internal"

// served is a whole server with a worker of its own, seen from outside.
type served struct {
	*meters
	t      *testing.T
	client *client.Client
	url    string
	dir    string
}

// serve starts one whose metrics are watched.
func serve(t *testing.T, m *meters, o node.Options) *served {
	t.Helper()
	o.DataDir, o.Listen, o.InternalToken, o.Version = t.TempDir(), "127.0.0.1:0", meteredToken, "test"
	n := start(t, o)
	c, err := client.New(n.URL, client.WithToken(meteredToken))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m.url(n.URL)
	return &served{meters: m, t: t, client: c, url: n.URL, dir: o.DataDir}
}

// call makes a request of the internal API, whatever is answered.
func (s *served) call(method, path, body string) int {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/api/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+meteredToken)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func (s *served) register(name, rest string) string {
	s.t.Helper()
	path := "metered/" + name
	_, err := s.client.Register(s.t.Context(), "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: "+name+", path: "+path+"}\n"+rest)
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *served) start(r client.ExecuteRequest) client.ID {
	s.t.Helper()
	a, err := s.client.Execute(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return a.ExecutionID
}

// run waits for the end of an execution.
func (s *served) run(path string) client.ID {
	s.t.Helper()
	id := s.start(client.ExecuteRequest{Path: path})
	if _, err := s.client.Wait(s.t.Context(), id); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// eventually waits for a line of the metrics.
func (s *served) eventually(line string) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		if !s.has(line) {
			return fmt.Errorf("%s is not shown", line)
		}
		return nil
	}, 20*time.Second)
}

const (
	quietWorkflow = "workflow:\n  - {step: start, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n  - {step: end, tool: {kind: noop}}\n"
	waitsWorkflow = "workflow:\n  - {step: start, tool: {kind: wait, signal: go}}\n"
)

// aServerAtWork uses the API as clients do.
func aServerAtWork(t *testing.T, m *meters) {
	collector, bucket := otlpd.Start(t), s3d.Start(t, "results")
	spans, err := otlp.Open(t.Context(), otlp.Settings{Endpoint: collector.URL, Part: "noetl-server"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, m, node.Options{
		Publication: node.Publication{Publisher: node.PublishInternal}, Slots: 8,
		Results: node.Results{
			Store: "file", MaxBytes: 5 << 20, S3: s3.Options{Endpoint: bucket.Host, Bucket: "results", AccessKey: "k", SecretKey: "s", Insecure: true},
		},
		Tracing: node.Tracing{Tracer: spans.Tracer, Count: spans.Count, Close: spans.Close},
	})
	quiet := s.register("quiet", quietWorkflow)
	wrong := s.register("wrong", "workflow:\n  - {step: start, tool: {kind: shell, command: 'exit 3'}}\n")
	large := s.register("large", `workflow:
  - {step: start, tool: {kind: shell, command: "head -c 3000000 /dev/zero | tr '\\0' x"}, next: {arcs: [{step: look}]}}
  - {step: look, tool: {kind: noop, args: {n: "{{ start.stdout | length }}"}}}
`)
	huge := s.register("huge", `workflow:
  - {step: start, tool: {kind: shell, command: "head -c 6000000 /dev/zero | tr '\\0' x"}}
`)
	secret := s.register("secret", "keychain:\n  - {name: kc, kind: credential, credential: metered}\nworkflow:\n  - {step: start, tool: {kind: shell, command: 'true', env: {K: '{{ keychain.kc.token }}'}}}\n")
	system := "system/quiet"
	if _, err := s.client.Register(t.Context(), "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: s, path: "+system+"}\n"+quietWorkflow); err != nil {
		t.Fatal(err)
	}
	waits := s.register("waits", waitsWorkflow)
	if _, err := s.client.PutCredential(t.Context(), client.CredentialRequest{Name: "metered", Type: "bearer", Data: json.RawMessage(`{"token":"abc"}`)}); err != nil {
		t.Fatal(err)
	}
	s.start(client.ExecuteRequest{Path: quiet, Pool: "nobody"}) // its command waits for a worker that is not there
	id := s.run(quiet)
	for _, path := range []string{wrong, large, huge, secret, system} {
		s.run(path)
	}
	parked := s.start(client.ExecuteRequest{Path: waits})
	s.eventually(`noetl_worker_call_done_skipped_pending_callback_total{tool_kind="wait"} 1`)
	if _, err := s.client.Cancel(t.Context(), parked, client.CancelRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.start(client.ExecuteRequest{Path: quiet, Dedup: &client.Dedup{Key: "once"}})
	}
	s.call(http.MethodPost, "execute", `{"path": "metered/nothing"}`)
	if _, err := s.client.ExecuteBatch(t.Context(), []client.ExecuteRequest{{Path: quiet}, {Path: "metered/nothing"}}); err != nil {
		t.Fatal(err)
	}
	s.eventually(`noetl_commands_pending{pool="nobody"} 1`)
	for _, x := range []struct{ method, path, body string }{
		{"GET", "replay/state?execution_id=" + id.String(), ""},
		{"POST", "catalog/delete", `{"path": "metered/nothing"}`},
		{"POST", "catalog/delete", `{"path": "` + wrong + `"}`},
		{"POST", "internal/projection/advance", fmt.Sprintf(`{"execution_ids": [%d]}`, id)},
		{"GET", "credentials/metered?include_data=true", ""},
		{"GET", "credentials/nobody?include_data=true", ""},
		{"POST", "events", fmt.Sprintf(`{"execution_id": %d, "events": [{"event_type": "command.completed"}]}`, id)},
		{"GET", "results/nowhere", ""},
	} {
		s.call(x.method, x.path, x.body)
	}
	for _, state := range []string{"succeeded", "failed", "failed_image_pull", "failed_oom", "failed_node_lost", "failed_timeout"} {
		if got := s.call(http.MethodPost, "internal/container-callback/"+id.String()+"/start", `{"state": "`+state+`", "job_name": "j"}`); got != http.StatusAccepted {
			t.Errorf("the end of a job is answered with %d", got)
		}
	}
	s.objects(id)
	if _, err := s.client.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.eventually("noetl_trace_spans_exported_total ")
}

// objects puts values outside of the database, reads, loses and removes them.
func (s *served) objects(id client.ID) {
	s.t.Helper()
	for _, tier := range []string{"file", "nats", "s3"} {
		at, err := s.client.PutBlob(s.t.Context(), id, client.ResultOptions{Name: "bytes", Store: tier, MediaType: "text/plain", TTL: "1s"}, strings.NewReader("a file"))
		if err != nil {
			s.t.Fatal(err)
		}
		body, _, err := s.client.OpenBlob(s.t.Context(), at.Ref, 0, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		_ = body.Close()
		if tier == "file" {
			if err := os.RemoveAll(filepath.Join(s.dir, "results")); err != nil {
				s.t.Fatal(err)
			}
			if body, _, err := s.client.OpenBlob(s.t.Context(), at.Ref, 0, 0); err == nil {
				_ = body.Close()
			}
		}
	}
	s.eventually("noetl_broker_up 1")
	testkit.Eventually(s.t, func() bool {
		s.call(http.MethodPost, "internal/results/collect", "")
		return s.has(`noetl_object_store_ops_total{backend="nats",op="delete",outcome="ok"} 1`)
	}, 20*time.Second)
}

// aCollectorThatRefuses loses spans.
func aCollectorThatRefuses(t *testing.T, m *meters) {
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(gone.Close)
	spans, err := otlp.Open(t.Context(), otlp.Settings{Endpoint: gone.URL, Part: "noetl-server"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, m, node.Options{InProcess: true, Tracing: node.Tracing{Tracer: spans.Tracer, Count: spans.Count, Close: spans.Close}})
	s.run(s.register("quiet", quietWorkflow))
	testkit.Eventually(t, func() bool { return !s.has("noetl_trace_spans_dropped_total 0\n") }, 20*time.Second)
}

var scenarios = map[string]scenario{
	"a server at work": {[]string{
		"noetl_events_ingested_total", "noetl_execution_duration_seconds", "noetl_trace_spans_exported_total",
	}, aServerAtWork},
	"a collector that refuses": {[]string{"noetl_trace_spans_dropped_total"}, aCollectorThatRefuses},
}
