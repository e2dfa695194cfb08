package jinja_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/noetl/noetl-go/internal/jinja"
)

// TestGolden runs the tables in testdata. Their commands are
//
//	scope    sets the scope of what follows to a JSON object
//	render   prints the text; \n and \t in the source are escapes
//	value    prints the native value as JSON, after its type
//	truth    prints the truth of a condition
//	free     prints the free paths
//	each     prints the text or the error of every line as an expression
//	error    prints the error of compiling or rendering, with its excerpt
//	limit    is error for the value under tight limits
func TestGolden(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return
		}
		var scope jinja.Scope = jinja.Vars(nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "scope" {
				scope = scopeOf(t, d.Input)
				return ""
			}
			if d.Cmd == "each" {
				return eachLine(d.Input, scope)
			}
			out, err := run(d.Cmd, d.Input, scope)
			if d.Cmd == "error" || d.Cmd == "limit" {
				return describe(err)
			}
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out + "\n"
		})
	})
}

func run(cmd, src string, s jinja.Scope) (string, error) {
	compile := jinja.Compile
	if cmd == "truth" {
		compile = jinja.CompileCondition
	}
	if cmd == "render" {
		src = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(src)
	}
	tmpl, err := compile(src)
	if err != nil {
		return "", err
	}
	switch cmd {
	case "render", "error":
		text, err := tmpl.Render(s)
		return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text), err
	case "limit":
		_, err := tmpl.WithLimits(jinja.Limits{Steps: 50_000, Bytes: 1 << 20}).Value(s)
		return "", err
	case "value":
		v, err := tmpl.Value(s)
		if err != nil {
			return "", err
		}
		b, err := jinja.ToJSON(v)
		return fmt.Sprintf("%s %s", strings.TrimPrefix(fmt.Sprintf("%T", v), "*jinja."), b), err
	case "truth":
		ok, err := tmpl.Truth(s)
		return fmt.Sprint(ok), err
	case "free":
		b, err := json.Marshal(tmpl.Free())
		return string(b), err
	}
	return "", fmt.Errorf("unknown command %q", cmd)
}

func describe(err error) string {
	var e *jinja.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("not an *Error: %v\n", err)
	}
	out := e.Kind + ": " + e.Error() + "\n"
	if x := e.Excerpt(); x != "" {
		out += "| " + strings.ReplaceAll(x, "\n", "\n| ") + "\n"
	}
	if e.Remedy != "" {
		out += "remedy: " + e.Remedy + "\n"
	}
	return out
}

func eachLine(input string, s jinja.Scope) string {
	var out strings.Builder
	for line := range strings.Lines(input) {
		line = strings.TrimSuffix(line, "\n")
		text, err := render("{{ "+line+" }}", s)
		var e *jinja.Error
		switch {
		case errors.As(err, &e) && e.Remedy != "":
			text = fmt.Sprintf("%s: %s; %s", e.Kind, e.Message, e.Remedy)
		case errors.As(err, &e):
			text = fmt.Sprintf("%s: %s", e.Kind, e.Message)
		default:
			text = fmt.Sprintf("%q", text)
		}
		fmt.Fprintf(&out, "%s => %s\n", line, text)
	}
	return out.String()
}

// TestEveryBuiltinIsInTheTable reads the table of TestGolden back: a builtin
// without its four lines is one whose edges nobody looked at.
func TestEveryBuiltinIsInTheTable(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/builtins.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := string(b)
	for kind, names := range jinja.Builtins() {
		for _, name := range names {
			pattern := map[string]string{
				"filter": `\| %s\b.* =>`, "test": ` is %s\b.* =>`, "function": `(?m)^%s\(.* =>`, "method": `\.%s\(.* =>`,
			}[kind]
			lines := regexp.MustCompile(fmt.Sprintf(pattern, regexp.QuoteMeta(name))).FindAllString(table, -1)
			if len(lines) < 4 {
				t.Errorf("the %s %s has %d lines of 4", kind, name, len(lines))
			}
		}
	}
}
