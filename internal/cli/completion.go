package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/noetl/noetl-go/client"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// The scripts ask the program itself what may come next, so they never grow
// old. The word that is being typed is the last argument.
var completionScripts = map[string]string{
	"bash": `# noetl completion for bash: source <(noetl completion bash)
_noetl() {
  local line word="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  while IFS=$'\t' read -r line _; do
    [ -n "$line" ] && COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
  [ "${#COMPREPLY[@]}" -eq 0 ] && compopt -o default 2>/dev/null
  return 0
}
complete -F _noetl noetl ntl
`,
	"zsh": `#compdef noetl ntl
# noetl completion for zsh: noetl completion zsh > "${fpath[1]}/_noetl"
_noetl() {
  local -a found
  local line name help
  while IFS=$'\t' read -r name help; do
    [ -n "$name" ] && found+=("${name//:/\\:}:$help")
  done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#found} )); then _describe 'noetl' found; else _files; fi
}
if [ "$funcstack[1]" = "_noetl" ]; then _noetl "$@"; else compdef _noetl noetl ntl; fi
`,
	"fish": `# noetl completion for fish: noetl completion fish > ~/.config/fish/completions/noetl.fish
function __noetl_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c noetl -a '(__noetl_complete)'
complete -c ntl -a '(__noetl_complete)'
`,
}

// Run prints the script of a shell.
func (c *completionCommand) Run(env *Env) error {
	_, err := io.WriteString(env.Stdout, completionScripts[c.Shell])
	return err
}

type completeCommand struct {
	serverFlags
	Words []string `arg:"" optional:"" passthrough:"" help:"The line so far, without the program; the last word is being typed."`
}

// askTime is how long a completion may wait for a server.
const askTime = 700 * time.Millisecond

// Run prints what may come next, one candidate a line with a tab before what it
// means. Whatever goes wrong, nothing is proposed: a shell shows no errors.
func (c *completeCommand) Run(ctx context.Context, env *Env, k *kong.Kong) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	l := lineOf(k.Model.Node, words[:len(words)-1])
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, p := range c.proposals(ctx, env, l, words[len(words)-1]) {
		if strings.HasPrefix(p.text, words[len(words)-1]) {
			fmt.Fprintf(env.Stdout, "%s\t%s\n", p.text, oneLine(p.help, 80))
		}
	}
	return nil
}

// line is a command line so far.
type line struct {
	node    *kong.Node
	pending *kong.Flag // its value comes next
	args    int        // positional words after the command
	server  string     // what --server-url said
	context string
}

// proposal is a word that may come next.
type proposal struct{ text, help string }

// lineOf goes through complete words: commands, flags and their values.
func lineOf(root *kong.Node, words []string) line {
	l := line{node: root}
	for _, w := range words {
		switch {
		case l.pending != nil:
			l.note(l.pending.Name, w)
			l.pending = nil
		case strings.HasPrefix(w, "-") && w != "-":
			name, value, has := strings.Cut(w, "=")
			f := l.flag(name)
			switch {
			case f != nil && has:
				l.note(f.Name, value)
			case f != nil && !f.IsBool():
				l.pending = f
			}
		default:
			if child := childOf(l.node, w); child != nil && l.args == 0 {
				l.node = child
			} else {
				l.args++
			}
		}
	}
	return l
}

// note keeps what says where to ask.
func (l *line) note(flag, value string) {
	switch flag {
	case "server-url":
		l.server = value
	case "context":
		l.context = value
	}
}

func (l *line) flag(text string) *kong.Flag {
	for _, group := range l.node.AllFlags(false) {
		for _, f := range group {
			if "--"+f.Name == text || f.Short != 0 && "-"+string(f.Short) == text || slices.Contains(f.Aliases, strings.TrimPrefix(text, "--")) {
				return f
			}
		}
	}
	return nil
}

func childOf(n *kong.Node, name string) *kong.Node {
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && (c.Name == name || slices.Contains(c.Aliases, name)) {
			return c
		}
	}
	return nil
}

// proposals are the words that may come next.
func (c *completeCommand) proposals(ctx context.Context, env *Env, l line, word string) []proposal {
	if l.pending != nil {
		return c.values(ctx, env, l, l.pending.Value)
	}
	var out []proposal
	if strings.HasPrefix(word, "-") {
		for _, group := range l.node.AllFlags(true) {
			for _, f := range group {
				out = append(out, proposal{"--" + f.Name, f.Help})
			}
		}
		return out
	}
	if l.args == 0 {
		for _, child := range l.node.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				out = append(out, proposal{child.Name, child.Help})
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	if at := min(l.args, len(l.node.Positional)-1); at >= 0 {
		return c.values(ctx, env, l, l.node.Positional[at])
	}
	return nil
}

// values are those a flag or an argument may have.
func (c *completeCommand) values(ctx context.Context, env *Env, l line, v *kong.Value) []proposal {
	if v.Enum != "" {
		var out []proposal
		for _, e := range v.EnumSlice() {
			if e != "" {
				out = append(out, proposal{e, ""})
			}
		}
		return out
	}
	command := commandPath(l.node)
	switch {
	case v.Name == "context" || strings.HasPrefix(command, "context ") && v.Name == "name" && command != "context add":
		return contextNames(env)
	case v.Name == "execution" || v.Name == "from" && command == "render" || command == "diff":
		return c.executions(ctx, l)
	case v.Name == "path" || command == "run" && v.Name == "ref":
		return c.paths(ctx, l)
	}
	return nil
}

func contextNames(env *Env) []proposal {
	cfg, err := readConfig(&Env{Stderr: discard{}})
	if err != nil {
		return nil
	}
	var out []proposal
	for _, name := range cfg.names() {
		out = append(out, proposal{name, cfg.Contexts[name].ServerURL})
	}
	return out
}

// asked is the server the line names so far, or the usual one.
func (c *completeCommand) asked(l line) (*client.Client, error) {
	conn := *c.Connection
	conn.env = &Env{Stderr: discard{}}
	conn.flags.ServerURL, conn.flags.Context = orText(l.server, conn.flags.ServerURL), orText(l.context, conn.flags.Context)
	return conn.client("")
}

func (c *completeCommand) executions(ctx context.Context, l line) []proposal {
	cl, err := c.asked(l)
	if err != nil {
		return nil
	}
	rows, err := cl.Executions(ctx, client.ExecutionFilter{Limit: 50})
	if err != nil {
		return nil
	}
	var out []proposal
	for _, r := range rows {
		out = append(out, proposal{r.ExecutionID.String(), printable(r.Status + " " + r.Path)})
	}
	return out
}

func (c *completeCommand) paths(ctx context.Context, l line) []proposal {
	cl, err := c.asked(l)
	if err != nil {
		return nil
	}
	entries, err := cl.Entries(ctx, client.EntryFilter{Kind: "Playbook", Limit: 500})
	if err != nil {
		return nil
	}
	var out []proposal
	seen := map[string]bool{}
	for _, e := range entries {
		if !seen[e.Path] {
			seen[e.Path] = true
			out = append(out, proposal{printable(e.Path), fmt.Sprintf("version %d", e.Version)})
		}
	}
	return out
}
