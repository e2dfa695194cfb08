package cli

import (
	"context"
	"fmt"

	"github.com/noetl/noetl-go/client"
)

// catalogCommand is all about a server's catalog.
type catalogCommand struct {
	Register registerCommand    `cmd:"" help:"Store playbooks as the next version of their paths."`
	Get      catalogGetCommand  `cmd:"" help:"Show a playbook as it was registered."`
	List     catalogListCommand `cmd:"" help:"List what is in the catalog."`
}

type catalogGetCommand struct {
	serverFlags
	Path            string `arg:"" help:"Catalog path, catalog://PATH@VERSION, or pbk_ID." placeholder:"PATH"`
	PlaybookVersion int    `name:"version" short:"V" help:"Version; the latest when not given." placeholder:"N"`
	outputFlags
}

// Run prints the document.
func (c *catalogGetCommand) Run(ctx context.Context, env *Env) error {
	ref, err := catalogRef(c.Path, c.PlaybookVersion)
	if err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	e, err := cl.Entry(ctx, client.EntryRef{CatalogID: ref.id, Path: ref.path, Version: ref.version})
	if err != nil {
		return proposePath(ctx, cl, ref.path, err)
	}
	return c.object(env, e, e.Path, func() error {
		_, err := fmt.Fprint(env.Stdout, e.Content)
		return err
	})
}

type catalogListCommand struct {
	serverFlags
	Kind string `arg:"" optional:"" help:"Playbook, Credential or another kind; all when not given."`
	outputFlags
}

// Run prints a table, newest first.
func (c *catalogListCommand) Run(ctx context.Context, env *Env) error {
	l := listCommand{serverFlags: c.serverFlags, What: "catalog", Limit: 50, outputFlags: c.outputFlags}
	switch c.Kind {
	case "":
	case "Credential", "credential", "credentials":
		l.What = "credentials"
	default:
		cl, err := c.client()
		if err != nil {
			return err
		}
		return l.entries(ctx, env, cl, titled(c.Kind))
	}
	return l.Run(ctx, env)
}

// titled is the kind of a resource as documents write it.
func titled(kind string) string {
	if kind == "playbook" || kind == "playbooks" {
		return "Playbook"
	}
	return kind
}
