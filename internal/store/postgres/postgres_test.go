package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/storetest"
	"github.com/noetl/noetl-go/internal/testkit"
)

func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wipeSQL deletes every row a test may have left.
const wipeSQL = `DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'noetl' AND tablename NOT IN ('schema_migrations', 'resource')
	LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
END $$`

// cloner migrates one database and returns a function that copies it, which
// takes a fraction of the time. Copies are emptied and used again.
func cloner(t *testing.T) func(t *testing.T) string {
	t.Helper()
	template := testkit.Postgres(t)
	s, err := postgres.Open(t.Context(), postgres.Options{DSN: template})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	_ = s.Close()
	run(t, template, "DELETE FROM noetl.shard") // copies get places of their own
	address, err := url.Parse(template)
	if err != nil {
		t.Fatal(err)
	}
	name, owner := address.Path[1:], t
	var copies atomic.Int64
	free := make(chan string, 64)
	return func(t *testing.T) string {
		t.Helper()
		give := func(t *testing.T, dsn string) string {
			t.Cleanup(func() {
				if !t.Failed() {
					run(t, dsn, wipeSQL)
					free <- dsn
				}
			})
			return dsn
		}
		select {
		case dsn := <-free:
			return give(t, dsn)
		default:
		}
		clone := fmt.Sprintf("%s_%d", name, copies.Add(1))
		admin := *address
		admin.Path = "/postgres"
		run(t, admin.String(), fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", clone, name))
		owner.Cleanup(func() { run(owner, admin.String(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", clone)) })
		copied := *address
		copied.Path = "/" + clone
		return give(t, copied.String())
	}
}

// run executes one statement on its own connection.
func run(t testing.TB, dsn, statement string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	clone := cloner(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, postgres.Options{DSN: clone(t)}) })
}

func TestConformanceWithShards(t *testing.T) {
	t.Parallel()
	clone := cloner(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, postgres.Options{DSN: clone(t), Shards: []string{clone(t), clone(t), clone(t)}, Writers: 1, MaxConns: 3})
	})
}
