package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// PutKeychain implements store.Secrets.
func (s *Store) PutKeychain(ctx context.Context, e store.KeychainEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	return s.do(ctx, "PutKeychain", func() error {
		e.ExpiresAt, e.CreatedAt, e.AccessedAt = normalTime(e.ExpiresAt), normalTime(e.CreatedAt), normalTime(e.AccessedAt)
		s.secrets.keychain[e.CacheKey] = e
		return nil
	})
}

// Keychain implements store.Secrets.
func (s *Store) Keychain(ctx context.Context, cacheKey string, now time.Time) (store.KeychainEntry, error) {
	var out store.KeychainEntry
	err := s.do(ctx, "Keychain", func() error {
		e, ok := s.secrets.keychain[cacheKey]
		if !ok {
			return store.ErrNotFound
		}
		e.AccessedAt = normalTime(now)
		e.AccessCount++
		s.secrets.keychain[cacheKey] = e
		out = e
		return nil
	})
	return out, err
}

// keychainEntries are the keychain entries that match, in order.
func (s *Store) keychainEntries(ctx context.Context, op string, limit int, match func(*store.KeychainEntry) bool,
	order func(a, b store.KeychainEntry) int,
) ([]store.KeychainEntry, error) {
	return selected(ctx, s, op, s.secrets.keychain, limit, match, order, func(e store.KeychainEntry) store.KeychainEntry { return e })
}

func byCacheKey(a, b store.KeychainEntry) int { return cmp.Compare(a.CacheKey, b.CacheKey) }

func byDeadline(a, b store.KeychainEntry) int {
	return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), byCacheKey(a, b))
}

// ListKeychain implements store.Secrets.
func (s *Store) ListKeychain(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error) {
	return s.keychainEntries(ctx, "ListKeychain", 0, func(e *store.KeychainEntry) bool { return e.CatalogID == catalog }, byCacheKey)
}

// DueKeychain implements store.Secrets.
func (s *Store) DueKeychain(ctx context.Context, before time.Time, limit int) ([]store.KeychainEntry, error) {
	return s.keychainEntries(ctx, "DueKeychain", limit,
		func(e *store.KeychainEntry) bool { return e.AutoRenew && e.ExpiresAt.Before(normalTime(before)) }, byDeadline)
}

// KeychainAfter implements store.Secrets.
func (s *Store) KeychainAfter(ctx context.Context, cacheKey string, limit int) ([]store.KeychainEntry, error) {
	return s.keychainEntries(ctx, "KeychainAfter", limit, func(e *store.KeychainEntry) bool { return e.CacheKey > cacheKey }, byCacheKey)
}

// DeleteKeychain implements store.Secrets.
func (s *Store) DeleteKeychain(ctx context.Context, cacheKey string) (bool, error) {
	n, err := s.deleteKeychain(ctx, "DeleteKeychain", 0, func(e *store.KeychainEntry) bool { return e.CacheKey == cacheKey })
	return n == 1, err
}

// DeleteKeychainOf implements store.Secrets.
func (s *Store) DeleteKeychainOf(ctx context.Context, execution event.ID) (int, error) {
	return s.deleteKeychain(ctx, "DeleteKeychainOf", 0, func(e *store.KeychainEntry) bool {
		return execution != 0 && e.ExecutionID == execution && e.Scope != "global"
	})
}

// ExpireKeychain implements store.Secrets.
func (s *Store) ExpireKeychain(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.deleteKeychain(ctx, "ExpireKeychain", limit, func(e *store.KeychainEntry) bool { return e.ExpiresAt.Before(normalTime(now)) })
}

func (s *Store) deleteKeychain(ctx context.Context, op string, limit int, match func(*store.KeychainEntry) bool) (int, error) {
	return s.count(ctx, op, func() (n int) {
		for key, e := range s.secrets.keychain {
			if match(&e) && (limit <= 0 || n < limit) {
				delete(s.secrets.keychain, key)
				n++
			}
		}
		return n
	})
}

// SwapKeychain implements store.Secrets.
func (s *Store) SwapKeychain(ctx context.Context, cacheKey, old, sealed, sealedRenewal string) (bool, error) {
	n, err := s.count(ctx, "SwapKeychain", func() int {
		e, ok := s.secrets.keychain[cacheKey]
		if !ok || e.Sealed != old {
			return 0
		}
		e.Sealed, e.SealedRenewal = sealed, sealedRenewal
		s.secrets.keychain[cacheKey] = e
		return 1
	})
	return n == 1, err
}
