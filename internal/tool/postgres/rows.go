package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/noetl/noetl-go/internal/tool"
)

// rows writes what one statement gave, row by row.
type rows struct {
	r        *runner
	start    int64
	names    [][]byte // encoded, with the colon
	encode   []encoder
	returns  bool // the statement gives rows, if only none
	count    int
	bytes    int64
	maxRows  int   // 0 = no limit
	maxBytes int64 // 0 = no limit
	cut      string
	scratch  []byte
}

func (r *runner) newRows(described *pgconn.StatementDescription) (*rows, error) {
	w := &rows{r: r, start: r.out.size, returns: len(described.Fields) > 0, maxRows: r.plan.maxRows, maxBytes: r.plan.maxBytes}
	if r.call.Blobs == nil { // nowhere to put more
		w.maxRows, w.maxBytes = tighter(w.maxRows, r.opts.MaxRows), tighter(w.maxBytes, r.opts.MaxBytes)
	}
	columns := make([]string, len(described.Fields))
	for i, field := range described.Fields {
		columns[i] = field.Name
	}
	columns = distinct(columns)
	head := []byte(`"columns":[`)
	for i, name := range columns {
		if i > 0 {
			head = append(head, ',')
		}
		quoted := appendText(nil, []byte(name))
		head = append(head, quoted...)
		w.names = append(w.names, append(quoted, ':'))
		w.encode = append(w.encode, r.conn.home.encoder(described.Fields[i].DataTypeOID, r.plan.numeric))
	}
	_, err := r.out.Write(append(head, `],"rows":[`...))
	return w, err
}

// tighter is the lower of two limits, of which the first may be absent.
func tighter[N int | int64](given, general N) N {
	if given == 0 {
		return general
	}
	return min(given, general)
}

// distinct gives columns of one name different names: id, id_2, id_3.
func distinct(names []string) []string {
	taken := make(map[string]bool, len(names))
	for _, name := range names {
		taken[name] = true
	}
	used := make(map[string]bool, len(names))
	out := make([]string, len(names))
	for i, name := range names {
		unique := name
		for n := 2; used[unique] || unique != name && taken[unique]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		used[unique] = true
		out[i] = unique
	}
	return out
}

// add writes one row, unless there are too many. The statement goes on: it may
// be changing what it returns.
func (w *rows) add(values [][]byte) error {
	if w.cut != "" {
		return nil
	}
	if w.maxRows > 0 && w.count >= w.maxRows {
		w.cut = "max_rows"
		return nil
	}
	row := w.row(values)
	if w.maxBytes > 0 && w.bytes+int64(len(row)) > w.maxBytes {
		w.cut = "max_bytes"
		return nil
	}
	w.count++
	w.bytes += int64(len(row))
	if w.count > w.r.opts.MaxRows {
		w.r.large = true
	}
	_, err := w.r.out.Write(row)
	return err
}

func (w *rows) row(values [][]byte) []byte {
	objects := w.r.plan.asObjects
	row := w.scratch[:0]
	if w.count > 0 {
		row = append(row, ',')
	}
	row = append(row, choose[byte](objects, '{', '['))
	for i, value := range values {
		if i > 0 {
			row = append(row, ',')
		}
		if objects {
			row = append(row, w.names[i]...)
		}
		if value == nil {
			row = append(row, "null"...)
		} else {
			row = w.encode[i](row, value)
		}
	}
	row = append(row, choose[byte](objects, '}', ']'))
	if w.scratch = row; cap(row) > 1<<20 {
		w.scratch = nil
	}
	return row
}

func choose[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

// end writes what is known only after the rows.
func (w *rows) end(tag pgconn.CommandTag) (part, error) {
	affected, count := tag.RowsAffected(), int64(w.count)
	switch {
	case !w.returns:
		count = affected
	case !changes(tag):
		affected = 0
	}
	tail := fmt.Sprintf(`],"row_count":%d,"affected_rows":%d`, count, affected)
	if w.cut != "" {
		tail += fmt.Sprintf(`,"truncated":true,"truncation":{"reason":%q,"max_rows":%s,"max_bytes":%s,"returned_bytes":%d,"total_rows":%d}`,
			w.cut, limitText(w.maxRows), limitText(w.maxBytes), w.bytes, tag.RowsAffected())
	}
	_, err := io.WriteString(w.r.out, tail)
	return part{w.start, w.r.out.size}, err
}

func limitText[N int | int64](n N) string {
	if n == 0 {
		return "null"
	}
	return strconv.FormatInt(int64(n), 10)
}

// result puts the data together: the last statement, and each by its number.
func (r *runner) result(ctx context.Context) (*tool.Result, error) {
	last := r.parts[len(r.parts)-1]
	size := r.out.size + last.to - last.from
	readers := []io.Reader{strings.NewReader("{")}
	add := func(before string, p part) error {
		piece, err := r.out.read(p)
		readers = append(readers, strings.NewReader(before), piece)
		return err
	}
	if err := add("", last); err != nil {
		return nil, err
	}
	for i, p := range r.parts {
		if err := add(fmt.Sprintf(`%s,"command_%d":{`, choose(i > 0, "}", ""), i), p); err != nil {
			return nil, err
		}
	}
	all := io.MultiReader(append(readers, strings.NewReader("}}"))...)
	if r.call.Blobs != nil && (r.large || size > r.out.memory) {
		stored, err := r.call.Blobs.Put(ctx, tool.Blob{}, all)
		if err != nil {
			return nil, r.notStored(ctx, err)
		}
		return &tool.Result{Stored: stored}, nil
	}
	data, err := io.ReadAll(all)
	if err != nil {
		return nil, spoolFailure(err)
	}
	return &tool.Result{Data: data}, nil
}

func (r *runner) notStored(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tool.Ended(ctx, "storing the rows", r.limit)
	}
	if failed, ok := errors.AsType[*tool.Error](err); ok {
		return failed
	}
	return &tool.Error{
		Kind: tool.KindStorageAccess, Code: "NOT_STORED", Retryable: true,
		Message: "the statements ran, but their rows could not be stored: " + err.Error(),
	}
}
