package node

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
)

// Authentication is what callers have to show, as settings say it. The zero
// value asks for nothing.
type Authentication struct {
	Mode         string // off, token, oidc; "" = off
	Issuer       string // of bearer tokens; several separated by commas, the first is where browsers sign in
	Audience     string // one of which tokens are for, separated by commas
	ClientID     string // of browsers at the issuer; "" = they cannot sign in
	ClientSecret string
	Grants       string // what claims are worth: NAME=VALUE->GRANTS; …
	CertGrants   string // what client certificates are worth: CN=NAME->GRANTS; …
	// BootstrapToken is the admin token of a server without any; "" = one is made.
	BootstrapToken string
	Leeway         time.Duration // of clocks
	KeysTTL        time.Duration // of an issuer's keys
	SessionIdle    time.Duration
	SessionMax     time.Duration
	KeepActions    time.Duration // 0 = for ever
}

// Required tells whether callers have to show anything.
func (a *Authentication) Required() bool { return a.Mode != "" && a.Mode != string(auth.ModeOff) }

// setting is the error of one setting.
func setting(name, message, remedy string) error {
	return &event.Error{Code: event.Invalid, Message: name + " " + message, Remedy: remedy}
}

// Check refuses settings that contradict each other or are only half there.
func (a *Authentication) Check() error {
	_, err := a.options()
	return err
}

// options reads the settings.
func (a *Authentication) options() (auth.Options, error) {
	o := auth.Options{
		Mode: auth.Mode(a.Mode), Leeway: a.Leeway, KeysTTL: a.KeysTTL, SessionIdle: a.SessionIdle, SessionMax: a.SessionMax, KeepActions: a.KeepActions,
	}
	switch o.Mode {
	case "":
		o.Mode = auth.ModeOff
	case auth.ModeOff, auth.ModeToken, auth.ModeOIDC:
	default:
		return o, setting("NOETL_AUTH", "is "+quoted(a.Mode)+", which is no way of authentication", "choose off, token or oidc")
	}
	if err := a.checkUnused(); err != nil {
		return o, err
	}
	if err := a.checkTimes(); err != nil {
		return o, err
	}
	var err error
	if a.CertGrants != "" {
		if o.Certificates, err = auth.ParseRules(a.CertGrants); err == nil {
			err = auth.CheckCertificateRules(o.Certificates)
		}
		if err != nil {
			return o, prefixed("NOETL_AUTH_CERT_GRANTS", err)
		}
	}
	if o.Mode == auth.ModeOIDC {
		o.Issuers, err = a.issuers()
	}
	return o, err
}

func quoted(s string) string { return `"` + s + `"` }

func prefixed(name string, err error) error {
	if e, ok := errors.AsType[*event.Error](err); ok {
		return &event.Error{Code: e.Code, Message: name + ": " + e.Message, Remedy: e.Remedy, Err: err}
	}
	return event.Errorf(event.Invalid, "%s: %w", name, err)
}

// checkUnused refuses settings that would have no effect: whoever set them
// believes the server is protected by them.
func (a *Authentication) checkUnused() error {
	for _, s := range []struct {
		name, value, mode string
		used              bool
	}{
		{"NOETL_OIDC_ISSUER", a.Issuer, "oidc", a.Mode == string(auth.ModeOIDC)},
		{"NOETL_OIDC_AUDIENCE", a.Audience, "oidc", a.Mode == string(auth.ModeOIDC)},
		{"NOETL_OIDC_CLIENT_ID", a.ClientID, "oidc", a.Mode == string(auth.ModeOIDC)},
		{"NOETL_OIDC_CLIENT_SECRET", a.ClientSecret, "oidc", a.Mode == string(auth.ModeOIDC)},
		{"NOETL_OIDC_GRANTS", a.Grants, "oidc", a.Mode == string(auth.ModeOIDC)},
		{"NOETL_AUTH_CERT_GRANTS", a.CertGrants, "token", a.Required()},
		{"NOETL_BOOTSTRAP_TOKEN", a.BootstrapToken, "token", a.Required()},
	} {
		if s.value != "" && !s.used {
			return setting(s.name, "is set, but authentication is "+orOff(a.Mode), "set NOETL_AUTH="+s.mode+", or take the setting away")
		}
	}
	return nil
}

func orOff(mode string) string {
	if mode == "" {
		return "off"
	}
	return mode
}

func (a *Authentication) checkTimes() error {
	switch {
	case a.Leeway < 0 || a.Leeway > 5*time.Minute:
		return setting("NOETL_AUTH_JWT_LEEWAY_SECS", "is out of range", "choose 0 to 300 seconds")
	case a.KeysTTL != 0 && (a.KeysTTL < 10*time.Second || a.KeysTTL > 24*time.Hour):
		return setting("NOETL_AUTH_JWKS_TTL_SECS", "is out of range", "choose 10 to 86400 seconds")
	case a.SessionIdle != 0 && a.SessionIdle < time.Minute:
		return setting("NOETL_SESSION_IDLE", "is too short", "choose at least 1m")
	case a.SessionMax != 0 && (a.SessionMax < a.SessionIdle || a.SessionMax > 90*24*time.Hour):
		return setting("NOETL_SESSION_MAX", "is out of range", "choose at least NOETL_SESSION_IDLE and at most 2160h")
	case a.KeepActions != 0 && a.KeepActions < 24*time.Hour:
		return setting("NOETL_AUDIT_KEEP", "is too short to answer anything", "choose at least 24h, or 0 to keep everything")
	}
	return nil
}

