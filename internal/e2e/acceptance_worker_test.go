package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// oneStep is a playbook whose only step says that it began, waits until a file
// is there and returns.
func oneStep(name, dir string) string {
	return fmt.Sprintf(`
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: %s, path: acceptance/%s}
workflow:
  - step: start
    tool:
      kind: python
      code: |
        import os, time
        with open('%s/began', 'a') as f: f.write('x')
        while not os.path.exists('%s/go'): time.sleep(0.05)
        result = 1
`, name, name, dir, dir)
}

func began(t *testing.T, dir string, times int) {
	t.Helper()
	testkit.Eventually(t, func() error {
		marks, err := os.ReadFile(filepath.Join(dir, "began"))
		if err == nil && len(marks) < times {
			err = fmt.Errorf("it began %d times", len(marks))
		}
		return err
	}, patience)
}

func letGo(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// endings counts the ends of commands in a log, and the most attempts of one.
func (s *system) endings(p *process, id event.ID) (ends, attempts int) {
	s.t.Helper()
	for _, e := range s.log(p, id) {
		if e.Type.IsCommandEnd() {
			ends++
		}
		var meta struct{ Attempt int }
		if json.Unmarshal(e.Meta, &meta) == nil {
			attempts = max(attempts, meta.Attempt)
		}
	}
	return ends, attempts
}

func TestAcceptance_08_CredentialsThatAreAwayForAWhile(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	natsURL, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	b := &bed{system: s, server: server}
	b.credential("away", "bearer", map[string]any{"token": "tok-12345678"})
	target, err := url.Parse(server.url)
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/secrets/") && refused.Add(1) <= 7 {
			http.Error(w, `{"error":"away","code":"unavailable"}`, http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	s.worker("behind", proxy.URL, natsURL, 2)
	id := s.start(server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: away, path: acceptance/away}
workflow: [{step: start, tool: {kind: shell, auth: away, cmds: ["test -n \"$NOETL_AUTH_AWAY_TOKEN\""]}}]
`)
	s.completed(server, id)
	if ends, attempts := s.endings(server, id); ends != 1 || attempts < 2 || refused.Load() < 8 {
		t.Errorf("%d ends, %d attempts, asked %d times", ends, attempts, refused.Load())
	}
}

func TestAcceptance_09_AKilledWorkersCommandIsRunAgain(t *testing.T) {
	t.Parallel()
	s, dir := newSystem(t, "sqlite"), t.TempDir()
	natsURL, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	first := s.worker("first", server.url, natsURL, 1)
	id := s.start(server, oneStep("killed", dir))
	began(t, dir, 1)
	first.Kill()
	s.worker("second", server.url, natsURL, 1)
	began(t, dir, 2)
	letGo(t, dir)
	s.completed(server, id)
	if ends, attempts := s.endings(server, id); ends != 1 || attempts != 2 {
		t.Errorf("%d ends, %d attempts", ends, attempts)
	}
}

func TestAcceptance_09_ANotificationThatComesTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	s, dir := newSystem(t, "sqlite"), t.TempDir()
	natsURL, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	s.worker("a", server.url, natsURL, 4)
	s.worker("b", server.url, natsURL, 4)
	id := s.start(server, oneStep("twice", dir))
	began(t, dir, 1)
	var note event.Notification
	for _, e := range s.log(server, id) {
		if e.Type == event.CommandIssued {
			note = event.Notification{ExecutionID: id, EventID: e.EventID, CommandID: e.CommandID, Step: e.NodeName, ServerURL: server.url}
		}
	}
	raw, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(natsURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 10 {
		if err := conn.Publish("noetl.commands.shared."+id.String(), raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	letGo(t, dir)
	s.completed(server, id)
	marks, err := os.ReadFile(filepath.Join(dir, "began"))
	if ends, attempts := s.endings(server, id); err != nil || len(marks) != 1 || ends != 1 || attempts != 1 {
		t.Errorf("it ran %d times, %d ends, %d attempts: %v", len(marks), ends, attempts, err)
	}
}

func TestAcceptance_09_SIGTERMDrains(t *testing.T) {
	t.Parallel()
	s, dir := newSystem(t, "sqlite"), t.TempDir()
	natsURL, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	worker := s.worker("leaves", server.url, natsURL, 1)
	id := s.start(server, oneStep("drains", dir))
	began(t, dir, 1)
	worker.Terminate()
	second := s.start(server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: later, path: acceptance/later}
workflow: [{step: start, tool: {kind: noop}}]
`)
	letGo(t, dir)
	s.completed(server, id)
	if err := worker.Wait(patience); err != nil {
		t.Errorf("the worker ends with %v", err)
	}
	if ends, attempts := s.endings(server, id); ends != 1 || attempts != 1 {
		t.Errorf("%d ends, %d attempts", ends, attempts)
	}
	st, err := server.client.Status(s.ctx(), second)
	if err != nil || st.Status != event.StatusRunning {
		t.Errorf("a draining worker took another command: %v", errors.Join(err, errors.New(st.Status)))
	}
	s.worker("next", server.url, natsURL, 1)
	s.completed(server, second)
}
