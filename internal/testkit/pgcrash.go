package testkit

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// CrashablePostgres is a durable PostgreSQL server of one test which comes back
// by itself, at the same address, whenever it ends.
type CrashablePostgres struct {
	DSN  string
	t    testing.TB
	data string
}

// respawn runs its arguments again and again until it is told to stop.
const respawn = `trap 'kill -INT $pid; wait $pid; exit' TERM; while :; do "$@" & pid=$!; wait $pid; sleep 0.1; done`

// NewCrashablePostgres starts one. The test is skipped when PostgreSQL is not
// installed, unless NOETL_TEST_REQUIRE_PG=1.
func NewCrashablePostgres(t testing.TB) *CrashablePostgres {
	t.Helper()
	return NewCrashablePostgresIn(t, "")
}

// NewCrashablePostgresIn is NewCrashablePostgres with its files below dir.
func NewCrashablePostgresIn(t testing.TB, dir string) *CrashablePostgres {
	t.Helper()
	p, stop, err := startCrashable(t, dir)
	if errors.Is(err, ErrNoPostgres) && os.Getenv(envRequire) != "1" {
		t.Skipf("no PostgreSQL on this machine; set %s=1 to fail here", envRequire)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
	t.Cleanup(stop)
	return p
}

func startCrashable(t testing.TB, dir string) (*CrashablePostgres, func(), error) {
	bin, err := findPostgres()
	if err != nil {
		return nil, nil, err
	}
	cred, err := unprivileged()
	if err != nil {
		return nil, nil, err
	}
	home, err := os.MkdirTemp(dir, "noetl-pg-")
	if err != nil {
		return nil, nil, err
	}
	data := filepath.Join(home, "data")
	if err := prepare(bin, home, "", data, cred); err != nil {
		os.RemoveAll(home)
		return nil, nil, err
	}
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	server, err := supervise(home, cred, log, "/bin/sh", "-c", respawn, "sh", filepath.Join(bin, "postgres"), "-D", data, "-k", home,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB", "-c", "restart_after_crash=on")
	if err != nil {
		return nil, nil, err
	}
	p := &CrashablePostgres{DSN: "postgres://postgres@/postgres?host=" + url.QueryEscape(home), t: t, data: data}
	if err := poll(func() error { return execute(p.DSN, "SELECT 1") }, startTimeout); err != nil {
		text, _ := os.ReadFile(log.Name())
		server.stop()
		return nil, nil, fmt.Errorf("PostgreSQL does not answer: %w: %s", err, text)
	}
	return p, server.stop, nil
}

// Crash ends the server at once, without a checkpoint, and waits until it is
// back after its recovery.
func (p *CrashablePostgres) Crash() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	if err != nil {
		p.t.Fatalf("find PostgreSQL: %v", err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	if err != nil {
		p.t.Fatalf("find PostgreSQL: %v", err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		p.t.Fatalf("crash PostgreSQL: %v", err)
	}
	Eventually(p.t, func() error { return execute(p.DSN, "SELECT 1") }, startTimeout)
}
