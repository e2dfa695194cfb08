package shell_test

import (
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

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/shell"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// data is a report as later steps see it.
type data struct {
	ExitCode   int `json:"exit_code"`
	ReturnCode int `json:"returncode"`
	Stdout     string
	Stderr     string
	Commands   []struct {
		CmdPreview string `json:"cmd_preview"`
		ReturnCode int    `json:"returncode"`
		Stdout     string
		Stderr     string
	}
	JSON json.RawMessage
}

func callOf(config map[string]any) *tool.Call { return &tool.Call{Config: config, Log: io.Discard} }

func run(t *testing.T, call *tool.Call) (data, *tool.Result, *tool.Error) {
	t.Helper()
	res, err := shell.New(shell.Options{Settings: process.Settings{Grace: time.Second}}).Run(t.Context(), call)
	e, ok := errors.AsType[*tool.Error](err)
	if err != nil && !ok {
		t.Fatalf("error is %T (%v), want *tool.Error", err, err)
	}
	var d data
	if res != nil {
		if err := json.Unmarshal(res.Data, &d); err != nil {
			t.Fatal(err)
		}
	}
	return d, res, e
}

func TestConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Suite{
		Open: func(*testing.T) (tool.Tool, func()) {
			return shell.New(shell.Options{Settings: process.Settings{Grace: time.Second}}), func() {}
		},
		Quick: func() *tool.Call { return callOf(map[string]any{"cmds": []any{"echo a", "echo b"}}) },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			log := tooltest.NewSignal()
			// One child in the background, one in the foreground, and a shell
			// that does not want to go.
			call := callOf(map[string]any{"cmd": "trap '' TERM; sleep 600 & echo up; sleep 600"})
			call.Log = log
			return call, log.Written()
		},
		Broken: func() *tool.Call { return callOf(map[string]any{"cmds": []any{}}) },
	})
}

