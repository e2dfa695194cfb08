package auth

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// CallbackPath is where issuers send browsers back to.
const CallbackPath = "/api/auth/oidc/callback"

const (
	// loginTime is how long people have to sign in at the issuer.
	loginTime = 10 * time.Minute
	// loginsPerSecond and loginsAtOnce bound the logins that begin: everybody can
	// begin one, and each is kept until it ends.
	loginsPerSecond = 5
	loginsAtOnce    = 100
	maxReturn       = 2048
	maxCode         = 4096
)

// BeginLogin sends a browser to the first issuer. state must come back with the
// same browser; the caller binds it to a cookie. NotFound when people cannot
// sign in here.
func (s *Service) BeginLogin(ctx context.Context, returnTo string) (redirect, state string, err error) {
	i, err := s.loginIssuer()
	if err != nil {
		return "", "", err
	}
	if !s.logins.AllowN(s.o.Clock(), 1) {
		s.meters.failures.Inc(failLimited)
		return "", "", &event.Error{
			Code: event.Limit, Reason: "too_many_failures", Message: "too many people sign in at once", Remedy: "try again in a moment", RetryAfter: time.Second,
		}
	}
	config, err := i.config(ctx)
	if err != nil {
		return "", "", errIssuerGone(err)
	}
	state = newSecret()
	l := store.Login{
		Hash: hash(state), Nonce: newSecret(), Verifier: oauth2.GenerateVerifier(), ReturnTo: LocalPath(returnTo),
		ExpiresAt: s.o.Clock().UTC().Add(loginTime),
	}
	if err := s.o.Store.AddLogin(ctx, l); err != nil {
		return "", "", unavailable(err)
	}
	return config.AuthCodeURL(state, oidc.Nonce(l.Nonce), oauth2.S256ChallengeOption(l.Verifier)), state, nil
}

// SignIn is where people sign in with a browser; ok is false when they cannot.
func (s *Service) SignIn() (issuer, clientID string, ok bool) {
	i, err := s.loginIssuer()
	if err != nil {
		return "", "", false
	}
	return i.URL, i.ClientID, true
}

func (s *Service) loginIssuer() (*issuer, error) {
	if len(s.issuers) == 0 || s.issuers[0].ClientID == "" {
		return nil, noLogin("browsers cannot sign in at this server: no client of an OIDC issuer is set")
	}
	return s.issuers[0], nil
}

// config is what the issuer has to know of this server.
func (i *issuer) config(ctx context.Context) (*oauth2.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	if _, err := i.discover(ctx); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.endpoint.AuthURL == "" || i.endpoint.TokenURL == "" {
		return nil, errors.New("the issuer names no endpoints to sign in at")
	}
	return &oauth2.Config{
		ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: i.endpoint, RedirectURL: i.o.RedirectURL,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}, nil
}

// LocalPath is an address on this server to go back to, or "/" when the text is
// none: nobody is sent elsewhere from here.
func LocalPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxReturn || !strings.HasPrefix(text, "/") || u.Scheme != "" || u.Host != "" || u.User != nil ||
		strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\") || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "/"
	}
	return text
}

// FinishLogin takes what a browser brings back from the issuer and opens a
// session. A state counts once.
func (s *Service) FinishLogin(ctx context.Context, state, code string, r LoginRequest) (_ Session, secret, returnTo string, err error) {
	i, err := s.loginIssuer()
	if err != nil {
		return Session{}, "", "", err
	}
	v, err := s.limited(r.Remote, func(known func(string) bool) (verified, error) {
		if !known("login") || state == "" || len(state) > maxSecret || code == "" || len(code) > maxCode {
			return verified{}, refused(failLogin)
		}
		l, err := s.o.Store.TakeLogin(ctx, hash(state))
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && !l.ExpiresAt.After(s.o.Clock()):
			return verified{}, refused(failLogin)
		case err != nil:
			return verified{}, unavailable(err)
		}
		returnTo = LocalPath(l.ReturnTo)
		return s.exchange(ctx, i, l, code)
	})
	if err != nil {
		return Session{}, "", "", err
	}
	session, secret, err := s.open(ctx, v, r)
	return session, secret, returnTo, err
}

// exchange gets the token that a code stands for, and checks it.
func (s *Service) exchange(ctx context.Context, i *issuer, l store.Login, code string) (verified, error) {
	config, err := i.config(ctx)
	if err != nil {
		return verified{}, errIssuerGone(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*fetchTime)
	defer cancel()
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, i.client), code, oauth2.VerifierOption(l.Verifier))
	if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refusal.Response != nil && refusal.Response.StatusCode < 500 {
		s.o.Logger.Warn("the issuer refused a login", "issuer", i.URL, "error", refusal.ErrorCode)
		return verified{}, refused(failLogin)
	}
	if err != nil {
		return verified{}, errIssuerGone(err)
	}
	raw, _ := token.Extra("id_token").(string)
	from, c, outcome, err := s.verifyJWT(ctx, raw, func(*issuer) []string { return []string{i.ClientID} })
	if err == nil && (from != i || !sameText(c.text("nonce"), l.Nonce) || c.text("azp") != "" && c.text("azp") != i.ClientID) {
		outcome, err = jwtClaims, refused(failLogin)
	}
	s.meters.jwt.Inc(modeLogin, outcome)
	if err != nil {
		return verified{}, err
	}
	p := i.principal(c)
	return verified{principal: p, at: s.o.Clock(), ends: p.Expires}, nil
}
