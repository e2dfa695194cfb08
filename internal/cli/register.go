package cli

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

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
