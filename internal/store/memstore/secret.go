package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// secrets are the credentials by name, the keychain by cache key and the audit
// lines by id.
type secrets struct {
	credentials map[string]store.Credential
	keychain    map[string]store.KeychainEntry
	audit       map[event.ID]store.SecretAudit
}

func newSecrets() secrets {
	return secrets{map[string]store.Credential{}, map[string]store.KeychainEntry{}, map[event.ID]store.SecretAudit{}}
}

func cloneCredential(c store.Credential) store.Credential {
	c.Schema, c.Meta = clip(c.Schema), clip(c.Meta)
	c.Tags = slices.Clone(c.Tags)
	if len(c.Tags) == 0 {
		c.Tags = nil
	}
	c.CreatedAt, c.UpdatedAt = normalTime(c.CreatedAt), normalTime(c.UpdatedAt)
	return c
}

// PutCredential implements store.Secrets.
func (s *Store) PutCredential(ctx context.Context, c store.Credential) (stored store.Credential, created bool, err error) {
	err = s.do(ctx, "PutCredential", func() error {
		stored = cloneCredential(c)
		old, exists := s.secrets.credentials[c.Name]
		if exists {
			stored.ID, stored.CreatedAt = old.ID, old.CreatedAt
		} else if _, taken := s.secrets.byID(c.ID); taken {
			return event.Errorf(event.Conflict, "credential id %d is already stored", c.ID)
		}
		created = !exists
		s.secrets.credentials[c.Name] = cloneCredential(stored)
		return nil
	})
	if err != nil {
		return store.Credential{}, false, err
	}
	return stored, created, nil
}

func (s *secrets) byID(id event.ID) (store.Credential, bool) {
	for _, c := range s.credentials {
		if c.ID == id {
			return c, true
		}
	}
	return store.Credential{}, false
}

// Credential implements store.Secrets.
func (s *Store) Credential(ctx context.Context, name string) (store.Credential, error) {
	return s.credential(ctx, "Credential", func() (store.Credential, bool) {
		c, ok := s.secrets.credentials[name]
		return c, ok
	})
}

// CredentialByID implements store.Secrets.
func (s *Store) CredentialByID(ctx context.Context, id event.ID) (store.Credential, error) {
	return s.credential(ctx, "CredentialByID", func() (store.Credential, bool) { return s.secrets.byID(id) })
}

func (s *Store) credential(ctx context.Context, op string, find func() (store.Credential, bool)) (store.Credential, error) {
	var out store.Credential
	err := s.do(ctx, op, func() error {
		found, ok := find()
		if !ok {
			return store.ErrNotFound
		}
		out = cloneCredential(found)
		return nil
	})
	return out, err
}

// ListCredentials implements store.Secrets.
func (s *Store) ListCredentials(ctx context.Context, f store.CredentialFilter) ([]store.Credential, error) {
	return selected(ctx, s, "ListCredentials", s.secrets.credentials, 0,
		func(c *store.Credential) bool { return f.Matches(c) },
		func(a, b store.Credential) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
		}, cloneCredential)
}

// CredentialsAfter implements store.Secrets.
func (s *Store) CredentialsAfter(ctx context.Context, id event.ID, limit int) ([]store.Credential, error) {
	return selected(ctx, s, "CredentialsAfter", s.secrets.credentials, limit,
		func(c *store.Credential) bool { return c.ID > id },
		func(a, b store.Credential) int { return cmp.Compare(a.ID, b.ID) }, cloneCredential)
}

// selected are the values of a map that match, in order, at most limit (0 = all).
func selected[K comparable, V any](ctx context.Context, s *Store, op string, from map[K]V, limit int,
	match func(*V) bool, order func(a, b V) int, clone func(V) V,
) ([]V, error) {
	var out []V
	err := s.do(ctx, op, func() error {
		for _, v := range from {
			if match(&v) {
				out = append(out, clone(v))
			}
		}
		slices.SortFunc(out, order)
		if limit > 0 && len(out) > limit {
			out = out[:limit]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteCredential implements store.Secrets.
func (s *Store) DeleteCredential(ctx context.Context, id event.ID) error {
	return s.do(ctx, "DeleteCredential", func() error {
		c, ok := s.secrets.byID(id)
		if !ok {
			return store.ErrNotFound
		}
		delete(s.secrets.credentials, c.Name)
		return nil
	})
}

// SwapCredential implements store.Secrets.
func (s *Store) SwapCredential(ctx context.Context, id event.ID, old, sealed string) (bool, error) {
	n, err := s.count(ctx, "SwapCredential", func() int {
		c, ok := s.secrets.byID(id)
		if !ok || c.Sealed != old {
			return 0
		}
		c.Sealed = sealed
		s.secrets.credentials[c.Name] = c
		return 1
	})
	return n == 1, err
}

// AddAudit implements store.Secrets.
func (s *Store) AddAudit(ctx context.Context, lines ...store.SecretAudit) error {
	return s.do(ctx, "AddAudit", func() error {
		for _, l := range lines {
			if _, stored := s.secrets.audit[l.ID]; !stored {
				l.At = normalTime(l.At)
				s.secrets.audit[l.ID] = l
			}
		}
		return nil
	})
}

// ListAudit implements store.Secrets.
func (s *Store) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.SecretAudit, error) {
	from, to := normalTime(f.From), normalTime(f.To)
	return selected(ctx, s, "ListAudit", s.secrets.audit, f.Rows(), func(l *store.SecretAudit) bool {
		return (f.Credential == "" || l.Credential == f.Credential) && (f.ExecutionID == 0 || l.ExecutionID == f.ExecutionID) &&
			(from.IsZero() || !l.At.Before(from)) && (to.IsZero() || l.At.Before(to))
	}, func(a, b store.SecretAudit) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) },
		func(l store.SecretAudit) store.SecretAudit { return l })
}
