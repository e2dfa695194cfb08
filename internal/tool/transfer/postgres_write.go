package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
)

// closeWithin is how long the end of a connection may take.
const closeWithin = 5 * time.Second

// postgresTarget streams rows into a table with COPY.
type postgresTarget struct {
	conn   *pgconn.PgConn
	table  tableName
	mode   string
	key    []string
	all    []pgColumn
	cols   []pgColumn // those that are written
	base64 bool
	begun  bool // once, so that a replaced table is emptied once
	copy   *copyStream
	line   []byte
}

// pgColumn is a column of a table of PostgreSQL.
type pgColumn struct {
	column
	category byte // of its type, in the server's words: N number, B boolean, A array, D date or time, …
	whole    bool // takes no fraction
	base64   bool // text for bytes is base64
}

// tableName is a table, with its schema when one is given.
type tableName []string

// parseTable reads schema.table, parts quoted or not.
func parseTable(text string) (tableName, error) {
	var out tableName
	rest := strings.TrimSpace(text)
	for rest != "" {
		var part string
		if strings.HasPrefix(rest, `"`) {
			end := strings.Index(rest[1:], `"`)
			if end < 0 {
				return nil, tool.ConfigErrorf("the table name %s has an open quote", text)
			}
			part, rest = rest[1:end+1], rest[end+2:]
		} else {
			part, rest, _ = strings.Cut(rest, ".")
			rest = "." + rest
		}
		out = append(out, part)
		if rest = strings.TrimPrefix(rest, "."); rest == "" {
			break
		}
	}
	for _, part := range out {
		if part == "" || strings.ContainsRune(part, 0) {
			return nil, tool.ConfigErrorf("%q is no table name; write table or schema.table", text)
		}
	}
	if len(out) == 0 || len(out) > 3 {
		return nil, tool.ConfigErrorf("%q is no table name; write table or schema.table", text)
	}
	return out, nil
}

func (n tableName) quoted() string { return pgx.Identifier(n).Sanitize() }
func (n tableName) String() string { return strings.Join(n, ".") }

func openPostgresTarget(ctx context.Context, s *session, p *plan) (target, error) {
	name, err := tableOf(p.target)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, s, p.target)
	if err != nil {
		return nil, err
	}
	t := &postgresTarget{conn: conn, table: name, mode: p.mode, key: p.key, base64: p.base64()}
	if err := t.learn(ctx); err != nil {
		closeConn(conn)
		return nil, err
	}
	return t, nil
}

func tableOf(e *end) (tableName, error) {
	if query, err := e.String("query"); err != nil {
		return nil, err
	} else if query != "" {
		return nil, tool.ConfigErrorf("target.query is not offered; write target.table, and mode and mapping say how rows get there")
	}
	text, err := e.String("table")
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, tool.ConfigErrorf("target.table is missing")
	}
	return parseTable(text)
}

