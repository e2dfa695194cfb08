package api_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestADatabaseIsCheckedAndRebuiltOverHTTP(t *testing.T) {
	t.Parallel()
	c := realServer(t)
	if _, err := c.Register(t.Context(), twoSteps); err != nil {
		t.Fatal(err)
	}
	started, err := c.Execute(t.Context(), client.ExecuteRequest{Path: "demo/two"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.VerifyDatabase(t.Context(), 0)
	var checked control.VerifyReport
	if jsonErr := json.Unmarshal(raw, &checked); err != nil || jsonErr != nil || !checked.Clean || checked.Executions != 1 || checked.Commands != 1 {
		t.Errorf("checked: %s, %v", raw, err)
	}
	raw, err = c.RebuildDatabase(t.Context(), client.RebuildRequest{All: true, ExecutionID: started.ExecutionID})
	var rebuilt control.RebuildReport
	if jsonErr := json.Unmarshal(raw, &rebuilt); err != nil || jsonErr != nil || rebuilt.Rebuilt != 1 || rebuilt.DryRun {
		t.Errorf("rebuilt: %s, %v", raw, err)
	}
	raw, err = c.RebuildDatabase(t.Context(), client.RebuildRequest{DryRun: true})
	if err != nil || !strings.Contains(string(raw), `"dry_run":true`) || !strings.Contains(string(raw), `"unchanged":1`) {
		t.Errorf("dry run: %s, %v", raw, err)
	}
	if _, err = c.VerifyDatabase(t.Context(), 42); event.CodeOf(err) != event.NotFound {
		t.Errorf("an unknown execution: %v", err)
	}
	raw, err = c.Sweeps(t.Context())
	var sweeps control.SweepReport
	if jsonErr := json.Unmarshal(raw, &sweeps); err != nil || jsonErr != nil || sweeps.Mode != "enforce" || sweeps.GraceSeconds != 86400 || !strings.Contains(string(raw), `"stalled":[]`) {
		t.Errorf("sweeps: %s, %v", raw, err)
	}
}

// schema is a plane whose database has these tables.
type schema struct {
	apitest.Plane
	state    store.SchemaState
	migrated bool
}

func (p *schema) Migrate(context.Context) error {
	p.migrated, p.state.Version, p.state.Missing = true, p.state.Want, nil
	return nil
}

func (p *schema) SchemaState(context.Context) (store.SchemaState, error) { return p.state, nil }

func TestMissingTablesAreNamedAndMade(t *testing.T) {
	t.Parallel()
	p := &schema{state: store.SchemaState{Version: 1, Want: 3, Tables: []string{"noetl.event"}, Missing: []string{"noetl.catalog", "runtime"}}}
	c := clientOf(t, p)
	got, err := c.ValidateDatabase(t.Context())
	if err != nil || got.Valid || got.Status != "error" || strings.Join(got.Missing, " ") != "catalog runtime" || got.Tables[0] != "event" {
		t.Errorf("validate: %+v, %v", got, err)
	}
	message, err := c.InitDatabase(t.Context())
	if err != nil || !p.migrated || message != "the schema is at version 3" {
		t.Errorf("init: %q, %v", message, err)
	}
	got, err = c.ValidateDatabase(t.Context())
	if err != nil || !got.Valid || got.Status != "ok" || got.Missing == nil || len(got.Missing) != 0 {
		t.Errorf("validate: %+v, %v", got, err)
	}
}

func clientOf(t *testing.T, p api.Plane) *client.Client {
	t.Helper()
	s, err := api.New(api.Options{Plane: p})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checked(t, s))
	c, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

// slowCheck is a plane whose check takes until its context ends.
type slowCheck struct {
	apitest.Plane
	began chan time.Duration // what it may take
}

func (p *slowCheck) Verify(ctx context.Context, _ control.VerifyOptions) (control.VerifyReport, error) {
	deadline, _ := ctx.Deadline()
	p.began <- time.Until(deadline)
	<-ctx.Done()
	return control.VerifyReport{}, ctx.Err()
}

func TestACheckMayTakeLongAndEndsWithTheServer(t *testing.T) {
	t.Parallel()
	p := &slowCheck{began: make(chan time.Duration, 1)}
	s, err := api.New(api.Options{Plane: p, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Post("http://"+ln.Addr().String()+"/api/db/verify", "", nil)
		if err != nil {
			answered <- 0
			return
		}
		_ = resp.Body.Close()
		answered <- resp.StatusCode
	}()
	if left := <-p.began; left < time.Hour {
		t.Errorf("a check may take %v", left)
	}
	stop()
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("answered %d", status)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
