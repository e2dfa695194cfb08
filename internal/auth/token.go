package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/lru"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	tokenPrefix = "noetl_pat_"
	// bootstrapID is the token that opens a server nobody has a token of yet. It
	// is never purged, so that a revoked one does not come back.
	bootstrapID = event.ID(1)
	maxBearer   = 16 << 10
	maxName     = 200
	tokenPage   = 1000
	// useNoted is how often the last use of a token is written down.
	useNoted = time.Minute
)

// splitToken tells an API token from a bearer token of an issuer, and its id
// from its secret. What is neither may be a bootstrap token of somebody's own
// making, whose secret is all of it.
func splitToken(text string) (id event.ID, secret string, ok bool) {
	rest, ours := strings.CutPrefix(text, tokenPrefix)
	if !ours {
		return bootstrapID, text, strings.Count(text, ".") != 2
	}
	number, secret, found := strings.Cut(rest, "_")
	n, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || n <= 0 || number != strconv.FormatInt(n, 10) {
		return 0, "", true // of our kind, and of no token
	}
	return event.ID(n), secret, true
}

// token checks an API token: one found good a moment ago from memory, others
// against the store.
func (s *Service) token(ctx context.Context, text string, id event.ID, secret string, known func(string) bool) (verified, error) {
	if len(text) > maxBearer || id == 0 {
		return verified{}, refused(failUnknownToken)
	}
	key, now := "token "+hash(text), s.o.Clock()
	if v, ok := s.verified.Get(key); ok && fresh(v, now) {
		s.uses.note(v.token, now)
		return v, nil
	}
	if !known(key) {
		return verified{}, refused(failLimited)
	}
	row, err := s.o.Store.Token(ctx, id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return verified{}, unavailable(err)
	}
	// The comparison is made in any case: the time it takes tells nothing.
	same := subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(row.Hash)) == 1
	switch {
	case err != nil:
		return verified{}, refused(failUnknownToken)
	case !same:
		return verified{}, refused(failSecret)
	}
	v, err := s.standing(row, now)
	if err != nil {
		return verified{}, err
	}
	s.verified.Put(key, v)
	s.uses.note(id, now)
	return v, nil
}

// standing is the caller of a token that holds now.
func (s *Service) standing(row store.Token, now time.Time) (verified, error) {
	switch {
	case !row.RevokedAt.IsZero():
		return verified{}, refused(failRevoked)
	case !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(now):
		return verified{}, refused(failExpired)
	}
	t, err := tokenOf(row)
	if err != nil {
		return verified{}, err
	}
	return verified{
		principal: Principal{ID: "token:" + t.ID, Name: t.Name, By: ByToken, Grants: t.Grants, Expires: t.Expires},
		token:     row.ID, at: now, ends: row.ExpiresAt,
	}, nil
}

func fresh(v verified, now time.Time) bool {
	age := now.Sub(v.at)
	return age >= 0 && age < verifiedFor && (v.ends.IsZero() || v.ends.After(now))
}

func unavailable(err error) error {
	if code := event.CodeOf(err); code == event.Unavailable {
		return err
	}
	return &event.Error{Code: event.Unavailable, Message: "who calls could not be checked", Remedy: "try again in a moment", Err: err}
}

func tokenOf(row store.Token) (Token, error) {
	t := Token{
		ID: row.ID.String(), Name: row.Name, CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, Expires: row.ExpiresAt,
		LastUsed: row.LastUsedAt, RevokedAt: row.RevokedAt,
	}
	if err := json.Unmarshal(row.Grants, &t.Grants); err != nil {
		return t, event.Errorf(event.Internal, "read the grants of token %s: %w", t.ID, err)
	}
	return t, nil
}

// CreateToken makes a token and returns it with its secret, which nobody sees
// again. Nobody can give more than they have.
func (s *Service) CreateToken(ctx context.Context, r TokenRequest) (Token, string, error) {
	secret := newSecret()
	id := s.o.IDs()
	t, err := s.addToken(ctx, id, secret, r)
	return t, tokenPrefix + id.String() + "_" + secret, err
}

func (s *Service) addToken(ctx context.Context, id event.ID, secret string, r TokenRequest) (Token, error) {
	now := s.o.Clock().UTC()
	r.Name = strings.TrimSpace(r.Name)
	if err := r.check(now); err != nil {
		return Token{}, err
	}
	grants, err := json.Marshal(r.Grants)
	if err != nil {
		return Token{}, event.Errorf(event.Internal, "write grants: %w", err)
	}
	row := store.Token{
		ID: id, Name: r.Name, Hash: hash(secret), Grants: grants, CreatedAt: now.Truncate(time.Microsecond),
		ExpiresAt: r.Expires.UTC().Truncate(time.Microsecond),
	}
	if r.By != nil {
		row.CreatedBy = r.By.ID
	}
	if err := s.o.Store.AddToken(ctx, row); err != nil {
		return Token{}, err
	}
	return tokenOf(row)
}

