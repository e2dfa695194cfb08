package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// examples stand below the help of the commands people use most.
var examples = map[string][]string{
	"run": {
		"noetl run hello.yaml --set name=Ada",
		"noetl run hello.yaml --payload @input.json -o json",
		"noetl run catalog://reports/daily@3        # on the server of the current context",
		"noetl run build                            # the step build of ./noetl.yaml and what follows it",
	},
	"execute":        {"noetl execute reports/daily --set day=2026-01-02 --wait", "noetl execute reports/daily -o name | xargs noetl watch"},
	"rerun":          {"noetl rerun 478775660589088776 --from-step load --wait"},
	"list":           {"noetl list --status FAILED --limit 20", "noetl list catalog -o name", "noetl list -o yaml --path reports/"},
	"watch":          {"noetl watch 478775660589088776"},
	"diff":           {"noetl diff 478775660589088776 478775660589088901", "noetl diff 478775660589088776 478775660589088901 -o json | jq .first_divergence"},
	"replay":         {"noetl replay 478775660589088776 --at 12          # after the 12th event", "noetl replay 478775660589088776 --at=-5m --diff now"},
	"render":         {"noetl render hello.yaml --step greet --set name=Ada", "noetl render hello.yaml --step load --from 478775660589088776"},
	"events":         {"noetl events 478775660589088776 -f", "noetl events 478775660589088776 -o json | jq .event_type"},
	"logs":           {"noetl logs 478775660589088776 --step load -f"},
	"register":       {"noetl register hello.yaml", "noetl register -d playbooks", "noetl register credential -f pg.yaml"},
	"validate":       {"noetl validate playbooks/*.yaml --strict"},
	"server":         {"noetl server", "noetl server --database-url postgres://noetl@db/noetl --nats-url nats://nats:4222", "noetl server stop"},
	"worker":         {"noetl worker --nats-url nats://127.0.0.1:4222 --pools shared"},
	"context add":    {"noetl context add prod --server-url https://noetl.example.com --set-current"},
	"auth login":     {"noetl auth login < token.txt", "noetl auth login --browser"},
	"completion":     {"source <(noetl completion bash)", "noetl completion zsh > \"${fpath[1]}/_noetl\"", "noetl completion fish > ~/.config/fish/completions/noetl.fish"},
	"query":          {"noetl query -c pg_demo \"select status, count(*) from orders group by status\"", "noetl query -c pg_demo @report.sql -o json"},
	"cancel":         {"noetl cancel 478775660589088776 -r \"wrong input\""},
	"credential put": {"noetl credential put pg_demo --type postgres --data-file fields.yaml"},
}

// helpWithExamples prints kong's help and examples below it.
func helpWithExamples(o kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	lines := examples[commandPath(ctx.Selected())]
	if len(lines) == 0 {
		return nil
	}
	fmt.Fprintln(ctx.Stdout, "\nExamples:")
	for _, line := range lines {
		fmt.Fprintln(ctx.Stdout, "  "+line)
	}
	return nil
}

// commandPath is a command as one types it, without the program and arguments.
func commandPath(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type != kong.ApplicationNode; n = n.Parent {
		if n.Type == kong.CommandNode {
			words = append([]string{n.Name}, words...)
		}
	}
	return strings.Join(words, " ")
}

// helpFor is where the help about a wrong command line is.
func helpFor(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if path := commandPath(wrong.Context.Selected()); path != "" {
			return path + " --help"
		}
	}
	return "--help"
}

// rearrange turns older forms of a command line into the present one.
func rearrange(args []string) ([]string, error) {
	switch args[0] {
	case "-i", "--interactive":
		return nil, invalidf("there is no interactive list: noetl list shows executions and noetl watch ID one of them live; the page of the server shows both")
	case "--version":
		return append([]string{"version"}, args[1:]...), nil
	case "execute":
		if len(args) > 1 {
			return legacyExecute(args), nil
		}
	}
	return args, nil
}

// legacyExecute reads noetl execute playbook|rerun|status.
func legacyExecute(args []string) []string {
	rest := args[2:]
	if len(rest) == 0 { // a playbook may be called so
		return args
	}
	switch args[1] {
	case "playbook":
		return append([]string{"execute"}, rest...)
	case "rerun", "status":
		return append([]string{args[1]}, rest...)
	}
	return args
}