func (a *Authentication) issuers() ([]auth.Issuer, error) {
	urls, audience := words(a.Issuer), words(a.Audience)
	switch {
	case len(urls) == 0:
		return nil, setting("NOETL_OIDC_ISSUER", "is missing", "name the issuer whose tokens count, exactly as their iss says, such as https://login.example.com/")
	case len(audience) == 0:
		return nil, setting("NOETL_OIDC_AUDIENCE", "is missing: tokens made for other services would count here", "name the audience that tokens for this server have")
	case a.Grants == "":
		return nil, setting("NOETL_OIDC_GRANTS", "is missing: nobody could do anything", "say what claims are worth, such as groups=noetl-admins->admin; sub=*->viewer")
	case a.ClientSecret != "" && a.ClientID == "":
		return nil, setting("NOETL_OIDC_CLIENT_SECRET", "is set without NOETL_OIDC_CLIENT_ID", "set both to let browsers sign in, or neither")
	}
	rules, err := auth.ParseRules(a.Grants)
	if err != nil {
		return nil, prefixed("NOETL_OIDC_GRANTS", err)
	}
	var out []auth.Issuer
	for n, url := range urls {
		if err := auth.CheckIssuer(url); err != nil {
			return nil, prefixed("NOETL_OIDC_ISSUER", err)
		}
		i := auth.Issuer{URL: url, Audience: audience, Rules: rules}
		if n == 0 {
			i.ClientID, i.ClientSecret = a.ClientID, a.ClientSecret
		}
		out = append(out, i)
	}
	return out, nil
}

// words are the parts of a list with commas.
func words(text string) []string {
	var out []string
	for w := range strings.SplitSeq(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// openAccess makes what tells who calls, and the first token of a server that
// has none.
func (n *Node) openAccess(ctx context.Context, o Options, ids *snowflake.Generator) error {
	if o.Listen == "" {
		return nil // nobody can call
	}
	options, err := o.Auth.options()
	if err != nil {
		return err
	}
	if o.Auth.ClientID != "" && anyAddress(o.PublicURL) {
		return setting("NOETL_PUBLIC_SERVER_URL", "is missing: the issuer has to send browsers back to this server", "set it to the address that browsers see")
	}
	if o.Auth.Required() && !o.Edge.TLS.used() && !strings.HasPrefix(o.PublicURL, "https://") && !loopback(o.Listen) {
		o.Logger.Warn("INSECURE: tokens travel unencrypted; set NOETL_TLS_CERT and NOETL_TLS_KEY, or put a proxy with TLS in front and set NOETL_PUBLIC_SERVER_URL")
	}
	options.Store, options.IDs, options.Clock, options.Logger, options.Metrics = n.Store, ids.Next, failpoint.Now, o.Logger, &n.metrics.Registry
	options.RedirectURL = strings.TrimSuffix(o.PublicURL, "/") + auth.CallbackPath
	if n.access, err = auth.New(options); err != nil {
		return err
	}
	n.background = append(n.background, n.access.Run)
	var made bool
	if n.Bootstrap, made, err = n.access.Bootstrap(ctx, o.Auth.BootstrapToken); made {
		o.Logger.Info("made the first admin token, because there was none: make tokens for people and programs with it and revoke it", "token", "1")
	}
	return err
}

func loopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// anyAddress tells whether a URL names no particular machine.
func anyAddress(url string) bool {
	_, host, _ := strings.Cut(url, "://")
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "" || ip != nil && ip.IsUnspecified()
}

// NewToken makes an API token in the database of a node with these options,
// without the node: for operators who have lost theirs. grants are as people
// write them; expires is zero for a token that does not end.
func NewToken(ctx context.Context, o Options, name, grants string, expires time.Time) (t auth.Token, secret string, err error) {
	given, err := auth.ParseGrants(grants)
	if err != nil {
		return t, "", err
	}
	err = o.withTokens(ctx, func(s *auth.Service) error {
		t, secret, err = s.CreateToken(ctx, auth.TokenRequest{Name: name, Grants: given, Expires: expires, By: &auth.Principal{ID: "database", Grants: []auth.Grant{{Role: auth.Admin}}}})
		if err != nil {
			return err
		}
		return s.Record(ctx, auth.Action{Type: "token.created", Actor: "database", ActorName: "command at the database", Target: t.ID, Outcome: "ok"})
	})
	return t, secret, err
}

// ListTokens and RevokeToken are what NewToken is for other needs.
func ListTokens(ctx context.Context, o Options) (list []auth.Token, err error) {
	err = o.withTokens(ctx, func(s *auth.Service) error {
		list, err = s.Tokens(ctx)
		return err
	})
	return list, err
}

// RevokeToken ends a token; servers refuse it within seconds.
func RevokeToken(ctx context.Context, o Options, id string) (t auth.Token, err error) {
	err = o.withTokens(ctx, func(s *auth.Service) error {
		if t, err = s.RevokeToken(ctx, id); err != nil {
			return err
		}
		return s.Record(ctx, auth.Action{Type: "token.revoked", Actor: "database", ActorName: "command at the database", Target: t.ID, Outcome: "ok"})
	})
	return t, err
}

// withTokens opens the database for a moment.
func (o *Options) withTokens(ctx context.Context, do func(*auth.Service) error) error {
	db, err := OpenDatabase(ctx, *o, false)
	if err != nil {
		return err
	}
	return errors.Join(tokensOf(ctx, db, do), db.Close())
}

func tokensOf(ctx context.Context, db store.Store, do func(*auth.Service) error) error {
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	s, err := auth.New(auth.Options{Mode: auth.ModeToken, Store: db, IDs: snowflake.New(0, failpoint.Now).Next, Clock: failpoint.Now})
	if err != nil {
		return err
	}
	return do(s)
}
