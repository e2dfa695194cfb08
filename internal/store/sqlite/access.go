package sqlite

import (
	"context"
	"math"
	"time"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const tokenColumns = `token_id, name, secret_hash, grants, coalesce(created_by, ''), created_at, expires_at, last_used_at, revoked_at`

const (
	addTokenSQL = `INSERT INTO access_token (token_id, name, secret_hash, grants, created_by, created_at, expires_at, last_used_at, revoked_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	tokenSQL       = `SELECT ` + tokenColumns + ` FROM access_token WHERE token_id = ?`
	listTokensSQL  = `SELECT ` + tokenColumns + ` FROM access_token WHERE token_id < ? ORDER BY token_id DESC LIMIT ?`
	useTokenSQL    = `UPDATE access_token SET last_used_at = ?1 WHERE token_id = ?2 AND (last_used_at IS NULL OR last_used_at < ?1)`
	revokeTokenSQL = `UPDATE access_token SET revoked_at = coalesce(revoked_at, ?) WHERE token_id = ? RETURNING ` + tokenColumns
	purgeTokensSQL = `DELETE FROM access_token WHERE token_id IN (SELECT token_id FROM access_token
	WHERE token_id > ?1 AND (expires_at < ?2 OR revoked_at < ?2) ORDER BY token_id LIMIT ?3)`
)

func scanToken(row scanner, t *store.Token) error {
	return row.Scan(&t.ID, &t.Name, &t.Hash, &t.Grants, &t.CreatedBy, micros{&t.CreatedAt}, micros{&t.ExpiresAt}, micros{&t.LastUsedAt}, micros{&t.RevokedAt})
}

// keyTaken turns a broken primary key into a conflict that says of what.
func keyTaken(err error, what string) error {
	if resultCode(err) == code.SQLITE_CONSTRAINT_PRIMARYKEY {
		return event.Errorf(event.Conflict, "%s is already stored", what)
	}
	return err
}

// AddToken implements store.Access.
func (s *Store) AddToken(ctx context.Context, t store.Token) error {
	_, err := s.change(ctx, "store token", addTokenSQL, func(st *statement) {
		st.id(t.ID).str(t.Name).str(t.Hash).str(string(t.Grants)).text(t.CreatedBy).time(t.CreatedAt).time(t.ExpiresAt).time(t.LastUsedAt).time(t.RevokedAt)
	})
	return keyTaken(err, "token "+t.ID.String())
}

// Token implements store.Access.
func (s *Store) Token(ctx context.Context, id event.ID) (store.Token, error) {
	return one("token "+id.String(), s.reader.QueryRowContext(ctx, tokenSQL, id), scanToken)
}

// ListTokens implements store.Access.
func (s *Store) ListTokens(ctx context.Context, before event.ID, limit int) ([]store.Token, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.reader.QueryContext(ctx, listTokensSQL, before, rowLimit(limit))
	return collect("list tokens", rows, err, scanToken)
}

// UseTokens implements store.Access.
func (s *Store) UseTokens(ctx context.Context, uses ...store.TokenUse) error {
	return s.write(ctx, 16*len(uses), func(w *writer) error {
		for _, u := range uses {
			if _, err := w.change(useTokenSQL, func(st *statement) { st.time(u.At).id(u.ID) }); err != nil {
				return coded("note the use of a token", err)
			}
		}
		return nil
	})
}

// RevokeToken implements store.Access.
func (s *Store) RevokeToken(ctx context.Context, id event.ID, now time.Time) (store.Token, error) {
	return first(writeReturning(ctx, s, "revoke token", revokeTokenSQL, func(st *statement) { st.time(now).id(id) }, scanToken))
}

// PurgeTokens implements store.Access.
func (s *Store) PurgeTokens(ctx context.Context, above event.ID, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge tokens", purgeTokensSQL, func(st *statement) {
		st.id(above).int(before.UnixMicro()).int(int64(rowLimit(limit)))
	})
}

const sessionColumns = `session_hash, principal_id, principal, coalesce(token_id, 0), coalesce(remote, ''), coalesce(user_agent, ''), created_at, used_at, ends_at, expires_at`

const (
	addSessionSQL = `INSERT INTO access_session (session_hash, principal_id, principal, token_id, remote, user_agent, created_at, used_at, ends_at, expires_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sessionSQL    = `SELECT ` + sessionColumns + ` FROM access_session WHERE session_hash = ?`
	useSessionSQL = `UPDATE access_session SET used_at = max(used_at, ?1), ends_at = max(ends_at, min(?2, expires_at)) WHERE session_hash = ?3 AND ends_at > ?1`
	endSessionSQL = `DELETE FROM access_session WHERE session_hash = ?`
	endCallerSQL  = `DELETE FROM access_session WHERE principal_id = ?`
	purgeSessSQL  = `DELETE FROM access_session WHERE session_hash IN (SELECT session_hash FROM access_session WHERE ends_at < ? ORDER BY ends_at LIMIT ?)`
)

func scanSession(row scanner, v *store.Session) error {
	return row.Scan(&v.Hash, &v.PrincipalID, &v.Principal, &v.TokenID, &v.Remote, &v.UserAgent, micros{&v.CreatedAt}, micros{&v.UsedAt},
		micros{&v.EndsAt}, micros{&v.ExpiresAt})
}

// AddSession implements store.Access.
func (s *Store) AddSession(ctx context.Context, v store.Session) error {
	_, err := s.change(ctx, "store session", addSessionSQL, func(st *statement) {
		st.str(v.Hash).str(v.PrincipalID).str(string(v.Principal)).nullID(v.TokenID).text(v.Remote).text(v.UserAgent)
		st.time(v.CreatedAt).time(v.UsedAt).time(v.EndsAt).time(v.ExpiresAt)
	})
	return keyTaken(err, "this session")
}

// Session implements store.Access.
func (s *Store) Session(ctx context.Context, hash string) (store.Session, error) {
	return one("session", s.reader.QueryRowContext(ctx, sessionSQL, hash), scanSession)
}

// UseSession implements store.Access.
func (s *Store) UseSession(ctx context.Context, hash string, at, endsAt time.Time) (bool, error) {
	n, err := s.change(ctx, "use session", useSessionSQL, func(st *statement) { st.time(at).time(endsAt).str(hash) })
	return n == 1, err
}

// DeleteSession implements store.Access.
func (s *Store) DeleteSession(ctx context.Context, hash string) (bool, error) {
	n, err := s.change(ctx, "end session", endSessionSQL, func(st *statement) { st.str(hash) })
	return n == 1, err
}

// DeleteSessionsOf implements store.Access.
func (s *Store) DeleteSessionsOf(ctx context.Context, principalID string) (int, error) {
	return s.change(ctx, "end sessions", endCallerSQL, func(st *statement) { st.str(principalID) })
}

// PurgeSessions implements store.Access.
func (s *Store) PurgeSessions(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.change(ctx, "purge sessions", purgeSessSQL, func(st *statement) { st.int(now.UnixMicro()).int(int64(rowLimit(limit))) })
}

const (
	addLoginSQL    = `INSERT INTO access_login (state_hash, nonce, verifier, return_to, expires_at) VALUES (?, ?, ?, ?, ?)`
	takeLoginSQL   = `DELETE FROM access_login WHERE state_hash = ? RETURNING state_hash, nonce, verifier, coalesce(return_to, ''), expires_at`
	purgeLoginsSQL = `DELETE FROM access_login WHERE state_hash IN (SELECT state_hash FROM access_login WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`
)

func scanLogin(row scanner, l *store.Login) error {
	return row.Scan(&l.Hash, &l.Nonce, &l.Verifier, &l.ReturnTo, micros{&l.ExpiresAt})
}

// AddLogin implements store.Access.
func (s *Store) AddLogin(ctx context.Context, l store.Login) error {
	_, err := s.change(ctx, "store login", addLoginSQL, func(st *statement) {
		st.str(l.Hash).str(l.Nonce).str(l.Verifier).text(l.ReturnTo).time(l.ExpiresAt)
	})
	return keyTaken(err, "this login")
}

// TakeLogin implements store.Access.
func (s *Store) TakeLogin(ctx context.Context, hash string) (store.Login, error) {
	return first(writeReturning(ctx, s, "take login", takeLoginSQL, func(st *statement) { st.str(hash) }, scanLogin))
}

// PurgeLogins implements store.Access.
func (s *Store) PurgeLogins(ctx context.Context, now time.Time, limit int) (int, error) {
	return s.change(ctx, "purge logins", purgeLoginsSQL, func(st *statement) { st.int(now.UnixMicro()).int(int64(rowLimit(limit))) })
}

const (
	actionColumns = `action_id, occurred_at, action_type, actor, coalesce(actor_name, ''), coalesce(proved_by, ''), coalesce(remote, ''),
	coalesce(request_id, ''), coalesce(method, ''), coalesce(route, ''), coalesce(target, ''), outcome, status, detail`
	addActionSQL = `INSERT INTO action (action_id, occurred_at, action_type, actor, actor_name, proved_by, remote, request_id, method, route, target, outcome, status, detail)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	purgeActionsSQL = `DELETE FROM action WHERE action_id IN (SELECT action_id FROM action WHERE action_id < ? ORDER BY action_id LIMIT ?)`
)

// listActionsSQL compares only what the filter restricts, so that each list has
// an index to walk along.
func listActionsSQL(f store.ActionFilter) (string, []any) {
	from, to := f.IDRange()
	text, args := `SELECT `+actionColumns+` FROM action WHERE action_id >= ? AND action_id < ?`, []any{from, to}
	for _, c := range []struct{ column, value string }{{"target", f.Target}, {"actor", f.Actor}, {"action_type", f.Type}} {
		if c.value != "" {
			text, args = text+` AND `+c.column+` = ?`, append(args, c.value)
		}
	}
	return text + ` ORDER BY action_id DESC LIMIT ?`, append(args, f.Rows())
}

func scanAction(row scanner, a *store.Action) error {
	return row.Scan(&a.ID, micros{&a.At}, &a.Type, &a.Actor, &a.ActorName, &a.By, &a.Remote, &a.RequestID, &a.Method, &a.Route, &a.Target,
		&a.Outcome, &a.Status, &a.Detail)
}

// AddActions implements store.Access.
func (s *Store) AddActions(ctx context.Context, actions ...store.Action) error {
	return s.write(ctx, 512*len(actions), func(w *writer) error {
		for i := range actions {
			a := &actions[i]
			_, err := w.change(addActionSQL, func(st *statement) {
				st.id(a.ID).time(a.At).str(a.Type).str(a.Actor).text(a.ActorName).text(a.By).text(a.Remote).text(a.RequestID)
				st.text(a.Method).text(a.Route).text(a.Target).str(a.Outcome).int(int64(a.Status)).json(a.Detail)
			})
			if err != nil {
				return coded("store action", err)
			}
		}
		return nil
	})
}

// ListActions implements store.Access.
func (s *Store) ListActions(ctx context.Context, f store.ActionFilter) ([]store.Action, error) {
	text, args := listActionsSQL(f)
	rows, err := s.reader.QueryContext(ctx, text, args...)
	return collect("list actions", rows, err, scanAction)
}

// PurgeActions implements store.Access.
func (s *Store) PurgeActions(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge actions", purgeActionsSQL, func(st *statement) { st.id(store.IDAt(before)).int(int64(rowLimit(limit))) })
}
