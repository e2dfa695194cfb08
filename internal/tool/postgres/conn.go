package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// farewell bounds what is said to a server after a command.
	farewell = 5 * time.Second
	// afterCancel is how long a cancelled statement may take to stop before its
	// connection is cut.
	afterCancel = 3 * time.Second
	// maxMessage bounds one row in memory.
	maxMessage = 128 << 20
)

// conn is one connection. One command uses it at a time.
type conn struct {
	pg    *pgconn.PgConn
	home  *pool
	made  time.Time
	rests time.Time

	notices sync.Mutex
	log     io.Writer // of the command that uses it; nil = nobody
}

// connect logs in. A server that is starting, full or out of reach is asked
// again a few times.
func connect(ctx context.Context, t target, attempts int) (*conn, error) {
	cfg, err := t.config()
	if err != nil {
		return nil, err
	}
	c := &conn{}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { c.notice(n) }
	cfg.BuildContextWatcherHandler = func(pg *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pg, DeadlineDelay: afterCancel}
	}
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := pgproto3.NewFrontend(r, w)
		f.SetMaxBodyLen(maxMessage)
		return f
	}
	for attempt := 1; ; attempt++ {
		c.pg, err = pgconn.ConnectConfig(ctx, cfg)
		if err == nil {
			c.made = time.Now()
			return c, nil
		}
		failed := connectFailure(t, err)
		if ctx.Err() != nil {
			return nil, errors.Join(context.Cause(ctx), failed)
		}
		if attempt >= attempts || !failed.Retryable {
			return nil, failed
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), failed)
		case <-time.After(time.Duration(attempt) * 100 * time.Millisecond):
		}
	}
}

// notice passes on what a server says beside the data.
func (c *conn) notice(n *pgconn.Notice) {
	c.notices.Lock()
	defer c.notices.Unlock()
	if c.log != nil {
		fmt.Fprintf(c.log, "%s: %s\n", n.Severity, n.Message)
	}
}

func (c *conn) listen(w io.Writer) {
	c.notices.Lock()
	c.log = w
	c.notices.Unlock()
}

// prepare sets the session up for one command. Values come back in forms that
// do not depend on the server's settings.
func (c *conn) prepare(ctx context.Context, p *plan, call *tool.Call, opts Options) error {
	set := []string{
		"SET client_encoding = 'UTF8'", "SET DateStyle = 'ISO'", "SET IntervalStyle = 'iso_8601'", "SET bytea_output = 'hex'",
		"SET extra_float_digits = 1",
		"SET application_name = " + literal(applicationName(call)),
		"SET statement_timeout = " + millis(statementTimeout(ctx, opts.Statement)),
		"SET idle_in_transaction_session_timeout = " + millis(opts.IdleInTx),
	}
	if p.searchPath != "" {
		set = append(set, "SET search_path = "+p.searchPath)
	}
	if err := c.exec(ctx, strings.Join(set, ";")); err != nil {
		return err
	}
	switch {
	case p.readonly: // the query makes the mode final, statements cannot change it back
		return c.exec(ctx, "BEGIN READ ONLY; SELECT 1")
	case p.transaction:
		return c.exec(ctx, "BEGIN")
	}
	return nil
}

func (c *conn) exec(ctx context.Context, sql string) error {
	return c.pg.Exec(ctx, sql).Close()
}

// clean makes the connection as good as new: no transaction, no settings, no
// temporary tables, locks or listeners of the last command. It is false when
// the connection is of no more use.
func (c *conn) clean() bool {
	c.listen(nil)
	if c.pg.IsClosed() || c.pg.IsBusy() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if c.pg.TxStatus() != 'I' && c.exec(ctx, "ROLLBACK") != nil {
		return false
	}
	return c.exec(ctx, "DISCARD ALL") == nil
}

// close says goodbye and waits until the driver is done with the connection.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = c.pg.Close(ctx) // there is nobody to tell
	select {
	case <-c.pg.CleanupDone():
	case <-ctx.Done():
	}
}

// sever cuts a connection in the middle of a statement, whose rest nobody wants.
func (c *conn) sever() { _ = c.pg.Conn().Close() }

// applicationName tells the administrator of a server whose connection it is.
func applicationName(call *tool.Call) string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "noetl/"+call.ExecutionID+"/"+call.Step)
	return name[:min(len(name), 63)]
}

// statementTimeout is the server's own limit: it counts when nobody is left to
// cancel the statement, and so comes a little after the step's budget.
func statementTimeout(ctx context.Context, most time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	left := max(time.Until(deadline), 0) + time.Second
	if most > 0 {
		return min(left, most)
	}
	return left
}

func millis(d time.Duration) string {
	return strconv.FormatInt(min(d.Milliseconds(), 1<<31-1), 10)
}

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
