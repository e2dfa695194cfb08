package api

import (
	"context"

	"github.com/noetl/noetl-go/internal/auth"
)

// Access tells who calls and keeps the record of what callers did.
// *auth.Service does.
type Access interface {
	// Required is false where authentication is off and everybody is auth.Local.
	Required() bool
	// Identify checks what a request brings. The error is Unauthorized,
	// auth.ErrNoEvidence, or Limit after too many failures of one address.
	Identify(ctx context.Context, e auth.Evidence) (*auth.Principal, error)

	CreateToken(ctx context.Context, r auth.TokenRequest) (auth.Token, string, error)
	Tokens(ctx context.Context) ([]auth.Token, error)
	RevokeToken(ctx context.Context, id string) (auth.Token, error)

	Login(ctx context.Context, r auth.LoginRequest) (auth.Session, string, error)
	Session(ctx context.Context, secret string) (auth.Session, error)
	Logout(ctx context.Context, secret string) error
	// BeginLogin sends a browser to the issuer; FinishLogin takes what it brings
	// back. A server without an issuer answers NotFound.
	BeginLogin(ctx context.Context, returnTo string) (redirect, state string, err error)
	FinishLogin(ctx context.Context, state, code string, r auth.LoginRequest) (s auth.Session, secret, returnTo string, err error)

	Record(ctx context.Context, a auth.Action) error
	Actions(ctx context.Context, f auth.ActionFilter) ([]auth.Action, error)
}
