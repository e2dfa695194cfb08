package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Console runs SQL on the databases of credentials. An error with the code
// Invalid is the database's own complaint.
type Console interface {
	Query(ctx context.Context, q ConsoleQuery) (ConsoleAnswer, error)
}

// ConsoleQuery is one statement.
type ConsoleQuery struct {
	Credential string
	SQL        string
	Parameters []json.RawMessage
	Database   string // another one than the credential's; "" = that
	Schema     string // where names are looked up; "" = as the credential says
	Actor      string
	RequestID  string
}

// ConsoleAnswer is what came back: rows as objects.
type ConsoleAnswer struct {
	Rows      []json.RawMessage
	Truncated bool // there were more
	Tag       string
}

func (s *Server) consoleRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/postgres/execute", Admin, s.console, "runs one SQL statement on the database of a credential; closed unless a setting opens it",
			`{query | query_base64, credential, parameters?, schema? | db_schema?, database?}`, `{status: ok|error, result: [row], truncated?, command?, error?}`).within(Everywhere).noted("database.queried"),
	}
}

type consoleBody struct {
	Query      string            `json:"query"`
	Encoded    string            `json:"query_base64"`
	Procedure  string            `json:"procedure"`
	Parameters []json.RawMessage `json:"parameters"`
	Schema     string            `json:"schema"`
	DBSchema   string            `json:"db_schema"` // the older word
	Database   string            `json:"database"`
	Credential string            `json:"credential"`
	Connection string            `json:"connection_string"`
}

func (b *consoleBody) query() (ConsoleQuery, error) {
	q := ConsoleQuery{
		Credential: strings.TrimSpace(b.Credential), SQL: first(b.Query, b.Procedure), Parameters: b.Parameters,
		Database: b.Database, Schema: first(b.Schema, b.DBSchema),
	}
	if b.Encoded != "" {
		raw, err := base64.StdEncoding.DecodeString(b.Encoded)
		if err != nil {
			return q, event.Errorf(event.Invalid, "query_base64: this is not base64")
		}
		q.SQL = string(raw)
	}
	switch {
	case b.Connection != "":
		return q, &event.Error{Code: event.Invalid, Message: "connection_string is not accepted", Remedy: "store a credential and name it"}
	case q.Credential == "":
		return q, &event.Error{Code: event.Invalid, Message: "credential is missing", Remedy: "name a stored credential: there is no database by default"}
	case strings.TrimSpace(q.SQL) == "":
		return q, event.Errorf(event.Invalid, "query is missing")
	}
	return q, nil
}

type consoleAnswer struct {
	Status    string            `json:"status"`
	Result    []json.RawMessage `json:"result"`
	Truncated bool              `json:"truncated,omitempty"`
	Command   string            `json:"command,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func (s *Server) console(w http.ResponseWriter, r *http.Request) error {
	if s.opt.Console == nil {
		return &event.Error{
			Code: event.Forbidden, Message: "SQL from outside is closed here", Reason: "console_closed",
			Remedy: "start the server with NOETL_POSTGRES_EXECUTE=read or write",
		}
	}
	var body consoleBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	q, err := body.query()
	if err != nil {
		return err
	}
	p := passageOf(r.Context())
	q.Actor, q.RequestID, p.target = p.who.ID, p.requestID, q.Credential
	detail(r.Context(), "query", q.SQL[:min(len(q.SQL), 1000)])
	a, err := s.opt.Console.Query(r.Context(), q)
	if event.CodeOf(err) == event.Invalid && err != nil { // clients look for it in the body
		return private(w, consoleAnswer{Status: "error", Result: []json.RawMessage{}, Error: err.Error()})
	}
	if err != nil {
		return err
	}
	if a.Rows == nil {
		a.Rows = []json.RawMessage{}
	}
	return private(w, consoleAnswer{Status: "ok", Result: a.Rows, Truncated: a.Truncated, Command: a.Tag})
}
