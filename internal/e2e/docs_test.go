package e2e

import (
	"fmt"
	"io/fs"
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
			args = strings.ReplaceAll(args, "http://127.0.0.1:8082", server.url)
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

// TestOperationsCommandsWork runs the commands of the operators' page that ask
// a running server, and holds the flags of the others against what the program
// knows.
func TestOperationsCommandsWork(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	server := s.server(0)
	ran, looked := 0, 0
	for _, block := range fenced(t, "docs/operations.md", "sh") {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			args := strings.Fields(line)
			if len(args) < 2 || args[0] != "bin/noetl" {
				continue
			}
			if name := args[1]; name == "server" || name == "worker" {
				help := command(t, nil, s.bin, name, "--help")
				for _, flag := range args[2:] {
					if strings.HasPrefix(flag, "--") && !strings.Contains(help, flag) {
						t.Errorf("%s: there is no %s", strings.TrimSpace(line), flag)
					}
				}
				looked++
				continue
			}
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "http://127.0.0.1:8082", server.url)
			}
			if args[1] == "doctor" && len(args) == 2 { // at a place where nothing else is
				args = append(args, "--listen", fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), "--data-dir", t.TempDir())
			}
			command(t, []string{"NOETL_SERVER_URL=" + server.url, "NOETL_CONFIG=" + filepath.Join(s.dir, "contexts.yaml")}, s.bin, args[1:]...)
			ran++
		}
	}
	if ran < 10 || looked < 5 {
		t.Errorf("the page has %d commands for a running server and %d that start something", ran, looked)
	}
}

// TestSettingsInTheDocsExist looks for every variable and metric the docs name.
func TestSettingsInTheDocsExist(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") && d.Name() != "Makefile" || path == "docs_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	name := regexp.MustCompile(`\b(?:NOETL|POSTGRES|NATS|WORKER)_[A-Z_]+\b|\bnoetl_[a-z_]+\b`)
	for _, page := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CHANGELOG.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range name.FindAllString(string(text), -1) {
			found++
			if !strings.Contains(source.String(), word) {
				t.Errorf("%s names %s, which does not exist", filepath.Base(page), word)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d settings and metrics are named", found)
	}
}

// TestLinksInTheDocsLeadSomewhere looks for the files the docs point at.
func TestLinksInTheDocsLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		pages = append(pages, filepath.Join(root, name))
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s points at %s: %v", filepath.Base(page), m[1], err)
			}
		}
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
