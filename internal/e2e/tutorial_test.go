package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/testkit"
)

const tutorialPage = "docs/tutorial.md"

// tutorialBlock is one thing the tutorial asks for: a file to write, or lines to
// type and what is seen then.
type tutorialBlock struct {
	line     int
	file     string // to write
	second   bool   // in the second terminal
	keys     string // to press when the screen shows what it should
	body     string
	commands []tutorialCommand
}

type tutorialCommand struct {
	typed string
	shows []string
}

// readTutorial finds the blocks of the tutorial: ```yaml file=NAME, and
// ```console with the options terminal=2 and keys=KEYS.
func readTutorial(t *testing.T) []tutorialBlock {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, tutorialPage))
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```(\\w+)([^\n]*)\n(.*?)^```$")
	var blocks []tutorialBlock
	for _, at := range fence.FindAllSubmatchIndex(text, -1) {
		language, options, body := string(text[at[2]:at[3]]), string(text[at[4]:at[5]]), string(text[at[6]:at[7]])
		b := tutorialBlock{line: 1 + strings.Count(string(text[:at[0]]), "\n"), body: body}
		for _, o := range strings.Fields(options) {
			name, value, _ := strings.Cut(o, "=")
			switch name {
			case "file":
				b.file = value
			case "terminal":
				b.second = value == "2"
			case "keys":
				b.keys = value
			default:
				t.Fatalf("%s:%d: what is %q?", tutorialPage, b.line, o)
			}
		}
		switch {
		case language == "console":
			b.commands = readSession(t, b)
		case b.file == "":
			t.Fatalf("%s:%d: a block in %s that is neither a file nor typed is run by nobody", tutorialPage, b.line, language)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func readSession(t *testing.T, b tutorialBlock) []tutorialCommand {
	t.Helper()
	var list []tutorialCommand
	for line := range strings.Lines(b.body) {
		line = strings.TrimRight(line, "\n")
		switch typed, ok := strings.CutPrefix(line, "$ "); {
		case ok:
			list = append(list, tutorialCommand{typed: typed})
		case len(list) == 0:
			t.Fatalf("%s:%d: a session begins with a line that is typed", tutorialPage, b.line)
		case strings.TrimSpace(line) != "" && strings.TrimSpace(line) != "…":
			last := &list[len(list)-1]
			last.shows = append(last.shows, line)
		}
	}
	return list
}

// TestTheTutorialWorksWordForWord does what the tutorial says, in two terminals,
// and sees what it shows.
func TestTheTutorialWorksWordForWord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := testkit.BuildNoetl(t)
	programs := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(programs, "noetl")); err != nil {
		t.Fatal(err)
	}
	port := testkit.FreePort(t)
	env := []string{
		"PATH=" + programs + string(os.PathListSeparator) + os.Getenv("PATH"),
		// The only things that differ from a machine of one's own.
		fmt.Sprintf("NOETL_PORT=%d", port), fmt.Sprintf("NOETL_SERVER_URL=http://127.0.0.1:%d", port),
	}
	blocks := readTutorial(t)
	if len(blocks) < 10 {
		t.Fatalf("%s has %d blocks only", tutorialPage, len(blocks))
	}
	var terminals [2]*terminal
	for _, b := range blocks {
		if b.file != "" {
			if err := os.WriteFile(filepath.Join(dir, b.file), []byte(b.body), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		at := 0
		if b.second {
			at = 1
		}
		if terminals[at] == nil {
			terminals[at] = newTerminal(t, dir, env...)
		}
		for _, c := range b.commands {
			if t.Failed() {
				return // what follows builds upon it
			}
			b.do(t, terminals[at], c)
		}
	}
}

// do types one line and looks at what is shown.
func (b *tutorialBlock) do(t *testing.T, x *terminal, c tutorialCommand) {
	t.Helper()
	if b.second || b.keys != "" { // it goes on until a key ends it
		from := x.start(c.typed)
		x.see(c.shows)
		if b.keys != "" {
			x.keys(b.keys)
			x.finish(from, c.typed)
		}
		return
	}
	out := squeezed(x.paste(c.typed))
	rest := out
	for _, want := range c.shows {
		at := pattern(want).FindStringIndex(rest)
		if at == nil {
			t.Errorf("%s:%d: $ %s\ndoes not show %q; it shows\n%s", tutorialPage, b.line, c.typed, want, out)
			return
		}
		rest = rest[at[1]:]
	}
}
