package cli

import (
	"fmt"

	"github.com/noetl/noetl-go/internal/playbook"
)

type validateCommand struct {
	Files []string `arg:"" help:"Playbook files." placeholder:"FILE"`
	JSON  bool     `short:"j" help:"Print the problems as JSON."`
}

// Run checks every file and reports all problems of all of them.
func (c *validateCommand) Run(env *Env) error {
	all := playbook.Problems{}
	for _, f := range c.Files {
		_, _, problems, err := readPlaybook(f)
		if err != nil {
			return err
		}
		all = append(all, problems...)
		if !c.JSON {
			for _, p := range problems {
				fmt.Fprintln(env.Stdout, p)
			}
			if problems.Err() == nil {
				fmt.Fprintf(env.Stdout, "%s: ok%s\n", f, warnings(len(problems)))
			}
		}
	}
	if c.JSON {
		if err := printJSON(env, all); err != nil {
			return err
		}
	}
	if all.Err() != nil {
		return exit(ExitInvalid)
	}
	return nil
}

func warnings(n int) string {
	if n == 0 {
		return ""
	}
	return ", " + plural(n, "warning")
}
