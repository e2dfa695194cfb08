package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// authCommand is about who one is to a server.
type authCommand struct {
	Login  loginCommand  `cmd:"" help:"Sign in with a token, or in the browser, and keep that in the context."`
	Logout logoutCommand `cmd:"" help:"End the session of a context at its server, and forget its token."`
	Whoami whoamiCommand `cmd:"" help:"Tell whom the server takes one for."`
}

type loginCommand struct {
	serverFlags
	Browser       bool   `help:"Sign in at the identity provider, in the browser." aliases:"pkce,browser-pkce,auth0"`
	PKCEPort      int    `name:"pkce-port" help:"Port the browser comes back to." default:"8765" placeholder:"N"`
	NoBrowserOpen bool   `help:"Only print the address to open."`
	Issuer        string `help:"Identity provider. Default: that of the server, or of the context." placeholder:"URL"`
	ClientID      string `name:"client-id" help:"Client id there. Default: that of the server, or of the context." placeholder:"ID"`
	NoSave        bool   `help:"Print the token instead of keeping it in the context."`

	Auth0Token        string  `hidden:"" help:"Token of the identity provider, traded for a session." placeholder:"TOKEN"`
	Auth0CallbackURL  string  `name:"auth0-callback-url" hidden:"" help:"Not needed any more." placeholder:"URL"`
	Auth0Domain       string  `hidden:"" help:"The same as --issuer." placeholder:"DOMAIN"`
	Auth0RedirectURI  string  `name:"auth0-redirect-uri" hidden:"" help:"Where the provider sends the browser back to." placeholder:"URL"`
	Auth0Audience     string  `hidden:"" help:"Audience of the token." placeholder:"TEXT"`
	Auth0ClientSecret string  `hidden:"" help:"Client secret; better set NOETL_AUTH0_CLIENT_SECRET." placeholder:"SECRET"`
	Password          string  `hidden:"" help:"Not supported: sign in with --browser." placeholder:"TEXT"`
	SessionHours      float64 `name:"session-duration-hours" hidden:"" help:"Decided by the server." default:"8" placeholder:"N"`
	outputFlags
}

// Run signs in and keeps the evidence.
func (c *loginCommand) Run(ctx context.Context, env *Env) error {
	if c.Password != "" {
		return invalidf("a password is nothing for a command line: sign in with --browser, or paste a token")
	}
	t, err := c.Connection.target()
	if err != nil {
		return err
	}
	token, session, err := c.evidence(ctx, env, t)
	if err != nil {
		return err
	}
	t.token, t.session = token, session
	if err := accepted(ctx, t); err != nil {
		return err
	}
	name, err := c.keep(env, t)
	if err != nil {
		return err
	}
	answer := struct {
		Status  string `json:"status"`
		Server  string `json:"server_url"`
		Context string `json:"context,omitempty"`
		Token   string `json:"token,omitempty"`
		Session string `json:"session_token,omitempty"`
	}{"ok", t.url, name, "", ""}
	if c.NoSave {
		answer.Token, answer.Session = token, session
	}
	return c.object(env, answer, name, func() error {
		if c.NoSave {
			_, err := fmt.Fprintln(env.Stdout, token+session)
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "signed in at %s; kept in context %s\n", t.url, name)
		return err
	})
}

// evidence is what the user shows: a token, or a session that was made for one.
func (c *loginCommand) evidence(ctx context.Context, env *Env, t target) (token, session string, err error) {
	switch {
	case c.Auth0Token != "":
		return c.trade(ctx, t, c.Auth0Token)
	case c.Browser:
		issued, err := c.browse(ctx, env, t)
		if err != nil {
			return "", "", err
		}
		return c.trade(ctx, t, issued)
	case c.Connection.flags.Token != "" || c.Connection.flags.SessionToken != "":
		return t.token, t.session, nil // the flags
	}
	token, err = askToken(ctx, env)
	return token, "", err
}

