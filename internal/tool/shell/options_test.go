package shell_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/shell"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// more is what a report shows when it is asked for.
type more struct {
	StdoutRef string `json:"stdout_ref"`
	StderrRef string `json:"stderr_ref"`
	Stdout    string
	Exports   map[string]any
}

func runMore(t *testing.T, call *tool.Call) (m more, _ *tool.Error) {
	t.Helper()
	_, res, e := run(t, call)
	if res != nil {
		if err := json.Unmarshal(res.Data, &m); err != nil {
			t.Fatal(err)
		}
	}
	return m, e
}

func TestArgumentsArePositionalParameters(t *testing.T) {
	t.Parallel()
	d, _, err := run(t, callOf(map[string]any{"cmd": `printf '%s|' "$@" $#`, "args": []any{"a b", int64(2), true, `$(x) "q`}}))
	if err != nil || d.Stdout != `a b|2|true|$(x) "q|4|` {
		t.Errorf("got %q, %v", d.Stdout, err)
	}
	if _, _, err := run(t, callOf(map[string]any{"cmd": "true", "args": "x"})); err == nil || err.Kind != "config" {
		t.Errorf("got %+v", err)
	}
}

func TestExportsShowVariables(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"sh", "bash"} {
		m, err := runMore(t, callOf(map[string]any{
			"shell": sh, "exports": []any{"A", "B", "NEVER", "EMPTY"},
			"cmds": []any{"A=1; B='two\nlines = \"x\"'", "A=\"$A+\" EMPTY=; exit 0"},
		}))
		if err != nil {
			t.Fatal(err)
		}
		if m.Exports["A"] != "1+" || m.Exports["B"] != "two\nlines = \"x\"" || m.Exports["NEVER"] != nil || m.Exports["EMPTY"] != "" || len(m.Exports) != 4 {
			t.Errorf("%s: got %q", sh, m.Exports)
		}
	}
	m, err := runMore(t, callOf(map[string]any{"cmd": "A=seen\nexit 3", "exports": "A"}))
	if err == nil || err.Code != "EXIT_3" || m.Exports["A"] != "seen" {
		t.Errorf("after a failure: %+v, %v", m, err)
	}
	for _, config := range []map[string]any{{"cmd": "true", "exports": []any{"a b"}}, {"cmd": "1", "shell": "cat", "exports": []any{"A"}}} {
		if _, err := runMore(t, callOf(config)); err == nil || err.Kind != "config" {
			t.Errorf("%v: got %+v", config, err)
		}
	}
}

func TestLongOutputIsKeptWhole(t *testing.T) {
	t.Parallel()
	shelf := &tooltest.Shelf{Keep: 100}
	call := callOf(map[string]any{"cmds": []any{"echo begin", "head -c 3000000 /dev/zero | tr '\\0' x"}})
	call.Blobs = shelf
	m, err := runMore(t, call)
	if err != nil {
		t.Fatal(err)
	}
	kept := shelf.At(m.StdoutRef)
	if kept == nil || kept.Bytes != 3000006 || !strings.HasPrefix(string(kept.Head), "begin\nxxx") || m.StderrRef != "" || len(m.Stdout) > tool.OutputLimit+100 {
		t.Errorf("kept %+v, stdout of %d bytes", kept, len(m.Stdout))
	}
	call = callOf(map[string]any{"cmd": `printf '"'; head -c 3000000 /dev/zero | tr '\0' x; printf '"'`, "parse": "json"})
	if d, _, err := run(t, call); err != nil || len(d.JSON) != 3000002 {
		t.Errorf("JSON of %d bytes, %v", len(d.JSON), err)
	}
}

