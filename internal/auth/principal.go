// Package auth tells who calls and what they may do: principals with roles,
// narrowed to playbooks below a path; API tokens, sessions, bearer tokens of an
// OIDC issuer and client certificates as evidence; and the record of what
// operators did. It must not know routes or how an answer is written.
package auth

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Role is what a caller may do, and what a route asks for.
type Role string

// The roles, weakest first. An operator may do what a viewer may, an admin
// everything. A worker may read, and do what running commands takes.
const (
	Viewer   Role = "viewer"
	Worker   Role = "worker"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Roles lists them, weakest first.
func Roles() []Role { return []Role{Viewer, Worker, Operator, Admin} }

// Includes tells whether who has r may do what need asks for.
func (r Role) Includes(need Role) bool {
	switch r {
	case Admin:
		return true
	case Operator, Worker:
		return need == r || need == Viewer
	case Viewer:
		return need == Viewer
	}
	return false
}

// Grant gives a role, everywhere or for the playbooks below a path.
type Grant struct {
	Role Role `json:"role"`
	// Prefix narrows the role to a path and what lies below it: "team/a" covers
	// team/a and team/a/etl, not team/ab. Empty covers everything.
	Prefix string `json:"prefix,omitempty"`
}

// Covers tells whether the grant reaches a path.
func (g Grant) Covers(path string) bool {
	prefix := strings.TrimSuffix(g.Prefix, "/")
	return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
}

// How a principal proved who it is.
const (
	ByNothing     = "none" // authentication is off
	ByToken       = "token"
	BySession     = "session"
	ByOIDC        = "oidc"
	ByCertificate = "certificate"
	ByInternal    = "internal" // the one internal token of older deployments
)

// Principal is a caller whose evidence was checked.
type Principal struct {
	ID      string    `json:"id"`   // unique: token:17…, oidc:<issuer>#<subject>, cert:<subject>, local
	Name    string    `json:"name"` // for people: of the token, e-mail, common name
	By      string    `json:"by"`
	Grants  []Grant   `json:"grants"`
	Expires time.Time `json:"expires,omitzero"` // of the evidence; zero = never
}

// Local is the caller where authentication is off: whoever reaches the server.
var Local = Principal{ID: "local", Name: "local", By: ByNothing, Grants: []Grant{{Role: Admin}}}

// May tells whether p may do what need asks for everywhere.
func (p *Principal) May(need Role) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Prefix == "" && g.Role.Includes(need) })
}

// MayAt tells whether p may do what need asks for with a path.
func (p *Principal) MayAt(need Role, path string) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role.Includes(need) && g.Covers(path) })
}

// MaySomewhere tells whether p may do what need asks for with any path.
func (p *Principal) MaySomewhere(need Role) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.Role.Includes(need) })
}

type contextKey struct{}

// With puts the caller into a context.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From is the caller of a context; Local where none was put.
func From(ctx context.Context) *Principal {
	if p, ok := ctx.Value(contextKey{}).(*Principal); ok {
		return p
	}
	return &Local
}
