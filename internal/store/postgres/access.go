package postgres

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const tokenColumns = `token_id, name, secret_hash, grants, coalesce(created_by, ''), created_at, expires_at, last_used_at, revoked_at`

const (
	addTokenSQL = `INSERT INTO noetl.access_token (token_id, name, secret_hash, grants, created_by, created_at, expires_at, last_used_at, revoked_at)
	VALUES ($1, $2, $3, $4::json, nullif($5, ''), $6, $7, $8, $9)`
	tokenSQL      = `SELECT ` + tokenColumns + ` FROM noetl.access_token WHERE token_id = $1`
	listTokensSQL = `SELECT ` + tokenColumns + ` FROM noetl.access_token WHERE token_id < $1 ORDER BY token_id DESC LIMIT $2`
	// In one order, so that two servers do not wait for each other.
	useTokensSQL = `WITH due AS (SELECT t.token_id, u.at FROM unnest($1::int8[], $2::timestamptz[]) u(id, at) JOIN noetl.access_token t ON t.token_id = u.id
	WHERE t.last_used_at IS NULL OR t.last_used_at < u.at ORDER BY t.token_id FOR UPDATE OF t)
	UPDATE noetl.access_token t SET last_used_at = due.at FROM due WHERE t.token_id = due.token_id`
	revokeTokenSQL = `UPDATE noetl.access_token SET revoked_at = coalesce(revoked_at, $2) WHERE token_id = $1 RETURNING ` + tokenColumns
	purgeTokensSQL = `DELETE FROM noetl.access_token WHERE token_id IN (SELECT token_id FROM noetl.access_token
	WHERE token_id > $1 AND (expires_at < $2 OR revoked_at < $2) ORDER BY token_id LIMIT $3 FOR UPDATE SKIP LOCKED)`
)

func scanToken(row scanner, t *store.Token) error {
	return row.Scan(&t.ID, &t.Name, &t.Hash, &t.Grants, &t.CreatedBy, stamp{&t.CreatedAt}, stamp{&t.ExpiresAt}, stamp{&t.LastUsedAt}, stamp{&t.RevokedAt})
}

// changeAccess runs a statement in the cluster's database and counts rows.
func (s *Store) changeAccess(ctx context.Context, doing, text string, args ...any) (int, error) {
	tag, err := s.cluster.Exec(ctx, text, args...)
	return int(tag.RowsAffected()), coded(doing, err)
}

// addAccess inserts a row whose key must be free.
func (s *Store) addAccess(ctx context.Context, what, text string, args ...any) error {
	_, err := s.changeAccess(ctx, "store "+what, text, args...)
	if sqlState(err) == uniqueViolation {
		return event.Errorf(event.Conflict, "%s is already stored", what)
	}
	return err
}

// AddToken implements store.Access.
func (s *Store) AddToken(ctx context.Context, t store.Token) error {
	return s.addAccess(ctx, "token "+t.ID.String(), addTokenSQL, t.ID, cleanText(t.Name), t.Hash, string(t.Grants), cleanText(t.CreatedBy),
		nullTime(t.CreatedAt), nullTime(t.ExpiresAt), nullTime(t.LastUsedAt), nullTime(t.RevokedAt))
}

// Token implements store.Access.
func (s *Store) Token(ctx context.Context, id event.ID) (store.Token, error) {
	return one(ctx, s.cluster, "token "+id.String(), scanToken, tokenSQL, id)
}

// ListTokens implements store.Access.
func (s *Store) ListTokens(ctx context.Context, before event.ID, limit int) ([]store.Token, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return many(ctx, s.cluster, "list tokens", scanToken, listTokensSQL, before, rowLimit(limit))
}

// UseTokens implements store.Access.
func (s *Store) UseTokens(ctx context.Context, uses ...store.TokenUse) error {
	last := map[event.ID]time.Time{} // an UPDATE takes any one of several rows for the same token
	for _, u := range uses {
		if last[u.ID].Before(u.At) {
			last[u.ID] = u.At
		}
	}
	var (
		ids   []int64
		times []time.Time
	)
	for id, at := range last {
		ids, times = append(ids, int64(id)), append(times, at)
	}
	_, err := s.changeAccess(ctx, "note the use of tokens", useTokensSQL, ids, times)
	return err
}

