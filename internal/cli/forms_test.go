package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestReportsComeInEveryForm asks for what used to be text only: JSON and YAML
// are one document, names are a line each.
func TestReportsComeInEveryForm(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for file, workflow := range map[string]string{good: "  - {step: start, tool: {kind: noop}}\n", bad: "  - {step: start, tool: {kind: nonsense}}\n"} {
		if err := os.WriteFile(file, []byte(strings.Replace(header, "name: t", "name: t, path: forms/p", 1)+workflow), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, out := noetl(t, "register", good, "--server-url", served(t)); code != ExitOK {
		t.Fatalf("register: %d\n%s", code, out)
	}
	data := ran(t)
	for _, c := range []struct {
		line string
		code int
		name string // the first line of names
	}{
		{"validate " + good, ExitOK, ""},
		{"validate " + good + " " + bad, ExitInvalid, bad},
		{"schedule create forms/p --name forms --every 1h --server-url " + served(t), ExitOK, "forms"},
		{"schedule list --path forms/p --server-url " + served(t), ExitOK, "forms"},
		{"schedule show forms --server-url " + served(t), ExitOK, "forms"},
		{"schedule next forms --server-url " + served(t), ExitOK, "20"},
		{"schedule runs forms --server-url " + served(t), ExitOK, ""},
		{"schedule pause forms --server-url " + served(t), ExitOK, "forms"},
		{"schedule delete forms --server-url " + served(t), ExitOK, "forms"},
		{"retention show --server-url " + served(t), ExitOK, ""},
		{"retention plan --server-url " + served(t), ExitOK, ""},
		{"sweeps --server-url " + served(t), ExitOK, ""},
		{"token create forms --grant viewer --data-dir " + data, ExitOK, ""},
		{"token list --data-dir " + data, ExitOK, ""},
		{"db verify --data-dir " + data, ExitOK, ""},
		{"db rebuild --data-dir " + data, ExitOK, ""},
		{"db init --data-dir " + data, ExitOK, "ok"},
		{"db validate --data-dir " + data, ExitOK, ""},
		{"pools --server-url " + served(t), ExitOK, ""},
	} {
		for _, form := range []string{"json", "yaml", "name"} {
			if form != "json" && strings.HasPrefix(c.line, "schedule create") {
				continue // there is one already
			}
			if form != "name" && strings.HasPrefix(c.line, "schedule delete") {
				continue // there is nothing left
			}
			code, out := noetl(t, append(strings.Fields(c.line), "-o", form)...)
			if code != c.code {
				t.Errorf("%s -o %s: code %d, want %d\n%s", c.line, form, code, c.code, out)
				continue
			}
			var v any
			switch form {
			case "json":
				if err := json.Unmarshal([]byte(out), &v); err != nil || v == nil {
					t.Errorf("%s: no JSON: %v\n%s", c.line, err, out)
				}
			case "yaml":
				if err := yaml.Unmarshal([]byte(out), &v); err != nil || v == nil || strings.HasPrefix(out, "{") {
					t.Errorf("%s: no YAML: %v\n%s", c.line, err, out)
				}
			default:
				first, _, _ := strings.Cut(out, "\n")
				if !strings.HasPrefix(first, c.name) || strings.Contains(first, " ") {
					t.Errorf("%s: names begin with %q, want %q", c.line, first, c.name)
				}
			}
		}
	}
}
