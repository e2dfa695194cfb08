package node_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
)

func start(t *testing.T, o node.Options) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	return n
}

func status(t *testing.T, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestAServerOnLoopbackAnswersToItsOwnNamesOnly(t *testing.T) {
	t.Parallel()
	n := start(t, node.Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0"})
	if got := status(t, n.URL+"/api/health", ""); got != http.StatusOK {
		t.Errorf("health answers %d", got)
	}
	if got := status(t, n.URL+"/api/executions", "evil.example"); got != http.StatusForbidden {
		t.Errorf("a foreign name gets %d", got)
	}
}

func TestADataDirectoryBelongsToOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, node.Options{DataDir: dir})
	if second, err := node.Start(t.Context(), node.Options{DataDir: dir}); err == nil {
		_ = second.Stop()
		t.Fatal("a second node opened the same directory")
	} else if !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not say which directory: %v", err)
	}
	if err := n.Stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	again := start(t, node.Options{DataDir: dir})
	if err := again.Stop(); err != nil {
		t.Errorf("stop after restart: %v", err)
	}
}

func TestWhatWasStartedIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := start(t, node.Options{DataDir: dir, NoWorker: true})
	reg, err := n.Plane.Register(t.Context(), control.RegisterRequest{Content: `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waits}
workflow:
  - {step: start, tool: {kind: noop}}
`})
	if err != nil {
		t.Fatal(err)
	}
	a, err := n.Plane.Execute(t.Context(), control.ExecuteRequest{CatalogID: reg.Entry.CatalogID})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	again := start(t, node.Options{DataDir: dir})
	row, err := again.Plane.Wait(t.Context(), a.ExecutionID)
	if err != nil || row.Status != event.StatusCompleted {
		t.Errorf("the execution is %s after the restart: %v", row.Status, err)
	}
}
