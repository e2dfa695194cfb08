package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/noetl/noetl-go/internal/tool"
)

// parquetWriter writes rows in groups, which bound what is held.
type parquetWriter struct {
	w      *parquet.GenericWriter[any]
	encode []func(any) (parquet.Value, error)
	rows   []parquet.Row
	n      int
}

// rowsPerGroup bounds the rows that are held before they are written.
const rowsPerGroup = 64 << 10

func newParquetWriter(out io.Writer, cols []column) (*parquetWriter, error) {
	if len(cols) == 0 {
		return nil, tool.ConfigErrorf("there are no rows and no mapping, so that the columns of the parquet file are not known")
	}
	group := orderedGroup{parquet.Group{}, namesOf(cols)}
	p := &parquetWriter{rows: make([]parquet.Row, 256)}
	for _, c := range cols {
		node, encode := parquetNode(c)
		group.Group[c.name] = parquet.Optional(node)
		p.encode = append(p.encode, encode)
	}
	for i := range p.rows {
		p.rows[i] = make(parquet.Row, len(cols))
	}
	p.w = parquet.NewGenericWriter[any](out, parquet.NewSchema("rows", group), parquet.MaxRowsPerRowGroup(rowsPerGroup), parquet.Compression(&parquet.Snappy))
	return p, nil
}

// orderedGroup keeps columns in their order; a Group would sort them by name.
type orderedGroup struct {
	parquet.Group
	order []string
}

func (g orderedGroup) Fields() []parquet.Field {
	return slices.SortedFunc(slices.Values(g.Group.Fields()), func(a, b parquet.Field) int {
		return slices.Index(g.order, a.Name()) - slices.Index(g.order, b.Name())
	})
}

func (p *parquetWriter) row(row []any, cols []column) error {
	for i, v := range row {
		if v == nil {
			p.rows[p.n][i] = parquet.NullValue().Level(0, 0, i)
			continue
		}
		value, err := p.encode[i](v)
		if err != nil {
			return &tool.Error{Kind: tool.KindSchema, Code: "PARQUET", Message: fmt.Sprintf("column %s: %v", cols[i].name, err)}
		}
		p.rows[p.n][i] = value.Level(0, 1, i)
	}
	if p.n++; p.n == len(p.rows) {
		return p.flush()
	}
	return nil
}

func (p *parquetWriter) flush() error {
	n := p.n
	p.n = 0
	_, err := p.w.WriteRows(p.rows[:n])
	return err
}

func (p *parquetWriter) end() error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.w.Close()
}

// parquetNode is the type of a column in a file and how values get there.
func parquetNode(c column) (parquet.Node, func(any) (parquet.Value, error)) {
	if c.list {
		return parquet.JSON(), parquetText
	}
	switch c.kind {
	case boolean:
		return parquet.Leaf(parquet.BooleanType), func(v any) (parquet.Value, error) {
			b, ok := v.(bool)
			if !ok {
				return parquet.Value{}, fmt.Errorf("%q is not true or false", textOf(v))
			}
			return parquet.BooleanValue(b), nil
		}
	case integer:
		return parquet.Int(64), func(v any) (parquet.Value, error) {
			n, err := strconv.ParseInt(textOf(v), 10, 64)
			return parquet.Int64Value(n), err
		}
	case float:
		return parquet.Leaf(parquet.DoubleType), func(v any) (parquet.Value, error) {
			n, err := strconv.ParseFloat(textOf(v), 64)
			return parquet.DoubleValue(n), err
		}
	case binary:
		return parquet.Leaf(parquet.ByteArrayType), func(v any) (parquet.Value, error) {
			if b, ok := v.([]byte); ok {
				return parquet.ByteArrayValue(slices.Clone(b)), nil
			}
			return parquet.ByteArrayValue([]byte(textOf(v))), nil
		}
	case jsonText:
		return parquet.JSON(), parquetJSON
	case date:
		return parquet.Date(), parquetDate
	case moment:
		return parquet.TimestampAdjusted(parquet.Microsecond, false), parquetMoment
	case instant:
		return parquet.Timestamp(parquet.Microsecond), parquetMoment
	}
	return parquet.String(), parquetText
}

func parquetText(v any) (parquet.Value, error) {
	return parquet.ByteArrayValue([]byte(textOf(v))), nil
}

func parquetJSON(v any) (parquet.Value, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return parquet.ByteArrayValue(slices.Clone(raw)), nil
	}
	raw, err := tool.Encode(v)
	return parquet.ByteArrayValue(raw), err
}

func parquetDate(v any) (parquet.Value, error) {
	t, err := time.Parse("2006-01-02", textOf(v))
	return parquet.Int32Value(int32(t.Unix() / 86400)), err
}

func parquetMoment(v any) (parquet.Value, error) {
	t, err := parseMoment(textOf(v))
	return parquet.Int64Value(t.UnixMicro()), err
}

// parseMoment reads a timestamp with or without a zone, which then is UTC.
func parseMoment(s string) (time.Time, error) {
	if t, err := time.Parse("2006-01-02T15:04:05.999999999", s); err == nil {
		return t, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, fmt.Errorf("%q is no timestamp that parquet can hold", s)
	}
	return t, nil
}

// shortest is the float64 that reads like the float32.
func shortest(f float32) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return out
}
