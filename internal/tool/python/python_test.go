package python_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

func newTool(t *testing.T, opts python.Options) *python.Tool {
	t.Helper()
	tl, err := python.New(opts)
	if err != nil {
		t.Skipf("python tests need an interpreter: %v", err)
	}
	t.Cleanup(func() {
		if err := tl.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return tl
}

func callOf(code string, args map[string]any) *tool.Call {
	return &tool.Call{
		Config: map[string]any{"code": code}, Args: args, Variables: json.RawMessage(`{"region":"eu","limit":7}`),
		ExecutionID: "42", Step: "compute", ServerURL: "http://server", Log: io.Discard,
	}
}

// fails runs a call that must fail with an *Error.
func fails(t *testing.T, tl *python.Tool, call *tool.Call) (*tool.Result, *tool.Error) {
	t.Helper()
	res, err := tl.Run(t.Context(), call)
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T (%v), want *tool.Error; result %+v", err, err, res)
	}
	return res, e
}

func TestConformance(t *testing.T) {
	newTool(t, python.Options{}) // skips without an interpreter
	tooltest.Run(t, tooltest.Suite{
		Open: func(t *testing.T) (tool.Tool, func()) {
			tl, err := python.New(python.Options{Max: 4})
			if err != nil {
				t.Fatal(err)
			}
			return tl, func() {
				if err := tl.Close(); err != nil {
					t.Error(err)
				}
			}
		},
		Quick: func() *tool.Call { return callOf("result = {'n': n}", map[string]any{"n": int64(1)}) },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			log := tooltest.NewSignal()
			call := callOf("import subprocess, time\nsubprocess.Popen(['sleep', '600'])\nprint('up')\ntime.sleep(600)", nil)
			call.Log = log
			return call, log.Written()
		},
		Broken: func() *tool.Call { return callOf("  ", nil) },
	})
}

