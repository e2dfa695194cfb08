package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type listCommand struct {
	serverFlags
	What   string `arg:"" optional:"" default:"executions" help:"executions (default), catalog, or credentials."`
	Status string `help:"Only executions with this status." placeholder:"STATUS"`
	Path   string `help:"Only paths that contain this." placeholder:"TEXT"`
	Limit  int    `help:"At most this many; 50 when not given." default:"50" placeholder:"N"`
	outputFlags

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
	switch strings.ToLower(c.What) {
	case "executions", "execution":
	case "catalog":
		return c.entries(ctx, env, cl, "")
	case "playbook", "playbooks":
		return c.entries(ctx, env, cl, "Playbook")
	case "credential", "credentials":
		found, err := cl.Credentials(ctx, "", c.Path)
		if err != nil {
			return err
		}
		return c.list(env, found, credentialTable(env, found))
	default:
		return invalidf("noetl list %s: want executions, catalog, playbooks or credentials%s", c.What,
			nearest(c.What, []string{"executions", "catalog", "playbooks", "credentials"}))
	}
	rows, err := c.executions(ctx, cl)
	if err != nil {
		return err
	}
	t := newTable("EXECUTION", "STATUS", "PATH", "STARTED", "DURATION")
	for _, r := range rows {
		t.add(r.ExecutionID.String(), r.ExecutionID.String(), r.Status, r.Path, env.moment(r.StartedAt),
			seconds(time.Duration(r.DurationSeconds*float64(time.Second))))
	}
	return c.list(env, rows, t)
}

// entries lists the catalog.
func (c *listCommand) entries(ctx context.Context, env *Env, cl *client.Client, kind string) error {
	entries, err := cl.Entries(ctx, client.EntryFilter{Kind: kind})
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e client.Entry) bool { return !strings.Contains(e.Path, c.Path) })
	return c.list(env, entries, entryTable(env, entries))
}

func entryTable(env *Env, entries []client.Entry) *table {
	t := newTable("PATH", "VERSION", "KIND", "REGISTERED")
	for _, e := range entries {
		t.add(e.Path, e.Path, strconv.Itoa(e.Version), e.Kind, env.moment(e.CreatedAt))
	}
	return t
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