// trade makes a session of a provider's token. A server that has no sessions
// takes the token itself.
func (c *loginCommand) trade(ctx context.Context, t target, issued string) (token, session string, err error) {
	t.token, t.session = "", ""
	cl, err := t.client()
	if err != nil {
		return "", "", err
	}
	s, err := cl.Login(ctx, issued, c.Auth0Domain)
	if event.CodeOf(err) == event.NotFound {
		return issued, "", nil
	}
	return "", s.Token, err
}

// askToken reads a token from standard input: typed without echo on a terminal.
func askToken(ctx context.Context, env *Env) (string, error) {
	var text string
	if f, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(env.Stderr, "Paste a token (it is not shown): ")
		b, err := readHidden(ctx, env, f)
		fmt.Fprintln(env.Stderr)
		if err != nil {
			return "", err
		}
		text = b
	} else {
		line, err := bufio.NewReader(io.LimitReader(env.Stdin, 64<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the token: %w", err)
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", invalidf("there is no token on standard input: paste one, pass --token @FILE, or sign in with --browser")
	}
	if strings.ContainsAny(text, " \t\x00") {
		return "", invalidf("what came from standard input is no token: it has blanks in it")
	}
	return text, nil
}

// readHidden reads a line that is not shown, until somebody interrupts.
func readHidden(ctx context.Context, env *Env, f *os.File) (string, error) {
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	restore := func() error { return term.Restore(int(f.Fd()), before) }
	defer env.owe(restore)()
	type answer struct {
		text []byte
		err  error
	}
	typed := make(chan answer, 1)
	go func() { // a read of a terminal cannot be called off: it ends with the process
		b, err := term.ReadPassword(int(f.Fd()))
		typed <- answer{b, err}
	}()
	select {
	case a := <-typed:
		if a.err != nil {
			return "", fmt.Errorf("read the token: %w", a.err)
		}
		return string(a.text), nil
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), restore())
	}
}

// accepted asks the server whether it takes the evidence. One that knows the
// caller and allows him nothing has accepted it too.
func accepted(ctx context.Context, t target) error {
	cl, err := t.client(client.WithTimeout(15 * time.Second))
	if err != nil {
		return err
	}
	_, err = cl.Executions(ctx, client.ExecutionFilter{Limit: 1})
	if event.CodeOf(err) == event.Forbidden {
		return nil
	}
	if event.CodeOf(err) == event.Unauthorized {
		return event.Errorf(event.Unauthorized, "%s does not accept this token: ask its administrator for a new one (noetl token create)", t.url)
	}
	return err
}

// keep puts the evidence into the context; the first one is called default.
func (c *loginCommand) keep(env *Env, t target) (string, error) {
	if c.NoSave {
		return t.context, nil
	}
	name := orText(t.context, "default")
	return name, changeConfig(env, func(cfg *config) error {
		p := cfg.Contexts[name]
		if p == nil {
			p = &profile{}
			cfg.Contexts[name] = p
		}
		if p.ServerURL != "" && !sameServer(p.ServerURL, t.url) {
			return invalidf("context %s is for %s, not for %s: add one for it with noetl context add NAME --server-url %s, or pass --no-save", name, p.ServerURL, t.url, t.url)
		}
		p.ServerURL, p.Token, p.Session = t.url, t.token, t.session
		if cfg.Current == "" {
			cfg.Current = name
		}
		return nil
	})
}

type logoutCommand struct{ serverFlags }