func TestAllThreeFieldNamesRun(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]map[string]any{
		"a list runs item by item":      {"cmds": []any{"echo one", "x=2; echo two"}},
		"text under cmds is one script": {"cmds": "x=two\necho one\necho $x\n"},
		"text under cmd":                {"cmd": "echo one; echo two"},
		"text under command":            {"command": "echo one\necho two"},
		"another shell":                 {"command": "echo one; [[ 1 ]] && echo two", "shell": "bash"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, res, err := run(t, callOf(config))
			if err != nil {
				t.Fatal(err)
			}
			if d.Stdout != "one\ntwo\n" || d.ExitCode != 0 || res.Stdout != d.Stdout || *res.ExitCode != 0 {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestCommandsRunInBashWhereThereIsOne(t *testing.T) {
	none := t.TempDir()
	onlySh := t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sh, filepath.Join(onlySh, "sh")); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"cmd": "echo ${BASH_VERSION:+bash}"}
	if _, err := exec.LookPath("bash"); err == nil {
		if d, _, err := run(t, callOf(config)); err != nil || d.Stdout != "bash\n" {
			t.Errorf("with bash: %+v, %v", d, err)
		}
	}
	t.Setenv("PATH", onlySh)
	if d, _, err := run(t, callOf(map[string]any{"cmd": "echo any"})); err != nil || d.Stdout != "any\n" {
		t.Errorf("with sh alone: %+v, %v", d, err)
	}
	t.Setenv("PATH", none)
	if _, err := shell.New(shell.Options{Settings: process.Settings{Grace: time.Second}}).Run(t.Context(), callOf(config)); err == nil || !strings.Contains(err.Error(), "shell cannot be found") {
		t.Errorf("without any: %v", err)
	}
}

func TestTheFirstFailureStopsTheList(t *testing.T) {
	t.Parallel()
	d, res, err := run(t, callOf(map[string]any{"cmds": []any{"echo first", "echo oops >&2; echo why >&2; exit 3", "echo never"}}))
	if err == nil || err.Kind != "logic" || err.Code != "EXIT_3" || err.Message != "command exited with code 3: why" || err.Retryable {
		t.Fatalf("error %+v", err)
	}
	if d.ExitCode != 3 || d.ReturnCode != 3 || *res.ExitCode != 3 || d.Stdout != "first\n" || d.Stderr != "oops\nwhy\n" || len(d.Commands) != 2 {
		t.Errorf("got %+v", d)
	}
	if d.Commands[1].ReturnCode != 3 || d.Commands[0].Stdout != "first\n" || !strings.HasPrefix(d.Commands[1].CmdPreview, "echo oops") {
		t.Errorf("commands %+v", d.Commands)
	}
}

func TestAKilledCommandNamesTheSignal(t *testing.T) {
	t.Parallel()
	d, _, err := run(t, callOf(map[string]any{"cmd": "kill -9 $$"}))
	if err == nil || err.Code != "EXIT_137" || !strings.Contains(err.Message, "signal 9 (killed)") || d.ExitCode != 137 {
		t.Errorf("error %+v, data %+v", err, d)
	}
}

func TestTheEnvironmentIsClean(t *testing.T) {
	t.Setenv("NOETL_TEST_SECRET", "hunter2")
	d, _, err := run(t, callOf(map[string]any{
		"cmd": "env; pwd", "cwd": "/", "env": map[string]any{"N": int64(5), "GONE": nil, "O": map[string]any{"a": true}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(d.Stdout, "hunter2") || strings.Contains(d.Stdout, "GONE") {
		t.Errorf("environment:\n%s", d.Stdout)
	}
	for _, want := range []string{"N=5\n", `O={"a":true}` + "\n", "PATH=", "\n/\n"} {
		if !strings.Contains(d.Stdout, want) {
			t.Errorf("environment lacks %q:\n%s", want, d.Stdout)
		}
	}
}

func TestOutputIsBoundedAndLive(t *testing.T) {
	t.Parallel()
	var live strings.Builder
	call := callOf(map[string]any{"cmd": "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end; printf '\\377' >&2"})
	call.Log = &live
	d, _, err := run(t, call)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Stdout) > tool.OutputLimit+100 || !strings.HasPrefix(d.Stdout, "begin\nxxx") || !strings.HasSuffix(d.Stdout, "x\nend\n") {
		t.Errorf("stdout of %d bytes: %.20q ... ", len(d.Stdout), d.Stdout)
	}
	if !strings.Contains(d.Stdout, "bytes left out ...") || d.Stderr != "\uFFFD" {
		t.Errorf("no marker, or stderr %q", d.Stderr)
	}
	if live.Len() < 3000000 {
		t.Errorf("live output is %d bytes", live.Len())
	}
}

// fifo is a pipe with a name: it ends when every process that writes to it is
// gone.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestATimeoutEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	path := fifo(t)
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(path)
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			f.Close()
		}
		ended <- err
	}()
	call := callOf(map[string]any{"cmd": "(sleep 600 & sleep 600) >" + path + " & echo partial; wait", "timeout": "300ms"})
	d, _, err := run(t, call)
	if err == nil || err.Kind != "timeout" || !strings.Contains(err.Message, "within 300ms") || d.Stdout != "partial\n" {
		t.Errorf("error %+v, data %+v", err, d)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a grandchild is still running")
	}
}

func TestWhatACommandLeavesBehindEndsWithIt(t *testing.T) {
	t.Parallel()
	start := time.Now()
	d, _, err := run(t, callOf(map[string]any{"cmd": "sleep 600 & echo done"}))
	if err != nil || d.Stdout != "done\n" {
		t.Errorf("error %v, data %+v", err, d)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestStdoutCanBeParsed(t *testing.T) {
	t.Parallel()
	d, _, err := run(t, callOf(map[string]any{"cmd": `echo '{"b":1,"a":2}'`, "parse": "json"}))
	if err != nil || string(d.JSON) != `{"b":1,"a":2}` {
		t.Errorf("error %v, json %s", err, d.JSON)
	}
	_, _, err = run(t, callOf(map[string]any{"cmd": "echo no", "parse": "json"}))
	if err == nil || err.Kind != "parse" {
		t.Errorf("error %+v", err)
	}
}

func TestWrongConfigsAreExplained(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]map[string]any{
		"shell needs cmds":                    {},
		"cmds[1] must be a command as text":   {"cmds": []any{"true", int64(1)}},
		"cmds is an empty list":               {"cmds": []any{}},
		"command must be a command as text":   {"command": "  "},
		`cwd "/no/such/dir" is not`:           {"cmd": "true", "cwd": "/no/such/dir"},
		"shell cannot be found on this":       {"cmd": "true", "shell": "no-such-shell"},
		"longer than the system allows":       {"cmd": "true #" + strings.Repeat("x", 200_000)},
		"holds a NUL character":               {"cmd": "a\x00b"},
		"env must be a map":                   {"cmd": "true", "env": "A=1"},
		`timeout: "x" is not a duration; wri`: {"cmd": "true", "timeout": "x"},
	} {
		_, _, err := run(t, callOf(config))
		if err == nil || err.Kind != "config" || !strings.Contains(err.Message, want) {
			t.Errorf("got %+v, want %q", err, want)
		}
	}
	if diff := cmp.Diff("shell", shell.New(shell.Options{Settings: process.Settings{Grace: time.Second}}).Kind()); diff != "" {
		t.Error(diff)
	}
}
