package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const keychainColumns = `cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, coalesce(execution_id, 0),
	coalesce(parent_execution_id, 0), data_encrypted, expires_at, created_at, accessed_at, access_count, auto_renew, coalesce(renew_sealed, '')`

const (
	putKeychainSQL = `INSERT OR REPLACE INTO keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
	parent_execution_id, data_encrypted, expires_at, created_at, accessed_at, access_count, auto_renew, renew_sealed)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	accessKeychainSQL = `UPDATE keychain SET accessed_at = ?, access_count = access_count + 1 WHERE cache_key = ? RETURNING ` + keychainColumns
	listKeychainSQL   = `SELECT ` + keychainColumns + ` FROM keychain WHERE catalog_id = ? ORDER BY cache_key`
	dueKeychainSQL    = `SELECT ` + keychainColumns + ` FROM keychain WHERE auto_renew <> 0 AND expires_at < ? ORDER BY expires_at, cache_key LIMIT ?`
	keychainAfterSQL  = `SELECT ` + keychainColumns + ` FROM keychain WHERE cache_key > ? ORDER BY cache_key LIMIT ?`
	deleteKeychainSQL = `DELETE FROM keychain WHERE cache_key = ?`
	endKeychainSQL    = `DELETE FROM keychain WHERE execution_id = ? AND scope_type <> 'global'`
	expireKeychainSQL = `DELETE FROM keychain WHERE cache_key IN (SELECT cache_key FROM keychain WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`
	swapKeychainSQL   = `UPDATE keychain SET data_encrypted = ?, renew_sealed = ? WHERE cache_key = ? AND data_encrypted = ?`
)

func scanKeychain(row scanner, e *store.KeychainEntry) error {
	renew := 0
	err := row.Scan(&e.CacheKey, &e.Name, &e.CatalogID, &e.CredentialType, &e.CacheType, &e.Scope, &e.ExecutionID, &e.ParentExecutionID,
		&e.Sealed, micros{&e.ExpiresAt}, micros{&e.CreatedAt}, micros{&e.AccessedAt}, &e.AccessCount, &renew, &e.SealedRenewal)
	e.AutoRenew = renew != 0
	return err
}

// PutKeychain implements store.Secrets.
func (s *Store) PutKeychain(ctx context.Context, e store.KeychainEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	var renew int64
	if e.AutoRenew {
		renew = 1
	}
	_, err := s.change(ctx, "store keychain entry", putKeychainSQL, func(st *statement) {
		st.str(e.CacheKey).str(e.Name).id(e.CatalogID).str(e.CredentialType).str(e.CacheType).str(e.Scope)
		st.nullID(e.ExecutionID).nullID(e.ParentExecutionID).str(e.Sealed).time(e.ExpiresAt).time(e.CreatedAt).time(e.AccessedAt)
		st.int(e.AccessCount).int(renew).text(e.SealedRenewal)
	})
	return err
}

// Keychain implements store.Secrets.
func (s *Store) Keychain(ctx context.Context, cacheKey string, now time.Time) (store.KeychainEntry, error) {
	return first(writeReturning(ctx, s, "read keychain entry", accessKeychainSQL, func(st *statement) {
		st.time(now).str(cacheKey)
	}, scanKeychain))
}

// ListKeychain implements store.Secrets.
func (s *Store) ListKeychain(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error) {
	rows, err := s.reader.QueryContext(ctx, listKeychainSQL, catalog)
	return collect("list keychain", rows, err, scanKeychain)
}

// DueKeychain implements store.Secrets.
func (s *Store) DueKeychain(ctx context.Context, before time.Time, limit int) ([]store.KeychainEntry, error) {
	rows, err := s.reader.QueryContext(ctx, dueKeychainSQL, before.UnixMicro(), rowLimit(limit))
	return collect("find keychain entries to renew", rows, err, scanKeychain)
}

// KeychainAfter implements store.Secrets.
func (s *Store) KeychainAfter(ctx context.Context, cacheKey string, limit int) ([]store.KeychainEntry, error) {
	rows, err := s.reader.QueryContext(ctx, keychainAfterSQL, cacheKey, rowLimit(limit))
	return collect("page keychain", rows, err, scanKeychain)
}

// DeleteKeychain implements store.Secrets.
func (s *Store) DeleteKeychain(ctx context.Context, cacheKey string) (bool, error) {
	n, err := s.change(ctx, "delete keychain entry", deleteKeychainSQL, func(st *statement) { st.str(cacheKey) })
	return n == 1, err
}

// DeleteKeychainOf implements store.Secrets.
func (s *Store) DeleteKeychainOf(ctx context.Context, execution event.ID) (int, error) {
	return s.change(ctx, "delete keychain of execution", endKeychainSQL, func(st *statement) { st.id(execution) })
}

// ExpireKeychain implements store.Secrets.
func (s *Store) ExpireKeychain(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.change(ctx, "expire keychain", expireKeychainSQL, func(st *statement) { st.int(now.UnixMicro()).int(int64(rowLimit(limit))) })
}

// SwapKeychain implements store.Secrets.
func (s *Store) SwapKeychain(ctx context.Context, cacheKey, old, sealed, sealedRenewal string) (bool, error) {
	n, err := s.change(ctx, "swap keychain entry", swapKeychainSQL, func(st *statement) {
		st.str(sealed).text(sealedRenewal).str(cacheKey).str(old)
	})
	return n == 1, err
}
