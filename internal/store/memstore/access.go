package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// access are the tokens and actions by id, the sessions and logins by hash.
type access struct {
	tokens   map[event.ID]store.Token
	sessions map[string]store.Session
	logins   map[string]store.Login
	actions  map[event.ID]store.Action
}

func newAccess() access {
	return access{map[event.ID]store.Token{}, map[string]store.Session{}, map[string]store.Login{}, map[event.ID]store.Action{}}
}

func cloneToken(t store.Token) store.Token {
	t.Grants = clip(t.Grants)
	t.CreatedAt, t.ExpiresAt = normalTime(t.CreatedAt), normalTime(t.ExpiresAt)
	t.LastUsedAt, t.RevokedAt = normalTime(t.LastUsedAt), normalTime(t.RevokedAt)
	return t
}

func cloneSession(v store.Session) store.Session {
	v.Principal = clip(v.Principal)
	v.CreatedAt, v.UsedAt = normalTime(v.CreatedAt), normalTime(v.UsedAt)
	v.EndsAt, v.ExpiresAt = normalTime(v.EndsAt), normalTime(v.ExpiresAt)
	return v
}

func cloneAction(a store.Action) store.Action {
	a.Detail, a.At = clip(a.Detail), normalTime(a.At)
	return a
}

// added puts a value under a key that must be free.
func added[K comparable, V any](ctx context.Context, s *Store, op, what string, into map[K]V, key K, v V) error {
	return s.do(ctx, op, func() error {
		if _, taken := into[key]; taken {
			return event.Errorf(event.Conflict, "%s is already stored", what)
		}
		into[key] = v
		return nil
	})
}

// found copies the value of a key.
func found[K comparable, V any](ctx context.Context, s *Store, op string, in map[K]V, key K, clone func(V) V) (V, error) {
	var out V
	err := s.do(ctx, op, func() error {
		v, ok := in[key]
		if !ok {
			return store.ErrNotFound
		}
		out = clone(v)
		return nil
	})
	return out, err
}

