package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
)

// tokenCommand looks after API tokens.
type tokenCommand struct {
	Create tokenCreateCommand `cmd:"" help:"Make an API token; it is shown this once."`
	List   tokenListCommand   `cmd:"" help:"List API tokens, without what is secret in them."`
	Revoke tokenRevokeCommand `cmd:"" help:"End API tokens; servers refuse them within seconds."`
}

// tokenPlace says where tokens are kept: at a server, or in a database that is
// opened here, for operators whom no server knows any more.
type tokenPlace struct {
	serverFlags
	DataDir     string `help:"Work at the embedded database in this directory, without a server." placeholder:"DIR"`
	DatabaseURL string `help:"Work at this PostgreSQL, without a server." placeholder:"URL"`
	shardFlags
	outputFlags
}

func (p *tokenPlace) offline() bool { return p.DataDir != "" || p.DatabaseURL != "" }

// options name the database.
func (p *tokenPlace) options() (node.Options, error) {
	if p.DataDir != "" && p.DatabaseURL != "" {
		return node.Options{}, invalidf("--data-dir and --database-url name two databases: give one of them")
	}
	if p.DataDir != "" {
		return node.Options{DataDir: p.DataDir}, nil
	}
	databases, err := p.postgres()
	return node.Options{DatabaseURL: p.DatabaseURL, Postgres: databases}, err
}

type tokenCreateCommand struct {
	Name    string   `arg:"" help:"What the token is for, such as ci or grafana."`
	Grant   []string `help:"A role (viewer, worker, operator, admin), everywhere or below a path: operator:team/a. May be repeated." required:"" placeholder:"ROLE[:PATH]"`
	Expires string   `help:"When it ends: a span such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z. Default: never." placeholder:"WHEN"`
	tokenPlace
}

// Run makes a token and prints it alone on a line, for scripts.
func (c *tokenCreateCommand) Run(ctx context.Context, env *Env) error {
	expires, err := parseEnd(c.Expires, time.Now())
	if err != nil {
		return err
	}
	t, err := c.create(ctx, expires)
	if err != nil {
		return err
	}
	return c.object(env, t, t.ID, func() error {
		fmt.Fprintf(env.Stderr, "token %s (%s) may: %s; it is not shown again\n", t.ID, printable(t.Name), grantText(t.Grants))
		_, err := fmt.Fprintln(env.Stdout, t.Secret)
		return err
	})
}

func (c *tokenCreateCommand) create(ctx context.Context, expires time.Time) (client.Token, error) {
	if c.offline() {
		o, err := c.options()
		if err != nil {
			return client.Token{}, err
		}
		t, secret, err := node.NewToken(ctx, o, c.Name, strings.Join(c.Grant, ","), expires)
		if err != nil {
			return client.Token{}, locked(err)
		}
		shown, err := asClientTokens(t)
		if err != nil {
			return client.Token{}, err
		}
		shown[0].Secret = secret
		return shown[0], nil
	}
	var grants []client.Grant
	for text := range strings.SplitSeq(strings.Join(c.Grant, ","), ",") {
		role, prefix, narrowed := strings.Cut(strings.TrimSpace(text), ":")
		if role == "" || narrowed && strings.Trim(prefix, "/ ") == "" {
			return client.Token{}, invalidf("--grant %q: write a role such as operator, or a role and a path such as operator:team/a", text)
		}
		grants = append(grants, client.Grant{Role: role, Prefix: prefix})
	}
	cl, err := c.client()
	if err != nil {
		return client.Token{}, err
	}
	return cl.CreateToken(ctx, client.TokenRequest{Name: c.Name, Grants: grants, ExpiresAt: expires})
}

// asClientTokens shows tokens of a database as a server would.
func asClientTokens(tokens ...any) ([]client.Token, error) {
	raw, err := json.Marshal(tokens)
	if err != nil {
		return nil, fmt.Errorf("show tokens: %w", err)
	}
	var out []client.Token
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("show tokens: %w", err)
	}
	return out, nil
}

func grantText(grants []client.Grant) string {
	var words []string
	for _, g := range grants {
		words = append(words, g.String())
	}
	return strings.Join(words, ",")
}

// parseEnd reads when something ends: a span from now, a time, or nothing.
func parseEnd(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	span, err := parseDays(text)
	if err != nil || span <= 0 {
		return time.Time{}, invalidf("%q is no time to end at: write a span such as 90d or 12h, or a time such as 2027-01-31T00:00:00Z", text)
	}
	return now.Add(span), nil
}

// parseDays reads a span that may be in days.
func parseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || n < 0 || n > 36500 {
			return 0, invalidf("%q is no span of time", text)
		}
		return time.Duration(n * float64(24*time.Hour)), nil
	}
	return time.ParseDuration(text)
}

type tokenListCommand struct{ tokenPlace }

