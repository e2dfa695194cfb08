package postgres

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const keychainColumns = `cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, coalesce(execution_id, 0),
	coalesce(parent_execution_id, 0), data_encrypted, expires_at, created_at, accessed_at, coalesce(access_count, 0), coalesce(auto_renew, false),
	coalesce(renew_sealed, '')`

const (
	putKeychainSQL = `INSERT INTO noetl.keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, execution_id,
	parent_execution_id, data_encrypted, expires_at, created_at, accessed_at, access_count, auto_renew, renew_sealed)
	VALUES ($1, $2, $3, $4, $5, $6, nullif($7::int8, 0), nullif($8::int8, 0), $9, $10, $11, $12, $13, $14, nullif($15, ''))
	ON CONFLICT (cache_key) DO UPDATE SET keychain_name = excluded.keychain_name, catalog_id = excluded.catalog_id,
	credential_type = excluded.credential_type, cache_type = excluded.cache_type, scope_type = excluded.scope_type,
	execution_id = excluded.execution_id, parent_execution_id = excluded.parent_execution_id, data_encrypted = excluded.data_encrypted,
	schema = NULL, expires_at = excluded.expires_at, created_at = excluded.created_at, accessed_at = excluded.accessed_at,
	access_count = excluded.access_count, auto_renew = excluded.auto_renew, renew_sealed = excluded.renew_sealed, renew_config = NULL`
	accessKeychainSQL = `UPDATE noetl.keychain SET accessed_at = $2, access_count = coalesce(access_count, 0) + 1 WHERE cache_key = $1
	RETURNING ` + keychainColumns
	listKeychainSQL   = `SELECT ` + keychainColumns + ` FROM noetl.keychain WHERE catalog_id = $1 ORDER BY cache_key COLLATE "C"`
	dueKeychainSQL    = `SELECT ` + keychainColumns + ` FROM noetl.keychain WHERE auto_renew AND expires_at < $1 ORDER BY expires_at, cache_key COLLATE "C" LIMIT $2`
	keychainAfterSQL  = `SELECT ` + keychainColumns + ` FROM noetl.keychain WHERE cache_key COLLATE "C" > $1 ORDER BY cache_key COLLATE "C" LIMIT $2`
	deleteKeychainSQL = `DELETE FROM noetl.keychain WHERE cache_key = $1`
	endKeychainSQL    = `DELETE FROM noetl.keychain WHERE execution_id = $1 AND scope_type <> 'global'`
	expireKeychainSQL = `DELETE FROM noetl.keychain WHERE cache_key IN (SELECT cache_key FROM noetl.keychain WHERE expires_at < $1
	ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
	swapKeychainSQL = `UPDATE noetl.keychain SET data_encrypted = $3, renew_sealed = nullif($4, '') WHERE cache_key = $1 AND data_encrypted = $2`
)

func scanKeychain(row scanner, e *store.KeychainEntry) error {
	return row.Scan(&e.CacheKey, &e.Name, &e.CatalogID, &e.CredentialType, &e.CacheType, &e.Scope, &e.ExecutionID, &e.ParentExecutionID,
		&e.Sealed, stamp{&e.ExpiresAt}, stamp{&e.CreatedAt}, stamp{&e.AccessedAt}, &e.AccessCount, &e.AutoRenew, &e.SealedRenewal)
}

// PutKeychain implements store.Secrets.
func (s *Store) PutKeychain(ctx context.Context, e store.KeychainEntry) error {
	if err := e.Validate(); err != nil {
		return err
	}
	_, err := s.cluster.Exec(ctx, putKeychainSQL, cleanText(e.CacheKey), cleanText(e.Name), e.CatalogID, cleanText(e.CredentialType), e.CacheType,
		e.Scope, e.ExecutionID, e.ParentExecutionID, e.Sealed, e.ExpiresAt.Truncate(time.Microsecond), nullTime(e.CreatedAt), nullTime(e.AccessedAt),
		e.AccessCount, e.AutoRenew, e.SealedRenewal)
	return coded("store keychain entry", err)
}

// Keychain implements store.Secrets.
func (s *Store) Keychain(ctx context.Context, cacheKey string, now time.Time) (store.KeychainEntry, error) {
	return one(ctx, s.cluster, "keychain entry", scanKeychain, accessKeychainSQL, cleanText(cacheKey), now)
}

// ListKeychain implements store.Secrets.
func (s *Store) ListKeychain(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error) {
	return many(ctx, s.cluster, "list keychain", scanKeychain, listKeychainSQL, catalog)
}

// DueKeychain implements store.Secrets.
func (s *Store) DueKeychain(ctx context.Context, before time.Time, limit int) ([]store.KeychainEntry, error) {
	return many(ctx, s.cluster, "find keychain entries to renew", scanKeychain, dueKeychainSQL, before, rowLimit(limit))
}

// KeychainAfter implements store.Secrets.
func (s *Store) KeychainAfter(ctx context.Context, cacheKey string, limit int) ([]store.KeychainEntry, error) {
	return many(ctx, s.cluster, "page keychain", scanKeychain, keychainAfterSQL, cleanText(cacheKey), rowLimit(limit))
}

// DeleteKeychain implements store.Secrets.
func (s *Store) DeleteKeychain(ctx context.Context, cacheKey string) (bool, error) {
	n, err := s.changeKeychain(ctx, "delete keychain entry", deleteKeychainSQL, cleanText(cacheKey))
	return n == 1, err
}

// DeleteKeychainOf implements store.Secrets.
func (s *Store) DeleteKeychainOf(ctx context.Context, execution event.ID) (int, error) {
	return s.changeKeychain(ctx, "delete keychain of execution", endKeychainSQL, execution)
}

// ExpireKeychain implements store.Secrets.
func (s *Store) ExpireKeychain(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.changeKeychain(ctx, "expire keychain", expireKeychainSQL, now, rowLimit(limit))
}

// SwapKeychain implements store.Secrets.
func (s *Store) SwapKeychain(ctx context.Context, cacheKey, old, sealed, sealedRenewal string) (bool, error) {
	n, err := s.changeKeychain(ctx, "swap keychain entry", swapKeychainSQL, cleanText(cacheKey), old, sealed, sealedRenewal)
	return n == 1, err
}

func (s *Store) changeKeychain(ctx context.Context, doing, text string, args ...any) (int, error) {
	tag, err := s.cluster.Exec(ctx, text, args...)
	return int(tag.RowsAffected()), coded(doing, err)
}
