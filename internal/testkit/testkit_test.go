package testkit_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/noetl/noetl-go/internal/testkit"
)

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := testkit.Postgres(t), testkit.Postgres(t)
	create := func(dsn string) error {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		_, err = conn.Exec(t.Context(), `CREATE TABLE only_here (n int)`)
		return err
	}
	if err := create(a); err != nil {
		t.Fatal(err)
	}
	if err := create(b); err != nil {
		t.Errorf("the second database is not empty: %v", err)
	}
}

func TestAStoppedPostgresLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dsn, stop, err := testkit.StartPostgres("", "fsync=off")
	if errors.Is(err, testkit.ErrNoPostgres) && os.Getenv("NOETL_TEST_REQUIRE_PG") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := os.Stat(config.Host); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory %s is still there: %v", config.Host, err)
	}
	if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
		conn.Close(t.Context())
		t.Error("the stopped server still answers")
	}
}

func TestPostgresDataInAGivenDirectorySurvivesARestart(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "pg-data-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sql := range []string{`CREATE TABLE kept (n int)`, `INSERT INTO kept VALUES (1)`} {
		dsn, stop, err := testkit.StartPostgres(dir)
		if errors.Is(err, testkit.ErrNoPostgres) && os.Getenv("NOETL_TEST_REQUIRE_PG") != "1" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), dsn)
		if err == nil {
			_, err = conn.Exec(t.Context(), sql)
			conn.Close(t.Context())
		}
		stop()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func TestANATSServerCanBeKilledAndReplaced(t *testing.T) {
	t.Parallel()
	port, store := testkit.FreePort(t), t.TempDir()
	first := testkit.StartNATS(t, port, store)
	first.Kill()
	if conn, err := nats.Connect(first.URL); err == nil {
		conn.Close()
		t.Fatal("the killed server still answers")
	}
	second := testkit.StartNATS(t, port, store)
	conn, err := nats.Connect(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	second.Stop()
}

func TestAProcessShowsItsOutputAndItsExitCode(t *testing.T) {
	t.Parallel()
	p := testkit.Start(t, testkit.Command{
		Path: "/bin/sh", Args: []string{"-c", `echo "says $WORD"; trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`},
		Env: []string{"WORD=hello"},
	})
	if got := p.WaitOutput("says ", 5*time.Second); got != "hello" {
		t.Errorf("output is %q, want hello", got)
	}
	p.WaitOutput("ready", 5*time.Second)
	p.Terminate()
	var exit *exec.ExitError
	if err := p.Wait(5 * time.Second); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("process ended with %v, want exit code 3", err)
	}
}

func TestOnlyTheNewestOutputIsKept(t *testing.T) {
	t.Parallel()
	p := testkit.Start(t, testkit.Command{
		Path: "/bin/sh", Args: []string{"-c", `echo first; head -c 3000000 /dev/zero | tr '\0' x; echo; echo last`},
	})
	if err := p.Wait(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	out := p.Output()
	if strings.Contains(out, "first") || !strings.HasSuffix(out, "last\n") || len(out) > 2<<20 {
		t.Errorf("%d bytes were kept, from %.40q to %q", len(out), out, out[max(0, len(out)-8):])
	}
}

func TestTheEndOfATestKillsGrandchildrenToo(t *testing.T) {
	t.Parallel()
	var pid string
	t.Run("start", func(t *testing.T) {
		p := testkit.Start(t, testkit.Command{
			Path: "/bin/sh", Args: []string{"-c", `sleep 600 & echo "child $!"; wait`},
		})
		pid = p.WaitOutput("child ", 5*time.Second)
	})
	testkit.Eventually(t, func() bool {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(state), ") Z ")
	}, 5*time.Second)
}

func TestEventuallyTakesErrorsAndTruth(t *testing.T) {
	t.Parallel()
	n := 0
	testkit.Eventually(t, func() bool { n++; return n == 3 }, time.Second)
	testkit.Eventually(t, func() error {
		if n++; n < 6 {
			return errors.New("too small")
		}
		return nil
	}, time.Second)
	if n != 6 {
		t.Errorf("conditions were asked %d times, want 6", n)
	}
}