func TestFilesAndCredentialsReachCommands(t *testing.T) {
	t.Parallel()
	shelf := &tooltest.Shelf{}
	at, err := shelf.Put(t.Context(), tool.Blob{}, strings.NewReader("content"))
	if err != nil {
		t.Fatal(err)
	}
	call := callOf(map[string]any{
		"cmd":   `cat "$NOETL_FILE_IN_CSV"; echo " $PGUSER $NOETL_AUTH_DB_PASSWORD $A"; pwd; echo "$HOME"`,
		"files": map[string]any{"in.csv": at.Ref}, "auth": map[string]any{"db": "alias"}, "env": map[string]any{"A": "1"},
	})
	call.Blobs = shelf
	call.Credentials = func(context.Context, ...string) (map[string]*tool.Credential, error) {
		return map[string]*tool.Credential{"alias": {Alias: "alias", Type: "postgres", Data: map[string]any{"user": "u", "password": "p"}}}, nil
	}
	d, _, fail := run(t, call)
	if fail != nil {
		t.Fatal(fail)
	}
	lines := strings.Split(d.Stdout, "\n")
	if lines[0] != "content u p 1" || lines[1] != lines[2] {
		t.Errorf("got %q", d.Stdout)
	}
	if _, err := os.Stat(lines[1]); !os.IsNotExist(err) {
		t.Errorf("the private directory is still there: %v", err)
	}
}

func TestLimitsHoldForCommands(t *testing.T) {
	t.Parallel()
	tl := shell.New(shell.Options{Settings: process.Settings{Max: process.Limits{CPU: 5 * time.Second}}})
	for name, tc := range map[string]struct {
		resources map[string]any
		cmd       string
		code      string
	}{
		"processor":        {map[string]any{"cpu": int64(1)}, "while :; do :; done", "CPU_LIMIT"},
		"a child's":        {map[string]any{"cpu": int64(1)}, "bash -c 'while :; do :; done'; exit $?", "CPU_LIMIT"},
		"files":            {map[string]any{"disk": "64k"}, "exec head -c 200000 /dev/zero >f", "DISK_LIMIT"},
		"time":             {map[string]any{"timeout": "200ms"}, "sleep 600", "TIMEOUT"},
		"more than it has": {map[string]any{"cpu": "1m"}, "true", "CONFIG"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tl.Run(t.Context(), callOf(map[string]any{"cmd": tc.cmd, "resources": tc.resources}))
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Code != tc.code {
				t.Errorf("got %+v, want %s", err, tc.code)
			}
		})
	}
	d, _, err := run(t, callOf(map[string]any{"cmd": "ulimit -v", "resources": map[string]any{"memory": "512Mi"}}))
	if err != nil || d.Stdout != "524288\n" {
		t.Errorf("got %q, %v", d.Stdout, err)
	}
}

func TestTheSandboxDecidesWhereCommandsRun(t *testing.T) {
	t.Parallel()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for sandbox, want := range map[string][2]bool{process.Standard: {false, true}, process.Trusted: {true, false}} {
		res, err := shell.New(shell.Options{Settings: process.Settings{Sandbox: sandbox}}).
			Run(t.Context(), callOf(map[string]any{"cmd": "pwd; grep NoNewPrivs /proc/self/status"}))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(res.Stdout, "\n")
		if got := [2]bool{lines[0] == wd, strings.HasSuffix(lines[1], "1")}; got != want {
			t.Errorf("%s: got %q", sandbox, res.Stdout)
		}
	}
}

const helperEnv = "NOETL_SHELL_TEST_HELPER"

// TestHelperWorker is not a test: it is the worker that the next one kills.
func TestHelperWorker(t *testing.T) {
	path := os.Getenv(helperEnv)
	if path == "" {
		t.Skip("runs only as a helper process")
	}
	_, err := shell.New(shell.Options{}).Run(t.Context(), callOf(map[string]any{"cmd": "exec >" + path + "; echo up; exec sleep 600"}))
	t.Fatal("unexpected end", err)
}

func TestACommandDoesNotOutliveAKilledWorker(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0], "-test.run=^TestHelperWorker$")
	worker.Env = append(os.Environ(), helperEnv+"="+path)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	_ = reader.SetReadDeadline(time.Now().Add(60 * time.Second))
	lines := bufio.NewReader(reader)
	if line, err := lines.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	both.Close()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the command is still running: %v", err)
	}
}
