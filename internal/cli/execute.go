package cli

import (
	"context"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

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
	ref, err := catalogRef(c.Path, c.PlaybookVersion)
	if err != nil {
		return err
	}
	return c.start(ctx, env, cl, ref, client.ExecuteRequest{Payload: payload, Pool: c.Pool})
}

// start begins an execution of what a reference names and follows it, if that
// was asked for.
func (f followFlags) start(ctx context.Context, env *Env, cl *client.Client, ref reference, r client.ExecuteRequest) error {
	r.Path, r.CatalogID, r.Version = ref.path, ref.id, ref.version
	answer, err := cl.Execute(ctx, r)
	if err != nil {
		return proposePath(ctx, cl, ref.path, err)
	}
	return f.started(ctx, env, cl, answer, "")
}

// proposePath adds the nearest path of the catalog to word that there is no such.
func proposePath(ctx context.Context, cl *client.Client, path string, err error) error {
	if path == "" || event.CodeOf(err) != event.NotFound {
		return err
	}
	entries, listErr := cl.Entries(ctx, client.EntryFilter{Kind: "Playbook"})
	if listErr != nil {
		return err
	}
	var paths []string
	for _, e := range entries {
		paths = append(paths, e.Path)
	}
	if hint := nearest(strings.Trim(path, "/ "), paths); hint != "" {
		return event.Errorf(event.NotFound, "%w%s", err, hint)
	}
	return err
}
