package cli

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// contextCommand is all about contexts: named servers.
type contextCommand struct {
	Add        contextAddCommand     `cmd:"" help:"Add a context, or change one."`
	List       contextListCommand    `cmd:"" help:"List the contexts."`
	Use        contextUseCommand     `cmd:"" help:"Make a context the current one."`
	Current    contextCurrentCommand `cmd:"" help:"Show the current context."`
	Delete     contextDeleteCommand  `cmd:"" help:"Forget a context."`
	SetRuntime contextRuntimeCommand `cmd:"" name:"set-runtime" help:"Say where noetl run runs playbooks in the current context."`
}

type contextAddCommand struct {
	serverFlags
	Name       string `arg:"" help:"Name of the context."`
	Runtime    string `help:"Where noetl run runs playbooks: auto (files here, others on the server), local or distributed." enum:"auto,local,distributed," default:"" placeholder:"WHERE"`
	SetCurrent bool   `help:"Make it the current context. The first one always is."`
	TLSCA      string `name:"tls-ca" help:"Certificate authority of the server, in PEM." placeholder:"FILE"`
	TLSCert    string `name:"tls-cert" help:"Certificate to show to the server." placeholder:"FILE"`
	TLSKey     string `name:"tls-key" help:"Its key." placeholder:"FILE"`

	Auth0Domain       string `hidden:"" help:"Domain, or URL, of the identity provider." placeholder:"DOMAIN"`
	Auth0ClientID     string `name:"auth0-client-id" hidden:"" help:"Client id there." placeholder:"ID"`
	Auth0RedirectURI  string `name:"auth0-redirect-uri" hidden:"" help:"Where it sends the browser back to." placeholder:"URL"`
	Auth0Audience     string `hidden:"" help:"Audience of the tokens." placeholder:"TEXT"`
	Auth0ClientSecret string `hidden:"" help:"Client secret; better set NOETL_AUTH0_CLIENT_SECRET." placeholder:"SECRET"`
}

// Run adds or changes a context.
func (c *contextAddCommand) Run(env *Env) error {
	if strings.TrimSpace(c.Name) == "" || strings.ContainsAny(c.Name, " \t\n/") {
		return invalidf("%q is no name for a context: use letters, digits, - and _", c.Name)
	}
	cfg, err := readConfig(env)
	if err != nil {
		return err
	}
	p := cfg.Contexts[c.Name]
	known := p != nil
	if !known {
		p = &profile{}
	}
	if err := c.fill(p); err != nil {
		return err
	}
	cfg.Contexts[c.Name] = p
	if c.SetCurrent || cfg.Current == "" {
		cfg.Current = c.Name
	}
	if err := cfg.save(); err != nil {
		return err
	}
	done := "added"
	if known {
		done = "changed"
	}
	fmt.Fprintf(env.Stdout, "%s context %s: %s\n", done, c.Name, p.ServerURL)
	if cfg.Current == c.Name {
		fmt.Fprintf(env.Stdout, "%s is the current context\n", c.Name)
	}
	return nil
}

// fill takes over what was given; the rest of a context stays as it is.
func (c *contextAddCommand) fill(p *profile) error {
	server, err := c.Connection.address()
	if err != nil {
		return err
	}
	if server == "" && p.ServerURL == "" {
		server = defaultServer
	}
	if u, err := url.Parse(server); server != "" && (err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "") {
		return invalidf("--server-url %q is not an HTTP URL: write it like http://localhost:8082", server)
	}
	token, err := readSecret(c.Connection.flags.Token)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		to    *string
		value string
		file  bool
	}{
		{&p.ServerURL, server, false},
		{&p.Runtime, c.Runtime, false},
		{&p.Token, token, false},
		{&p.Session, c.Connection.flags.SessionToken, false},
		{&p.TLSCA, c.TLSCA, true},
		{&p.TLSCert, c.TLSCert, true},
		{&p.TLSKey, c.TLSKey, true},
		{&p.Auth0Domain, c.Auth0Domain, false},
		{&p.Auth0ClientID, c.Auth0ClientID, false},
		{&p.Auth0Redirect, c.Auth0RedirectURI, false},
		{&p.Auth0Audience, c.Auth0Audience, false},
		{&p.Auth0Secret, c.Auth0ClientSecret, false},
	} {
		if f.value == "" {
			continue
		}
		if f.file { // contexts are used from any directory
			if f.value, err = filepath.Abs(f.value); err != nil {
				return err
			}
		}
		*f.to = f.value
	}
	_, err = clientTLS(p.TLSCA, p.TLSCert, p.TLSKey)
	return err
}

