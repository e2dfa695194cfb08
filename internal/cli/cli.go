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

	ExitInterrupted = 130 // somebody stopped the waiting; what was waited for goes on
)

// Version is set by the build.
var Version = "dev"

// Env is the world a command runs in; tests give their own.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a terminal: colours and live views are welcome
	Width          int  // of the terminal

	colours bool
	debts   debts
}

// commands is the command line as kong reads it.
type commands struct {
	connectionFlags
	Color string `help:"Colours: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto" placeholder:"WHEN" group:"connection"`

	Run      runCommand      `cmd:"" aliases:"exec" group:"write" help:"Run a playbook: a file here and now, with the same engine and tools as a server, or one of a catalog on a server."`
	Validate validateCommand `cmd:"" group:"write" help:"Check playbook files without running them."`
	Render   renderCommand   `cmd:"" group:"write" help:"Show what the templates of a step give, without running it."`
	Schema   schemaCommand   `cmd:"" group:"write" help:"Print the JSON Schema of the playbook language, for editors."`

	Execute executeCommand `cmd:"" group:"steer" help:"Start a registered playbook on a server."`
	Rerun   rerunCommand   `cmd:"" group:"steer" help:"Run an execution again, all of it or from a step on."`
	Signal  signalCommand  `cmd:"" group:"steer" help:"Send a signal to an execution: whatever waits for it goes on."`
	Approve approveCommand `cmd:"" group:"steer" help:"Say yes to an execution that asks for an approval."`
	Reject  rejectCommand  `cmd:"" group:"steer" help:"Say no to an execution that asks for an approval."`
	Cancel  cancelCommand  `cmd:"" group:"steer" help:"Cancel an execution."`
	Cleanup cleanupCommand `cmd:"" group:"steer" help:"Cancel open executions in which nothing happens."`

	Watch   watchCommand   `cmd:"" group:"look" help:"Watch one execution live."`
	Status  statusCommand  `cmd:"" group:"look" help:"Show how an execution stands."`
	List    listCommand    `cmd:"" group:"look" help:"List executions, the catalog or credentials."`
	Explain explainCommand `cmd:"" group:"look" help:"Say how the steps of an execution stand, what they wait for, and why it went where it went."`
	Events  eventsCommand  `cmd:"" group:"look" help:"Show an execution's log."`
	Logs    logsCommand    `cmd:"" group:"look" help:"Show what the tools of an execution print."`
	Waits   waitsCommand   `cmd:"" group:"look" help:"List what an execution waits for that somebody has to send."`
	Replay  replayCommand  `cmd:"" group:"look" help:"Show an execution as it was at a moment."`
	Diff    diffCommand    `cmd:"" group:"look" help:"Tell how two executions differ, and where they began to."`

	Register   registerCommand   `cmd:"" group:"catalog" help:"Store playbooks in a server's catalog, or credentials: register credential -f FILE."`
	Catalog    catalogCommand    `cmd:"" group:"catalog" help:"Store, show and list what is in a server's catalog."`
	Credential credentialCommand `cmd:"" group:"catalog" aliases:"credentials" help:"Store, list and remove credentials."`
	Secrets    secretsCommand    `cmd:"" group:"catalog" help:"Check, rotate and audit what is encrypted."`

	Schedule scheduleCommand `cmd:"" aliases:"schedules" group:"catalog" help:"Have playbooks started by themselves: by cron or at intervals."`

	Server    serverCommand    `cmd:"" group:"operate" help:"Serve: control plane, API, page and an in-process worker."`
	Worker    workerCommand    `cmd:"" group:"operate" help:"Run commands for a server, over NATS and HTTP."`
	Workers   workersCommand   `cmd:"" group:"operate" help:"List the workers a server knows."`
	Pools     poolsCommand     `cmd:"" group:"operate" help:"Show how busy each worker pool is."`
	Doctor    doctorCommand    `cmd:"" group:"operate" help:"Find out what keeps a server from working and what to do about it."`
	DB        dbCommand        `cmd:"" name:"db" group:"operate" help:"Check and mend what is stored."`
	Token     tokenCommand     `cmd:"" aliases:"tokens" group:"operate" help:"Make, list and revoke API tokens."`
	Audit     auditCommand     `cmd:"" group:"operate" help:"Tell what operators did, and what was refused."`
	Retention retentionCommand `cmd:"" group:"operate" help:"Show, plan and run the removal of executions whose time is over."`
	Sweeps    sweepsCommand    `cmd:"" group:"operate" help:"Tell what waits too long on a server and what becomes of it."`
	Query     queryCommand     `cmd:"" group:"operate" help:"Ask a PostgreSQL with SQL, through a server that keeps a credential of it."`

	Contexts   contextCommand    `cmd:"" name:"context" aliases:"contexts" group:"connect" help:"Keep the addresses of servers, and choose between them."`
	Auth       authCommand       `cmd:"" group:"connect" help:"Sign in and out, and tell who one is."`
	Completion completionCommand `cmd:"" group:"connect" help:"Print what makes a shell complete commands, flags and names."`
	Version    versionCommand    `cmd:"" group:"connect" help:"Print the version."`

	Get getCommand `cmd:"" hidden:"" help:"Show a credential."`
	legacyCommands
	Complete completeCommand `cmd:"" name:"__complete" hidden:"" help:"Answer a shell that completes a line."`
}

// topics are the groups of the help, in the order of a day's work.
var topics = []kong.Group{
	{Key: "write", Title: "Write and run"},
	{Key: "steer", Title: "Start and steer executions"},
	{Key: "look", Title: "Look at executions"},
	{Key: "catalog", Title: "Catalog and credentials"},
	{Key: "operate", Title: "Operate"},
	{Key: "connect", Title: "Servers and sign-in"},
	{Key: "connection", Title: "Which server"},
}

type versionCommand struct{}

func (versionCommand) Run(env *Env) error {
	fmt.Fprintln(env.Stdout, "noetl "+Version)
	return nil
}

// exit ends a command with a code; its message was printed already.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// parser reads command lines into c. Help and its exit code go through done.
func parser(c *commands, env *Env, done func(int)) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("noetl"),
		kong.Description("Event-sourced workflows: run them, rewind them, prove them."),
		kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(done),
		kong.ExplicitGroups(topics),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 120}),
		kong.Help(helpWithExamples),
		executionRefs,
	)
}

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, args []string, env *Env) int {
	var c commands
	code := -1
	parser, err := parser(&c, env, func(n int) { code = n })
	if err != nil {
		fmt.Fprintln(env.Stderr, "noetl:", err)
		return ExitFailed
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	args, err = rearrange(args)
	if err != nil {
		return exitCode(err, env)
	}
	kctx, err := parser.Parse(args)
	if code >= 0 { // --help was asked for and shown
		return code
	}
	if err != nil {
		fmt.Fprintf(env.Stderr, "noetl: %v\nRun \"noetl %s\" for what there is.\n", err, helpFor(err))
		return ExitInvalid
	}
	if err := failpoint.Configure(os.Getenv("NOETL_FAILPOINTS")); err != nil {
		return exitCode(err, env)
	}
	env.chooseColours(c.Color)
	server := &connection{flags: c.connectionFlags, env: env}
	bind(kctx.Selected().Target, server)
	if err := lookUp(ctx, kctx.Selected(), server); err != nil {
		return exitCode(err, env)
	}
	kctx.BindTo(ctx, (*context.Context)(nil))
	kctx.Bind(parser)
	if err = kctx.Run(env); wasInterrupted(ctx, err) {
		return ExitInterrupted
	}
	return exitCode(err, env)
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
