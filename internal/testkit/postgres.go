package testkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// envPostgres names a server to use instead of starting one.
	envPostgres = "NOETL_TEST_PG"
	// envRequire turns a missing PostgreSQL from a skip into a failure.
	envRequire = "NOETL_TEST_REQUIRE_PG"
	// envFsync set to "on" makes the started server durable, as in production.
	envFsync = "NOETL_TEST_PG_FSYNC"
)

// Postgres is the URL of a fresh, empty database. All tests of one process
// share a server, which is started by the first of them. The test is skipped
// when PostgreSQL is not installed, unless NOETL_TEST_REQUIRE_PG=1.
func Postgres(t testing.TB) string {
	t.Helper()
	base, err := sharedPostgres()
	if errors.Is(err, ErrNoPostgres) && os.Getenv(envRequire) != "1" {
		t.Skipf("no PostgreSQL on this machine; set %s to use another, or %s=1 to fail here", envPostgres, envRequire)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	// A random part keeps processes apart that share one server.
	name := "noetl_test_" + strings.ToLower(rand.Text()[:12])
	if err := execute(base, `CREATE DATABASE `+name); err != nil {
		t.Fatalf("create test database: %v", err)
	}
	t.Cleanup(func() {
		if err := execute(base, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	dsn, err := withDatabase(base, name)
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

var sharedPostgres = sync.OnceValues(func() (string, error) {
	if dsn := os.Getenv(envPostgres); dsn != "" {
		return dsn, nil
	}
	settings := []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
	if os.Getenv(envFsync) == "on" {
		settings = nil
	}
	// Nobody calls stop: the supervisor ends the server with this process.
	dsn, _, err := StartPostgres("", settings...)
	return dsn, err
})

func execute(dsn, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
