package python_test

import (
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/python"
)

func TestExceptionsAreClassifiedAndLocated(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	for name, tc := range map[string]struct {
		code string
		kind string
		errc string
		says string
	}{
		"a value error":       {"x = 1\nraise ValueError('bad x')", "schema", "PY_ValueError", "ValueError: bad x (line 2 of code: raise ValueError('bad x'))"},
		"a key error":         {"args['no']", "schema", "PY_KeyError", "KeyError: 'no' (line 1 of code: args['no'])"},
		"a decode error":      {"json.loads('{')", "parse", "PY_JSONDecodeError", "(line 1 of code: json.loads('{'))"},
		"an error of its own": {"class Mine(Exception): pass\ndef f():\n    raise Mine\nf()", "logic", "PY_Mine", "Mine (line 3 of code: raise Mine)"},
		"a syntax error":      {"x = 1\nif x\n    y = 2", "logic", "PY_SyntaxError", "(line 2 of code: if x)"},
		"a missing argument":  {"def main(a, b): return a", "schema", "PY_MissingArgument", "main() needs b, which the step does not give it (input has: a)"},
		"sys.exit with code":  {"sys.exit(3)", "logic", "PY_SystemExit", "SystemExit: 3 (line 1 of code: sys.exit(3))"},
		"a cycle":             {"result = []\nresult.append(result)", "schema", "PY_RESULT", "result[0] contains itself"},
		"no such module":      {"import no_such_module", "logic", "PY_ModuleNotFoundError", "No module named 'no_such_module' (line 1 of code"},
		"endless recursion":   {"def f(): f()\nf()", "logic", "PY_RecursionError", "(line 1 of code: def f(): f())"},
		"inside a return":     {"y = 1\nreturn 1 / 0", "logic", "PY_ZeroDivisionError", "(line 2 of code: return 1 / 0)"},
		"an early end":        {"os._exit(4)", "logic", "EXIT_4", "ended its process with exit code 4"},
		"a signal":            {"os.kill(os.getpid(), 9)", "resource_limit", "OOM", "killed by signal 9 (killed); the machine or its container may be out of memory"},
		"a crash":             {"os.kill(os.getpid(), 11)", "logic", "SIGNAL_11", "segmentation fault"},
		"no answer at all":    {"os.closerange(3, 100)\nresult = 1", "logic", "EXIT_", "ended its process"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := callOf(tc.code, map[string]any{"a": int64(1)})
			res, e := fails(t, tl, call)
			if e.Kind != tc.kind || !strings.HasPrefix(e.Code, tc.errc) || !strings.Contains(e.Message, tc.says) || e.Retryable {
				t.Errorf("got %s/%s retryable=%v %q\nwant %s/%s %q", e.Kind, e.Code, e.Retryable, e.Message, tc.kind, tc.errc, tc.says)
			}
			if res == nil || *res.ExitCode == 0 || !strings.HasPrefix(string(res.Data), `{"stdout":`) {
				t.Errorf("result beside the error: %+v", res)
			}
		})
	}
}

func TestTracebacksShowUserCodeOnly(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	code := "def f():\n    return {}['k']\ntry:\n    f()\nexcept KeyError as e:\n    raise RuntimeError('outer') from e\n"
	_, e := fails(t, tl, callOf(code, nil))
	trace, _ := e.Details["traceback"].(string)
	for _, want := range []string{`File "<code of step compute>", line 2, in f`, "return {}['k']", "direct cause", "RuntimeError: outer"} {
		if !strings.Contains(trace, want) {
			t.Errorf("traceback lacks %q:\n%s", want, trace)
		}
	}
	if strings.Contains(trace, "<noetl>") || e.Details["exception_type"] != "RuntimeError" {
		t.Errorf("type %v, traceback:\n%s", e.Details["exception_type"], trace)
	}
}

func TestATimeoutStopsTheCode(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{Idle: 4, Settings: process.Settings{Grace: time.Second}})
	// Interpreter start is not what this test is about.
	if _, err := tl.Run(t.Context(), callOf("result = 1", nil)); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]string{
		"asleep":     "import time\ntime.sleep(600)",
		"busy":       "while True: pass",
		"unwilling":  "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)",
		"a big loop": "x = sum(i for i in range(10**12))",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := callOf("print('before')\n"+code, nil)
			call.Config["timeout_seconds"] = "1.5s"
			start := time.Now()
			res, e := fails(t, tl, call)
			if e.Kind != "timeout" || !strings.Contains(e.Message, "did not finish within 1.5s") || res == nil || res.Stdout != "before\n" {
				t.Fatalf("error %+v, result %+v", e, res)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestLimitsAreEnforced(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{Settings: process.Settings{Max: process.Limits{Memory: 512 << 20, CPU: time.Second, Disk: 1 << 20}}})
	for name, tc := range map[string]struct{ code, kind, errc string }{
		"memory":    {"result = len(b'x' * (1 << 30))", "resource_limit", "OOM"},
		"processor": {"while True: pass", "resource_limit", "CPU_LIMIT"},
		"files":     {"import tempfile\nf = tempfile.TemporaryFile()\nf.write(b'x' * (2 << 20))\nf.flush()", "resource_limit", "DISK_LIMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, e := fails(t, tl, callOf(tc.code, nil))
			if e.Kind != tc.kind || e.Code != tc.errc {
				t.Errorf("got %s/%s %q, want %s/%s", e.Kind, e.Code, e.Message, tc.kind, tc.errc)
			}
		})
	}
}

func TestAMissingInterpreterIsExplained(t *testing.T) {
	t.Parallel()
	_, err := python.New(python.Options{Interpreter: "no-such-python"})
	if err == nil || !strings.Contains(err.Error(), "install python3 or set PYTHON_PATH") {
		t.Errorf("got %v", err)
	}
	_, e := fails(t, newTool(t, python.Options{Interpreter: "false"}), callOf("result = 1", nil))
	if e.Kind != "config" || !strings.Contains(e.Message, "does not work as a Python interpreter") {
		t.Errorf("got %+v", e)
	}
}
