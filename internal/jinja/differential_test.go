package jinja_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// differentialCases is how many templates one run compares; JINJA_CASES asks for
// another number, JINJA_SEED for other templates.
const differentialCases = 600

// differentialScope is what the generated templates read.
const differentialScope = `{
	"n": 3, "m": -7, "z": 0, "big": 123456789012, "f": 2.5, "g": -0.125, "whole": 4.0, "t": true, "u": false, "nil": null,
	"s": "Hello World", "word": "noetl", "num": "42", "pad": "  x y ", "empty": "", "uni": "héllo wörld", "csv": "a,b,,c",
	"html": "<b>it's \"1 & 2\"</b>", "lines": "one\n two\n\nthree",
	"ints": [3, 1, 2, 3, -5], "floats": [1.5, 0.25, -2.0], "words": ["pear", "Apple", "fig", "apple"], "nothing": [],
	"mixed": [1, "a", null, true, 2.5, [1]],
	"users": [
		{"name": "ann", "age": 30, "active": true, "tags": ["x"]},
		{"name": "Bob", "age": 25, "active": false, "tags": []},
		{"name": "cy", "age": 30, "active": true, "tags": ["y", "z"]}
	],
	"d": {"b": 1, "a": 2, "c": {"x": [1, 2, {"y": "deep"}]}}, "counts": {"pear": 2, "Fig": 3, "apple": 1}
}`

// plainPython renders all templates at once, with undefined values that can be
// chained and otherwise as Jinja2 comes.
const plainPython = pythonHead + pythonRun

// likePython is plainPython with our meaning of what differs on purpose and is
// too common to leave out: JSON is compact and unescaped, with null for
// undefined; default replaces none too; int and float of undefined are their
// default; none has length 0; undefined is no sequence; and escape makes plain
// text. deviations lists these and the others.
const likePython = pythonHead + `
def tojson(v, indent=None):
    return json.dumps(v, indent=indent, separators=None if indent else (",", ":"), sort_keys=True, ensure_ascii=False, default=lambda undefined: None)
def default(v, d="", boolean=False):
    return d if v is None or isinstance(v, jinja2.Undefined) or boolean and not v else v
def number(f, zero):
    return lambda v, default=zero, *a, **k: default if isinstance(v, jinja2.Undefined) else f(v, default, *a, **k)
def length(v):
    return 0 if v is None else len(v)
def escape(v):
    return str(markupsafe.escape(v))
sequence = env.tests["sequence"]
env.tests["sequence"] = lambda v: not isinstance(v, jinja2.Undefined) and sequence(v)
env.filters.update(int=number(env.filters["int"], 0), float=number(env.filters["float"], 0.0))
env.filters.update(length=length, count=length, tojson=tojson, default=default, d=default, escape=escape, forceescape=escape)
` + pythonRun

const pythonHead = `
import json, sys
try:
    import jinja2, markupsafe
except ImportError:
    sys.exit(3)
env = jinja2.Environment(undefined=jinja2.ChainableUndefined)
`

const pythonRun = `
work, out = json.load(sys.stdin), []
for src in work["templates"]:
    try:
        out.append([True, env.from_string(src).render(work["scope"])])
    except Exception as e:
        out.append([False, type(e).__name__ + ": " + str(e)])
json.dump(out, sys.stdout)
`

func TestGeneratedTemplatesRenderAsInPython(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "JINJA_SEED", 1)
	cases := int(fromEnvironment(t, "JINJA_CASES", differentialCases))
	g := newGenerator(seed)
	templates := make([]string, cases)
	for i := range templates {
		templates[i] = g.template()
	}
	compareWithPython(t, templates, renderInPython(t, likePython, templates))
}

// pythonAnswers are templates with what Python makes of them, for machines on
// which it is not installed. JINJA_RECORD=1 writes them anew.
const pythonAnswers = "testdata/python.json"

