package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const credentialColumns = `id, name, type, data_encrypted, schema, meta, tags, coalesce(description, ''), created_at, updated_at`

const (
	// xmax is 0 in a row that was inserted and not updated.
	putCredentialSQL = `INSERT INTO noetl.credential (id, name, type, data_encrypted, schema, meta, tags, description, created_at, updated_at)
	VALUES ($1, $2, $3, $4, $5::json, $6::json, $7, nullif($8, ''), $9, $10) ON CONFLICT (name) DO UPDATE
	SET type = excluded.type, data_encrypted = excluded.data_encrypted, schema = excluded.schema, meta = excluded.meta,
	tags = excluded.tags, description = excluded.description, updated_at = excluded.updated_at
	RETURNING ` + credentialColumns + `, xmax = 0`
	credentialSQL      = `SELECT ` + credentialColumns + ` FROM noetl.credential WHERE name = $1`
	credentialByIDSQL  = `SELECT ` + credentialColumns + ` FROM noetl.credential WHERE id = $1`
	listCredentialsSQL = `SELECT ` + credentialColumns + ` FROM noetl.credential WHERE ($1 = '' OR type = $1)
	AND ($2 = '' OR strpos(lower(name), lower($2)) > 0 OR strpos(lower(description), lower($2)) > 0) ORDER BY created_at DESC, id DESC`
	credentialsAfterSQL = `SELECT ` + credentialColumns + ` FROM noetl.credential WHERE id > $1 ORDER BY id LIMIT $2`
	deleteCredentialSQL = `DELETE FROM noetl.credential WHERE id = $1`
	swapCredentialSQL   = `UPDATE noetl.credential SET data_encrypted = $3 WHERE id = $1 AND data_encrypted = $2`
)

func credentialFields(c *store.Credential) []any {
	return []any{
		&c.ID, &c.Name, &c.Type, &c.Sealed, &c.Schema, &c.Meta, &c.Tags, &c.Description, stamp{&c.CreatedAt}, stamp{&c.UpdatedAt},
	}
}

func scanCredential(row scanner, c *store.Credential) error {
	err := row.Scan(credentialFields(c)...)
	if len(c.Tags) == 0 {
		c.Tags = nil
	}
	return err
}

// PutCredential implements store.Secrets.
func (s *Store) PutCredential(ctx context.Context, c store.Credential) (stored store.Credential, created bool, err error) {
	tags := make([]string, 0, len(c.Tags))
	for _, tag := range c.Tags {
		tags = append(tags, cleanText(tag))
	}
	scan := func(row scanner, v *store.Credential) error {
		return row.Scan(append(credentialFields(v), &created)...)
	}
	stored, err = one(ctx, s.cluster, "store credential", scan, putCredentialSQL, c.ID, cleanText(c.Name), cleanText(c.Type), c.Sealed,
		nullJSON(c.Schema), nullJSON(c.Meta), tags, cleanText(c.Description), nullTime(c.CreatedAt), nullTime(c.UpdatedAt))
	if sqlState(err) == uniqueViolation {
		return store.Credential{}, false, event.Errorf(event.Conflict, "credential id %d is already stored", c.ID)
	}
	if err != nil {
		return store.Credential{}, false, err
	}
	if len(stored.Tags) == 0 {
		stored.Tags = nil
	}
	return stored, created, nil
}

// Credential implements store.Secrets.
func (s *Store) Credential(ctx context.Context, name string) (store.Credential, error) {
	return one(ctx, s.cluster, "credential "+name, scanCredential, credentialSQL, cleanText(name))
}

// CredentialByID implements store.Secrets.
func (s *Store) CredentialByID(ctx context.Context, id event.ID) (store.Credential, error) {
	return one(ctx, s.cluster, "credential "+id.String(), scanCredential, credentialByIDSQL, id)
}

