package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/testkit"
)

// TestInterruptedRunsAreCancelled stops a run while its tool works, and while
// it waits for another playbook whose tool works.
func TestInterruptedRunsAreCancelled(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"works.yaml", "waits.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			begun := filepath.Join(dir, "begun")
			for name, workflow := range map[string]string{
				"works.yaml": "  - {step: start, tool: {kind: shell, command: \"touch '" + begun + "'; sleep 600\"}}\n",
				"waits.yaml": "  - {step: start, tool: {kind: playbook, path: works, wait: true}}\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(header+workflow), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var out, errs bytes.Buffer
			code := make(chan int, 1)
			go func() {
				code <- Main(ctx, []string{"run", "--json", filepath.Join(dir, file)}, &Env{Stdout: &out, Stderr: &errs})
			}()
			testkit.Eventually(t, func() error { _, err := os.Stat(begun); return err }, time.Minute)
			interrupt()
			if got := <-code; got != ExitFailed {
				t.Errorf("exit code %d, want %d\n%s", got, ExitFailed, errs.String())
			}
			var o outcome
			if err := json.Unmarshal(out.Bytes(), &o); err != nil || o.Status != "CANCELLED" {
				t.Errorf("outcome %+v, want it cancelled: %v", o, err)
			}
		})
	}
}