// purged removes what matches, the least first, at most limit (0 = all).
func purged[K cmp.Ordered, V any](ctx context.Context, s *Store, op string, from map[K]V, limit int, match func(*V) bool) (int, error) {
	return s.count(ctx, op, func() int {
		var keys []K
		for k, v := range from {
			if match(&v) {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		if limit > 0 && len(keys) > limit {
			keys = keys[:limit]
		}
		for _, k := range keys {
			delete(from, k)
		}
		return len(keys)
	})
}

// AddToken implements store.Access.
func (s *Store) AddToken(ctx context.Context, t store.Token) error {
	return added(ctx, s, "AddToken", "token "+t.ID.String(), s.access.tokens, t.ID, cloneToken(t))
}

// Token implements store.Access.
func (s *Store) Token(ctx context.Context, id event.ID) (store.Token, error) {
	return found(ctx, s, "Token", s.access.tokens, id, cloneToken)
}

// ListTokens implements store.Access.
func (s *Store) ListTokens(ctx context.Context, before event.ID, limit int) ([]store.Token, error) {
	return selected(ctx, s, "ListTokens", s.access.tokens, limit, func(t *store.Token) bool { return before == 0 || t.ID < before },
		func(a, b store.Token) int { return cmp.Compare(b.ID, a.ID) }, cloneToken)
}

// UseTokens implements store.Access.
func (s *Store) UseTokens(ctx context.Context, uses ...store.TokenUse) error {
	return s.do(ctx, "UseTokens", func() error {
		for _, u := range uses {
			if t, ok := s.access.tokens[u.ID]; ok && t.LastUsedAt.Before(normalTime(u.At)) {
				t.LastUsedAt = normalTime(u.At)
				s.access.tokens[u.ID] = t
			}
		}
		return nil
	})
}

// RevokeToken implements store.Access.
func (s *Store) RevokeToken(ctx context.Context, id event.ID, now time.Time) (store.Token, error) {
	var out store.Token
	err := s.do(ctx, "RevokeToken", func() error {
		t, ok := s.access.tokens[id]
		if !ok {
			return store.ErrNotFound
		}
		if t.RevokedAt.IsZero() {
			t.RevokedAt = normalTime(now)
			s.access.tokens[id] = t
		}
		out = cloneToken(t)
		return nil
	})
	return out, err
}

// PurgeTokens implements store.Access.
func (s *Store) PurgeTokens(ctx context.Context, above event.ID, before time.Time, limit int) (int, error) {
	over := func(end time.Time) bool { return !end.IsZero() && end.Before(normalTime(before)) }
	return purged(ctx, s, "PurgeTokens", s.access.tokens, limit, func(t *store.Token) bool {
		return t.ID > above && (over(t.ExpiresAt) || over(t.RevokedAt))
	})
}

// AddSession implements store.Access.
func (s *Store) AddSession(ctx context.Context, v store.Session) error {
	return added(ctx, s, "AddSession", "this session", s.access.sessions, v.Hash, cloneSession(v))
}

// Session implements store.Access.
func (s *Store) Session(ctx context.Context, hash string) (store.Session, error) {
	return found(ctx, s, "Session", s.access.sessions, hash, cloneSession)
}

// UseSession implements store.Access.
func (s *Store) UseSession(ctx context.Context, hash string, at, endsAt time.Time) (bool, error) {
	at, endsAt = normalTime(at), normalTime(endsAt)
	n, err := s.count(ctx, "UseSession", func() int {
		v, ok := s.access.sessions[hash]
		if !ok || !v.EndsAt.After(at) {
			return 0
		}
		v.UsedAt, v.EndsAt = later(v.UsedAt, at), later(v.EndsAt, earlier(endsAt, v.ExpiresAt))
		s.access.sessions[hash] = v
		return 1
	})
	return n == 1, err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// DeleteSession implements store.Access.
func (s *Store) DeleteSession(ctx context.Context, hash string) (bool, error) {
	n, err := purged(ctx, s, "DeleteSession", s.access.sessions, 0, func(v *store.Session) bool { return v.Hash == hash })
	return n == 1, err
}

// DeleteSessionsOf implements store.Access.
func (s *Store) DeleteSessionsOf(ctx context.Context, principalID string) (int, error) {
	return purged(ctx, s, "DeleteSessionsOf", s.access.sessions, 0, func(v *store.Session) bool { return v.PrincipalID == principalID })
}

// PurgeSessions implements store.Access.
func (s *Store) PurgeSessions(ctx context.Context, now time.Time, limit int) (int, error) {
	return purged(ctx, s, "PurgeSessions", s.access.sessions, limit, func(v *store.Session) bool { return v.EndsAt.Before(normalTime(now)) })
}

// AddLogin implements store.Access.
func (s *Store) AddLogin(ctx context.Context, l store.Login) error {
	l.ExpiresAt = normalTime(l.ExpiresAt)
	return added(ctx, s, "AddLogin", "this login", s.access.logins, l.Hash, l)
}

// TakeLogin implements store.Access.
func (s *Store) TakeLogin(ctx context.Context, hash string) (store.Login, error) {
	var out store.Login
	err := s.do(ctx, "TakeLogin", func() error {
		l, ok := s.access.logins[hash]
		if !ok {
			return store.ErrNotFound
		}
		delete(s.access.logins, hash)
		out = l
		return nil
	})
	return out, err
}

// PurgeLogins implements store.Access.
func (s *Store) PurgeLogins(ctx context.Context, now time.Time, limit int) (int, error) {
	return purged(ctx, s, "PurgeLogins", s.access.logins, limit, func(l *store.Login) bool { return l.ExpiresAt.Before(normalTime(now)) })
}

// AddActions implements store.Access.
func (s *Store) AddActions(ctx context.Context, actions ...store.Action) error {
	return s.do(ctx, "AddActions", func() error {
		for _, a := range actions {
			if _, stored := s.access.actions[a.ID]; !stored {
				s.access.actions[a.ID] = cloneAction(a)
			}
		}
		return nil
	})
}

// ListActions implements store.Access.
func (s *Store) ListActions(ctx context.Context, f store.ActionFilter) ([]store.Action, error) {
	return selected(ctx, s, "ListActions", s.access.actions, f.Rows(), func(a *store.Action) bool { return f.Matches(a) },
		func(a, b store.Action) int { return cmp.Compare(b.ID, a.ID) }, cloneAction)
}

// PurgeActions implements store.Access.
func (s *Store) PurgeActions(ctx context.Context, before time.Time, limit int) (int, error) {
	return purged(ctx, s, "PurgeActions", s.access.actions, limit, func(a *store.Action) bool { return a.ID < store.IDAt(before) })
}
