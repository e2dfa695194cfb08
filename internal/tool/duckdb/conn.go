package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Conn is a connection to a database.
type Conn struct{ c connection }

// Close ends the connection; an open transaction is rolled back.
func (c *Conn) Close() error { return c.c.close() }

// Exec runs one statement and drops its rows.
func (c *Conn) Exec(ctx context.Context, text string, args ...any) error {
	r, err := c.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	return r.Close()
}

// Query runs one statement. The rows must be closed before the next.
func (c *Conn) Query(ctx context.Context, text string, args ...any) (*Rows, error) {
	json, wrapped, err := c.exactJSON(ctx, text, args)
	if err != nil {
		return nil, queryFailure(ctx, err)
	}
	r, err := c.c.query(ctx, wrapped, args)
	if err != nil && wrapped != text && ctx.Err() == nil {
		json = nil
		r, err = c.c.query(ctx, text, args)
	}
	if err != nil {
		return nil, queryFailure(ctx, err)
	}
	rows := &Rows{r: r, cols: readColumns(r.columns())}
	if json != nil {
		rows.cols = json
	}
	rows.values = make([]any, len(rows.cols))
	return rows, nil
}

// exactJSON has columns of type JSON come as the text they are: decoded by the
// library they would lose the order of keys and the end of large numbers.
func (c *Conn) exactJSON(ctx context.Context, text string, args []any) ([]column, string, error) {
	described, err := c.c.describe(ctx, text, args)
	if err != nil {
		return nil, text, err
	}
	cols := readColumns(described)
	found := false
	names, picks := make([]string, len(cols)), make([]string, len(cols))
	for i, col := range cols {
		names[i] = fmt.Sprintf("c%d", i)
		picks[i] = names[i]
		if col.kind.isJSON() {
			picks[i] = "CAST(" + names[i] + " AS VARCHAR)"
			found = true
		}
	}
	if !found {
		return nil, text, nil
	}
	return cols, "SELECT " + strings.Join(picks, ", ") + " FROM (\n" + text + "\n) AS q(" + strings.Join(names, ", ") + ")", nil
}

func queryFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failure(err)
}

// Rows are the rows of a statement.
type Rows struct {
	r      rows
	cols   []column
	values []any
}

// Column is a column of a result and its type as DuckDB writes it.
type Column struct{ Name, Type string }

// Columns lists the columns. Types are in capitals and without what is in
// brackets; of those with [] the type is LIST.
func (r *Rows) Columns() []Column {
	out := make([]Column, len(r.cols))
	for i, c := range r.cols {
		out[i] = Column{c.name, c.kind.name}
	}
	return out
}

// Next is the next row, io.EOF after the last: nil, bool, int64, float64,
// json.Number, string, []byte and json.RawMessage. The slice is used again.
func (r *Rows) Next() ([]any, error) {
	if err := r.r.next(r.values); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, failure(err)
	}
	for i, v := range r.values {
		value := plain(v, r.cols[i].kind)
		switch value.(type) {
		case []any, map[string]any, pairs, union:
			b, err := appendJSON(nil, value, r.cols[i].kind)
			if err != nil {
				return nil, err
			}
			value = json.RawMessage(b)
		}
		r.values[i] = value
	}
	return r.values, nil
}

// Close ends the statement.
func (r *Rows) Close() error { return r.r.close() }

// Appender feeds rows of text into a statement, many at a time.
type Appender struct{ a appender }

// Append makes an appender. The query reads the rows from a table appended_data
// with the columns col1, col2, … of type VARCHAR.
func (c *Conn) Append(query string, columns int) (*Appender, error) {
	a, err := c.c.appender(query, columns)
	if err != nil {
		return nil, failure(err)
	}
	return &Appender{a}, nil
}

// Row adds a row; nil is NULL, all else is text.
func (a *Appender) Row(values []any) error {
	if err := a.a.row(values); err != nil {
		return failure(err)
	}
	return nil
}

// Flush runs the query with the rows so far.
func (a *Appender) Flush(ctx context.Context) error {
	if err := a.a.flush(ctx); err != nil {
		return queryFailure(ctx, err)
	}
	return nil
}

// Close drops rows that were not flushed.
func (a *Appender) Close() error { return a.a.close() }

// Quote makes an identifier of a name.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal makes a string of SQL of a text.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