// Run prints a table, newest first.
func (c *tokenListCommand) Run(ctx context.Context, env *Env) error {
	tokens, err := c.tokens(ctx)
	if err != nil {
		return err
	}
	t := newTable("ID", "NAME", "STATUS", "GRANTS", "CREATED", "EXPIRES", "USED", "BY")
	t.empty = "no tokens"
	for _, k := range tokens {
		t.add(k.ID, k.ID, k.Name, tokenStatus(k, time.Now()), grantText(k.Grants), env.moment(k.CreatedAt), env.moment(k.ExpiresAt), env.moment(k.LastUsedAt), orText(k.CreatedBy, "-"))
	}
	return c.list(env, tokens, t)
}

func (c *tokenListCommand) tokens(ctx context.Context) ([]client.Token, error) {
	if !c.offline() {
		cl, err := c.client()
		if err != nil {
			return nil, err
		}
		return cl.Tokens(ctx)
	}
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	found, err := node.ListTokens(ctx, o)
	if err != nil {
		return nil, locked(err)
	}
	all := make([]any, len(found))
	for i := range found {
		all[i] = found[i]
	}
	return asClientTokens(all...)
}

func tokenStatus(t client.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !t.ExpiresAt.After(now):
		return "expired"
	}
	return "active"
}

type tokenRevokeCommand struct {
	IDs []string `arg:"" name:"id" help:"Ids of tokens, as noetl token list shows them."`
	tokenPlace
}

// Run ends tokens; all are tried.
func (c *tokenRevokeCommand) Run(ctx context.Context, env *Env) error {
	revoke, err := c.revoke(ctx)
	if err != nil {
		return err
	}
	type revoked struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	all := []revoked{}
	failed := tryAll(env, c.IDs, func(id string) error {
		name, err := revoke(id)
		if err != nil {
			return err
		}
		if c.machine() { // one document at the end
			all = append(all, revoked{id, name})
			return nil
		}
		return c.object(env, nil, id, func() error {
			_, err := fmt.Fprintf(env.Stdout, "revoked token %s (%s)\n", id, printable(name))
			return err
		})
	})
	if c.machine() {
		if err := c.print(env, all); err != nil {
			return err
		}
	}
	return failed
}

// revoke is how a token is ended, which returns its name.
func (c *tokenRevokeCommand) revoke(ctx context.Context) (func(id string) (string, error), error) {
	if c.offline() {
		o, err := c.options()
		return func(id string) (string, error) {
			t, err := node.RevokeToken(ctx, o, id)
			return t.Name, locked(err)
		}, err
	}
	cl, err := c.client()
	return func(id string) (string, error) {
		t, err := cl.RevokeToken(ctx, id)
		return t.Name, err
	}, err
}

// auditCommand tells what operators did.
type auditCommand struct {
	serverFlags
	Actor  string `help:"Only by this caller, such as token:17." placeholder:"ID"`
	Type   string `help:"Only of this type, such as token.created or access.denied." placeholder:"TYPE"`
	Target string `help:"Only about this." placeholder:"NAME"`
	Since  string `help:"Not before: a span such as 2h or 7d back, or a time." placeholder:"WHEN"`
	Before string `help:"Only older than the action with this id: the next page." placeholder:"ID"`
	Limit  int    `help:"At most this many." default:"100" placeholder:"N"`
	outputFlags
}

// Run prints a table, newest first.
func (c *auditCommand) Run(ctx context.Context, env *Env) error {
	if c.Limit < 1 || c.Limit > 1000 {
		return invalidf("--limit %d: want a number from 1 to 1000", c.Limit)
	}
	f := client.ActionFilter{Actor: c.Actor, Type: c.Type, Target: c.Target, Before: c.Before, Limit: c.Limit}
	if c.Since != "" {
		at, err := parseEnd(c.Since, time.Now())
		if err != nil {
			return invalidf("--since %q: write a span such as 2h or 7d, or a time such as 2027-01-31T00:00:00Z", c.Since)
		}
		if span, err := parseDays(c.Since); err == nil {
			at = time.Now().Add(-span)
		}
		f.From = at
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	items, next, err := cl.Actions(ctx, f)
	if err != nil {
		return err
	}
	t := newTable("TIME", "TYPE", "OUTCOME", "ACTOR", "NAME", "TARGET", "FROM", "REQUEST")
	t.empty = "nothing was recorded"
	for _, a := range items {
		t.add(a.ID, env.moment(a.At), a.Type, outcomeText(a), a.Actor, orText(a.ActorName, "-"), orText(a.Target, "-"), orText(a.Remote, "-"), strings.TrimSpace(a.Method+" "+a.Route))
	}
	if err := c.list(env, items, t); err != nil {
		return err
	}
	if next != "" && env.Terminal && !c.machine() {
		fmt.Fprintf(env.Stderr, "there are more: --before %s\n", next)
	}
	return nil
}

func outcomeText(a client.Action) string {
	if a.Status == 0 {
		return a.Outcome
	}
	return a.Outcome + " " + strconv.Itoa(a.Status)
}