func (r *TokenRequest) check(now time.Time) error {
	if r.Name == "" || len(r.Name) > maxName || strings.ContainsFunc(r.Name, unicode.IsControl) || strings.ToValidUTF8(r.Name, "") != r.Name {
		return &event.Error{Code: event.Invalid, Message: fmt.Sprintf("a token needs a name of 1 to %d characters", maxName), Remedy: "name what uses it, such as ci or grafana"}
	}
	if !r.Expires.IsZero() && !r.Expires.After(now) {
		return event.Errorf(event.Invalid, "the end of a token must lie in the future, not at %s", r.Expires.UTC().Format(time.RFC3339))
	}
	if r.Expires.Year() > 9999 {
		return event.Errorf(event.Invalid, "the end of a token lies too far away; leave it out for one that does not end")
	}
	if err := CheckGrants(r.Grants); err != nil {
		return err
	}
	if r.By == nil {
		return nil
	}
	for _, g := range r.Grants {
		if !r.By.mayGive(g) {
			return event.Errorf(event.Forbidden, "nobody can give more than they have: %s is not yours", g)
		}
	}
	return nil
}

// Tokens lists all tokens, newest first.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	if err := s.flushUses(ctx); err != nil {
		return nil, err
	}
	out := []Token{}
	for before := event.ID(0); ; {
		rows, err := s.o.Store.ListTokens(ctx, before, tokenPage)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			t, err := tokenOf(row)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
			before = row.ID
		}
		if len(rows) < tokenPage {
			return out, nil
		}
	}
}

// RevokeToken ends a token and the sessions opened with it, here at once and at
// other servers within seconds.
func (s *Service) RevokeToken(ctx context.Context, id string) (Token, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 {
		return Token{}, noToken(id)
	}
	row, err := s.o.Store.RevokeToken(ctx, event.ID(n), s.o.Clock().UTC())
	if errors.Is(err, store.ErrNotFound) {
		return Token{}, noToken(id)
	}
	if err != nil {
		return Token{}, err
	}
	s.verified.DropFunc(func(_ string, v verified) bool { return v.token == row.ID })
	if _, err := s.o.Store.DeleteSessionsOf(ctx, "token:"+row.ID.String()); err != nil {
		return Token{}, err // the token is revoked; sessions ask for it
	}
	return tokenOf(row)
}

func noToken(id string) error {
	return &event.Error{Code: event.NotFound, Message: fmt.Sprintf("there is no token %q", short(id)), Remedy: "see noetl token list"}
}

// Bootstrap makes an admin token when there is no token at all, from a text
// that was set or from chance. It returns the secret only of one it made up.
func (s *Service) Bootstrap(ctx context.Context, given string) (secret string, made bool, err error) {
	if !s.Required() {
		return "", false, nil
	}
	if given != "" {
		if err := checkBootstrap(given); err != nil {
			return "", false, err
		}
	}
	tokens, err := s.o.Store.ListTokens(ctx, 0, 1)
	if err != nil || len(tokens) > 0 {
		return "", false, err
	}
	secret = newSecret()
	if given != "" {
		_, secret, _ = splitToken(given)
	}
	_, err = s.addToken(ctx, bootstrapID, secret, TokenRequest{Name: "bootstrap", Grants: []Grant{{Role: Admin}}})
	switch {
	case event.CodeOf(err) == event.Conflict && err != nil:
		return "", false, nil // another server was first
	case err != nil:
		return "", false, err
	case given != "":
		return "", true, nil
	}
	return tokenPrefix + bootstrapID.String() + "_" + secret, true, nil
}

func checkBootstrap(text string) error {
	odd := func(c rune) bool { return c <= ' ' || c > '~' || c == '.' || c == ',' || c == '"' }
	id, secret, _ := splitToken(text)
	if id != bootstrapID || len(secret) < 32 || len(secret) > 512 || strings.ContainsFunc(text, odd) {
		return &event.Error{
			Code: event.Invalid, Message: "NOETL_BOOTSTRAP_TOKEN is not fit to be a token",
			Remedy: "make one of 32 to 512 letters and digits, such as the output of: openssl rand -hex 32",
		}
	}
	return nil
}

// lastUses gathers when tokens were used, to be written down now and then.
type lastUses struct {
	mu      sync.Mutex // guards all below
	noted   *lru.Cache[string, time.Time]
	pending map[event.ID]time.Time // no more than tokens that were found good in a minute
}

func newLastUses() *lastUses {
	return &lastUses{noted: lru.New[string, time.Time](maxVerified), pending: map[event.ID]time.Time{}}
}

func (u *lastUses) note(id event.ID, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.noted.Get(id.String()); ok && now.Sub(last) < useNoted {
		return
	}
	if len(u.pending) < maxVerified {
		u.noted.Put(id.String(), now)
		u.pending[id] = now
	}
}

func (u *lastUses) take() []store.TokenUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []store.TokenUse
	for id, at := range u.pending {
		out = append(out, store.TokenUse{ID: id, At: at.UTC()})
	}
	clear(u.pending)
	slices.SortFunc(out, func(a, b store.TokenUse) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// flushUses writes down what is pending. What fails is noted again with the
// next use.
func (s *Service) flushUses(ctx context.Context) error {
	uses := s.uses.take()
	if len(uses) == 0 {
		return nil
	}
	return s.o.Store.UseTokens(ctx, uses...)
}
