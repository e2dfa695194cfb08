package node_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// postgresOnly is what only a server on PostgreSQL has.
const postgresOnly = `noetl_lease_held{task="machine_id"}`

// aServerOnPostgres holds a number of its own, until the connection breaks that
// it lives with.
func aServerOnPostgres(t *testing.T, m *meters) {
	dsn := testkit.Postgres(t)
	s := serve(t, m, node.Options{DatabaseURL: dsn, InProcess: true, Secrets: node.Secrets{AllowEphemeralKey: true}})
	if !s.has(postgresOnly + " 1\n") {
		t.Error("the lease is not shown")
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND pid <> pg_backend_pid()
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	var ended int
	if err := conn.QueryRow(t.Context(), end).Scan(&ended); err != nil || ended == 0 {
		t.Fatalf("%d holders of the lease were ended: %v", ended, err)
	}
	testkit.Eventually(t, func() bool { return s.has(postgresOnly + " 0\n") }, 10*time.Second)
}

func init() {
	scenarios["a server on PostgreSQL"] = scenario{[]string{postgresOnly}, aServerOnPostgres}
}
