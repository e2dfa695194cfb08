package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t}\nworkflow:\n"

func TestExitCodesSayHowItWent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, workflow string
		args           []string
		want           int
		status         string
	}{
		{"completed", "  - {step: start, tool: {kind: noop}}\n", nil, ExitOK, "COMPLETED"},
		{"failed", "  - {step: start, tool: {kind: shell, command: exit 1}}\n", nil, ExitFailed, "FAILED"},
		{"handled failure", "  - {step: start, tool: {kind: shell, command: exit 1}, next: {arcs: [{step: e, when: \"{{ output.status == 'error' }}\"}]}}\n  - {step: e}\n", nil, ExitOK, "COMPLETED"},
		{"invalid playbook", "  - {step: start, tool: {kind: nonsense}}\n", nil, ExitInvalid, ""},
		{"invalid payload", "  - {step: start, tool: {kind: noop}}\n", []string{"--payload", "{"}, ExitInvalid, ""},
		{"unknown flag", "  - {step: start, tool: {kind: noop}}\n", []string{"--fly"}, ExitInvalid, ""},
		{"timed out", "  - {step: start, tool: {kind: shell, command: sleep 60}}\n", []string{"--timeout", "100ms"}, ExitTimedOut, "TIMED_OUT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "p.yaml")
			if err := os.WriteFile(file, []byte(header+tc.workflow), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			got := Main(t.Context(), append([]string{"run", "--json", file}, tc.args...), &Env{Stdout: &out, Stderr: &errs})
			if got != tc.want {
				t.Errorf("exit code %d, want %d\n%s%s", got, tc.want, out.String(), errs.String())
			}
			if tc.status == "" {
				if errs.Len() == 0 {
					t.Error("nothing was said on stderr")
				}
				return
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			var o outcome
			if err := json.Unmarshal([]byte(lines[len(lines)-1]), &o); err != nil {
				t.Fatalf("the last line of stdout is not the object: %v\n%s", err, out.String())
			}
			if o.Status != tc.status || o.Steps["start"].Status == "" {
				t.Errorf("outcome %+v, want status %s", o, tc.status)
			}
		})
	}
}
