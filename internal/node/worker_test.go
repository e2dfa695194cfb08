package node_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestAWorkerProcessShowsHowItFares(t *testing.T) {
	t.Parallel()
	broker := testkit.NATSProcess(t)
	server, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", NATSURL: broker, Version: "9.9", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	w, err := node.StartWorker(t.Context(), node.WorkerOptions{
		ID: "w1", ServerURL: server.URL, NATSURL: broker, Version: "9.9", Slots: 2, PoolName: "gpu",
		SpoolDir: filepath.Join(t.TempDir(), "spool"), MetricsListen: "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, w.HealthURL+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("ready before it runs: %d %s", code, body)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	testkit.Eventually(t, func() bool { code, _ := get(t, w.HealthURL+"/readyz"); return code == http.StatusOK }, 30*time.Second)
	for _, path := range []string{"/healthz", "/livez"} {
		if code, body := get(t, w.HealthURL+path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	_, own := get(t, w.HealthURL+"/metrics")
	_, servers := get(t, server.URL+"/metrics")
	for _, name := range []string{
		"noetl_worker_pulls_total", "noetl_worker_pull_duration_seconds", "noetl_worker_claim_succeeded_total", "noetl_worker_claim_failed_total",
		"noetl_worker_claim_dead_lettered_total", "noetl_worker_dispatch_duration_seconds", "noetl_worker_dispatch_errors_total",
		"noetl_worker_event_emit_duration_seconds", "noetl_worker_event_emit_retries_total", "noetl_worker_event_emit_failed_total",
		"noetl_worker_concurrent_dispatches", "noetl_worker_result_store_put_duration_seconds", "noetl_worker_result_store_put_bytes_total",
		"noetl_worker_result_store_put_errors_total", "noetl_worker_ready", "noetl_worker_command_loop_reconnect_total", "noetl_worker_build_info",
	} {
		if !strings.Contains(own, "# TYPE "+name+" ") {
			t.Errorf("the worker does not show %s", name)
		}
		if !strings.Contains(servers, "# TYPE "+name+" ") {
			t.Errorf("the server does not show %s of its own worker", name)
		}
	}
	if !strings.Contains(own, "noetl_worker_ready 1\n") {
		t.Error("the metrics do not say that the worker is ready")
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestAWorkerProcessRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	broker := testkit.NATSProcess(t)
	for name, o := range map[string]node.WorkerOptions{
		"a spool that is a file": {ServerURL: "http://127.0.0.1:1", SpoolDir: "/dev/null/spool"},
		"an address in use":      {ServerURL: "http://127.0.0.1:1", SpoolDir: node.SpoolOff, MetricsListen: strings.TrimPrefix(broker, "nats://")},
	} {
		o.ID, o.NATSURL = "w1", broker
		if _, err := node.StartWorker(t.Context(), o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	_, err := node.StartWorker(t.Context(), node.WorkerOptions{ID: "w1", NATSURL: broker, ServerURL: "not a URL", SpoolDir: node.SpoolOff})
	if event.CodeOf(err) != event.Invalid {
		t.Errorf("a wrong server address: %v", err)
	}
}
