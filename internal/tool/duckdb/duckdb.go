//go:build duckdb

package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

// library is DuckDB itself.
var library engine = cgo{}

type cgo struct{}

func (cgo) open(path string, settings map[string]string) (database, error) {
	options := url.Values{}
	for name, value := range settings {
		options.Set(name, value)
	}
	if path == Memory {
		path = ""
	}
	c, err := duckdb.NewConnector(path+"?"+options.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return &nativeDatabase{c}, nil
}

type nativeDatabase struct{ c *duckdb.Connector }

func (d *nativeDatabase) connect(ctx context.Context) (connection, error) {
	c, err := d.c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &nativeConn{c.(*duckdb.Conn)}, nil
}

func (d *nativeDatabase) close() error { return d.c.Close() }

type nativeConn struct{ c *duckdb.Conn }

func (c *nativeConn) close() error { return c.c.Close() }

func (c *nativeConn) query(ctx context.Context, text string, args []any) (rows, error) {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	kind, err := stmt.StatementType()
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	r, err := stmt.QueryContext(ctx, arguments(args))
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	return &nativeRows{stmt: stmt, rows: r.(resultRows), kind: kind}, nil
}

func (c *nativeConn) prepare(ctx context.Context, text string) (*duckdb.Stmt, error) {
	stmt, err := c.c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.(*duckdb.Stmt), nil
}

// describe asks only when a column may be JSON, which the library takes for
// text before and decodes without care for large numbers after.
func (c *nativeConn) describe(ctx context.Context, text string, args []any) ([]Column, error) {
	if maybe, err := c.maybeJSON(ctx, text); !maybe || err != nil {
		return nil, err
	}
	r, err := c.query(ctx, "DESCRIBE "+text, args)
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be described is run as it is
	}
	defer r.close()
	var out []Column
	values := make([]any, len(r.columns()))
	for {
		if err := r.next(values); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		name, _ := values[0].(string)
		kind, _ := values[1].(string)
		out = append(out, Column{name, kind})
	}
}

func (c *nativeConn) maybeJSON(ctx context.Context, text string) (maybe bool, err error) {
	stmt, err := c.prepare(ctx, text)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	kind, err := stmt.StatementType()
	if err != nil || kind != duckdb.STATEMENT_TYPE_SELECT {
		return false, err
	}
	n, err := stmt.ColumnCount()
	for i := range n {
		t, err := stmt.ColumnType(i)
		if err != nil {
			return false, err
		}
		maybe = maybe || t == duckdb.TYPE_VARCHAR || t == duckdb.TYPE_INVALID
	}
	return maybe, err
}

func arguments(args []any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// resultRows is what the library's rows offer beyond the standard.
type resultRows interface {
	driver.Rows
	ColumnTypeDatabaseTypeName(index int) string
}

type nativeRows struct {
	stmt   *duckdb.Stmt
	rows   resultRows
	kind   duckdb.StmtType
	cols   []Column
	buffer []driver.Value
}

func (r *nativeRows) columns() []Column {
	if r.cols == nil {
		for i, name := range r.rows.Columns() {
			r.cols = append(r.cols, Column{name, r.rows.ColumnTypeDatabaseTypeName(i)})
		}
	}
	return r.cols
}

func (r *nativeRows) next(values []any) error {
	if r.buffer == nil {
		r.buffer = make([]driver.Value, len(values))
	}
	if err := r.rows.Next(r.buffer); err != nil {
		return err
	}
	for i, v := range r.buffer {
		values[i] = v
	}
	return nil
}

// changes goes by the kind of the statement and the one column that DuckDB
// makes up for those without rows of their own.
func (r *nativeRows) changes() bool {
	switch r.kind {
	case duckdb.STATEMENT_TYPE_SELECT, duckdb.STATEMENT_TYPE_EXPLAIN, duckdb.STATEMENT_TYPE_PRAGMA, duckdb.STATEMENT_TYPE_CALL,
		duckdb.STATEMENT_TYPE_EXECUTE, duckdb.STATEMENT_TYPE_RELATION, duckdb.STATEMENT_TYPE_LOGICAL_PLAN:
		return false
	}
	cols := r.columns()
	return len(cols) == 0 || len(cols) == 1 && (cols[0].Name == "Count" || cols[0].Name == "Success")
}

func (r *nativeRows) close() error { return errors.Join(r.rows.Close(), r.stmt.Close()) }

func (cgo) plain(v any) any {
	switch v := v.(type) {
	case duckdb.Decimal:
		return decimal(v.String())
	case duckdb.Interval:
		return interval{v.Months, v.Days, v.Micros}
	case duckdb.OrderedMap:
		return pairs{v.Keys(), v.Values()}
	case duckdb.Union:
		return union{v.Tag, v.Value}
	case duckdb.Bit:
		return v.String()
	case duckdb.UUID:
		return v.String()
	}
	return v
}

func (c *nativeConn) appender(query string, columns int) (appender, error) {
	text, err := duckdb.NewTypeInfo(duckdb.TYPE_VARCHAR)
	if err != nil {
		return nil, err
	}
	types := make([]duckdb.TypeInfo, columns)
	for i := range types {
		types[i] = text
	}
	a, err := duckdb.NewQueryAppender(c.c, query, "", types, nil)
	if err != nil {
		return nil, err
	}
	return &nativeAppender{a: a, buffer: make([]driver.Value, columns)}, nil
}

type nativeAppender struct {
	a      *duckdb.Appender
	buffer []driver.Value
	broken bool
}

func (a *nativeAppender) row(values []any) error {
	for i, v := range values {
		a.buffer[i] = v
	}
	return a.check(a.a.AppendRow(a.buffer...))
}

func (a *nativeAppender) flush(ctx context.Context) error {
	return a.check(a.a.FlushWithCancel(ctx))
}

func (a *nativeAppender) check(err error) error {
	if err != nil {
		a.broken = true
		// The advice on how to call the library is not for authors.
		if text, _, cut := strings.Cut(err.Error(), ": appended and not yet flushed"); cut {
			return errors.New(text)
		}
	}
	return err
}

// close throws away what was not flushed.
func (a *nativeAppender) close() error {
	if err := a.a.Clear(); err != nil && !a.broken {
		return err
	}
	if err := a.a.Close(); err != nil && !a.broken {
		return err
	}
	return nil
}
