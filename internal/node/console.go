package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
)

// What SQL from outside may do.
const (
	consoleOff   = "off"
	consoleRead  = "read"
	consoleWrite = "write"
)

// consoleMode reads the setting; 1 is the older word for what reads.
func consoleMode(text string) (string, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "0", "off", "false":
		return consoleOff, nil
	case "1", "read", "true":
		return consoleRead, nil
	case "write":
		return consoleWrite, nil
	}
	return "", fmt.Errorf("NOETL_POSTGRES_EXECUTE: want off, read (or 1) or write, got %q", text)
}

// Bounds of one statement from outside.
const (
	consoleTime  = 20 * time.Second
	consoleRows  = 1000
	consoleBytes = 8 << 20
)

// sqlConsole runs single statements, each in a transaction of its own on a
// connection of its own, with the rights of the credential that is named.
type sqlConsole struct {
	secrets *secret.Service
	write   bool
}

// Query runs one statement. The extended protocol takes one only, so that
// nothing can end the transaction and go on behind it.
func (c *sqlConsole) Query(ctx context.Context, q api.ConsoleQuery) (api.ConsoleAnswer, error) {
	if c.secrets == nil {
		return api.ConsoleAnswer{}, event.Errorf(event.Unavailable, "this server keeps no credentials")
	}
	ctx, cancel := context.WithTimeout(ctx, consoleTime)
	defer cancel()
	conn, err := c.dial(ctx, q)
	if err != nil {
		return api.ConsoleAnswer{}, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	begin := fmt.Sprintf("BEGIN READ ONLY; SET LOCAL statement_timeout = %d", consoleTime.Milliseconds())
	if c.write {
		begin = strings.Replace(begin, " READ ONLY", "", 1)
	}
	if q.Schema != "" {
		begin += "; SET LOCAL search_path = " + quoteIdent(q.Schema)
	}
	if err := conn.Exec(ctx, begin).Close(); err != nil {
		return api.ConsoleAnswer{}, complaint(err)
	}
	a, err := read(conn.ExecParams(ctx, q.SQL, parameters(q.Parameters), nil, nil, nil))
	if err != nil {
		return a, complaint(err)
	}
	end := "ROLLBACK"
	if c.write {
		end = "COMMIT"
	}
	if err := conn.Exec(ctx, end).Close(); err != nil {
		return a, complaint(err)
	}
	return a, nil
}

func quoteIdent(name string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(name, "\x00", ""), `"`, `""`) + `"`
}

// dial opens the credential, which the record of secrets notes, and connects
// the way the steps of playbooks do.
func (c *sqlConsole) dial(ctx context.Context, q api.ConsoleQuery) (*pgconn.PgConn, error) {
	fields := tool.Fields{"auth": q.Credential}
	if q.Database != "" {
		fields["database"] = q.Database
	}
	call := &tool.Call{Config: map[string]any(fields), Log: io.Discard, Credentials: func(ctx context.Context, aliases ...string) (map[string]*tool.Credential, error) {
		found := map[string]*tool.Credential{}
		for _, alias := range aliases {
			row, data, err := c.secrets.Open(ctx, alias, secret.Use{Operation: secret.OpGet, Actor: q.Actor, RequestID: q.RequestID, Notes: "postgres/execute"})
			if err != nil {
				return nil, err
			}
			one := &tool.Credential{Alias: row.Name, Type: row.Type}
			if err := json.Unmarshal(data, &one.Data); err != nil {
				return nil, event.Errorf(event.Invalid, "credential %q holds no object", alias)
			}
			found[alias] = one
		}
		return found, nil
	}}
	conn, err := postgres.Dial(ctx, call, fields)
	if err != nil {
		return nil, complaint(err)
	}
	return conn, nil
}

// complaint is an error of the database as the caller's.
func complaint(err error) error {
	if event.CodeOf(err) != "" && event.CodeOf(err) != event.Internal {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return event.Errorf(event.Invalid, "%s: %s", e.Code, e.Message)
	}
	return event.Errorf(event.Invalid, "%s", postgres.Classify(err).Message)
}

// parameters are bound as text, which the statement's own types read.
func parameters(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		var text string
		switch {
		case string(raw) == "null" || len(raw) == 0:
		case json.Unmarshal(raw, &text) == nil:
			out[i] = []byte(text)
		default:
			out[i] = raw
		}
	}
	return out
}

// read takes rows until there are too many.
func read(rr *pgconn.ResultReader) (a api.ConsoleAnswer, err error) {
	size := 0
	for rr.NextRow() {
		if len(a.Rows) == consoleRows || size > consoleBytes {
			a.Truncated = true
			continue
		}
		row := []byte{'{'}
		for i, v := range rr.Values() {
			if i > 0 {
				row = append(row, ',')
			}
			f := rr.FieldDescriptions()[i]
			name, _ := json.Marshal(f.Name)
			row = append(append(append(row, name...), ':'), cell(f.DataTypeOID, v)...)
		}
		row = append(row, '}')
		size += len(row)
		a.Rows = append(a.Rows, row)
	}
	tag, err := rr.Close()
	a.Tag = tag.String()
	return a, err
}

// cell is a value in JSON: numbers, booleans and JSON as themselves, all else as
// the text PostgreSQL shows.
func cell(oid uint32, v []byte) []byte {
	if v == nil {
		return []byte("null")
	}
	switch oid {
	case pgtype.JSONOID, pgtype.JSONBOID:
		return v
	case pgtype.BoolOID:
		return []byte(strconv.FormatBool(string(v) == "t"))
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		if json.Valid(v) { // NaN and Infinity are no JSON
			return v
		}
	}
	text, _ := json.Marshal(string(v))
	return text
}