func TestRecordedTemplatesRenderAsInPython(t *testing.T) {
	t.Parallel()
	if os.Getenv("JINJA_RECORD") != "" {
		recordPython(t)
	}
	b, err := os.ReadFile(pythonAnswers)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][2]any // a template, and a text or the list of an error
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	templates, answers := make([]string, len(rows)), make([]pythonText, len(rows))
	for i, row := range rows {
		templates[i], _ = row[0].(string)
		answers[i].text, answers[i].ok = row[1].(string)
		if refused, isList := row[1].([]any); isList {
			answers[i].text, _ = refused[0].(string)
		}
	}
	compareWithPython(t, templates, answers)
}

// recordPython keeps short templates, of which a failure is easy to read.
func recordPython(t *testing.T) {
	t.Helper()
	g := newGenerator(2)
	var templates []string
	for len(templates) < 1500 {
		if src := g.template(); len(src) < 160 {
			templates = append(templates, src)
		}
	}
	var out strings.Builder
	for i, answer := range renderInPython(t, likePython, templates) {
		row := [2]any{templates[i], answer.text}
		if !answer.ok {
			row[1] = []string{answer.text}
		}
		line, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(map[bool]string{true: "[", false: ",\n"}[i == 0] + string(line))
	}
	if err := os.WriteFile(pythonAnswers, []byte(out.String()+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// compareWithPython reports every template whose text is not Python's, or that
// only one of the two refuses.
func compareWithPython(t *testing.T, templates []string, answers []pythonText) {
	t.Helper()
	scope := scopeOf(t, differentialScope)
	accepted := 0
	for i, want := range answers {
		got, err := render(templates[i], scope)
		if want.ok {
			accepted++
		}
		if isIntended(want, err) {
			continue
		}
		switch {
		case want.ok && err != nil:
			t.Errorf("%s\n  got error %v\n want %q", templates[i], err, want.text)
		case want.ok && got != want.text:
			t.Errorf("%s\n  got %q\n want %q", templates[i], got, want.text)
		case !want.ok && err == nil:
			t.Errorf("%s\n  got %q\n want an error like %s", templates[i], got, want.text)
		}
	}
	if accepted < len(templates)*3/5 {
		t.Errorf("Python renders only %d of %d templates; the generator writes too much nonsense", accepted, len(templates))
	}
}

func fromEnvironment(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// isIntended tells whether one side refuses what the other need not refuse; see
// deviations for the reasons.
func isIntended(want pythonText, err error) bool {
	said, reasons := want.text, []string{"unhashable type", "unsupported format string passed to"}
	if err != nil {
		said, reasons = err.Error(), []string{"does not fit 64 bits", "cannot be sliced", "cannot be a key", "the format has no place"}
	} else if want.ok {
		return false
	}
	return slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(said, reason) })
}

type pythonText struct {
	ok   bool
	text string // or the error
}

// renderInPython skips the test when no Python with Jinja2 is here.
func renderInPython(t *testing.T, program string, templates []string) []pythonText {
	t.Helper()
	work, err := json.Marshal(map[string]any{"scope": json.RawMessage(differentialScope), "templates": templates})
	if err != nil {
		t.Fatal(err)
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		cmd := exec.CommandContext(t.Context(), python, "-c", program)
		cmd.Stdin = bytes.NewReader(work)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() != 3:
			t.Fatalf("%s: %v\n%s", python, err, stderr.String())
		case err != nil:
			continue
		}
		var rows [][2]any
		if err := json.Unmarshal(out, &rows); err != nil {
			t.Fatalf("read the answer of %s: %v", python, err)
		}
		if len(rows) != len(templates) {
			t.Fatalf("%s rendered %d templates of %d", python, len(rows), len(templates))
		}
		texts := make([]pythonText, len(rows))
		for i, row := range rows {
			texts[i].ok, _ = row[0].(bool)
			texts[i].text, _ = row[1].(string)
		}
		return texts
	}
	t.Skip("no python3 that can import jinja2; install python3-jinja2 to compare with it")
	return nil
}
