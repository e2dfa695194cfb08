package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/noetl/noetl-go"

// BuildNoetl is the path of the noetl binary, built once per test process.
func BuildNoetl(t testing.TB) string {
	t.Helper()
	return built(t, buildNoetl)
}

// BuildWatchedNoetl is the same with the race detector: several times slower, so
// for few.
func BuildWatchedNoetl(t testing.TB) string {
	t.Helper()
	return built(t, buildWatched)
}

// BuildFaultyNoetl is the path of a noetl binary in which failpoints can be
// switched on and the clock be moved. It never has the race detector: what it is
// for is told by what it leaves behind.
func BuildFaultyNoetl(t testing.TB) string {
	t.Helper()
	return built(t, buildFaulty)
}

// BuildNoetlComplete is the path of a noetl binary with DuckDB in it and without
// the race detector, for tests that judge what playbooks do and run many.
func BuildNoetlComplete(t testing.TB) string {
	t.Helper()
	return built(t, buildComplete)
}

var (
	buildNoetl    = sync.OnceValues(func() (string, error) { return build("cmd/noetl", "noetl", false) })
	buildWatched  = sync.OnceValues(func() (string, error) { return build("cmd/noetl", "noetl-watched", true) })
	buildComplete = sync.OnceValues(func() (string, error) { return build("cmd/noetl", "noetl-complete", false, "-tags", "duckdb") })
	buildFaulty   = sync.OnceValues(func() (string, error) { return build("cmd/noetl", "noetl-faulty", false, "-tags", "failpoints") })
	buildNATS     = sync.OnceValues(func() (string, error) { return build("internal/testkit/natsd", "natsd", false) })
)

func built(t testing.TB, once func() (string, error)) string {
	t.Helper()
	path, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build compiles a command of this module into the scratch directory.
func build(pkg, name string, race bool, flags ...string) (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", modulePath, err)
	}
	path := filepath.Join(dir, name)
	args := append([]string{"build", "-o", path}, flags...)
	if race {
		args = append(args, "-race", "-gcflags=modernc.org/...=-race=false") // SQLite is not ours to watch
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = strings.TrimSpace(string(root))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}
