package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/noetl/noetl-go/internal/tool"
)

// runner executes one command.
type runner struct {
	plan  *plan
	call  *tool.Call
	opts  Options
	limit time.Duration
	out   *spool
	parts []part // of out, one for each statement
	large bool   // too many rows to be held in an event
	conn  *conn
}

// run executes all statements on one connection.
func (r *runner) run(ctx context.Context, ps *pools) error {
	if err := r.open(ctx, ps); err != nil {
		return err
	}
	defer ps.release(r.conn)
	for i := range r.plan.statements {
		if err := r.statement(ctx, i); err != nil {
			return err
		}
	}
	return r.finish(ctx)
}

// open takes a connection and sets it up. One that was lost while it rested is
// replaced: nothing was done on it yet.
func (r *runner) open(ctx context.Context, ps *pools) error {
	for {
		c, err := ps.acquire(ctx, r.plan)
		if err != nil {
			return r.refused(ctx, err)
		}
		rested := !c.rests.IsZero()
		c.listen(r.call.Log)
		err = c.prepare(ctx, r.plan, r.call, r.opts)
		if err == nil {
			r.conn = c
			return nil
		}
		lost := c.pg.IsClosed()
		ps.release(c)
		if !rested || !lost || ctx.Err() != nil {
			return r.failure(ctx, -1, err)
		}
	}
}

// statement executes one statement and adds what it gave.
func (r *runner) statement(ctx context.Context, i int) error {
	s := &r.plan.statements[i]
	described, err := r.describe(ctx, s)
	if err != nil {
		return r.failure(ctx, i, err)
	}
	args, err := r.bindArgs(s, i, described)
	if err != nil {
		return err
	}
	rows, err := r.newRows(described)
	if err != nil {
		return err
	}
	reader := r.conn.pg.ExecPrepared(ctx, "", args, nil, nil)
	for reader.NextRow() {
		if err = rows.add(reader.Values()); err != nil {
			break
		}
	}
	if err != nil { // the rest is of no use to anybody
		r.conn.sever()
		_, _ = reader.Close()
		return err
	}
	tag, err := reader.Close()
	if err != nil {
		return r.failure(ctx, i, err)
	}
	p, err := rows.end(tag)
	r.parts = append(r.parts, p)
	return err
}

// describe asks the server what a statement takes and gives, and makes sure
// that all the types are known.
func (r *runner) describe(ctx context.Context, s *statement) (*pgconn.StatementDescription, error) {
	described, err := r.conn.pg.Prepare(ctx, "", s.sent, nil)
	if err != nil {
		return nil, err
	}
	oids := append([]uint32(nil), described.ParamOIDs...)
	for _, field := range described.Fields {
		oids = append(oids, field.DataTypeOID)
	}
	asked, err := r.conn.home.learn(ctx, r.conn.pg, oids)
	if err != nil || !asked {
		return described, err
	}
	return r.conn.pg.Prepare(ctx, "", s.sent, nil) // the questions took the place of the statement
}

// bindArgs writes the parameters as the server wants them.
func (r *runner) bindArgs(s *statement, i int, described *pgconn.StatementDescription) ([][]byte, error) {
	if len(described.ParamOIDs) != len(s.args) {
		return nil, tool.ConfigErrorf("%s: it has %d parameters and params gives it %d values",
			r.plan.place(i, s.Line), len(described.ParamOIDs), len(s.args))
	}
	out := make([][]byte, len(s.args))
	for n, oid := range described.ParamOIDs {
		text, err := r.conn.home.bind(s.args[n].json, oid)
		if err != nil {
			return nil, &tool.Error{
				Kind: tool.KindSchema, Code: "PARAMETER",
				Message: r.plan.place(i, s.Line) + ": parameter " + s.args[n].name + " " + err.Error(),
			}
		}
		out[n] = text
	}
	return out, nil
}

// finish ends the transaction, if there is one.
func (r *runner) finish(ctx context.Context) error {
	if r.plan.transaction || r.plan.readonly {
		if err := r.conn.exec(ctx, "COMMIT"); err != nil {
			return r.failure(ctx, -1, err)
		}
		return nil
	}
	if r.conn.pg.TxStatus() != 'I' {
		return &tool.Error{
			Kind: tool.KindLogic, Code: "OPEN_TRANSACTION",
			Message: "the SQL begins a transaction and does not end it, so it was rolled back; add COMMIT, or leave BEGIN out and set transaction: true",
		}
	}
	return nil
}

// refused explains why there is no connection.
func (r *runner) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tool.Ended(ctx, "the connection to PostgreSQL", r.limit)
	}
	if failed, ok := errors.AsType[*tool.Error](err); ok {
		return failed
	}
	if errors.Is(err, errPoolTimeout) {
		return &tool.Error{
			Kind: tool.KindDBConnection, Code: "POOL_TIMEOUT", Retryable: true,
			Message: "no connection became free within " + r.plan.pool.Timeout.String() + " (raise pool.max_size or pool.timeout, or run fewer steps at once)",
		}
	}
	return connectFailure(r.plan.target, err)
}

// changes tells that the number in a tag counts rows that were changed.
func changes(tag pgconn.CommandTag) bool {
	word, _, _ := strings.Cut(tag.String(), " ")
	switch word {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "COPY":
		return true
	}
	return false
}
