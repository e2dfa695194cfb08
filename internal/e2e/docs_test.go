package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/testkit"
)

const root = "../.."

// command runs the binary from the root of the project, as a reader would.
func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestEveryExampleCompletes(t *testing.T) {
	t.Parallel()
	bin := testkit.BuildNoetl(t)
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			out := command(t, nil, bin, "run", "--json", filepath.Join("examples", filepath.Base(f)))
			if !strings.Contains(out, `"status":"COMPLETED"`) {
				t.Errorf("ended otherwise: %s", out)
			}
		})
	}
}

// TestREADMECommandsWork runs the commands of the README's second terminal
// against a server, word for word.
func TestREADMECommandsWork(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	server := s.server(0)
	ran := 0
	for _, block := range fenced(t, "README.md", "sh") {
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			args, ok := strings.CutPrefix(line, "bin/noetl ")
			if !ok {
				continue
			}
			out := command(t, []string{"NOETL_SERVER_URL=" + server.url}, s.bin, strings.Fields(args)...)
			if strings.HasPrefix(args, "execute") && !strings.Contains(out, "COMPLETED") {
				t.Errorf("%s: %s", line, out)
			}
			ran++
		}
	}
	if ran < 3 {
		t.Errorf("the README shows %d commands for the second terminal, want at least register, execute and run", ran)
	}
}

// TestPlaybooksInTheDocsAreRight runs the complete playbooks of the guides and
// checks the fragments in a playbook around them.
func TestPlaybooksInTheDocsAreRight(t *testing.T) {
	t.Parallel()
	bin := testkit.BuildNoetl(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	complete, fragments := 0, 0
	for _, f := range files {
		for i, block := range fenced(t, filepath.Join("docs", filepath.Base(f)), "yaml") {
			if strings.HasPrefix(block, "apiVersion") {
				file := filepath.Join(t.TempDir(), fmt.Sprintf("block%d.yaml", i))
				if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
					t.Fatal(err)
				}
				command(t, nil, bin, "run", file)
				complete++
				continue
			}
			for _, part := range strings.Split(block, "\n\n") {
				checkFragment(t, f, part)
				fragments++
			}
		}
	}
	if complete == 0 || fragments == 0 {
		t.Errorf("found %d playbooks and %d fragments in the docs", complete, fragments)
	}
}

// checkFragment validates part of a step within a step that has the rest.
func checkFragment(t *testing.T, file, part string) {
	t.Helper()
	src := "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: fragment}\nworkload: {url: x}\nworkflow:\n  - step: start\n"
	if !strings.HasPrefix(part, "tool:") {
		src += "    tool: {kind: noop}\n"
	}
	for line := range strings.Lines(part) {
		src += "    " + strings.TrimRight(line, "\n") + "\n"
	}
	for _, target := range regexp.MustCompile(`step: (\w+)|next: (\w+)`).FindAllStringSubmatch(part, -1) {
		src += "  - {step: " + target[1] + target[2] + ", tool: {kind: noop}}\n"
	}
	if _, problems := playbook.Parse(filepath.Base(file), []byte(src)); problems.Err() != nil {
		t.Errorf("fragment of %s:\n%s\n%v", file, part, problems)
	}
}

// fenced returns the code blocks of one language in a document.
func fenced(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	return out
}