// RevokeToken implements store.Access.
func (s *Store) RevokeToken(ctx context.Context, id event.ID, now time.Time) (store.Token, error) {
	return one(ctx, s.cluster, "token "+id.String(), scanToken, revokeTokenSQL, id, now)
}

// PurgeTokens implements store.Access.
func (s *Store) PurgeTokens(ctx context.Context, above event.ID, before time.Time, limit int) (int, error) {
	return s.changeAccess(ctx, "purge tokens", purgeTokensSQL, above, before, rowLimit(limit))
}

const sessionColumns = `session_hash, principal_id, principal, coalesce(token_id, 0), coalesce(remote, ''), coalesce(user_agent, ''), created_at, used_at, ends_at, expires_at`

const (
	addSessionSQL = `INSERT INTO noetl.access_session (session_hash, principal_id, principal, token_id, remote, user_agent, created_at, used_at, ends_at, expires_at)
	VALUES ($1, $2, $3::json, nullif($4::int8, 0), nullif($5, ''), nullif($6, ''), $7, $8, $9, $10)`
	sessionSQL    = `SELECT ` + sessionColumns + ` FROM noetl.access_session WHERE session_hash = $1`
	useSessionSQL = `UPDATE noetl.access_session SET used_at = greatest(used_at, $2), ends_at = greatest(ends_at, least($3, expires_at))
	WHERE session_hash = $1 AND ends_at > $2`
	endSessionSQL = `DELETE FROM noetl.access_session WHERE session_hash = $1`
	endCallerSQL  = `DELETE FROM noetl.access_session WHERE principal_id = $1`
	purgeSessSQL  = `DELETE FROM noetl.access_session WHERE session_hash IN (SELECT session_hash FROM noetl.access_session WHERE ends_at < $1
	ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

func scanSession(row scanner, v *store.Session) error {
	return row.Scan(&v.Hash, &v.PrincipalID, &v.Principal, &v.TokenID, &v.Remote, &v.UserAgent, stamp{&v.CreatedAt}, stamp{&v.UsedAt},
		stamp{&v.EndsAt}, stamp{&v.ExpiresAt})
}

// AddSession implements store.Access.
func (s *Store) AddSession(ctx context.Context, v store.Session) error {
	return s.addAccess(ctx, "this session", addSessionSQL, v.Hash, cleanText(v.PrincipalID), string(v.Principal), v.TokenID, cleanText(v.Remote),
		cleanText(v.UserAgent), nullTime(v.CreatedAt), nullTime(v.UsedAt), nullTime(v.EndsAt), nullTime(v.ExpiresAt))
}

// Session implements store.Access.
func (s *Store) Session(ctx context.Context, hash string) (store.Session, error) {
	return one(ctx, s.cluster, "session", scanSession, sessionSQL, cleanText(hash))
}

// UseSession implements store.Access.
func (s *Store) UseSession(ctx context.Context, hash string, at, endsAt time.Time) (bool, error) {
	n, err := s.changeAccess(ctx, "use session", useSessionSQL, cleanText(hash), at, endsAt)
	return n == 1, err
}

// DeleteSession implements store.Access.
func (s *Store) DeleteSession(ctx context.Context, hash string) (bool, error) {
	n, err := s.changeAccess(ctx, "end session", endSessionSQL, cleanText(hash))
	return n == 1, err
}

// DeleteSessionsOf implements store.Access.
func (s *Store) DeleteSessionsOf(ctx context.Context, principalID string) (int, error) {
	return s.changeAccess(ctx, "end sessions", endCallerSQL, cleanText(principalID))
}

// PurgeSessions implements store.Access.
func (s *Store) PurgeSessions(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.changeAccess(ctx, "purge sessions", purgeSessSQL, now, rowLimit(limit))
}

const (
	addLoginSQL    = `INSERT INTO noetl.access_login (state_hash, nonce, verifier, return_to, expires_at) VALUES ($1, $2, $3, nullif($4, ''), $5)`
	takeLoginSQL   = `DELETE FROM noetl.access_login WHERE state_hash = $1 RETURNING state_hash, nonce, verifier, coalesce(return_to, ''), expires_at`
	purgeLoginsSQL = `DELETE FROM noetl.access_login WHERE state_hash IN (SELECT state_hash FROM noetl.access_login WHERE expires_at < $1
	ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

func scanLogin(row scanner, l *store.Login) error {
	return row.Scan(&l.Hash, &l.Nonce, &l.Verifier, &l.ReturnTo, stamp{&l.ExpiresAt})
}

// AddLogin implements store.Access.
func (s *Store) AddLogin(ctx context.Context, l store.Login) error {
	return s.addAccess(ctx, "this login", addLoginSQL, l.Hash, l.Nonce, l.Verifier, cleanText(l.ReturnTo), nullTime(l.ExpiresAt))
}

// TakeLogin implements store.Access.
func (s *Store) TakeLogin(ctx context.Context, hash string) (store.Login, error) {
	return one(ctx, s.cluster, "login", scanLogin, takeLoginSQL, cleanText(hash))
}

// PurgeLogins implements store.Access.
func (s *Store) PurgeLogins(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.changeAccess(ctx, "purge logins", purgeLoginsSQL, now, rowLimit(limit))
}

const (
	actionColumns = `action_id, occurred_at, action_type, actor, coalesce(actor_name, ''), coalesce(proved_by, ''), coalesce(remote, ''),
	coalesce(request_id, ''), coalesce(method, ''), coalesce(route, ''), coalesce(target, ''), outcome, status, detail`
	addActionSQL = `INSERT INTO noetl.action (action_id, occurred_at, action_type, actor, actor_name, proved_by, remote, request_id, method, route, target, outcome, status, detail)
	VALUES ($1, $2, $3, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), nullif($8, ''), nullif($9, ''), nullif($10, ''), nullif($11, ''), $12, $13, $14::json)
	ON CONFLICT DO NOTHING`
	purgeActionsSQL = `DELETE FROM noetl.action WHERE action_id IN (SELECT action_id FROM noetl.action WHERE action_id < $1
	ORDER BY action_id LIMIT $2 FOR UPDATE SKIP LOCKED)`
)

// listActionsSQL compares only what the filter restricts, so that each list has
// an index to walk along.
func listActionsSQL(f store.ActionFilter) (string, []any) {
	from, to := f.IDRange()
	text, args := `SELECT `+actionColumns+` FROM noetl.action WHERE action_id >= $1 AND action_id < $2`, []any{int64(from), int64(to)}
	for _, c := range []struct{ column, value string }{{"target", f.Target}, {"actor", f.Actor}, {"action_type", f.Type}} {
		if c.value != "" {
			args = append(args, cleanText(c.value))
			text += fmt.Sprintf(` AND %s = $%d`, c.column, len(args))
		}
	}
	args = append(args, f.Rows())
	return text + fmt.Sprintf(` ORDER BY action_id DESC LIMIT $%d`, len(args)), args
}

func scanAction(row scanner, a *store.Action) error {
	return row.Scan(&a.ID, stamp{&a.At}, &a.Type, &a.Actor, &a.ActorName, &a.By, &a.Remote, &a.RequestID, &a.Method, &a.Route, &a.Target,
		&a.Outcome, &a.Status, &a.Detail)
}

// AddActions implements store.Access.
func (s *Store) AddActions(ctx context.Context, actions ...store.Action) error {
	if len(actions) == 0 {
		return ctx.Err()
	}
	batch := &pgx.Batch{}
	for i := range actions {
		a := &actions[i]
		batch.Queue(addActionSQL, a.ID, a.At.Truncate(time.Microsecond), cleanText(a.Type), cleanText(a.Actor), cleanText(a.ActorName), cleanText(a.By),
			cleanText(a.Remote), cleanText(a.RequestID), cleanText(a.Method), cleanText(a.Route), cleanText(a.Target), cleanText(a.Outcome), a.Status, nullJSON(a.Detail))
	}
	err := pgx.BeginFunc(ctx, s.cluster, func(tx pgx.Tx) error { return tx.SendBatch(ctx, batch).Close() })
	return coded("store actions", err)
}

// ListActions implements store.Access.
func (s *Store) ListActions(ctx context.Context, f store.ActionFilter) ([]store.Action, error) {
	text, args := listActionsSQL(f)
	return many(ctx, s.cluster, "list actions", scanAction, text, args...)
}

// PurgeActions implements store.Access.
func (s *Store) PurgeActions(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.changeAccess(ctx, "purge actions", purgeActionsSQL, store.IDAt(before), rowLimit(limit))
}
