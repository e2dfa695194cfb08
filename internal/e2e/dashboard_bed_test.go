package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// watched is a server and a worker in this process, whose metrics somebody looks at.
type watched struct {
	t      *testing.T
	client *client.Client
	server string // where metrics are
	worker string
}

const watchedToken = "observe-internal"

func watch(t *testing.T) *watched {
	t.Helper()
	broker := testkit.NATSProcess(t)
	n, err := node.Start(t.Context(), node.Options{
		DataDir: t.TempDir(), NATSURL: broker, Listen: "127.0.0.1:0", NoWorker: true, InternalToken: watchedToken, Version: "test",
		Publication: node.Publication{Publisher: node.PublishInternal},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	w, err := node.StartWorker(t.Context(), node.WorkerOptions{
		ID: "watched", ServerURL: n.URL, NATSURL: broker, Slots: 8, SpoolDir: t.TempDir(), MetricsListen: "127.0.0.1:0", Version: "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	cl, err := client.New(n.URL, client.WithToken(watchedToken))
	if err != nil {
		t.Fatal(err)
	}
	return &watched{t: t, client: cl, server: n.URL, worker: w.HealthURL}
}

func (w *watched) get(url string) string {
	w.t.Helper()
	return w.call(http.MethodGet, url, "")
}

// call makes a request whatever its answer is.
func (w *watched) call(method, url, body string) string {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+watchedToken)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// scrape is all that both show.
func (w *watched) scrape() string { return w.get(w.server+"/metrics") + w.get(w.worker+"/metrics") }

const watchedPlaybooks = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: busy, path: watch/busy}
workflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: each}]}}
  - {step: each, loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel}}, tool: {kind: noop}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop}}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: wrong, path: watch/wrong}
workflow:
  - {step: start, tool: {kind: shell, command: "exit 3"}}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: watch/large}
workflow:
  - step: start
    tool: {kind: shell, command: "head -c 3000000 /dev/zero | tr '\\0' x"}
    next: {arcs: [{step: look}]}
  - {step: look, tool: {kind: noop, args: {n: "{{ start.stdout | length }}"}}}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: secret, path: watch/secret}
keychain:
  - {name: kc, kind: credential, credential: watched}
workflow:
  - {step: start, tool: {kind: shell, command: "true", env: {K: "{{ keychain.kc.token }}"}}}
---
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waits, path: watch/waits}
workflow:
  - {step: start, tool: {kind: wait, signal: go}}
`

// register stores the playbooks and a credential.
func (w *watched) register() {
	w.t.Helper()
	for text := range strings.SplitSeq(watchedPlaybooks, "\n---\n") {
		if _, err := w.client.Register(w.t.Context(), text); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := w.client.PutCredential(w.t.Context(), client.CredentialRequest{Name: "watched", Type: "bearer", Data: json.RawMessage(`{"token":"abc"}`)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) start(path, pool string) client.ID {
	w.t.Helper()
	a, err := w.client.Execute(w.t.Context(), client.ExecuteRequest{Path: path, Pool: pool})
	if err != nil {
		w.t.Fatal(err)
	}
	return a.ExecutionID
}

// finish waits for the end of executions.
func (w *watched) finish(ids ...client.ID) {
	w.t.Helper()
	for _, id := range ids {
		testkit.Eventually(w.t, func() error {
			s, err := w.client.Status(w.t.Context(), id)
			if err == nil && !s.Final() {
				err = fmt.Errorf("execution %s of %s is %s", id, s.Path, s.Status)
			}
			return err
		}, 20*time.Second)
	}
}

// drive uses what leaves traces in metrics, for a moment.
func (w *watched) drive() {
	w.t.Helper()
	var ids []client.ID
	for range 30 {
		ids = append(ids, w.start("watch/busy", ""))
	}
	for _, path := range []string{"watch/wrong", "watch/large", "watch/secret"} {
		ids = append(ids, w.start(path, ""))
	}
	if _, err := w.client.ExecuteBatch(w.t.Context(), []client.ExecuteRequest{{Path: "watch/busy"}, {Path: "watch/nothing"}}); err != nil {
		w.t.Fatal(err)
	}
	parked := w.start("watch/waits", "")
	w.finish(ids...)
	w.start("watch/busy", "nobody") // its commands wait for a worker that is not there
	testkit.Eventually(w.t, func() bool {
		return strings.Contains(w.get(w.worker+"/metrics"), `pending_callback_total{tool_kind="wait"} 1`)
	}, 10*time.Second)
	if _, err := w.client.Cancel(w.t.Context(), parked, client.CancelRequest{Reason: "enough"}); err != nil {
		w.t.Fatal(err)
	}
	at := w.server + "/api/"
	for _, x := range []struct{ method, path, body string }{
		{"GET", "replay/state?execution_id=" + ids[0].String(), ""},
		{"POST", "catalog/delete", `{"path": "watch/nothing"}`},
		{"POST", "internal/results/collect", ""},
		{"POST", "internal/cleanup/purge", `{"command_retention_days": 1}`},
		{"POST", "internal/projection/advance", fmt.Sprintf(`{"execution_ids": [%d]}`, ids[0])},
		{"GET", "credentials/watched?include_data=true", ""},
		{"GET", "credentials/nobody?include_data=true", ""},
	} {
		w.call(x.method, at+x.path, x.body)
	}
	if _, err := w.client.PutBlob(w.t.Context(), ids[0], client.ResultOptions{Name: "bytes", Store: "file", MediaType: "text/plain"}, strings.NewReader("a file")); err != nil {
		w.t.Fatal(err)
	}
	testkit.Eventually(w.t, func() bool {
		return strings.Contains(w.get(w.server+"/metrics"), `noetl_commands_pending{pool="nobody"}`)
	}, 15*time.Second)
	if _, err := w.client.RotateKeys(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// repository reads a file of the repository.
func repository(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
