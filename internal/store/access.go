package store

import (
	"context"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Token is a registered API token. Hash is of its secret: stores never see the
// secret itself.
type Token struct {
	ID         event.ID
	Name       string
	Hash       string
	Grants     []byte // JSON
	CreatedBy  string // id of the caller who made it
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	LastUsedAt time.Time // zero: not yet
	RevokedAt  time.Time // zero: it holds
}

// TokenUse says when a token was last used.
type TokenUse struct {
	ID event.ID
	At time.Time
}

// Session is a login that goes on.
type Session struct {
	Hash        string // of its secret; the key
	PrincipalID string
	Principal   []byte   // JSON
	TokenID     event.ID // the API token it was opened with; 0 without one
	Remote      string
	UserAgent   string
	CreatedAt   time.Time
	UsedAt      time.Time
	EndsAt      time.Time // when it ends unless it is used before; never after ExpiresAt
	ExpiresAt   time.Time // when it ends however much it is used
}

// Login is a sign-in at an issuer that has begun and not come back yet.
type Login struct {
	Hash      string // of its state; the key
	Nonce     string
	Verifier  string // of the code exchange
	ReturnTo  string
	ExpiresAt time.Time
}

// Action is one line of the record of what operators did or were refused.
type Action struct {
	ID        event.ID // says when, for order and filters
	At        time.Time
	Type      string // token.created, catalog.registered, access.denied, …
	Actor     string // id of the caller
	ActorName string
	By        string // how the caller proved who it is
	Remote    string
	RequestID string
	Method    string
	Route     string
	Target    string
	Outcome   string // ok, refused, error
	Status    int
	Detail    []byte // JSON, or empty
}

// ActionFilter selects actions; zero fields do not restrict. Times are those in
// the ids. Before is the keyset: the last id of the page before.
type ActionFilter struct {
	Actor  string
	Type   string
	Target string
	From   time.Time // inclusive
	To     time.Time // exclusive
	Before event.ID
	Limit  int // 0 = 100
}

// Rows is how many actions the filter allows.
func (f *ActionFilter) Rows() int {
	if f.Limit <= 0 {
		return 100
	}
	return f.Limit
}

// IDRange is the range of ids the filter allows: at least from, below to.
func (f *ActionFilter) IDRange() (from, to event.ID) {
	to = math.MaxInt64
	if !f.From.IsZero() {
		from = IDAt(f.From)
	}
	if !f.To.IsZero() {
		to = IDAt(f.To)
	}
	if f.Before != 0 {
		to = min(to, f.Before)
	}
	return from, to
}

// Matches tells whether the filter selects a.
func (f *ActionFilter) Matches(a *Action) bool {
	from, to := f.IDRange()
	return a.ID >= from && a.ID < to && (f.Actor == "" || f.Actor == a.Actor) &&
		(f.Type == "" || f.Type == a.Type) && (f.Target == "" || f.Target == a.Target)
}

// Access keeps who may call, who is signed in, and what operators did. It
// belongs to the whole cluster, not to a shard.
type Access interface {
	// AddToken stores a new token. One whose id is taken is a conflict.
	AddToken(ctx context.Context, t Token) error
	// Token finds by id. ErrNotFound when absent.
	Token(ctx context.Context, id event.ID) (Token, error)
	// ListTokens returns tokens newest first, with ids below before (0 = all), at
	// most limit (0 = all).
	ListTokens(ctx context.Context, before event.ID, limit int) ([]Token, error)
	// UseTokens notes last uses; one that is older than the noted one is not.
	UseTokens(ctx context.Context, uses ...TokenUse) error
	// RevokeToken ends a token and returns it; one that was revoked keeps its
	// time. ErrNotFound when absent.
	RevokeToken(ctx context.Context, id event.ID, now time.Time) (Token, error)
	// PurgeTokens removes tokens with ids above `above` that expired or were
	// revoked before the given time, at most limit (0 = all).
	PurgeTokens(ctx context.Context, above event.ID, before time.Time, limit int) (int, error)

	// AddSession stores a new session. One whose hash is taken is a conflict.
	AddSession(ctx context.Context, s Session) error
	// Session finds by hash, ended or not. ErrNotFound when absent.
	Session(ctx context.Context, hash string) (Session, error)
	// UseSession notes a use and moves the end of a session that has not ended at
	// that time, never beyond ExpiresAt nor back, and tells whether there was one.
	UseSession(ctx context.Context, hash string, at, endsAt time.Time) (bool, error)
	// DeleteSession removes one and tells whether it was there; DeleteSessionsOf
	// removes all of a caller.
	DeleteSession(ctx context.Context, hash string) (bool, error)
	DeleteSessionsOf(ctx context.Context, principalID string) (int, error)
	// PurgeSessions removes sessions that ended before now, at most limit (0 = all).
	PurgeSessions(ctx context.Context, now time.Time, limit int) (int, error)

	// AddLogin stores a login that begins. One whose hash is taken is a conflict.
	AddLogin(ctx context.Context, l Login) error
	// TakeLogin removes one and returns it: of many who ask one gets it.
	// ErrNotFound when absent.
	TakeLogin(ctx context.Context, hash string) (Login, error)
	// PurgeLogins removes logins that expired before now, at most limit (0 = all).
	PurgeLogins(ctx context.Context, now time.Time, limit int) (int, error)

	// AddActions appends actions, one whose id is stored not again; ListActions
	// returns them newest first, by id.
	AddActions(ctx context.Context, actions ...Action) error
	ListActions(ctx context.Context, f ActionFilter) ([]Action, error)
	// PurgeActions removes actions of before the given time, oldest first, at most
	// limit (0 = all).
	PurgeActions(ctx context.Context, before time.Time, limit int) (int, error)
}