func TestResultsFollowTheRules(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	for name, tc := range map[string]struct {
		code string
		args map[string]any
		want string
	}{
		"a global result":                  {"result = {'b': 1, 'a': x}", map[string]any{"x": "y"}, `{"b":1,"a":"y"}`},
		"result wins over main":            {"result = 1\ndef main(): return 2", nil, `1`},
		"main gets arguments by name":      {"def main(a, b=5): return [a, b]", map[string]any{"a": int64(1), "z": int64(9)}, `[1,5]`},
		"main is filled from variables":    {"def main(region, limit): return [region, limit]", map[string]any{"limit": int64(1)}, `["eu",1]`},
		"main may ask for the scope":       {"def main(args, context): return [args['a'], context['execution_id']]", map[string]any{"a": int64(1)}, `[1,"42"]`},
		"main with keywords gets all":      {"def main(a, **kw): return [a, kw]", map[string]any{"a": int64(1), "b": int64(2)}, `[1,{"b":2}]`},
		"an async main is awaited":         {"import asyncio\nasync def main(a):\n    await asyncio.sleep(0)\n    return a", map[string]any{"a": int64(3)}, `3`},
		"main sets the global result":      {"def main():\n    global result\n    result = 4", nil, `4`},
		"a top-level return":               {"if x > 1:\n    return {'big': x}\nreturn None", map[string]any{"x": int64(2)}, `{"big":2}`},
		"a return may reassign an input":   {"x = x + 1\ndef f(): return x\nreturn f()", map[string]any{"x": int64(2)}, `3`},
		"a return that is not reached":     {"result = 5\nif False:\n    return 6", nil, `5`},
		"a return keeps strings as is":     {"return '''a\n b'''", nil, `"a\n b"`},
		"an input named result is no end":  {"def main(result): return result + 1", map[string]any{"result": int64(1)}, `2`},
		"an input named result may change": {"result['k'] = 1", map[string]any{"result": map[string]any{}}, `{"k":1}`},
		"sys.exit(0) keeps the result":     {"import sys\nresult = 7\nsys.exit(0)", nil, `7`},
		"false is a result":                {"result = False", nil, `false`},
		"code of a script guard":           {"if __name__ == '__main__':\n    result = 'main'", nil, `"main"`},
		"a dataclass works":                {"from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nresult = P(1).x", nil, `1`},
		"threads are waited for":           {"import threading, time\nresult = []\ndef f():\n    time.sleep(0.05)\n    result.append(1)\nthreading.Thread(target=f).start()", nil, `[1]`},
		"thread pools end":                 {"from concurrent.futures import ThreadPoolExecutor\nresult = ThreadPoolExecutor().submit(lambda: 8).result()", nil, `8`},
		"a forked copy does not answer":    {"import os\nif os.fork() == 0:\n    result = 'copy'\nelse:\n    os.wait()\n    result = 'first'", nil, `"first"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := tl.Run(t.Context(), callOf(tc.code, tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(res.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnArgumentNamedInputDataIsMeant(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	res, err := tl.Run(t.Context(), callOf("result = input_data", map[string]any{"input_data": map[string]any{"a": int64(1)}}))
	if err != nil || string(res.Data) != `{"a":1}` {
		t.Errorf("input_data is %s, %v", res.Data, err)
	}
}

func TestScopeHoldsTheNames(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	code := `
assert sys and json and os and uuid
assert datetime.datetime(2020, 1, 1).year == 2020
assert x == 1 and args['x'] == 1 and input_data == args and input_data is not args
assert args['not a name'] == 2 and args['class'] == 3
assert variables == {'region': 'eu', 'limit': 7}
assert (execution_id, step) == ('42', 'compute')
assert context == {'args': args, 'variables': variables, 'execution_id': '42', 'step': 'compute', 'server_url': 'http://server'}
assert type(whole) is float and type(x) is int and big == 2**62 + 1 and deep == [{'a': None, 'b': [1.5, True]}]
result = big * 4 + 1
`
	args := map[string]any{
		"x": int64(1), "not a name": int64(2), "class": int64(3), "whole": 3.0, "big": int64(1<<62 + 1),
		"deep": []any{map[string]any{"a": nil, "b": []any{1.5, true}}},
	}
	res, err := tl.Run(t.Context(), callOf(code, args))
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Data) != "18446744073709551621" {
		t.Errorf("got %s", res.Data)
	}
}

func TestValuesBecomeJSON(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	code := `
import decimal, enum, collections
class Color(enum.Enum):
    RED = 'red'
import dataclasses, pathlib
@dataclasses.dataclass
class P:
    x: int
    y: object
class Array:
    def tolist(self): return [1, float('nan')]
class Frame:
    def to_dict(self, orient): return [{'a': 1}]
class Mute:
    def __str__(self): raise ValueError
class Odd:
    def __str__(self): return 'odd'
result = {
  'dt': datetime.datetime(2024, 1, 2, 3, 4, 5), 'd': datetime.date(2024, 1, 2),
  'dec': [decimal.Decimal('1.50'), decimal.Decimal('0.1000000000000000000001'), decimal.Decimal('3')],
  'set': {3, 1, 2}, 'bytes': b'\x00\xff', 'tuple': (1, 2), 'enum': Color.RED, 'odd': Odd(),
  'keys': {1: 'i', None: 'n', True: 'b', (1, 2): 't', datetime.date(2024, 1, 2): 'd'},
  'uuid': uuid.UUID(int=1), 'view': {'a': 1}.keys(), 'deque': collections.deque([1]), 'range': range(2),
  'text': 'é\u2028<&>', 'float': 3.0, 'nan': [float('nan'), float('inf'), -float('inf'), decimal.Decimal('NaN')], 'half': 'a\udc80b', 'pair': '\ud83d\ude00',
  'point': P(1, Odd()), 'path': pathlib.Path('/a'), 'array': Array(), 'frame': Frame(), 'mute': Mute(),
}
`
	want := `{"dt":"2024-01-02T03:04:05","d":"2024-01-02","dec":[1.5,"0.1000000000000000000001",3],"set":[1,2,3],` +
		`"bytes":"AP8=","tuple":[1,2],"enum":"red","odd":"odd","keys":{"1":"b","null":"n","(1, 2)":"t","2024-01-02":"d"},` +
		`"uuid":"00000000-0000-0000-0000-000000000001","view":["a"],"deque":[1],"range":[0,1],"text":"é` + "\u2028" + `<&>","float":3.0,"nan":[null,"Infinity","-Infinity",null],"half":"a�b","pair":"😀","point":{"x":1,"y":"odd"},"path":"/a","array":[1,null],"frame":[{"a":1}],"mute":"<Mute>"}`
	res, err := tl.Run(t.Context(), callOf(code, nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(res.Data)); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAResultTheOutputIsTheData(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	var live strings.Builder
	call := callOf("import subprocess\nprint('hello')\nsubprocess.run(['echo', 'sub'])\nsys.stderr.write('warn')", nil)
	call.Log = &live
	res, err := tl.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"stdout":"hello\nsub\n","stderr":"warn"}`; string(res.Data) != want || res.Stdout != "hello\nsub\n" || res.Stderr != "warn" || *res.ExitCode != 0 {
		t.Errorf("data %s, result %+v", res.Data, res)
	}
	if got := live.String(); len(got) != len("hello\nsub\nwarn") {
		t.Errorf("live output %q", got)
	}
	res, err = tl.Run(t.Context(), callOf("import atexit\natexit.register(print, 'bye')\nresult = 1", nil))
	if err != nil || res.Stdout != "bye\n" {
		t.Errorf("exit hooks: %v, %+v", err, res)
	}
	res, err = tl.Run(t.Context(), callOf("print('x' * 3_000_000)\nprint('end')\nresult = 1", nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Stdout) > tool.OutputLimit+100 || !strings.HasSuffix(res.Stdout, "end\n") || string(res.Data) != "1" {
		t.Errorf("stdout of %d bytes, data %.20s", len(res.Stdout), res.Data)
	}
}

func TestCodeComesFromSeveralPlaces(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	dir := t.TempDir()
	for name, text := range map[string]string{"job.py": "import side\nresult = side.value", "side.py": "value = 'from file'"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := func(kv ...string) map[string]any {
		s := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			s[kv[i]] = kv[i+1]
		}
		return map[string]any{"script": map[string]any{"source": s}}
	}
	for name, tc := range map[string]struct {
		config map[string]any
		want   string // data, or part of a config error
	}{
		"base64":                         {map[string]any{"code_b64": base64.StdEncoding.EncodeToString([]byte("result = 1"))}, "1"},
		"base64, other name":             {map[string]any{"code_base64": base64.StdEncoding.EncodeToString([]byte("result = 1"))}, "1"},
		"inline script":                  {source("type", "inline", "code", "result = 2"), "2"},
		"script file":                    {source("type", "file", "path", filepath.Join(dir, "job.py")), `"from file"`},
		"broken base64":                  {map[string]any{"code_b64": "!"}, "code_b64 is not base64"},
		"missing file":                   {source("type", "file", "path", "/no/such.py"), "is not a file on this worker"},
		"http script":                    {source("type", "http"), "needs an endpoint"},
		"unknown script":                 {source("type", "ftp"), "is not one of inline, file"},
		"no code":                        {map[string]any{}, "python needs code"},
		"code that is a number":          {map[string]any{"code": int64(1)}, "must be Python code"},
		"a word that deps does not have": {map[string]any{"code": "1", "deps": map[string]any{"pakages": "six"}}, "deps.pakages is not known"},
		"an option among the deps":       {map[string]any{"code": "1", "deps": []any{"-r x"}}, `deps: "-r x" is not a requirement`},
		"a directory to import from":     {map[string]any{"code": "import side\nresult = side.value", "deps": map[string]any{"sys_path": []any{dir}}}, `"from file"`},
		"an interpreter that is not":     {map[string]any{"code": "1", "python": "no-such-python"}, `no interpreter "no-such-python"`},
		"an environment that is not":     {map[string]any{"code": "1", "deps": map[string]any{"venv_path": "/no/such"}}, "holds no virtual environment"},
		"a resource that is not":         {map[string]any{"code": "1", "resources": map[string]any{"gpu": int64(1)}}, "resources.gpu is not known"},
		"libs as a map": {map[string]any{"code": "result = [m.pi > 3, path.sep, dt(2020,1,1).year, loads('1')]", "libs": map[string]any{
			"m": "math", "path": "os.path", "dt": map[string]any{"from": "datetime", "import": "datetime"}, "x": map[string]any{"from": "json", "import": []any{"loads"}},
		}}, `[true,"/",2020,1]`},
		"libs as a list":  {map[string]any{"code": "result = [math.floor(1.5), xml.dom.__name__]", "libs": []any{"math", "xml.dom"}}, `[1,"xml.dom"]`},
		"libs missing":    {map[string]any{"code": "result = 1", "libs": []any{"no_such_module"}}, "libs: no_such_module cannot be imported by /"},
		"env and cwd":     {map[string]any{"code": "result = [os.getcwd(), os.environ['A']]", "cwd": "/", "env": map[string]any{"A": int64(1)}}, `["/","1"]`},
		"cwd that is not": {map[string]any{"code": "1", "cwd": "/no/such"}, `cwd "/no/such" is not a directory`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := callOf("", nil)
			call.Config = tc.config
			res, err := tl.Run(t.Context(), call)
			if e, ok := errors.AsType[*tool.Error](err); ok {
				if e.Kind != "config" || !strings.Contains(e.Message, tc.want) {
					t.Errorf("error %s %q, want %q", e.Kind, e.Message, tc.want)
				}
				return
			}
			if err != nil || string(res.Data) != tc.want {
				t.Errorf("got %s, %v; want %s", res.Data, err, tc.want)
			}
		})
	}
}

func TestAssertionsAreChecked(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	call := callOf("result = {'a': 1}", map[string]any{"x": int64(1)})
	call.Config["assert"] = map[string]any{"expects": []any{"x"}, "returns": []any{"a"}}
	if _, err := tl.Run(t.Context(), call); err != nil {
		t.Error(err)
	}
	call.Config["assert"] = map[string]any{"returns": []any{"b"}}
	if _, e := fails(t, tl, call); e.Kind != "schema" || e.Code != "ASSERT_RETURNS" {
		t.Errorf("got %+v", e)
	}
	call.Config["assert"] = map[string]any{"expects": []any{"y"}}
	if _, e := fails(t, tl, call); e.Kind != "schema" || e.Message != "assert.expects: the input has no y (it has: x)" {
		t.Errorf("got %+v", e)
	}
}

func TestLargeValuesTravelBothWays(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	text := strings.Repeat("0123456789", 1_000_000)
	res, err := tl.Run(t.Context(), callOf("result = {'same': text, 'n': len(text)}", map[string]any{"text": text}))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"same":"` + text + `","n":10000000}`; string(res.Data) != want {
		t.Errorf("got %d bytes, want %d", len(res.Data), len(want))
	}
	if _, e := fails(t, tl, callOf("result = 'x' * (70 << 20)", nil)); e.Kind != "resource_limit" || e.Code != "RESULT_TOO_LARGE" {
		t.Errorf("got %+v", e)
	}
}
