package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheSessionsOfTheGuidesWork runs the commands of the guides, each page as
// one session with a server of its own, and holds what they print against what
// the page shows.
func TestTheSessionsOfTheGuidesWork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("NOETL_TEST_REQUIRE_PG") == "1" {
			t.Fatal("no curl: where nothing may be skipped it has to be there, too")
		}
		t.Skip("no curl on this machine")
	}
	for _, page := range []string{"docs/credentials.md", "docs/results.md", "docs/tools.md"} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, "sqlite")
			const token = "NOETL_INTERNAL_API_TOKEN=of-the-docs"
			server := s.serverWith([]string{token}, 0, "--lease", "60s")
			examples := readExamples(t, page)
			if len(examples) == 0 {
				t.Fatal("the page has no examples")
			}
			dir := t.TempDir()
			script := "set -euo pipefail\n"
			for i, e := range examples {
				script += fmt.Sprintf("{\n%s} >out.%d\n", e.commands, i)
			}
			script = strings.ReplaceAll(strings.ReplaceAll(script, "http://127.0.0.1:8082", server.url), "bin/noetl", s.bin)
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), token, "NOETL_SERVER_URL="+server.url, "PATH="+withJQ(t)+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for i, e := range examples {
				out, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", i)))
				if err != nil {
					t.Fatal(err)
				}
				if err := e.matches(out); err != nil {
					t.Errorf("the example\n%s%v\nit printed %s", e.commands, err, out)
				}
			}
		})
	}
}
