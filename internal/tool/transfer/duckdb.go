package transfer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
)

// databaseOf is the file that an end of type duckdb means.
func (s *session) databaseOf(e *end) (string, error) {
	name, err := e.String("database", "db_path", "connection", "path")
	if err != nil {
		return "", err
	}
	return s.opts.DuckDB.Path(name, s.call.ExecutionID)
}

// duckSource reads the rows of a query.
type duckSource struct {
	conn *duckdb.Conn
	rows *duckdb.Rows
	cols []column
}

func openDuckDBSource(ctx context.Context, s *session, p *plan) (source, error) {
	query, err := p.source.String("query", "command", "sql")
	if err != nil {
		return nil, err
	}
	table, err := p.source.String("table")
	if err != nil {
		return nil, err
	}
	if query == "" && table != "" {
		name, err := parseTable(table)
		if err != nil {
			return nil, err
		}
		query = "SELECT * FROM " + name.quoted()
	}
	if query == "" {
		return nil, tool.ConfigErrorf("source.query is missing; write a SELECT, or table")
	}
	conn, err := s.hold.Connect(ctx, p.source.database)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	src := &duckSource{conn: conn, rows: rows}
	for _, c := range rows.Columns() {
		src.cols = append(src.cols, column{name: c.Name, kind: duckKind(c.Type), list: c.Type == "LIST"})
	}
	return src, nil
}

func (s *duckSource) columns() []column { return s.cols }

func (s *duckSource) next(context.Context) (record, error) {
	values, err := s.rows.Next()
	if err != nil {
		return record{}, err
	}
	return record{values: values}, nil
}

func (s *duckSource) close() error { return errors.Join(s.rows.Close(), s.conn.Close()) }

// duckKind is what a type of DuckDB means.
func duckKind(name string) kind {
	switch name {
	case "BOOLEAN":
		return boolean
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT":
		return integer
	case "FLOAT", "DOUBLE":
		return float
	case "DECIMAL", "HUGEINT", "UHUGEINT", "BIGNUM":
		return number
	case "BLOB":
		return binary
	case "DATE":
		return date
	case "TIME":
		return timeOfDay
	case "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS":
		return moment
	case "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE":
		return instant
	case "JSON", "LIST", "STRUCT", "MAP", "UNION", "ARRAY":
		return jsonText
	case "UUID":
		return uuid
	}
	return text
}

// duckTarget writes through an appender that hands over text; DuckDB itself
// makes the types of the columns of it.
type duckTarget struct {
	conn   *duckdb.Conn
	table  tableName
	mode   string
	key    []string
	all    []duckColumn // nil when the table is not there
	cols   []duckColumn
	base64 bool
	begun  bool
	append *duckdb.Appender
	row    []any
	number int64
}

type duckColumn struct {
	column
	sql    string // its type as DuckDB writes it
	base64 bool   // text for bytes is base64
}

func openDuckDBTarget(ctx context.Context, s *session, p *plan) (target, error) {
	name, err := tableOf(p.target)
	if err != nil {
		return nil, err
	}
	conn, err := s.hold.Connect(ctx, p.target.database)
	if err != nil {
		return nil, err
	}
	t := &duckTarget{conn: conn, table: name, mode: p.mode, key: p.key, base64: p.base64()}
	if err := t.learn(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return t, nil
}

// learn asks for the columns of the table, if it is there.
func (t *duckTarget) learn(ctx context.Context) error {
	rows, err := t.conn.Query(ctx, "DESCRIBE "+t.table.quoted())
	if err != nil {
		known, ok := errors.AsType[*tool.Error](err)
		if ok && known.Code == "DUCKDB_CATALOG" {
			return nil
		}
		return err
	}
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		kind := fmt.Sprint(row[1])
		t.all = append(t.all, duckColumn{column{name: fmt.Sprint(row[0]), kind: duckKindOf(kind)}, kind, t.base64})
	}
}

// duckKindOf is the kind of a type with all its details.
func duckKindOf(sql string) kind {
	if strings.HasSuffix(sql, "]") {
		return jsonText
	}
	name, _, _ := strings.Cut(sql, "(")
	return duckKind(name)
}

func (t *duckTarget) name() string { return t.table.String() }

func (t *duckTarget) columns() []column {
	if t.all == nil {
		return nil
	}
	out := make([]column, len(t.all))
	for i, c := range t.all {
		out[i] = c.column
	}
	return out
}

func (t *duckTarget) begin(ctx context.Context, cols []column) error {
	if err := t.conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if t.all == nil && len(cols) > 0 {
		if err := t.create(ctx, cols); err != nil {
			return err
		}
	} else if t.mode == "replace" && !t.begun && t.all != nil {
		if err := t.conn.Exec(ctx, "DELETE FROM "+t.table.quoted()); err != nil {
			return err
		}
	}
	t.begun = true
	if len(cols) == 0 {
		return nil
	}
	t.cols = t.cols[:0]
	for _, c := range cols {
		t.cols = append(t.cols, t.all[find(t.columns(), c.name)])
	}
	t.row = make([]any, len(cols)+1)
	a, err := t.conn.Append(t.insert(), len(t.row))
	t.append = a
	return err
}

