package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write what is generated instead of comparing it")

// TestCommandReferenceIsWhatTheProgramHas holds docs/cli.md to the commands as
// they are. Write it anew with: go test ./internal/cli -run Reference -update
func TestCommandReferenceIsWhatTheProgramHas(t *testing.T) {
	t.Parallel()
	k, err := parser(&commands{}, &Env{Stdout: io.Discard, Stderr: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "..", "docs", "cli.md")
	want := manual(k.Model.Node)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/cli.md is not what the program has (first at line %d): write it anew with go test ./internal/cli -run Reference -update", firstDifferent(string(got), want))
	}
}

func firstDifferent(a, b string) int {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i + 1
		}
	}
	return min(len(x), len(y)) + 1
}

// TestEveryCommandSaysWhatItIsFor looks at all of them, also hidden ones, and
// at the flags one can see.
func TestEveryCommandSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	k, err := parser(&commands{}, &Env{Stdout: io.Discard, Stderr: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	_ = kong.Visit(k.Model, func(v kong.Visitable, next kong.Next) error {
		switch v := v.(type) {
		case *kong.Node:
			known[commandPath(v)] = true
			if v.Help == "" {
				t.Errorf("%s has no help", v.FullPath())
			}
		case *kong.Flag:
			if v.Help == "" && !v.Hidden {
				t.Errorf("--%s has no help", v.Name)
			}
		case *kong.Positional:
			if v.Help == "" && v.Flag == nil {
				t.Errorf("the argument %s has no help", v.Name)
			}
		}
		return next(nil)
	})
	for path := range examples {
		if !known[path] {
			t.Errorf("there are examples of a command %q, which does not exist", path)
		}
	}
}

// manual is the reference of all visible commands, in Markdown.
func manual(root *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Command line

<!-- Generated: go test ./internal/cli -run Reference -update -->

Every command of the program, its arguments and flags. ` + "`noetl COMMAND --help`" + ` tells the same in the terminal, and
` + "`noetl completion bash|zsh|fish`" + ` makes a shell complete commands, flags, paths of the catalog and contexts.

`)
	contents(&b, root)
	b.WriteString("\n## Flags of every command\n\n")
	b.WriteString("They may stand before or after the command. A flag wins over the environment, that over the context, and that over\nthe default.\n\n")
	flagTable(&b, nil, root.Flags)
	b.WriteString(`
## Output

Commands that show something take these:

| Flag | Default | What it does |
|---|---|---|
`)
	for _, f := range outputModel(root) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", flagCell(f), defaultCell(f.Value), cell(f.Help))
	}
	b.WriteString(`
Columns of tables and keys of JSON are an interface: new ones are added, none are renamed. Times are exact unless a
terminal shows them. What is not the result, such as progress and warnings, goes to standard error.

## Exit codes

| Code | Meaning |
|---|---|
`)
	for _, c := range []struct {
		code int
		text string
	}{
		{ExitOK, "done; an execution that was waited for completed"},
		{ExitFailed, "the execution failed or was cancelled, or the command could not do its work"},
		{ExitInvalid, "the input is wrong: flags, a file, a name that does not exist"},
		{ExitTimedOut, "the time given with `--timeout` was over"},
		{ExitInterrupted, "interrupted with ^C; what was waited for on a server goes on"},
	} {
		fmt.Fprintf(&b, "| %d | %s |\n", c.code, c.text)
	}
	b.WriteString("\nThe first ^C or SIGTERM ends a command in order: a local run is cancelled, a server lets running commands finish. A\nsecond one ends it at once.\n")
	for _, g := range topics {
		if g.Key == "connection" {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", g.Title)
		for _, n := range root.Children {
			if !n.Hidden && n.Group != nil && n.Group.Key == g.Key {
				chapter(&b, n)
			}
		}
	}
	return b.String()
}

// contents are links to the commands, by group.
func contents(b *strings.Builder, root *kong.Node) {
	b.WriteString("| | |\n|---|---|\n")
	for _, g := range topics {
		var links []string
		for _, n := range root.Children {
			if !n.Hidden && n.Group != nil && n.Group.Key == g.Key {
				links = append(links, fmt.Sprintf("[%s](#noetl-%s)", n.Name, n.Name))
			}
		}
		if len(links) > 0 {
			fmt.Fprintf(b, "| %s | %s |\n", g.Title, strings.Join(links, ", "))
		}
	}
}

// chapter is one command and those below it.
func chapter(b *strings.Builder, n *kong.Node) {
	path := commandPath(n)
	fmt.Fprintf(b, "\n### noetl %s\n\n%s\n", path, n.Help)
	if len(n.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso: `noetl %s`.\n", strings.Join(n.Aliases, "`, `noetl "))
	}
	if len(n.Children) == 0 {
		fmt.Fprintf(b, "\n```\nnoetl %s\n```\n", synopsis(n))
		own, output := []*kong.Flag{}, false
		for _, f := range n.Flags {
			switch {
			case f.Hidden:
			case f.Name == "output" && f.Enum == "table,json,yaml,name", f.Name == "no-headers":
				output = true
			default:
				own = append(own, f)
			}
		}
		if len(own)+len(n.Positional) > 0 {
			b.WriteString("\n")
			flagTable(b, n.Positional, own)
		}
		if output {
			b.WriteString("\nShows its result in the [form](#output) that `-o` asks for.\n")
		}
	}
	if lines := examples[path]; len(lines) > 0 {
		fmt.Fprintf(b, "\n```console\n$ %s\n```\n", strings.Join(lines, "\n$ "))
	}
	for _, c := range n.Children {
		if !c.Hidden && c.Type == kong.CommandNode {
			chapter(b, c)
		}
	}
}

// synopsis is a command line without the other names of its commands.
func synopsis(n *kong.Node) string {
	text := n.Summary()
	for p := n; p != nil; p = p.Parent {
		text = strings.Replace(text, " ("+strings.Join(p.Aliases, ",")+")", "", 1)
	}
	return text
}

func flagTable(b *strings.Builder, positional []*kong.Positional, flags []*kong.Flag) {
	b.WriteString("| Argument or flag | Environment | Default | What it does |\n|---|---|---|---|\n")
	for _, p := range positional {
		fmt.Fprintf(b, "| `%s` | | %s | %s |\n", p.Summary(), defaultCell(p), cell(p.Help))
	}
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		var envs []string
		for _, e := range f.Envs {
			envs = append(envs, "`"+e+"`")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", flagCell(f), strings.Join(envs, ", "), defaultCell(f.Value), cell(f.Help))
	}
}

// flagCell is a flag as one types it.
func flagCell(f *kong.Flag) string {
	text := "`--" + f.Name
	if f.Tag.Negatable != "" {
		text = "`--[no-]" + f.Name
	}
	if !f.IsBool() {
		text += " " + strings.Replace(f.FormatPlaceHolder(), ",…,...", ",…", 1)
	}
	text += "`"
	if f.Short != 0 {
		text = fmt.Sprintf("`-%c`, %s", f.Short, text)
	}
	if f.Required {
		text += " (required)"
	}
	return cell(text)
}

func defaultCell(v *kong.Value) string {
	if !v.HasDefault || v.Default == "" || v.IsBool() && v.Default == "false" {
		return ""
	}
	return "`" + cell(v.Default) + "`"
}

// cell keeps a text within a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", `\|`), "<", "&lt;")
}

// outputModel are the flags of the output, as any command has them.
func outputModel(root *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for _, n := range root.Children {
		if n.Name == "list" {
			for _, f := range n.Flags {
				if f.Name == "output" || f.Name == "no-headers" {
					out = append(out, f)
				}
			}
		}
	}
	return out
}
