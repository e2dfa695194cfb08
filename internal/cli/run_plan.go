package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// Where a playbook runs.
const (
	local       = "local"
	distributed = "distributed"
)

// runPlan is what a run comes down to.
type runPlan struct {
	Runtime string          `json:"runtime"`
	Server  string          `json:"server_url,omitempty"`
	File    string          `json:"file,omitempty"`
	Path    string          `json:"path,omitempty"`
	ID      event.ID        `json:"catalog_id,omitempty"`
	Version int             `json:"version,omitempty"`
	Target  string          `json:"target,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`

	ref reference
	src []byte
	pb  *playbook.Playbook
}

// plan finds out what is run and where, and reads it as far as it is run here.
func (c *runCommand) plan(ctx context.Context, env *Env) (runPlan, error) {
	ref, err := readReference(c.File, c.PlaybookVersion)
	if err != nil {
		return runPlan{}, err
	}
	if c.Endpoint != "" {
		c.Connection.flags.ServerURL = c.Endpoint
	}
	p := runPlan{File: ref.file, Path: ref.path, ID: ref.id, Version: ref.version, Target: orText(c.Target, ref.target), ref: ref}
	if p.Runtime, err = c.where(ref); err != nil {
		return p, err
	}
	if p.Runtime == distributed || ref.file == "" {
		t, err := c.Connection.target()
		if err != nil {
			return p, err
		}
		p.Server = t.url
	}
	return p, c.read(ctx, env, &p)
}

// where chooses the runtime: the flag, then the context, then by what it is.
func (c *runCommand) where(ref reference) (string, error) {
	if c.Runtime != "auto" {
		return c.Runtime, nil
	}
	cfg, err := readConfig(&Env{Stderr: discard{}})
	if err != nil {
		return "", err
	}
	p, err := cfg.find(orEnvWhenBlank(c.Connection.flags.Context, "NOETL_CONTEXT"))
	if err != nil {
		return "", err
	}
	switch {
	case p != nil && p.Runtime != "" && p.Runtime != "auto":
		return p.Runtime, nil
	case ref.file != "":
		return local, nil
	}
	return distributed, nil
}

// discard takes warnings that are given elsewhere.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// read gets the document, unless the server that runs it has it already.
func (c *runCommand) read(ctx context.Context, env *Env, p *runPlan) (err error) {
	var problems playbook.Problems
	switch {
	case p.File != "":
		p.src, p.pb, problems, err = readInput(env, p.File)
	case p.Runtime == local || p.Target != "":
		err = c.fetch(ctx, p)
		if err == nil {
			p.pb, problems = playbook.Parse(c.File, p.src)
		}
	default:
		return nil
	}
	if err != nil {
		return err
	}
	if err := problems.Err(); err != nil {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintln(env.Stderr, problem)
	}
	if p.Target == "" {
		return nil
	}
	if _, err := stepOf(p.pb, p.Target); err != nil {
		if p.ref.target != "" {
			return event.Errorf(event.Invalid, "there is no file %s, and %s is beside it: %w", c.File, p.File, err)
		}
		return err
	}
	return p.begin()
}

// fetch reads a playbook of the catalog.
func (c *runCommand) fetch(ctx context.Context, p *runPlan) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	e, err := cl.Entry(ctx, client.EntryRef{CatalogID: p.ID, Path: p.Path, Version: p.Version})
	if err != nil {
		return proposePath(ctx, cl, p.Path, err)
	}
	p.src, p.Path, p.Version = []byte(e.Content), e.Path, e.Version
	return nil
}

// begin makes the document begin with the target.
func (p *runPlan) begin() error {
	var doc yaml.Node
	if err := yaml.Unmarshal(p.src, &doc); err != nil || len(doc.Content) == 0 {
		return invalidf("%s cannot begin with step %s: %v", p.File, p.Target, err)
	}
	spec := mapping(mapping(doc.Content[0], "executor"), "spec")
	entry := child(spec, "entry_step")
	entry.Kind, entry.Tag, entry.Value, entry.Style = yaml.ScalarNode, "!!str", p.Target, yaml.DoubleQuotedStyle
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return fmt.Errorf("begin with step %s: %w", p.Target, err)
	}
	p.src = b.Bytes()
	pb, problems := playbook.Parse(shownName(p.File), p.src)
	if err := problems.Err(); err != nil {
		return err
	}
	p.pb = pb
	return nil
}

// child is the value of a key, which is added when it is missing.
func child(n *yaml.Node, key string) *yaml.Node {
	if v := valueOf(n, key); v != nil {
		return v
	}
	v := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, v)
	return v
}

func mapping(n *yaml.Node, key string) *yaml.Node {
	v := child(n, key)
	if v.Kind != yaml.MappingNode {
		*v = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	return v
}

// distributed runs on the server and follows to the end. A file becomes the
// next version of its path there first.
func (c *runCommand) distributed(ctx context.Context, env *Env, p runPlan, payload []byte) error {
	if err := c.localOnly(); err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	f := followFlags{Wait: true, Timeout: c.Timeout, outputFlags: c.outputFlags}
	ref := p.ref
	switch {
	case p.File != "":
		reg, err := cl.Register(ctx, string(p.src))
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stderr, "registered %s version %d at %s\n", reg.Path, reg.Version, p.Server)
		ref = reference{id: reg.CatalogID}
	case p.Target != "":
		return invalidf("--target %s: a playbook of the catalog begins where it is written to begin; run it here with -r local, or part of an execution again with noetl rerun ID --from-step %s", p.Target, p.Target)
	}
	return f.start(ctx, env, cl, ref, client.ExecuteRequest{Payload: payload})
}

// localOnly refuses flags that a server does not follow.
func (c *runCommand) localOnly() error {
	for flag, given := range map[string]bool{"--catalog": c.Catalog != "", "--env": len(c.Env) > 0, "--data-dir": c.DataDir != "", "--credential": len(c.Credential) > 0} {
		if given {
			return invalidf("%s is for runs here: leave it out, or run with -r local", flag)
		}
	}
	return nil
}

// tell shows the plan instead of carrying it out.
func (c *runCommand) tell(env *Env, p runPlan, payload []byte) error {
	p.Payload = payload
	return c.object(env, p, orText(p.File, p.Path), func() error {
		what := p.File
		if what == "" {
			what = p.ref.String()
		}
		fmt.Fprintf(env.Stdout, "would run %s %s", what, p.Runtime)
		if p.Runtime == distributed {
			fmt.Fprintf(env.Stdout, " at %s", p.Server)
		}
		if p.Target != "" {
			fmt.Fprintf(env.Stdout, ", beginning with step %s", p.Target)
		}
		if p.pb != nil {
			fmt.Fprintf(env.Stdout, " (%s)", plural(len(p.pb.Steps), "step"))
		}
		fmt.Fprintln(env.Stdout)
		if len(payload) > 0 {
			fmt.Fprintf(env.Stdout, "input %s\n", payload)
		}
		return nil
	})
}

// String is a reference as one writes it.
func (r reference) String() string {
	switch {
	case r.file != "":
		return r.file
	case r.id != 0:
		return "pbk_" + r.id.String()
	case r.version != 0:
		return fmt.Sprintf("catalog://%s@%d", r.path, r.version)
	}
	return "catalog://" + r.path
}
