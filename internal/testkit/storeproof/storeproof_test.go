package storeproof_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/storeproof"
)

const single = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: single, path: test/single}
workflow:
  - step: start
    tool: {kind: noop}
`

// database is a store on disk and a way behind its back.
type database struct {
	store.Store
	schema string
	raw    *sql.DB
}

func openSQLite(t *testing.T) database {
	path := filepath.Join(t.TempDir(), "noetl.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	return closing(t, database{Store: db, raw: raw}, err)
}

func openPostgres(t *testing.T) database {
	dsn := testkit.Postgres(t)
	db, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("pgx", dsn)
	return closing(t, database{Store: db, raw: raw, schema: "noetl."}, err)
}

func closing(t *testing.T, db database, err error) database {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = db.raw.Close(), db.Close() })
	return db
}

// TestSpoiledRowsAreFoundAndMended spoils rows behind the back of a running
// plane. A check finds it, a rebuild mends it, and the execution goes on.
func TestSpoiledRowsAreFoundAndMended(t *testing.T) {
	t.Parallel()
	for driver, open := range map[string]func(*testing.T) database{"sqlite": openSQLite, "postgres": openPostgres} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			p := steady(t, db)
			for name, statement := range map[string]string{
				"the execution's row is gone":  "DELETE FROM " + db.schema + "execution WHERE execution_id = $1",
				"its status is wrong":          "UPDATE " + db.schema + "execution SET status = 'FAILED' WHERE execution_id = $1",
				"it is behind the log":         "UPDATE " + db.schema + "execution SET last_seq = last_seq - 1 WHERE execution_id = $1",
				"it is ahead of the log":       "UPDATE " + db.schema + "execution SET last_seq = last_seq + 1 WHERE execution_id = $1",
				"a command's row is gone":      "DELETE FROM " + db.schema + "command WHERE execution_id = $1",
				"a command is somebody else's": "UPDATE " + db.schema + "command SET event_id = event_id + 1 WHERE execution_id = $1",
				"a command seems to have run":  "UPDATE " + db.schema + "command SET status = 'COMPLETED' WHERE execution_id = $1",
			} {
				t.Run(name, func(t *testing.T) { spoilAndMend(t, p, db, statement) })
			}
			storeproof.Clean(t, db.Store)
		})
	}
}

// steady is a plane whose background work does not look at rows by itself.
func steady(t *testing.T, db store.Store) *control.Plane {
	t.Helper()
	b := membus.New(membus.Options{})
	p, err := control.New(control.Options{
		Store: db, Bus: b, IDs: snowflake.New(1, time.Now).Next,
		Sweep: 24 * time.Hour, Republish: 24 * time.Hour, Recover: 24 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = b.Close()
	})
	if _, err := p.Register(t.Context(), control.RegisterRequest{Content: single}); err != nil {
		t.Fatal(err)
	}
	return p
}

func spoilAndMend(t *testing.T, p *control.Plane, db database, statement string) {
	started, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single"})
	if err != nil {
		t.Fatal(err)
	}
	id := started.ExecutionID
	commands, err := db.CommandsOf(t.Context(), id)
	if err != nil || len(commands) != 1 {
		t.Fatalf("commands: %+v, %v", commands, err)
	}
	if res, err := db.raw.ExecContext(t.Context(), statement, int64(id)); err != nil {
		t.Fatal(err)
	} else if n, _ := res.RowsAffected(); n == 0 {
		t.Fatal("nothing was spoiled")
	}
	if got, err := p.Verify(t.Context(), control.VerifyOptions{}); err != nil || got.Clean || event.ID(got.Differences[0].ExecutionID) != id {
		t.Fatalf("check: %+v, %v", got, err)
	}
	if got, err := p.Rebuild(t.Context(), control.RebuildOptions{}); err != nil || got.Rebuilt != 1 || got.LeftTotal != 0 {
		t.Fatalf("rebuild: %+v, %v", got, err)
	}
	if got, err := p.Verify(t.Context(), control.VerifyOptions{}); err != nil || !got.Clean {
		t.Fatalf("check after: %+v, %v", got, err)
	}
	cmd, err := p.Claim(t.Context(), event.ClaimRequest{ExecutionID: id, EventID: commands[0].EventID, WorkerID: "w", Heartbeats: true})
	if err != nil {
		t.Fatal(err)
	}
	payload := json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","data":{}}`, cmd.Meta.CommandID))
	report := event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{{
		Step: cmd.NodeName, Type: event.CommandCompleted, Payload: payload,
	}}}
	if _, err := p.Report(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	row, err := p.Wait(t.Context(), id)
	if err != nil || row.Status != event.StatusCompleted {
		t.Fatalf("the execution ended as %+v, %v", row, err)
	}
}
