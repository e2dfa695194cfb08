package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/noetl/noetl-go/internal/tool"
)

var errPoolTimeout = errors.New("no connection became free in time")

// failure explains what went wrong at statement i; -1 = around the statements.
func (r *runner) failure(ctx context.Context, i int, err error) *tool.Error {
	if failed, ok := errors.AsType[*tool.Error](err); ok {
		return failed
	}
	what := "the SQL"
	if i >= 0 {
		what = r.plan.place(i, r.plan.statements[i].Line)
	}
	if ctx.Err() != nil {
		return tool.Ended(ctx, what, r.limit)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return r.serverError(i, pg)
	}
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return &tool.Error{
			Kind: tool.KindResourceLimit, Code: "ROW_TOO_LARGE",
			Message: fmt.Sprintf("%s: a row is larger than %d MiB; select less of it", what, maxMessage>>20),
		}
	}
	return &tool.Error{
		Kind: tool.KindDBConnection, Code: "CONN_LOST", Retryable: true,
		Message: what + ": the connection to PostgreSQL was lost; whether the statement took effect is not known",
	}
}

// serverError is the server's opinion of a statement: where, what and what to
// do. Neither the SQL nor the values of parameters are part of it.
func (r *runner) serverError(i int, pg *pgconn.PgError) *tool.Error {
	e := classify(pg)
	var s *statement
	where := "the transaction"
	if i >= 0 {
		s = &r.plan.statements[i]
		line := s.Line
		if pg.Position > 0 {
			line = s.Start + strings.Count(firstRunes(s.sent, int(pg.Position)-1), "\n")
		}
		where = r.plan.place(i, line)
		e.Details = map[string]any{"statement": i, "line": line}
	}
	e.Message = fmt.Sprintf("%s: %s: %s (SQLSTATE %s)", where, pg.Severity, s.mask(pg.Message), pg.Code)
	if pg.Detail != "" {
		e.Message += " DETAIL: " + s.mask(pg.Detail)
	}
	if pg.Hint != "" {
		e.Message += " HINT: " + s.mask(pg.Hint)
	}
	if pg.ConstraintName != "" && e.Details != nil {
		e.Details["constraint"] = pg.ConstraintName
	}
	return e
}

// mask takes the values of parameters out of a text.
func (s *statement) mask(text string) string {
	if s == nil {
		return text
	}
	for _, arg := range s.args {
		var value string
		if json.Unmarshal(arg.json, &value) != nil {
			value = string(arg.json)
		}
		if len(value) >= 3 {
			text = strings.ReplaceAll(text, value, arg.name)
		}
	}
	return text
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// classify finds the kind of a server's error and whether another try may help.
func classify(pg *pgconn.PgError) *tool.Error {
	e := &tool.Error{Kind: tool.KindUnknown, Code: "PG_" + pg.Code, PGCode: pg.Code, Message: pg.Message}
	set := func(kind string, retryable bool) *tool.Error {
		e.Kind, e.Retryable = kind, retryable
		return e
	}
	switch pg.Code {
	case "40001", "40P01":
		return set(tool.KindDBDeadlock, true)
	case "57014", "55P03": // cancelled, and a lock that was not had in time
		return set(tool.KindDBTimeout, true)
	case "57P01", "57P02", "57P03", "57P05", "25P03", "53300": // shutting down, starting, full
		return set(tool.KindDBConnection, true)
	case "42501":
		return set(tool.KindAuth, false)
	case "3D000":
		return set(tool.KindNotFound, false)
	case "42601", "25006", "25001":
		return set(tool.KindClientError, false)
	case "53100":
		return set(tool.KindStorageQuota, false)
	}
	if len(pg.Code) < 2 {
		return e
	}
	switch pg.Code[:2] {
	case "08":
		return set(tool.KindDBConnection, true)
	case "23":
		return set(tool.KindDBConstraint, false)
	case "28":
		return set(tool.KindAuth, false)
	case "22", "42", "3F":
		return set(tool.KindSchema, false)
	case "53":
		return set(tool.KindServerError, true)
	case "P0":
		return set(tool.KindLogic, false)
	}
	return e
}

// connectFailure explains why nobody could log in. The driver's own text is not
// used: it repeats the settings.
func connectFailure(t target, err error) *tool.Error {
	where := "PostgreSQL at " + shownHost(t)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		e := classify(pg)
		e.Message = fmt.Sprintf("%s: %s: %s (SQLSTATE %s)", where, pg.Severity, pg.Message, pg.Code)
		return e
	}
	e := &tool.Error{Kind: tool.KindDBConnection, Code: "CONN_ERROR", Retryable: true}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		e.Code, e.Message = "DNS_ERROR", fmt.Sprintf("host %q cannot be found (is the name right, and does DNS work here?)", dns.Name)
		return e
	}
	netErr, isNet := errors.AsType[net.Error](err)
	text := err.Error()
	switch {
	case demandsTLS(t) && strings.Contains(text, "server refused TLS connection"):
		e.Code, e.Retryable, e.Message = "TLS_ERROR", false, "the server does not offer TLS, and sslmode "+t["sslmode"]+" asks for it"
	case demandsTLS(t) && (strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ")):
		e.Code, e.Retryable, e.Message = "TLS_ERROR", false, "the server's certificate is not accepted under sslmode "+t["sslmode"]+" (set sslrootcert in the credential)"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Code, e.Message = "CONN_REFUSED", "connection refused (is the server running and the port right?)"
	case errors.Is(err, os.ErrNotExist):
		e.Code, e.Message = "CONN_REFUSED", "there is no such socket (is the server running?)"
	case isNet && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = "CONN_TIMEOUT", "no connection in time (is the host up and reachable from here?)"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		e.Message = "the server closed the connection before the login was complete"
	default:
		e.Message = "no connection could be made"
	}
	e.Message = where + ": " + e.Message
	return e
}

// demandsTLS tells that a connection without TLS is out of the question, so that
// what TLS says is the whole story.
func demandsTLS(t target) bool {
	return t["sslmode"] == "require" || strings.HasPrefix(t["sslmode"], "verify-")
}

func shownHost(t target) string {
	host := t["host"]
	if !utf8.ValidString(host) || strings.ContainsAny(host, "@ '") { // parts of a mistyped URL
		return "this address"
	}
	if strings.HasPrefix(host, "/") {
		return host
	}
	return host + ":" + t["port"]
}
