package auth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// maxSecret bounds what is looked at of a session's secret.
	maxSecret = 256
	// usesPerIdle is into how many parts the idle time is cut: a use is written
	// down once in each.
	usesPerIdle = 20
)

// signedIn is what a session remembers of its caller. Rules changes when what
// an issuer's claims are worth is set otherwise: then people sign in again.
type signedIn struct {
	Principal Principal `json:"principal"`
	Rules     string    `json:"rules,omitempty"`
}

// Login opens a session in exchange for an API token or a bearer token of an
// issuer. The secret is new each time.
func (s *Service) Login(ctx context.Context, r LoginRequest) (Session, string, error) {
	if !s.Required() {
		return Session{}, "", noLogin("authentication is off at this server: there is nothing to sign in to")
	}
	v, err := s.limited(r.Remote, func(known func(string) bool) (verified, error) {
		if r.Token == "" {
			return verified{}, refused(failLogin)
		}
		return s.bearer(ctx, r.Token, forLogin, known)
	})
	if err != nil {
		return Session{}, "", err
	}
	return s.open(ctx, v, r)
}

func noLogin(why string) error { return &event.Error{Code: event.NotFound, Message: why} }

// open begins a session of a caller who has shown who they are.
func (s *Service) open(ctx context.Context, v verified, r LoginRequest) (Session, string, error) {
	now, secret := s.o.Clock().UTC().Truncate(time.Microsecond), newSecret()
	expires := now.Add(s.o.SessionMax)
	if v.token != 0 && !v.ends.IsZero() && v.ends.Before(expires) {
		expires = v.ends // of an issuer only the sign-in counts, whose tokens last minutes
	}
	in := signedIn{Principal: v.principal}
	in.Principal.By = BySession
	in.Principal.Expires = expires
	if v.token == 0 {
		in.Rules = s.rulesOf(v.principal.ID)
	}
	doc, err := json.Marshal(in)
	if err != nil {
		return Session{}, "", event.Errorf(event.Internal, "write session: %w", err)
	}
	row := store.Session{
		Hash: hash(secret), PrincipalID: v.principal.ID, Principal: doc, TokenID: v.token, Remote: short(r.Remote), UserAgent: short(r.UserAgent),
		CreatedAt: now, UsedAt: now, EndsAt: earlier(now.Add(s.o.SessionIdle), expires), ExpiresAt: expires,
	}
	if err := s.o.Store.AddSession(ctx, row); err != nil {
		return Session{}, "", err
	}
	return sessionOf(row, in), secret, nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func sessionOf(row store.Session, in signedIn) Session {
	return Session{ID: row.Hash[:min(16, len(row.Hash))], Principal: in.Principal, CreatedAt: row.CreatedAt, Expires: row.ExpiresAt}
}

// rulesOf is the fingerprint of what the claims of a caller's issuer are worth.
func (s *Service) rulesOf(principalID string) string {
	for _, i := range s.issuers {
		if i.has(principalID) {
			return i.fingerprint
		}
	}
	return "none"
}

// session checks a session's secret and notes its use.
func (s *Service) session(ctx context.Context, secret string, known func(string) bool) (verified, error) {
	if len(secret) > maxSecret {
		return verified{}, refused(failUnknownSession)
	}
	digest, now := hash(secret), s.o.Clock()
	key := "session " + digest
	if v, ok := s.verified.Get(key); ok && fresh(v, now) {
		return v, nil
	}
	if !known(key) {
		return verified{}, refused(failLimited)
	}
	row, err := s.o.Store.Session(ctx, digest)
	if errors.Is(err, store.ErrNotFound) {
		return verified{}, refused(failUnknownSession)
	}
	if err != nil {
		return verified{}, unavailable(err)
	}
	if !row.EndsAt.After(now) {
		return verified{}, refused(failEndedSession)
	}
	v, err := s.resumed(ctx, row, now)
	if err != nil {
		return verified{}, err
	}
	if now.Sub(row.UsedAt) >= s.o.SessionIdle/usesPerIdle {
		alive, err := s.o.Store.UseSession(ctx, digest, now.UTC(), now.UTC().Add(s.o.SessionIdle))
		if err != nil {
			return verified{}, unavailable(err)
		}
		if !alive {
			return verified{}, refused(failEndedSession)
		}
	}
	s.verified.Put(key, v)
	return v, nil
}

// resumed is the caller of a session. One opened with a token has what the
// token has now, and ends with it.
func (s *Service) resumed(ctx context.Context, row store.Session, now time.Time) (verified, error) {
	var in signedIn
	if err := json.Unmarshal(row.Principal, &in); err != nil {
		return verified{}, event.Errorf(event.Internal, "read a session: %w", err)
	}
	if row.TokenID != 0 {
		token, err := s.o.Store.Token(ctx, row.TokenID)
		if errors.Is(err, store.ErrNotFound) {
			return verified{}, refused(failEndedSession)
		}
		if err != nil {
			return verified{}, unavailable(err)
		}
		v, err := s.standing(token, now)
		if err != nil {
			return verified{}, err
		}
		in.Principal.Grants = v.principal.Grants
		s.uses.note(row.TokenID, now)
	} else if in.Rules != s.rulesOf(in.Principal.ID) {
		return verified{}, refused(failEndedSession)
	}
	found := sessionOf(row, in)
	return verified{principal: in.Principal, token: row.TokenID, session: &found, at: now, ends: row.EndsAt}, nil
}

// Session finds the session of a secret. It is Unauthorized when there is none
// that goes on.
func (s *Service) Session(ctx context.Context, secret string) (Session, error) {
	if !s.Required() {
		return Session{}, noLogin("authentication is off at this server: there are no sessions")
	}
	v, err := s.session(ctx, secret, func(string) bool { return true })
	if err != nil {
		return Session{}, err
	}
	return *v.session, nil
}

// Logout ends a session, here at once and at other servers within seconds. One
// that has ended is no error.
func (s *Service) Logout(ctx context.Context, secret string) error {
	if len(secret) > maxSecret {
		return nil
	}
	digest := hash(secret)
	_, err := s.o.Store.DeleteSession(ctx, digest)
	s.verified.DropFunc(func(key string, _ verified) bool { return key == "session "+digest })
	return err
}
