package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const credentialColumns = `id, name, type, data_encrypted, schema, meta, tags, coalesce(description, ''), created_at, updated_at`

const (
	updateCredentialSQL = `UPDATE credential SET type = ?, data_encrypted = ?, schema = ?, meta = ?, tags = ?, description = ?, updated_at = ?
	WHERE name = ? RETURNING ` + credentialColumns
	insertCredentialSQL = `INSERT INTO credential (id, name, type, data_encrypted, schema, meta, tags, description, created_at, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING ` + credentialColumns
	credentialSQL       = `SELECT ` + credentialColumns + ` FROM credential WHERE name = ?`
	credentialByIDSQL   = `SELECT ` + credentialColumns + ` FROM credential WHERE id = ?`
	listCredentialsSQL  = `SELECT ` + credentialColumns + ` FROM credential WHERE ?1 = '' OR type = ?1 ORDER BY created_at DESC, id DESC`
	credentialsAfterSQL = `SELECT ` + credentialColumns + ` FROM credential WHERE id > ? ORDER BY id LIMIT ?`
	deleteCredentialSQL = `DELETE FROM credential WHERE id = ?`
	swapCredentialSQL   = `UPDATE credential SET data_encrypted = ? WHERE id = ? AND data_encrypted = ?`
)

func scanCredential(row scanner, c *store.Credential) error {
	return row.Scan(&c.ID, &c.Name, &c.Type, &c.Sealed, &c.Schema, &c.Meta, textList{&c.Tags}, &c.Description,
		micros{&c.CreatedAt}, micros{&c.UpdatedAt})
}

// textList is a list of texts in a column, as JSON.
type textList struct{ list *[]string }

func (l textList) Scan(v any) error {
	*l.list = nil
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(v), l.list)
	default:
		return fmt.Errorf("list column holds %T", v)
	}
}

// list binds a list of texts; an empty one is NULL.
func (s *statement) list(texts []string) *statement {
	if len(texts) == 0 {
		return s.bind(nil)
	}
	doc, _ := json.Marshal(texts) // strings always marshal
	return s.bind(string(doc))
}

// PutCredential implements store.Secrets.
func (s *Store) PutCredential(ctx context.Context, c store.Credential) (stored store.Credential, created bool, err error) {
	var found []store.Credential
	err = s.write(ctx, len(c.Sealed)+len(c.Meta), func(w *writer) error {
		created = false
		var err error
		found, err = returning(w, updateCredentialSQL, func(st *statement) {
			st.str(c.Type).str(c.Sealed).json(c.Schema).json(c.Meta).list(c.Tags).text(c.Description).time(c.UpdatedAt).str(c.Name)
		}, scanCredential)
		if err != nil || len(found) > 0 {
			return coded("update credential", err)
		}
		created = true
		found, err = returning(w, insertCredentialSQL, func(st *statement) {
			st.id(c.ID).str(c.Name).str(c.Type).str(c.Sealed).json(c.Schema).json(c.Meta).list(c.Tags).text(c.Description)
			st.time(c.CreatedAt).time(c.UpdatedAt)
		}, scanCredential)
		return coded("store credential", err)
	})
	if resultCode(err) == code.SQLITE_CONSTRAINT_PRIMARYKEY {
		return store.Credential{}, false, event.Errorf(event.Conflict, "credential id %d is already stored", c.ID)
	}
	stored, err = first(found, err)
	return stored, created && err == nil, err
}

// Credential implements store.Secrets.
func (s *Store) Credential(ctx context.Context, name string) (store.Credential, error) {
	return one("credential "+name, s.reader.QueryRowContext(ctx, credentialSQL, name), scanCredential)
}

// CredentialByID implements store.Secrets.
func (s *Store) CredentialByID(ctx context.Context, id event.ID) (store.Credential, error) {
	return one("credential "+id.String(), s.reader.QueryRowContext(ctx, credentialByIDSQL, id), scanCredential)
}

// ListCredentials implements store.Secrets. SQLite ignores case in ASCII only,
// so the few rows there are get compared here.
func (s *Store) ListCredentials(ctx context.Context, f store.CredentialFilter) ([]store.Credential, error) {
	rows, err := s.reader.QueryContext(ctx, listCredentialsSQL, f.Type)
	all, err := collect("list credentials", rows, err, scanCredential)
	return slices.DeleteFunc(all, func(c store.Credential) bool { return !f.Matches(&c) }), err
}

// CredentialsAfter implements store.Secrets.
func (s *Store) CredentialsAfter(ctx context.Context, id event.ID, limit int) ([]store.Credential, error) {
	rows, err := s.reader.QueryContext(ctx, credentialsAfterSQL, id, rowLimit(limit))
	return collect("page credentials", rows, err, scanCredential)
}

// DeleteCredential implements store.Secrets.
func (s *Store) DeleteCredential(ctx context.Context, id event.ID) error {
	n, err := s.change(ctx, "delete credential", deleteCredentialSQL, func(st *statement) { st.id(id) })
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}

// SwapCredential implements store.Secrets.
func (s *Store) SwapCredential(ctx context.Context, id event.ID, old, sealed string) (bool, error) {
	n, err := s.change(ctx, "swap credential", swapCredentialSQL, func(st *statement) { st.str(sealed).id(id).str(old) })
	return n == 1, err
}

const auditColumns = `audit_id, occurred_at, credential, operation, outcome, coalesce(actor, ''), coalesce(request_id, ''), coalesce(worker_id, ''),
	coalesce(execution_id, 0), coalesce(parent_execution_id, 0), coalesce(server_region, ''), coalesce(kek_version, ''), coalesce(notes, '')`

const (
	addAuditSQL = `INSERT INTO secret_audit (audit_id, occurred_at, credential, operation, outcome, actor, request_id, worker_id,
	execution_id, parent_execution_id, server_region, kek_version, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	listAuditSQL = `SELECT ` + auditColumns + ` FROM secret_audit WHERE (?1 = '' OR credential = ?1) AND (?2 = 0 OR execution_id = ?2)
	AND occurred_at >= ?3 AND occurred_at < ?4 ORDER BY occurred_at DESC, audit_id DESC LIMIT ?5`
)

func scanAudit(row scanner, l *store.SecretAudit) error {
	return row.Scan(&l.ID, micros{&l.At}, &l.Credential, &l.Operation, &l.Outcome, &l.Actor, &l.RequestID, &l.WorkerID,
		&l.ExecutionID, &l.ParentExecutionID, &l.Region, &l.KeyVersion, &l.Notes)
}

// AddAudit implements store.Secrets.
func (s *Store) AddAudit(ctx context.Context, lines ...store.SecretAudit) error {
	return s.write(ctx, 256*len(lines), func(w *writer) error {
		for i := range lines {
			l := &lines[i]
			_, err := w.change(addAuditSQL, func(st *statement) {
				st.id(l.ID).time(l.At).str(l.Credential).str(l.Operation).str(l.Outcome).text(l.Actor).text(l.RequestID).text(l.WorkerID)
				st.nullID(l.ExecutionID).nullID(l.ParentExecutionID).text(l.Region).text(l.KeyVersion).text(l.Notes)
			})
			if err != nil {
				return coded("store audit", err)
			}
		}
		return nil
	})
}

// ListAudit implements store.Secrets.
func (s *Store) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.SecretAudit, error) {
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !f.From.IsZero() {
		from = f.From.Truncate(time.Microsecond).UnixMicro()
	}
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	rows, err := s.reader.QueryContext(ctx, listAuditSQL, f.Credential, f.ExecutionID, from, to, f.Rows())
	return collect("list audit", rows, err, scanAudit)
}