// Run ends the session of a context at its server and forgets what the context
// keeps to be known by. A server that cannot be asked keeps nobody from leaving:
// its session ends by itself.
func (c *logoutCommand) Run(ctx context.Context, env *Env) error {
	return changeConfig(env, func(cfg *config) error {
		name := orText(orEnvWhenBlank(c.Connection.flags.Context, "NOETL_CONTEXT"), cfg.Current)
		if name == "" {
			return invalidf("there is no current context: nothing is kept")
		}
		p, err := cfg.find(name)
		if err != nil {
			return err
		}
		if p.Session != "" {
			if err := endSession(ctx, name, p, c.Connection.flags.Gateway); err != nil {
				fmt.Fprintf(env.Stderr, "warning: the session was not ended at %s and lasts until its time is over: %v\n", p.ServerURL, err)
			}
		}
		p.Token, p.Session = "", ""
		fmt.Fprintf(env.Stdout, "signed out of context %s\n", name)
		return nil
	})
}

// endSession tells the server of a context that its session is over.
func endSession(ctx context.Context, name string, p *profile, gateway bool) error {
	t := target{url: orText(p.ServerURL, defaultServer), context: name, session: p.Session, tlsCA: p.TLSCA, tlsCert: p.TLSCert, tlsKey: p.TLSKey, gateway: gateway}
	cl, err := t.client(client.WithTimeout(10 * time.Second))
	if err != nil {
		return err
	}
	if err := cl.Logout(ctx, p.Session); err != nil && event.CodeOf(err) != event.NotFound {
		return err
	}
	return nil
}

type whoamiCommand struct {
	serverFlags
	outputFlags
}

// identity is whom a server takes a caller for.
type identity struct {
	Server  string `json:"server_url"`
	Context string `json:"context,omitempty"`
	client.SessionState
	Principal json.RawMessage `json:"principal,omitempty"`
}

// Run asks the server.
func (c *whoamiCommand) Run(ctx context.Context, env *Env) error {
	t, err := c.Connection.target()
	if err != nil {
		return err
	}
	cl, err := t.client()
	if err != nil {
		return err
	}
	who := identity{Server: t.url, Context: t.context}
	who.Principal, err = cl.Ask(ctx, whoamiRoute)
	switch {
	case err == nil:
		who.Valid = true
	case event.CodeOf(err) != event.NotFound:
		return err
	case t.session != "":
		if who.SessionState, err = cl.ValidateSession(ctx, t.session); err != nil {
			return err
		}
	default: // an older server: it answers, or it does not
		if err := accepted(ctx, t); err != nil {
			return err
		}
		who.Valid = true
	}
	if err := c.object(env, who, who.name(), func() error { return who.show(env) }); err != nil {
		return err
	}
	if !who.Valid {
		return exit(ExitFailed)
	}
	return nil
}

// whoamiRoute is where a server tells a caller who that is.
const whoamiRoute = "/api/auth/me"

// principal reads what the server said.
func (i identity) principal() (p struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Grants json.RawMessage `json:"grants"`
},
) {
	_ = json.Unmarshal(i.Principal, &p) // of another shape: nothing is known
	return p
}

func (i identity) name() string {
	if p := i.principal(); p.Name != "" || p.ID != "" {
		return orText(p.Name, p.ID)
	}
	if i.User != nil {
		return orText(i.User.Name, orText(i.User.Email, i.User.ID))
	}
	return ""
}

func (i identity) show(env *Env) error {
	if !i.Valid {
		_, err := fmt.Fprintf(env.Stdout, "not signed in at %s: %s\n", i.Server, orText(i.Error, "sign in with noetl auth login"))
		return err
	}
	fmt.Fprintf(env.Stdout, "%s at %s\n", orText(i.name(), "accepted, name unknown,"), i.Server)
	if g := i.principal().Grants; len(g) > 0 {
		fmt.Fprintf(env.Stdout, "grants %s\n", g)
	}
	if i.User != nil && len(i.User.Roles) > 0 {
		fmt.Fprintf(env.Stdout, "roles %s\n", strings.Join(i.User.Roles, ", "))
	}
	if !i.Expires.IsZero() {
		fmt.Fprintf(env.Stdout, "until %s\n", i.Expires.Local().Format(time.DateTime))
	}
	return nil
}
