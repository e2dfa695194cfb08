package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/testkit"
)

// TestTheSessionsOfTheGuidesWork runs the commands of the guides and holds what
// they print against what the page shows. A page is a session with a server of
// its own; where it starts one itself, that is the server of what follows.
func TestTheSessionsOfTheGuidesWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("NOETL_TEST_REQUIRE_PG") == "1" {
			t.Fatalf("no %s: where nothing may be skipped it has to be there, too", tool)
		}
		t.Skipf("no %s on this machine", tool)
	}
	for page, blocks := range map[string]int{
		"docs/credentials.md": 5, "docs/results.md": 1, "docs/tools.md": 1,
		"docs/schedules.md": 5, "docs/retention.md": 3, "docs/security.md": 9,
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			examples := readExamples(t, page)
			if len(examples) < blocks {
				t.Fatalf("the page has %d examples, want %d: are they still found?", len(examples), blocks)
			}
			g := &guide{t: t, bin: testkit.BuildNoetl(t), dir: t.TempDir()}
			for len(examples) > 0 {
				n := 0
				if startsServer(examples[0]) {
					g.serve(examples[0].commands)
					n = 1
				}
				for n < len(examples) && !startsServer(examples[n]) {
					n++
				}
				g.run(examples[:n])
				examples = examples[n:]
			}
		})
	}
}

// guide is a page that is followed: a directory in which its commands are typed
// and the server they are about.
type guide struct {
	t        *testing.T
	bin, dir string
	servers  int
	url      string
}

var serverLine = regexp.MustCompile(`(?m)^bin/noetl server`)

func startsServer(e example) bool { return serverLine.MatchString(e.commands) }

// serve starts a server as a block of the page says, at an address and in a
// directory of its own. What the page sets for it is in effect for it alone.
func (g *guide) serve(commands string) {
	g.t.Helper()
	g.servers++
	if loc := serverLine.FindAllStringIndex(commands, -1); len(loc) != 1 {
		g.t.Fatalf("one server at a time:\n%s", commands)
	}
	commands = portOfDocs.ReplaceAllString(commands, "127.0.0.1:0")
	line := fmt.Sprintf("exec %s server --listen 127.0.0.1:0 --data-dir data%d", g.bin, g.servers)
	script := "set -euo pipefail\n" + serverLine.ReplaceAllLiteralString(commands, line)
	p := testkit.Start(g.t, testkit.Command{
		Path: "bash", Args: []string{"-c", "cd '" + g.dir + "'\n" + script}, Env: []string{"NOETL_INTERNAL_API_TOKEN=of-the-docs"},
	})
	said := p.WaitOutput("noetl dev: ", patience)
	g.url = strings.Fields(said)[0]
}

var (
	portOfDocs   = regexp.MustCompile(`127\.0\.0\.1:(?:8082|4222)`)
	serverOfDocs = regexp.MustCompile(`https?://127\.0\.0\.1:8082`)
)

// run types blocks and holds what each prints against what the page shows.
func (g *guide) run(examples []example) {
	g.t.Helper()
	if g.url == "" {
		g.serve("bin/noetl server --lease 60s\n")
	}
	if startsServer(examples[0]) {
		examples = examples[1:]
	}
	dir := g.t.TempDir()
	script := "set -euo pipefail\n"
	for i, e := range examples {
		script += fmt.Sprintf("{\n%s} >%s/%d\n", e.commands, dir, i)
	}
	script = strings.ReplaceAll(serverOfDocs.ReplaceAllLiteralString(script, g.url), "bin/noetl", g.bin)
	cmd := exec.CommandContext(g.t.Context(), "bash", "-c", script)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "NOETL_INTERNAL_API_TOKEN=of-the-docs", "NOETL_SERVER_URL="+g.url,
		"NOETL_CONFIG="+filepath.Join(g.dir, "contexts.yaml"), "PATH="+withJQ(g.t)+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%v\n%s", err, out)
	}
	for i, e := range examples {
		out, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			g.t.Fatal(err)
		}
		if err := e.matches(out); err != nil {
			g.t.Errorf("the example\n%s%v\nit printed %s", e.commands, err, out)
		}
	}
}
