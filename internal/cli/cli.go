// Package cli is what a person types and sees: commands, flags, progress,
// messages and exit codes. It decides nothing about workflows; it starts a
// node or talks to one through the client.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/playbook"
)

// Exit codes. They are part of the interface: scripts rely on them.
const (
	ExitOK       = 0
	ExitFailed   = 1 // the execution failed or was cancelled, or the command could not do its work
	ExitInvalid  = 2 // the input is wrong
	ExitTimedOut = 3
)

// Version is set by the build.
var Version = "dev"

// Env is the world a command runs in; tests give their own.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a terminal: colours and live views are welcome
	Width          int  // of the terminal
}

// commands is the command line as kong reads it.
type commands struct {
	Run        runCommand        `cmd:"" help:"Run a playbook file here and now, with the same engine and tools as a server."`
	Server     serverCommand     `cmd:"" help:"Serve: control plane, API, page and an in-process worker."`
	Worker     workerCommand     `cmd:"" help:"Run commands for a server, over NATS and HTTP."`
	Register   registerCommand   `cmd:"" help:"Store playbooks in a server's catalog, or credentials: register credential -f FILE."`
	Execute    executeCommand    `cmd:"" help:"Start a registered playbook on a server."`
	Rerun      rerunCommand      `cmd:"" help:"Run an execution again, all of it or from a step on."`
	Status     statusCommand     `cmd:"" help:"Show how an execution stands."`
	List       listCommand       `cmd:"" help:"List executions, or the catalog."`
	Explain    explainCommand    `cmd:"" help:"Say how the steps of an execution stand, what they wait for, and why it went where it went."`
	Events     eventsCommand     `cmd:"" help:"Show an execution's log."`
	Logs       logsCommand       `cmd:"" help:"Show what the tools of an execution print."`
	Waits      waitsCommand      `cmd:"" help:"List what an execution waits for that somebody has to send."`
	Signal     signalCommand     `cmd:"" help:"Send a signal to an execution: whatever waits for it goes on."`
	Approve    approveCommand    `cmd:"" help:"Say yes to an execution that asks for an approval."`
	Reject     rejectCommand     `cmd:"" help:"Say no to an execution that asks for an approval."`
	Cancel     cancelCommand     `cmd:"" help:"Cancel an execution."`
	Get        getCommand        `cmd:"" hidden:"" help:"Show a credential."`
	Credential credentialCommand `cmd:"" aliases:"credentials" help:"Store, list and remove credentials."`
	Secrets    secretsCommand    `cmd:"" help:"Check, rotate and audit what is encrypted."`
	Workers    workersCommand    `cmd:"" aliases:"pools" help:"List the workers a server knows."`
	DB         dbCommand         `cmd:"" name:"db" help:"Check and mend what is stored."`
	Sweeps     sweepsCommand     `cmd:"" help:"Tell what waits too long on a server and what becomes of it."`
	Validate   validateCommand   `cmd:"" help:"Check playbook files without running them."`
	Schema     schemaCommand     `cmd:"" help:"Print the JSON Schema of the playbook language, for editors."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

type versionCommand struct{}

func (versionCommand) Run(env *Env) error {
	fmt.Fprintln(env.Stdout, "noetl "+Version)
	return nil
}

// exit ends a command with a code; its message was printed already.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, args []string, env *Env) int {
	var c commands
	code := -1
	parser, err := kong.New(&c,
		kong.Name("noetl"),
		kong.Description("Event-sourced workflows: run them, rewind them, prove them."),
		kong.UsageOnError(),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(n int) { code = n }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
	if err != nil {
		fmt.Fprintln(env.Stderr, "noetl:", err)
		return ExitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(args)
	if code >= 0 { // --help was asked for and shown
		return code
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "noetl: %v\nRun \"noetl --help\" for the commands.\n", err)
		return ExitInvalid
	}
	if err := failpoint.Configure(os.Getenv("NOETL_FAILPOINTS")); err != nil {
		return exitCode(err, env)
	}
	kctx.BindTo(ctx, (*context.Context)(nil))
	return exitCode(kctx.Run(env), env)
}

// exitCode prints an error the way a person can use it and picks the code.
func exitCode(err error, env *Env) int {
	if err == nil {
		return ExitOK
	}
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	if problems, ok := errors.AsType[playbook.Problems](err); ok {
		fmt.Fprintln(env.Stderr, problems.Error())
		return ExitInvalid
	}
	fmt.Fprintln(env.Stderr, "noetl: "+err.Error())
	switch event.CodeOf(err) {
	case event.Invalid, event.BadRequest, event.NotFound, event.Limit:
		return ExitInvalid
	}
	if errors.Is(err, os.ErrNotExist) {
		return ExitInvalid
	}
	return ExitFailed
}

// invalidf is an error about what the user gave.
func invalidf(format string, args ...any) error { return event.Errorf(event.Invalid, format, args...) }

// readPlaybook reads and parses a playbook file.
func readPlaybook(path string) ([]byte, *playbook.Playbook, playbook.Problems, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil, nil, invalidf("%s: no such file", path)
		}
		return nil, nil, nil, invalidf("read playbook: %v", err)
	}
	pb, problems := playbook.Parse(path, src)
	return src, pb, problems, nil
}

// plural is "1 step", "2 steps".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine shortens text for a line of n characters.
func oneLine(text string, n int) string {
	return cut(strings.Join(strings.Fields(text), " "), n)
}

// cut ends text after n characters, and shows that it did.
func cut(text string, n int) string {
	if r := []rune(text); len(r) > n && n > 1 {
		return string(r[:n-1]) + "…"
	}
	return text
}
