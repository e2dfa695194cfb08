package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api"
)

const (
	apiPage   = "docs/api.md"
	routeMark = "<!-- From here on written by: go test ./internal/e2e -run RouteTable -update -->\n\n"
)

// TestRouteTableOfTheDocsIsUpToDate holds the list of routes against the server's own.
func TestRouteTableOfTheDocsIsUpToDate(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, apiPage)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := bytes.Cut(text, []byte(routeMark))
	if !found {
		t.Fatalf("%s has no mark where the generated part begins", apiPage)
	}
	want := routeTable(t)
	if *update {
		if err := os.WriteFile(file, append(append(head, routeMark...), want...), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/e2e -run RouteTable -update\n%s", apiPage, diff)
	}
}

func routeTable(t *testing.T) string {
	t.Helper()
	srv, err := api.New(api.Options{Plane: struct{ api.Plane }{}}) // nobody is asked anything
	if err != nil {
		t.Fatal(err)
	}
	code := func(s string) string {
		if s == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
	}
	var b strings.Builder
	b.WriteString("| Route | Role | What it does | Takes | Gives |\n|---|---|---|---|---|\n")
	for _, r := range srv.Routes() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(r.Method+" "+r.Pattern), r.Role, r.Summary, code(r.Request), code(r.Answer))
	}
	return b.String()
}

// TestTheAPIExamplesOfTheDocsWork runs the commands of the page as one session
// and holds what they print against what the page shows.
func TestTheAPIExamplesOfTheDocsWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("NOETL_TEST_REQUIRE_PG") == "1" {
			t.Fatal("no curl: where nothing may be skipped it has to be there, too")
		}
		t.Skip("no curl on this machine")
	}
	server := newSystem(t, "sqlite").server(0, "--lease", "60s")
	examples := readExamples(t, apiPage)
	if len(examples) < 15 {
		t.Fatalf("the page has %d examples", len(examples))
	}
	dir := t.TempDir()
	script := "set -euo pipefail\n"
	for i, e := range examples {
		script += fmt.Sprintf("{\n%s} >%s/%d\n", e.commands, dir, i)
	}
	script = strings.Replace(script, "http://127.0.0.1:8082", server.url, 1)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "PATH="+withJQ(t)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, e := range examples {
		out, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.matches(out); err != nil {
			t.Errorf("the example\n%s%v\nit printed %s", e.commands, err, out)
		}
	}
}

// example is a block of commands and, when the page shows it, what it prints.
type example struct{ commands, language, shown string }

func readExamples(t *testing.T, file string) []example {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	block := regexp.MustCompile("(?s)```(sh|json|text)\n(.*?)```(\n*)")
	for _, m := range block.FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sh" {
			list = append(list, example{commands: m[2]})
			continue
		}
		last := &list[len(list)-1]
		if last.shown != "" {
			t.Fatalf("%s: two outputs for\n%s", file, last.commands)
		}
		last.language, last.shown = m[1], m[2]
	}
	return list
}

// matches tells whether out has everything the page shows: each line of a
// text, each member of JSON.
func (e example) matches(out []byte) error {
	switch e.language {
	case "text":
		for line := range strings.Lines(e.shown) {
			if !bytes.Contains(out, []byte(strings.TrimSpace(line)+"\n")) {
				return fmt.Errorf("did not print %q", strings.TrimSpace(line))
			}
		}
	case "json":
		want, err := readJSON([]byte(e.shown))
		if err != nil {
			return fmt.Errorf("the page shows no JSON: %w", err)
		}
		got, err := readJSON(out)
		if err != nil {
			return fmt.Errorf("printed no JSON: %w", err)
		}
		return holds("answer", got, want)
	}
	return nil
}

func readJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// holds tells whether got has all that want has. Ids and times are others in
// every run: they only have to be of the same type.
func holds(at string, got, want any) error {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is no object", at)
		}
		var errs []error
		for name, w := range want {
			g, ok := have[name]
			if !ok {
				errs = append(errs, fmt.Errorf("%s has no %s", at, name))
				continue
			}
			errs = append(errs, holds(at+"."+name, g, w))
		}
		return errors.Join(errs...)
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return fmt.Errorf("%s is not a list of %d", at, len(want))
		}
		var errs []error
		for i := range want {
			errs = append(errs, holds(fmt.Sprintf("%s[%d]", at, i), have[i], want[i]))
		}
		return errors.Join(errs...)
	}
	if reflect.DeepEqual(got, want) || variable(want) && variable(got) && reflect.TypeOf(got) == reflect.TypeOf(want) {
		return nil
	}
	return fmt.Errorf("%s is %v, the page shows %v", at, got, want)
}

var anID = regexp.MustCompile(`^[0-9]{15,}$`)

func variable(v any) bool {
	text := fmt.Sprint(v)
	_, err := time.Parse(time.RFC3339, text)
	return err == nil || anID.MatchString(text)
}

// withJQ is the beginning of a PATH where jq is found: a stand-in for what the
// page uses of it on machines that have none.
func withJQ(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("jq"); err == nil {
		return ""
	}
	const standIn = `#!/usr/bin/env python3
import json, re, sys
if sys.argv[1] == "-Rs":
    print(json.dumps({"content": open(sys.argv[3]).read()}))
else:
    v = json.load(sys.stdin)
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", sys.argv[2]):
        v = v[name] if name else v[int(index)]
    print(v)
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jq"), []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":"
}
