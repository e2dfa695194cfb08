package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/noetl/noetl-go/internal/playbook"
)

type validateCommand struct {
	Files  []string `arg:"" help:"Playbook files; - is standard input." placeholder:"FILE"`
	Strict bool     `help:"Treat warnings as errors."`
	outputFlags
}

// maxPlaybook bounds what is read from standard input.
const maxPlaybook = 16 << 20

// Run checks every file and reports all problems of all of them: the files in
// the order given, the problems of each by position. By name it lists the files
// that are wrong.
func (c *validateCommand) Run(env *Env) error {
	findings := []finding{}
	failed := false
	for _, f := range c.Files {
		problems := c.check(env, f)
		wrong := problems.Err() != nil
		failed = failed || wrong
		if c.form() == "name" && wrong {
			fmt.Fprintln(env.Stdout, shownName(f))
		}
		for _, p := range problems {
			findings = append(findings, findingOf(p))
			if c.form() == "table" {
				fmt.Fprintln(env.Stdout, p)
			}
		}
		if c.form() == "table" && !wrong {
			fmt.Fprintf(env.Stdout, "%s: ok%s\n", shownName(f), warnings(len(problems)))
		}
	}
	if c.machine() {
		if err := c.print(env, findings); err != nil {
			return err
		}
	}
	if failed {
		return exit(ExitInvalid)
	}
	return nil
}

// check reads one file. A file that cannot be read has one problem, so that it
// does not hide those of the others.
func (c *validateCommand) check(env *Env, file string) playbook.Problems {
	_, _, problems, err := readInput(env, file)
	if err != nil {
		name := shownName(file)
		return playbook.Problems{{
			Severity: playbook.SeverityError, Code: "unreadable", File: name, Line: 1, Col: 1,
			Message: strings.TrimPrefix(err.Error(), name+": "),
		}}
	}
	if c.Strict {
		for i := range problems {
			problems[i].Severity = playbook.SeverityError
		}
	}
	return problems
}

// readInput reads and parses a playbook file, or standard input for "-".
func readInput(env *Env, file string) ([]byte, *playbook.Playbook, playbook.Problems, error) {
	if file != "-" {
		return readPlaybook(file)
	}
	src, err := io.ReadAll(io.LimitReader(env.Stdin, maxPlaybook+1))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(src) > maxPlaybook {
		return nil, nil, nil, invalidf("a playbook of more than %d MiB is not read", maxPlaybook>>20)
	}
	pb, problems := playbook.Parse(shownName(file), src)
	return src, pb, problems, nil
}

// shownName is how messages call a file.
func shownName(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}

// finding is a problem as programs get it.
type finding struct {
	File     string            `json:"file"`
	Line     int               `json:"line"`
	Col      int               `json:"col"`
	Severity playbook.Severity `json:"severity"`
	Code     string            `json:"code"`
	Step     string            `json:"step,omitempty"`
	Field    string            `json:"field,omitempty"` // the path of the value, e.g. workflow[1].tool.url
	Message  string            `json:"message"`
	Remedy   string            `json:"remedy,omitempty"`
}

func findingOf(p playbook.Problem) finding {
	return finding{
		File: p.File, Line: p.Line, Col: p.Col, Severity: p.Severity, Code: p.Code,
		Step: p.Step, Field: p.Path, Message: p.Message, Remedy: p.Remedy,
	}
}

func warnings(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "warning")
}