// create makes the table with what is known of the source.
func (t *duckTarget) create(ctx context.Context, cols []column) error {
	var parts []string
	for _, c := range cols {
		sql := duckType(c)
		parts = append(parts, duckdb.Quote(c.name)+" "+sql)
		t.all = append(t.all, duckColumn{column{name: c.name, kind: duckKindOf(sql)}, sql, t.base64})
	}
	if t.mode == "upsert" {
		keys := make([]string, len(t.key))
		for i, k := range t.key {
			keys[i] = duckdb.Quote(k)
		}
		parts = append(parts, "PRIMARY KEY ("+strings.Join(keys, ", ")+")")
	}
	return t.conn.Exec(ctx, "CREATE TABLE "+t.table.quoted()+" ("+strings.Join(parts, ", ")+")")
}

func duckType(c column) string {
	if c.list {
		return "JSON"
	}
	switch c.kind {
	case boolean:
		return "BOOLEAN"
	case integer:
		return "BIGINT"
	case float:
		return "DOUBLE"
	case number:
		if c.width > 0 && c.width <= 38 && c.scale <= c.width {
			return fmt.Sprintf("DECIMAL(%d,%d)", c.width, c.scale)
		}
	case binary:
		return "BLOB"
	case date:
		return "DATE"
	case timeOfDay:
		return "TIME"
	case moment:
		return "TIMESTAMP"
	case instant:
		return "TIMESTAMPTZ"
	case jsonText:
		return "JSON"
	case uuid:
		return "UUID"
	}
	return "VARCHAR" // a decimal without bounds too: every other type would round it
}

// insert is the statement that rows are fed to, with the number of the row
// behind the values. Of several rows with one key the last counts.
func (t *duckTarget) insert() string {
	names, picks := make([]string, len(t.cols)), make([]string, len(t.cols))
	for i, c := range t.cols {
		names[i] = duckdb.Quote(c.name)
		col := fmt.Sprintf("col%d", i+1)
		switch {
		case c.kind == binary:
			col = "from_base64(" + col + ")"
		case c.kind == jsonText && c.sql != "JSON":
			col = "CAST(" + col + " AS JSON)"
		}
		picks[i] = "CAST(" + col + " AS " + c.sql + ") AS " + names[i]
	}
	query := "INSERT INTO " + t.table.quoted() + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(names, ", ") + " FROM (SELECT " +
		strings.Join(picks, ", ") + fmt.Sprintf(", CAST(col%d AS BIGINT) AS noetl_row FROM appended_data)", len(t.cols)+1)
	if t.mode != "upsert" {
		return query
	}
	var keys, set []string
	for _, k := range t.key {
		keys = append(keys, duckdb.Quote(k))
	}
	for i, c := range t.cols {
		if !slices.Contains(t.key, c.name) {
			set = append(set, names[i]+" = EXCLUDED."+names[i])
		}
	}
	action := "DO NOTHING"
	if len(set) > 0 {
		action = "DO UPDATE SET " + strings.Join(set, ", ")
	}
	by := strings.Join(keys, ", ")
	return query + " QUALIFY row_number() OVER (PARTITION BY " + by + " ORDER BY noetl_row DESC) = 1 ON CONFLICT (" + by + ") " + action
}

func (t *duckTarget) write(_ context.Context, row []any) error {
	for i, v := range row {
		if v == nil {
			t.row[i] = nil
			continue
		}
		t.row[i] = t.cols[i].text(v)
	}
	t.number++
	t.row[len(row)] = fmt.Sprint(t.number)
	return t.append.Row(t.row)
}

// text writes a value so that a cast to the type of the column reads it.
func (c *duckColumn) text(v any) string {
	switch v := v.(type) {
	case []byte:
		if c.kind == binary {
			return base64.StdEncoding.EncodeToString(v)
		}
	case string:
		switch {
		case c.kind == binary:
			if c.base64 {
				return base64.StdEncoding.EncodeToString(bytesOf(v))
			}
			return base64.StdEncoding.EncodeToString([]byte(v))
		case c.kind == jsonText && !json.Valid([]byte(v)):
			return string(quoteJSON(v))
		}
	}
	return textOf(v)
}

func (t *duckTarget) commit(ctx context.Context) error {
	if t.append != nil {
		err := t.append.Flush(ctx)
		err = errors.Join(err, t.append.Close())
		t.append = nil
		if err != nil {
			return err
		}
	}
	return t.conn.Exec(ctx, "COMMIT")
}

func (t *duckTarget) close() error {
	if t.append != nil {
		_ = t.append.Close() // the rows are given up
	}
	return t.conn.Close()
}
