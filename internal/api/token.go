package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) tokenRoutes() []route {
	const token = `{id, name, grants: [{role, prefix?}], created_at, created_by?, expires_at?, last_used_at?, revoked_at?}`
	return []route{
		entry(http.MethodPost, "/api/tokens", Admin, s.createToken, "makes an API token and shows it this once", `{name, grants: [{role, prefix?}] | role, prefix?; expires_at? | expires_in?}`, `{token, id, name, grants, …}`).within(Permitted).noted("token.created"),
		entry(http.MethodGet, "/api/tokens", Admin, s.listTokens, "lists API tokens without their secrets", "", `{tokens: [`+token+`]}`).within(Filtered),
		entry(http.MethodDelete, "/api/tokens/{id}", Admin, s.revokeToken, "revokes an API token at once", "", token).within(Permitted).noted("token.revoked"),
		entry(http.MethodGet, "/api/audit", Admin, s.audit, "shows what operators did and what was refused, newest first", "?actor&type&target&from&to&before&limit", `{items: [{id, at, type, actor, actor_name?, by?, remote?, request_id?, method?, route?, target?, outcome, status?, detail?}], next?}`).within(Everywhere),
	}
}

// tokens is the keeper of tokens, which exists also where authentication is
// still off: tokens can be made before it is switched on.
func (s *Server) tokens() (Access, error) {
	if s.opt.Access == nil {
		return nil, &event.Error{Code: event.Unavailable, Message: "this server keeps no tokens", Reason: "no_access"}
	}
	return s.opt.Access, nil
}

type tokenBody struct {
	Name      string       `json:"name"`
	Grants    []auth.Grant `json:"grants"`
	Role      auth.Role    `json:"role"`
	Prefix    string       `json:"prefix"`
	ExpiresAt instant      `json:"expires_at"`
	ExpiresIn *float64     `json:"expires_in"` // seconds
}

const (
	maxTokenName   = 200
	maxTokenGrants = 50
)

func (b *tokenBody) check(now time.Time) (expires time.Time, err error) {
	if b.Role != "" {
		b.Grants = append(b.Grants, auth.Grant{Role: b.Role, Prefix: b.Prefix})
	}
	b.Name = strings.TrimSpace(b.Name)
	switch {
	case b.Name == "" || len(b.Name) > maxTokenName:
		return expires, event.Errorf(event.Invalid, "name: want 1 to %d bytes that say what the token is for", maxTokenName)
	case len(b.Grants) == 0 || len(b.Grants) > maxTokenGrants:
		return expires, event.Errorf(event.Invalid, "grants: want 1 to %d of {role, prefix?}", maxTokenGrants)
	}
	for i := range b.Grants {
		g := &b.Grants[i]
		if !slices.Contains(auth.Roles(), g.Role) {
			return expires, event.Errorf(event.Invalid, "grants[%d]: role: want viewer, operator, worker or admin, got %q", i, g.Role)
		}
		if p := strings.Trim(g.Prefix, "/ "); p != "" || g.Prefix == "" {
			g.Prefix = p
			continue
		}
		return expires, event.Errorf(event.Invalid, "grants[%d]: prefix: want a path, or none for everything", i)
	}
	expires = time.Time(b.ExpiresAt)
	if b.ExpiresIn != nil {
		expires = now.Add(lasting(*b.ExpiresIn))
	}
	if !expires.IsZero() && !expires.After(now) {
		return expires, event.Errorf(event.Invalid, "the token would have expired already")
	}
	return expires, nil
}

// givable tells whether who may give all of these grants, and so may take them
// away: nobody gives more than they have.
func givable(who *auth.Principal, grants []auth.Grant) bool {
	return !slices.ContainsFunc(grants, func(g auth.Grant) bool {
		return !slices.ContainsFunc(who.Grants, func(own auth.Grant) bool {
			return own.Role == auth.Admin && (own.Prefix == "" || g.Prefix != "" && own.Covers(g.Prefix))
		})
	})
}

func (s *Server) createToken(w http.ResponseWriter, r *http.Request) error {
	access, err := s.tokens()
	if err != nil {
		return err
	}
	var body tokenBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	expires, err := body.check(s.opt.Clock())
	if err != nil {
		return err
	}
	p := passageOf(r.Context())
	if p.permitted = true; !givable(p.who, body.Grants) {
		return p.forbidden("nobody can give more rights than they have")
	}
	token, secret, err := access.CreateToken(r.Context(), auth.TokenRequest{Name: body.Name, Grants: body.Grants, Expires: expires, By: p.who})
	if err != nil {
		return err
	}
	p.target = token.ID
	detail(r.Context(), "name", token.Name)
	detail(r.Context(), "grants", token.Grants)
	w.Header().Set("Cache-Control", "no-store")
	return respondStatus(w, http.StatusCreated, newToken{secret, token})
}

type newToken struct {
	Secret string `json:"token"`
	auth.Token
}

type tokensAnswer struct {
	Tokens []auth.Token `json:"tokens"`
}

func (s *Server) listTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := s.ownTokens(r)
	if err != nil {
		return err
	}
	return private(w, tokensAnswer{list})
}

// ownTokens are the tokens the caller could have made.
func (s *Server) ownTokens(r *http.Request) ([]auth.Token, error) {
	access, err := s.tokens()
	if err != nil {
		return nil, err
	}
	list, err := access.Tokens(r.Context())
	if err != nil {
		return nil, err
	}
	p := passageOf(r.Context())
	p.permitted = true
	list = slices.DeleteFunc(list, func(t auth.Token) bool { return !givable(p.who, t.Grants) })
	if list == nil {
		list = []auth.Token{}
	}
	return list, nil
}

func (s *Server) revokeToken(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	list, err := s.ownTokens(r)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(list, func(t auth.Token) bool { return t.ID == id }) {
		return event.Errorf(event.NotFound, "Token not found: %s", id)
	}
	token, err := s.opt.Access.RevokeToken(r.Context(), id)
	if err != nil {
		return renamed(err, "Token not found: %s", id)
	}
	detail(r.Context(), "name", token.Name)
	return respond(w, token)
}

const (
	auditRows    = 100
	maxAuditRows = 1000
)

// actionView is an action whose id browsers can hold.
type actionView struct {
	ID event.StringID `json:"id"`
	auth.Action
}

type actionsAnswer struct {
	Items []actionView `json:"items"`
	Next  string       `json:"next,omitempty"` // the value of before for the next page
}

func (s *Server) audit(w http.ResponseWriter, r *http.Request) error {
	access, err := s.tokens()
	if err != nil {
		return err
	}
	q := queryOf(r)
	f := auth.ActionFilter{
		Actor: q.Get("actor"), Type: q.Get("type"), Target: q.Get("target"), From: q.instant("from"), To: q.instant("to"),
		Before: q.id("before"), Limit: int(q.clamped("limit", auditRows, 1, maxAuditRows)),
	}
	if q.err != nil {
		return q.err
	}
	actions, err := access.Actions(r.Context(), f)
	if err != nil {
		return err
	}
	a := actionsAnswer{Items: make([]actionView, len(actions))}
	for i, one := range actions {
		a.Items[i] = actionView{event.StringID(one.ID), one}
	}
	if len(actions) == f.Limit {
		a.Next = actions[len(actions)-1].ID.String()
	}
	return private(w, a)
}