// ListCredentials implements store.Secrets.
func (s *Store) ListCredentials(ctx context.Context, f store.CredentialFilter) ([]store.Credential, error) {
	return many(ctx, s.cluster, "list credentials", scanCredential, listCredentialsSQL, cleanText(f.Type), cleanText(f.Query))
}

// CredentialsAfter implements store.Secrets.
func (s *Store) CredentialsAfter(ctx context.Context, id event.ID, limit int) ([]store.Credential, error) {
	return many(ctx, s.cluster, "page credentials", scanCredential, credentialsAfterSQL, id, rowLimit(limit))
}

// DeleteCredential implements store.Secrets.
func (s *Store) DeleteCredential(ctx context.Context, id event.ID) error {
	tag, err := s.cluster.Exec(ctx, deleteCredentialSQL, id)
	if err == nil && tag.RowsAffected() == 0 {
		return store.ErrNotFound
	}
	return coded("delete credential", err)
}

// SwapCredential implements store.Secrets.
func (s *Store) SwapCredential(ctx context.Context, id event.ID, old, sealed string) (bool, error) {
	tag, err := s.cluster.Exec(ctx, swapCredentialSQL, id, old, sealed)
	return tag.RowsAffected() == 1, coded("swap credential", err)
}

const auditColumns = `audit_id, occurred_at, credential, operation, outcome, coalesce(actor, ''), coalesce(request_id, ''), coalesce(worker_id, ''),
	coalesce(execution_id, 0), coalesce(parent_execution_id, 0), coalesce(server_region, ''), coalesce(kek_version, ''), coalesce(notes, '')`

const (
	addAuditSQL = `INSERT INTO noetl.secret_audit (audit_id, occurred_at, credential, operation, outcome, actor, request_id, worker_id,
	execution_id, parent_execution_id, server_region, kek_version, notes)
	VALUES ($1, $2, $3, $4, $5, nullif($6, ''), nullif($7, ''), nullif($8, ''), nullif($9::int8, 0), nullif($10::int8, 0), nullif($11, ''), nullif($12, ''), nullif($13, ''))
	ON CONFLICT DO NOTHING`
	listAuditSQL = `SELECT ` + auditColumns + ` FROM noetl.secret_audit WHERE ($1 = '' OR credential = $1) AND ($2::int8 = 0 OR execution_id = $2)
	AND ($3::timestamptz IS NULL OR occurred_at >= $3) AND ($4::timestamptz IS NULL OR occurred_at < $4)
	ORDER BY occurred_at DESC, audit_id DESC LIMIT $5`
)

func scanAudit(row scanner, l *store.SecretAudit) error {
	return row.Scan(&l.ID, stamp{&l.At}, &l.Credential, &l.Operation, &l.Outcome, &l.Actor, &l.RequestID, &l.WorkerID,
		&l.ExecutionID, &l.ParentExecutionID, &l.Region, &l.KeyVersion, &l.Notes)
}

// AddAudit implements store.Secrets.
func (s *Store) AddAudit(ctx context.Context, lines ...store.SecretAudit) error {
	if len(lines) == 0 {
		return ctx.Err()
	}
	batch := &pgx.Batch{}
	for i := range lines {
		l := &lines[i]
		batch.Queue(addAuditSQL, l.ID, l.At.Truncate(time.Microsecond), cleanText(l.Credential), cleanText(l.Operation), cleanText(l.Outcome), cleanText(l.Actor),
			cleanText(l.RequestID), cleanText(l.WorkerID), l.ExecutionID, l.ParentExecutionID, cleanText(l.Region), cleanText(l.KeyVersion), cleanText(l.Notes))
	}
	err := pgx.BeginFunc(ctx, s.cluster, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return coded("store audit", err)
}

// ListAudit implements store.Secrets.
func (s *Store) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.SecretAudit, error) {
	return many(ctx, s.cluster, "list audit", scanAudit, listAuditSQL, cleanText(f.Credential), f.ExecutionID,
		nullTime(f.From.Truncate(time.Microsecond)), nullTime(f.To.Truncate(time.Microsecond)), f.Rows())
}