type contextListCommand struct{ outputFlags }

// contextRow is a context without what is secret in it.
type contextRow struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	ServerURL string `json:"server_url"`
	Runtime   string `json:"runtime"`
	SignedIn  bool   `json:"signed_in"`
}

// Run prints a table of the contexts.
func (c *contextListCommand) Run(env *Env) error {
	cfg, err := readConfig(env)
	if err != nil {
		return err
	}
	rows := []contextRow{}
	t := newTable("CURRENT", "NAME", "SERVER", "RUNTIME", "SIGNED IN")
	t.empty = "no contexts: add one with noetl context add NAME --server-url URL"
	for _, name := range cfg.names() {
		r := rowOf(cfg, name)
		rows = append(rows, r)
		mark, signed := "", "no"
		if r.Current {
			mark = "*"
		}
		if r.SignedIn {
			signed = "yes"
		}
		t.add(name, mark, name, r.ServerURL, r.Runtime, signed)
	}
	return c.list(env, rows, t)
}

func rowOf(cfg *config, name string) contextRow {
	p := cfg.Contexts[name]
	return contextRow{name, name == cfg.Current, orText(p.ServerURL, defaultServer), orText(p.Runtime, "auto"), p.Token != "" || p.Session != "" || p.TLSCert != ""}
}

type contextUseCommand struct {
	Name string `arg:"" help:"Name of the context." predictor:"context"`
}

// Run makes a context the current one.
func (c *contextUseCommand) Run(env *Env) error {
	return changeConfig(env, func(cfg *config) error {
		if _, err := cfg.find(c.Name); err != nil {
			return err
		}
		cfg.Current = c.Name
		fmt.Fprintf(env.Stdout, "%s is the current context: %s\n", c.Name, orText(cfg.Contexts[c.Name].ServerURL, defaultServer))
		return nil
	})
}

type contextCurrentCommand struct{ outputFlags }

// Run shows the current context.
func (c *contextCurrentCommand) Run(env *Env) error {
	cfg, err := readConfig(env)
	if err != nil {
		return err
	}
	if cfg.Current == "" {
		return invalidf("there is no current context: commands talk to %s; add one with: noetl context add NAME --server-url URL", defaultServer)
	}
	r := rowOf(cfg, cfg.Current)
	return c.object(env, r, r.Name, func() error {
		_, err := fmt.Fprintf(env.Stdout, "%s  %s  runtime %s\n", r.Name, r.ServerURL, r.Runtime)
		return err
	})
}

type contextDeleteCommand struct {
	Name string `arg:"" help:"Name of the context."`
}

// Run forgets a context.
func (c *contextDeleteCommand) Run(env *Env) error {
	return changeConfig(env, func(cfg *config) error {
		if _, err := cfg.find(c.Name); err != nil {
			return err
		}
		delete(cfg.Contexts, c.Name)
		fmt.Fprintf(env.Stdout, "deleted context %s\n", c.Name)
		if cfg.Current == c.Name {
			cfg.Current = ""
			fmt.Fprintln(env.Stdout, "there is no current context now: choose one with noetl context use NAME")
		}
		return nil
	})
}

type contextRuntimeCommand struct {
	serverFlags
	Runtime string `arg:"" enum:"auto,local,distributed" help:"auto, local or distributed."`
}

// Run says where playbooks run in a context.
func (c *contextRuntimeCommand) Run(env *Env) error {
	return changeConfig(env, func(cfg *config) error {
		name := orText(orEnvWhenBlank(c.Connection.flags.Context, "NOETL_CONTEXT"), cfg.Current)
		if name == "" {
			return invalidf("there is no current context: add one with noetl context add NAME --server-url URL")
		}
		p, err := cfg.find(name)
		if err != nil {
			return err
		}
		p.Runtime = c.Runtime
		fmt.Fprintf(env.Stdout, "playbooks of context %s run %s\n", name, c.Runtime)
		return nil
	})
}

// changeConfig reads the contexts, changes them and saves them.
func changeConfig(env *Env, change func(*config) error) error {
	cfg, err := readConfig(env)
	if err != nil {
		return err
	}
	if err := change(cfg); err != nil {
		return err
	}
	return cfg.save()
}

// auth0Secret is the client secret of a context; the environment wins.
func auth0Secret(p *profile) string {
	if v := os.Getenv("NOETL_AUTH0_CLIENT_SECRET"); v != "" {
		return v
	}
	return p.Auth0Secret
}
