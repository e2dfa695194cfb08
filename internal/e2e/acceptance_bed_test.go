package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/testapi"
)

// bed is a server with its worker, a database for playbooks to work on and an
// HTTP server for them to call.
type bed struct {
	*system
	server *process
	api    *testapi.Server
	pg     string // of the playbooks, not of the server
}

func newBed(t *testing.T) *bed {
	t.Helper()
	s := newSystem(t, "sqlite")
	s.bin = testkit.BuildWatchedNoetl(t)
	return newBedOn(t, s)
}

func newBedOn(t *testing.T, s *system) *bed {
	t.Helper()
	b := &bed{system: s, api: testapi.Start(t, testapi.Options{RateLimit: -1}), pg: testkit.Postgres(t)}
	b.server = s.server(0, "--slots", "12")
	b.credential("pg_test", "postgres", map[string]any{"connection": b.pg})
	return b
}

// credential registers one.
func (b *bed) credential(name, kind string, data any) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "type": kind, "data": data})
	if err != nil {
		b.t.Fatal(err)
	}
	if code, answer := b.call(http.MethodPost, "/api/credentials", string(body)); code != http.StatusOK {
		b.t.Fatalf("register credential %s: %d %s", name, code, answer)
	}
}

func (b *bed) call(method, path, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.ctx(), method, b.server.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// run registers the steps as a playbook, executes it to its end and returns what
// became of it.
func (b *bed) run(t *testing.T, name, rest string, payload map[string]any) (event.ID, client.Detail) {
	t.Helper()
	src := fmt.Sprintf("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: acceptance/%s}\n%s", name, name, rest)
	id := b.startWith(b.server, src, payload)
	if _, err := b.server.client.Wait(b.ctx(), id); err != nil {
		t.Fatalf("wait for %s: %v", name, err)
	}
	d, err := b.server.client.Execution(b.ctx(), id)
	if err != nil {
		t.Fatal(err)
	}
	return id, d
}

// startWith starts a playbook with a payload.
func (b *bed) startWith(p *process, src string, payload map[string]any) event.ID {
	b.t.Helper()
	reg, err := p.client.Register(b.ctx(), src)
	if err != nil {
		b.t.Fatalf("register: %v", err)
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := p.client.Execute(b.ctx(), client.ExecuteRequest{CatalogID: reg.CatalogID, Payload: raw})
	if err != nil {
		b.t.Fatalf("execute: %v", err)
	}
	return a.ExecutionID
}

// completes is run for a playbook that must complete.
func (b *bed) completes(t *testing.T, name, rest string, payload map[string]any) (event.ID, client.Detail) {
	t.Helper()
	id, d := b.run(t, name, rest, payload)
	if d.Status != event.StatusCompleted {
		t.Fatalf("%s ended %s: %s", name, d.Status, d.Error)
	}
	return id, d
}

// fails is run for a playbook that must fail with these words in its error.
func (b *bed) fails(t *testing.T, name, rest string, words ...string) event.ID {
	t.Helper()
	id, d := b.run(t, name, rest, nil)
	if d.Status != event.StatusFailed {
		t.Fatalf("%s ended %s", name, d.Status)
	}
	for _, w := range words {
		if !strings.Contains(d.Error, w) {
			t.Errorf("%s fails with %q, which does not say %q", name, d.Error, w)
		}
	}
	return id
}
