package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// serverFlags say which server a client command talks to.
type serverFlags struct {
	ServerURL string `help:"Server to talk to." default:"http://127.0.0.1:8082" env:"NOETL_SERVER_URL" placeholder:"URL"`
}

func (f serverFlags) client() (*client.Client, error) { return client.New(f.ServerURL) }

type registerCommand struct {
	serverFlags
	Files     []string `arg:"" optional:"" name:"file" help:"Playbook file."`
	File      []string `short:"f" help:"Playbook file." placeholder:"FILE"`
	Directory string   `short:"d" help:"Directory; every .yaml and .yml below it is registered." placeholder:"DIR"`
}

// Run registers files; all are tried, the first failure decides the exit code.
func (c *registerCommand) Run(ctx context.Context, env *Env) error {
	if len(c.Files) > 0 && c.Files[0] == "credential" { // a file of that name is ./credential
		cl, err := c.client()
		if err != nil {
			return err
		}
		return registerCredentials(ctx, env, cl, slices.Concat(c.Files[1:], c.File), c.Directory)
	}
	if len(c.Files) > 0 && c.Files[0] == "playbook" {
		c.Files = c.Files[1:]
	}
	files, err := c.files()
	if err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	var first error
	for _, f := range files {
		if err := registerFile(ctx, env, cl, f); err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", f, err)
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	if event.CodeOf(first) == event.Invalid || event.CodeOf(first) == event.BadRequest {
		return exit(ExitInvalid)
	}
	return exit(ExitFailed)
}

func (c *registerCommand) files() ([]string, error) {
	files := slices.Concat(c.Files, c.File)
	if c.Directory != "" {
		err := filepath.WalkDir(c.Directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if ext := filepath.Ext(path); !d.IsDir() && (ext == ".yaml" || ext == ".yml") {
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, invalidf("read directory: %v", err)
		}
	}
	if len(files) == 0 {
		return nil, invalidf("nothing to register: give files or a directory with -d DIR")
	}
	return files, nil
}

func registerFile(ctx context.Context, env *Env, cl *client.Client, path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return invalidf("%v", err)
	}
	reg, err := cl.Register(ctx, string(src))
	if err != nil {
		return err
	}
	for _, w := range reg.Warnings {
		fmt.Fprintf(env.Stderr, "%s:%d:%d: warning: %s %s\n", path, w.Line, w.Col, w.Message, w.Remedy)
	}
	fmt.Fprintf(env.Stdout, "registered %s version %d (catalog id %s)\n", reg.Path, reg.Version, reg.CatalogID)
	return nil
}

type executeCommand struct {
	serverFlags
	Path string `arg:"" help:"Catalog path of the playbook." placeholder:"PATH"`
	payloadFlags
	PlaybookVersion int    `name:"version" short:"V" help:"Version; the latest when not given." placeholder:"N"`
	Pool            string `help:"Worker pool of the execution." placeholder:"NAME"`
	followFlags
}

// Run starts the execution and, with --wait, follows it.
func (c *executeCommand) Run(ctx context.Context, env *Env) error {
	payload, err := c.value()
	if err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	answer, err := cl.Execute(ctx, client.ExecuteRequest{Path: c.Path, Version: c.PlaybookVersion, Payload: payload, Pool: c.Pool})
	if err != nil {
		return err
	}
	return c.started(ctx, env, cl, answer, "")
}

type statusCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	JSON      bool     `short:"j" help:"Print JSON."`
}

// Run prints where an execution stands.
func (c *statusCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	st, err := cl.Status(ctx, c.Execution)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env, st)
	}
	fmt.Fprintf(env.Stdout, "%s  %s  %s of %d done, %d running, %d failed",
		st.Status, st.Path, plural(st.Progress.Completed, "step"), st.Progress.Total, st.Progress.Running, st.Progress.Failed)
	if st.CurrentStep != "" && !st.Final() {
		fmt.Fprintf(env.Stdout, ", at %s", st.CurrentStep)
	}
	fmt.Fprintln(env.Stdout)
	if st.Error != "" {
		fmt.Fprintln(env.Stdout, st.Error)
	}
	return nil
}

type listCommand struct {
	serverFlags
	What   string `arg:"" optional:"" enum:"executions,catalog" default:"executions" help:"executions (default) or catalog."`
	Status string `help:"Only executions with this status." placeholder:"STATUS"`
	Path   string `help:"Only paths that contain this." placeholder:"TEXT"`
	Limit  int    `help:"At most this many; 50 when not given." default:"50" placeholder:"N"`
	JSON   bool   `short:"j" help:"Print JSON."`

	PathPrefix    string    `help:"Only executions whose path begins with this." placeholder:"TEXT"`
	Pool          string    `help:"Only executions of this worker pool." placeholder:"NAME"`
	Parent        event.ID  `help:"Only executions this one started." placeholder:"ID"`
	Catalog       event.ID  `name:"catalog-id" help:"Only executions of this catalog entry." placeholder:"ID"`
	StartedAfter  time.Time `help:"Only executions started at or after this time, as 2026-01-02T15:04:05Z." placeholder:"TIME"`
	StartedBefore time.Time `help:"Only executions started before this time." placeholder:"TIME"`
	Before        event.ID  `help:"Go on below this execution: the last one of the page before." placeholder:"ID"`
}

// Run prints a table, newest first.
func (c *listCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if c.Limit < 1 {
		return invalidf("--limit %d: want a number from 1", c.Limit)
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 4, 2, ' ', 0)
	if c.What == "catalog" {
		entries, err := cl.Entries(ctx, client.EntryFilter{})
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(env, entries)
		}
		fmt.Fprintln(w, "PATH\tVERSION\tKIND\tREGISTERED")
		for _, e := range entries {
			if strings.Contains(e.Path, c.Path) {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", e.Path, e.Version, e.Kind, e.CreatedAt.Local().Format(time.DateTime))
			}
		}
		return w.Flush()
	}
	rows, err := c.executions(ctx, cl)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env, rows)
	}
	fmt.Fprintln(w, "EXECUTION\tSTATUS\tPATH\tSTARTED\tDURATION")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ExecutionID, r.Status, r.Path, r.StartedAt.Local().Format(time.DateTime),
			time.Duration(r.DurationSeconds*float64(time.Second)).Round(time.Millisecond))
	}
	return w.Flush()
}

// executions reads as many pages as the limit needs.
func (c *listCommand) executions(ctx context.Context, cl *client.Client) ([]client.Execution, error) {
	const page = 100 // what a server gives at once
	rows, before := []client.Execution{}, c.Before
	for {
		want := min(c.Limit-len(rows), page)
		more, err := cl.Executions(ctx, client.ExecutionFilter{
			Status: strings.ToUpper(c.Status), Path: c.Path, PathPrefix: c.PathPrefix, Pool: c.Pool, ParentID: c.Parent, CatalogID: c.Catalog,
			StartedAfter: c.StartedAfter, StartedBefore: c.StartedBefore, Before: before, Limit: want,
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
		if len(more) < want || len(rows) >= c.Limit {
			return rows, nil
		}
		before = more[len(more)-1].ExecutionID
	}
}

type cancelCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Reason    string   `short:"r" help:"Why; kept in the log." placeholder:"TEXT"`
	Cascade   bool     `help:"Cancel its children too." default:"true" negatable:""`
}

// Run cancels an execution.
func (c *cancelCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	answer, err := cl.Cancel(ctx, c.Execution, client.CancelRequest{Reason: c.Reason, Alone: !c.Cascade})
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, answer.Message)
	return nil
}