const askColumns = `SELECT a.attname, a.atttypid, a.atttypmod, t.typcategory, a.attgenerated <> ''
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// learn asks for the columns of the table. A name that was not quoted is looked
// up as it is written and then, as in SQL, in small letters.
func (t *postgresTarget) learn(ctx context.Context) error {
	for _, name := range []tableName{t.table, lower(t.table)} {
		result := t.conn.ExecParams(ctx, askColumns, [][]byte{[]byte(name.quoted())}, nil, nil, nil).Read()
		if result.Err != nil {
			return postgres.Classify(result.Err)
		}
		for _, row := range result.Rows {
			if row[4][0] == 't' { // computed by the server
				continue
			}
			var oid uint32
			var modifier int32
			if _, err := fmt.Sscan(string(row[1]), &oid); err != nil {
				return fmt.Errorf("read the type of column %s: %w", row[0], err)
			}
			if _, err := fmt.Sscan(string(row[2]), &modifier); err != nil {
				return fmt.Errorf("read the type of column %s: %w", row[0], err)
			}
			c := pgColumn{column: columnOf(oid, modifier), category: row[3][0], whole: kindsByOID[oid] == integer, base64: t.base64}
			c.name = string(row[0])
			c.list = c.category == 'A'
			t.all = append(t.all, c)
		}
		if len(t.all) > 0 {
			t.table = name
			return nil
		}
	}
	return &tool.Error{Kind: tool.KindNotFound, Code: "NO_TABLE", Message: fmt.Sprintf("the table %s is not there, or has no columns; create it first", t.table)}
}

func lower(name tableName) tableName {
	out := make(tableName, len(name))
	for i, part := range name {
		out[i] = strings.ToLower(part)
	}
	return out
}

func (t *postgresTarget) name() string { return t.table.String() }

func (t *postgresTarget) columns() []column {
	out := make([]column, len(t.all))
	for i, c := range t.all {
		out[i] = c.column
	}
	return out
}

func (t *postgresTarget) begin(ctx context.Context, cols []column) error {
	if err := t.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	t.cols = t.cols[:0]
	for _, c := range cols {
		t.cols = append(t.cols, t.all[find(t.columns(), c.name)])
	}
	if t.mode == "replace" && !t.begun {
		if err := t.exec(ctx, "TRUNCATE TABLE "+t.table.quoted()); err != nil {
			return err
		}
	}
	t.begun = true
	if len(cols) == 0 { // a source without rows and columns
		return nil
	}
	into := t.table.quoted()
	if t.mode == "upsert" {
		if err := t.exec(ctx, t.makeStage()); err != nil {
			return err
		}
		into = stage
	}
	t.copy = startCopy(ctx, t.conn, "COPY "+into+" ("+t.names("")+") FROM STDIN")
	return nil
}

// stage is the table that rows wait in before they are upserted.
const stage = `"noetl_stage"`

func (t *postgresTarget) makeStage() string {
	return "CREATE TEMPORARY TABLE " + stage + " ON COMMIT DROP AS SELECT " + t.names("") + " FROM " + t.table.quoted() + " WITH NO DATA;" +
		" ALTER TABLE " + stage + ` ADD COLUMN "noetl_row" bigserial`
}

// names lists the written columns.
func (t *postgresTarget) names(before string) string {
	out := make([]string, len(t.cols))
	for i, c := range t.cols {
		out[i] = before + quote(c.name)
	}
	return strings.Join(out, ", ")
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func (t *postgresTarget) exec(ctx context.Context, sql string) error {
	if _, err := t.conn.Exec(ctx, sql).ReadAll(); err != nil {
		return t.explain(ctx, err)
	}
	return nil
}

func (t *postgresTarget) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := postgres.Classify(err)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		out := *e
		for _, more := range []string{answer.Detail, answer.Where, answer.Hint} {
			if more != "" {
				out.Message += ". " + more
			}
		}
		return &out
	}
	return e
}

func (t *postgresTarget) write(ctx context.Context, row []any) error {
	t.line = t.line[:0]
	for i, v := range row {
		if i > 0 {
			t.line = append(t.line, '\t')
		}
		if v == nil {
			t.line = append(t.line, `\N`...)
			continue
		}
		t.line = appendCopy(t.line, t.cols[i].text(v))
	}
	t.line = append(t.line, '\n')
	if err := t.copy.write(t.line); err != nil {
		return t.explain(ctx, err)
	}
	return nil
}

func (t *postgresTarget) commit(ctx context.Context) error {
	if t.copy != nil {
		err := t.copy.end(nil)
		t.copy = nil
		if err != nil {
			return t.explain(ctx, err)
		}
		if t.mode == "upsert" {
			if err := t.exec(ctx, t.upsert()); err != nil {
				return err
			}
		}
	}
	return t.exec(ctx, "COMMIT")
}

// upsert moves the rows from the stage. Of several rows with one key the last
// counts; a key with a null in it is equal to no other.
func (t *postgresTarget) upsert() string {
	var keys, empty, set []string
	for _, k := range t.key {
		keys = append(keys, quote(k))
		empty = append(empty, quote(k)+" IS NULL")
	}
	for _, c := range t.cols {
		if !slices.Contains(t.key, c.name) {
			set = append(set, quote(c.name)+" = EXCLUDED."+quote(c.name))
		}
	}
	action := "DO NOTHING"
	if len(set) > 0 {
		action = "DO UPDATE SET " + strings.Join(set, ", ")
	}
	by := strings.Join(keys, ", ")
	return "INSERT INTO " + t.table.quoted() + " (" + t.names("") + ") SELECT " + t.names("") + " FROM (SELECT *, row_number() OVER (PARTITION BY " + by +
		` ORDER BY "noetl_row" DESC) AS "noetl_rank" FROM ` + stage + `) s WHERE "noetl_rank" = 1 OR ` + strings.Join(empty, " OR ") +
		` ORDER BY "noetl_row" ON CONFLICT (` + by + ") " + action
}

func (t *postgresTarget) close() error {
	if t.copy != nil {
		_ = t.copy.end(errors.New("the transfer did not end"))
	}
	closeConn(t.conn)
	return nil
}

// copyStream feeds a COPY that runs beside the reader of the source.
type copyStream struct {
	pipe  *io.PipeWriter
	buf   []byte
	ended chan struct{} // closed when the server has answered
	err   error
}

const copyBuffer = 64 << 10

func startCopy(ctx context.Context, conn *pgconn.PgConn, sql string) *copyStream {
	r, w := io.Pipe()
	c := &copyStream{pipe: w, buf: make([]byte, 0, copyBuffer+4096), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		_, c.err = conn.CopyFrom(ctx, r, sql)
		_ = r.CloseWithError(errCopyEnded)
	}()
	return c
}

var errCopyEnded = errors.New("the server ended the copy")

func (c *copyStream) write(line []byte) error {
	c.buf = append(c.buf, line...)
	if len(c.buf) < copyBuffer {
		return nil
	}
	return c.flush()
}

func (c *copyStream) flush() error {
	_, err := c.pipe.Write(c.buf)
	c.buf = c.buf[:0]
	if err != nil {
		<-c.ended
		if c.err != nil {
			return c.err
		}
	}
	return err
}

// end ends the copy, as a failure when why is given, and waits for the answer.
func (c *copyStream) end(why error) error {
	err := why
	if err == nil {
		err = c.flush()
	}
	_ = c.pipe.CloseWithError(err)
	<-c.ended
	if why == nil && c.err != nil {
		return c.err
	}
	return err
}
