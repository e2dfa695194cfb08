package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/noetl/noetl-go/internal/tool"
)

// What a result may hold before it is stored elsewhere.
const (
	maxRows  = 10_000
	maxBytes = 8 << 20
	maxSpill = 1 << 30 // of stored data
)

// outcome is what one statement gave. Its JSON is put together from pieces, as
// the rows may be too many for memory.
type outcome struct {
	columns  []byte // a list of names
	rows     *spool // what is between the brackets of a list
	count    int64
	affected int64
}

// execute runs the statements and gathers what they give.
func (p *plan) execute(ctx context.Context, call *tool.Call, conn *Conn, path, scratch string) (_ *tool.Result, err error) {
	budget := &budget{memory: maxBytes, disk: maxSpill, dir: scratch}
	var done []*outcome
	defer func() {
		for _, o := range done {
			err = errors.Join(err, o.rows.close())
		}
	}()
	for i, s := range p.statements {
		o := &outcome{rows: budget.spool()}
		done = append(done, o)
		text, args, err := p.bind(s.Text)
		if err == nil {
			err = p.one(ctx, conn, text, args, o)
		}
		if err != nil {
			return nil, at(ctx, err, i, len(p.statements), s.Line)
		}
	}
	return p.report(ctx, call, done, path)
}

func (p *plan) one(ctx context.Context, conn *Conn, text string, args []any, o *outcome) (err error) {
	r, err := conn.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.r.changes() {
		o.columns = []byte("[]")
		return o.countChanges(r)
	}
	names := distinct(r.cols)
	o.columns = append(o.columns, '[')
	for i, name := range names {
		if i > 0 {
			o.columns = append(o.columns, ',')
		}
		o.columns = appendString(o.columns, name)
	}
	o.columns = append(o.columns, ']')
	return p.read(ctx, r, names, o)
}

// countChanges reads how many rows a statement changed.
func (o *outcome) countChanges(r *Rows) error {
	for {
		values, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if n, ok := values[0].(int64); ok && len(values) == 1 {
			o.affected += n
		}
	}
}

func (p *plan) read(ctx context.Context, r *Rows, names []string, o *outcome) error {
	var b []byte
	for {
		if err := r.r.next(r.values); errors.Is(err, io.EOF) {
			o.affected = o.count
			return nil
		} else if err != nil {
			return err
		}
		b = b[:0]
		if o.count > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = p.row(b, r, names); err != nil {
			return err
		}
		if _, err := o.rows.Write(b); err != nil {
			return err
		}
		if o.count++; o.count%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (p *plan) row(b []byte, r *Rows, names []string) (_ []byte, err error) {
	open, shut := byte('['), byte(']')
	if p.asObjects {
		open, shut = '{', '}'
	}
	b = append(b, open)
	for i, v := range r.values {
		if i > 0 {
			b = append(b, ',')
		}
		if p.asObjects {
			b = append(appendString(b, names[i]), ':')
		}
		if b, err = appendJSON(b, v, r.cols[i].kind); err != nil {
			return b, fmt.Errorf("column %s: %w", names[i], err)
		}
	}
	return append(b, shut), nil
}

// distinct gives each column a name of its own, so that a row as a map loses
// none: the second id is id_2.
func distinct(cols []column) []string {
	seen := map[string]bool{}
	for _, c := range cols {
		seen[c.name] = false
	}
	out := make([]string, len(cols))
	for i, c := range cols {
		name := c.name
		for n := 2; seen[name]; n++ {
			name = c.name + "_" + strconv.Itoa(n)
			if taken, known := seen[name]; known && !taken {
				seen[name] = true // a column further on has that name
			}
		}
		seen[name] = true
		out[i] = name
	}
	return out
}
