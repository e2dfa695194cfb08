package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// statement is a prepared statement with its argument list, which is filled by
// the binding methods in order and emptied by exec.
type statement struct {
	st   driver.StmtExecContext
	args []driver.NamedValue
	n    int
}

func (w *writer) prepare(text string) (*statement, error) {
	st, err := w.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &statement{st: st.(driver.StmtExecContext), args: make([]driver.NamedValue, strings.Count(text, "?"))}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	w.all = append(w.all, s)
	return s, nil
}

// seldom is the prepared statement of a text that is not of the hot path.
func (w *writer) seldom(text string) (*statement, error) {
	if s := w.rare[text]; s != nil {
		return s, nil
	}
	s, err := w.prepare(text)
	if err == nil {
		w.rare[text] = s
	}
	return s, err
}

// exec runs the statement and returns how many rows it changed. A writer has
// no business with a caller's context: the group belongs to many callers.
func (s *statement) exec() (int64, error) {
	res, err := s.st.ExecContext(context.Background(), s.args[:s.n])
	s.n = 0
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// rows runs the statement and hands over each row it yields.
func (s *statement) rows(take func(scanner) error) error {
	rows, err := s.st.(driver.StmtQueryContext).QueryContext(context.Background(), s.args[:s.n])
	s.n = 0
	if err != nil {
		return err
	}
	row := make(values, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return rows.Close()
		} else if err != nil {
			return errors.Join(err, rows.Close())
		}
		if err := take(row); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
}

// values is a row of the writer, which has no database/sql to convert it.
type values []driver.Value

func (v values) Scan(dest ...any) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d, _ = v[i].(int64)
		case *int:
			n, _ := v[i].(int64)
			*d = int(n)
		case *event.ID:
			n, _ := v[i].(int64)
			*d = event.ID(n)
		case *string:
			*d, _ = v[i].(string)
		case *[]byte:
			text, _ := v[i].(string)
			*d = []byte(text)
			if v[i] == nil {
				*d = nil
			}
		case sql.Scanner:
			if err := d.Scan(v[i]); err != nil {
				return err
			}
		default:
			return fmt.Errorf("column %d: cannot read into %T", i, d)
		}
	}
	return nil
}

// forget drops the arguments of the last run, for statements whose arguments
// are too large to be kept until the next.
func (s *statement) forget() {
	for i := range s.args {
		s.args[i].Value = nil
	}
}

func (s *statement) bind(v driver.Value) *statement {
	s.args[s.n].Value = v
	s.n++
	return s
}

func (s *statement) int(v int64) *statement   { return s.bind(v) }
func (s *statement) id(v event.ID) *statement { return s.bind(int64(v)) }

// nullID binds a reference; 0 is none.
func (s *statement) nullID(v event.ID) *statement {
	if v == 0 {
		return s.bind(nil)
	}
	return s.bind(int64(v))
}

// str binds a string as it is, text one whose absence is NULL.
func (s *statement) str(v string) *statement { return s.bind(v) }

func (s *statement) text(v string) *statement {
	if v == "" {
		return s.bind(nil)
	}
	return s.bind(v)
}

// json binds a document as text, for people who open the file with sqlite3.
func (s *statement) json(v []byte) *statement {
	if len(v) == 0 {
		return s.bind(nil)
	}
	return s.bind(string(v))
}

func (s *statement) time(t time.Time) *statement {
	if t.IsZero() {
		return s.bind(nil)
	}
	return s.bind(t.UnixMicro())
}
