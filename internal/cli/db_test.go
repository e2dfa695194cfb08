package cli

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

// noetl runs a command line and returns its exit code and what it printed.
func noetl(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := Main(t.Context(), args, &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
	return code, out.String()
}

// ran is a data directory with one finished execution.
func ran(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "hello.yaml")
	const hello = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: hello}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n"
	if err := os.WriteFile(file, []byte(hello), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if code, out := noetl(t, "run", "--data-dir", data, file); code != ExitOK {
		t.Fatalf("run: %d\n%s", code, out)
	}
	return data
}

func TestASpoiledDatabaseIsToldOfAndMended(t *testing.T) {
	t.Parallel()
	data := ran(t)
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(data, "noetl.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.ExecContext(t.Context(), "UPDATE execution SET status = 'RUNNING'"); err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	steps := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"db", "verify"}, ExitFailed, `want   "COMPLETED"`},
		{[]string{"db", "verify"}, ExitFailed, "noetl db rebuild"},
		{[]string{"db", "verify", "--json"}, ExitFailed, `"execution_row"`},
		{[]string{"db", "rebuild", "--dry-run"}, ExitFailed, "would rewrite the rows of 1 of 1"},
		{[]string{"db", "verify"}, ExitFailed, "is not what the log says"},
		{[]string{"db", "rebuild"}, ExitOK, "rewrote the rows of 1 of 1"},
		{[]string{"db", "verify"}, ExitOK, "clean"},
	}
	for _, s := range steps {
		if code, out := noetl(t, append(s.args, "--data-dir", data)...); code != s.code || !strings.Contains(out, s.want) {
			t.Fatalf("noetl %s: code %d, want %d and %q in\n%s", strings.Join(s.args, " "), code, s.code, s.want, out)
		}
	}
}

func TestADatabaseInUseIsCheckedBesideItsServer(t *testing.T) {
	t.Parallel()
	data := ran(t)
	n, err := node.Start(t.Context(), node.Options{DataDir: data, InProcess: true, NoWorker: true, Listen: "127.0.0.1:0", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"db", "verify", "--data-dir", data}, ExitOK, "clean"},
		{[]string{"db", "rebuild", "--data-dir", data}, ExitFailed, "--server-url"},
		{[]string{"db", "init", "--data-dir", data}, ExitFailed, "--server-url"},
		{[]string{"db", "validate", "--data-dir", data}, ExitOK, "event"},
		{[]string{"db", "verify", "--server-url", n.URL}, ExitOK, "clean"},
		{[]string{"db", "rebuild", "--all", "--server-url", n.URL}, ExitOK, "rewrote the rows of 1 of 1"},
		{[]string{"db", "init", "--server-url", n.URL}, ExitOK, "the schema is at version"},
		{[]string{"db", "validate", "--server-url", n.URL}, ExitOK, "all tables are there"},
		{[]string{"sweeps", "--server-url", n.URL}, ExitOK, "0 executions silent for more than 24h0m0s (enforce)"},
		{[]string{"sweeps", "--json", "--server-url", n.URL}, ExitOK, `"stalled"`},
	} {
		if code, out := noetl(t, s.args...); code != s.code || !strings.Contains(out, s.want) {
			t.Errorf("noetl %s: code %d, want %d and %q in\n%s", strings.Join(s.args, " "), code, s.code, s.want, out)
		}
	}
}
