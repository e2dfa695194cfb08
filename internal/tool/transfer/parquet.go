package transfer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/noetl/noetl-go/internal/tool"
)

// parquetSource reads a file column by column in groups of rows.
type parquetSource struct {
	file   *os.File
	temp   bool // the file is a copy
	groups []parquet.RowGroup
	rows   parquet.Rows
	cols   []column
	decode []func(parquet.Value) any
	buf    []parquet.Row
	at, n  int
	row    []any
	ended  bool // the group, after what is in buf
}

// newParquetSource reads r, which is copied into a file unless it is one: the
// format begins at its end.
func newParquetSource(r io.ReadCloser, scratch string) (*parquetSource, error) {
	s := &parquetSource{buf: make([]parquet.Row, 256)}
	if f, isFile := r.(*os.File); isFile {
		s.file = f
	} else if err := s.copyOf(r, scratch); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		if s.temp {
			err = errors.Join(err, s.close())
		}
		return nil, err
	}
	if s.temp {
		return s, r.Close()
	}
	return s, nil
}

func (s *parquetSource) copyOf(r io.Reader, scratch string) error {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return fileFailure("make", scratch, err)
	}
	f, err := os.CreateTemp(scratch, "transfer-*.parquet")
	if err != nil {
		return fileFailure("write to", scratch, err)
	}
	s.file, s.temp = f, true
	if _, err := io.Copy(f, r); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

func (s *parquetSource) open() error {
	info, err := s.file.Stat()
	if err != nil {
		return fileFailure("read", s.file.Name(), err)
	}
	f, err := parquet.OpenFile(s.file, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return &tool.Error{Kind: tool.KindParse, Code: "PARQUET", Message: fmt.Sprintf("the file is no parquet file: %v", err)}
	}
	s.groups = f.RowGroups()
	for _, c := range f.Root().Columns() {
		if !c.Leaf() || c.Repeated() {
			return tool.ConfigErrorf("the column %q of the parquet file is nested; read it with kind duckdb: SELECT … FROM 'file.parquet'", c.Name())
		}
		kind, decode := parquetKind(c.Type())
		s.cols = append(s.cols, column{name: c.Name(), kind: kind})
		s.decode = append(s.decode, decode)
	}
	s.row = make([]any, len(s.cols))
	return nil
}

func (s *parquetSource) columns() []column { return s.cols }

func (s *parquetSource) next(context.Context) (record, error) {
	for s.at == s.n {
		if err := s.fill(); err != nil {
			return record{}, err
		}
	}
	for i := range s.row {
		s.row[i] = nil
	}
	for _, v := range s.buf[s.at] {
		if !v.IsNull() {
			s.row[v.Column()] = s.decode[v.Column()](v)
		}
	}
	s.at++
	return record{values: s.row}, nil
}

// fill reads the next rows.
func (s *parquetSource) fill() error {
	if s.rows == nil || s.ended {
		if err := s.nextGroup(); err != nil {
			return err
		}
	}
	n, err := s.rows.ReadRows(s.buf)
	s.at, s.n, s.ended = 0, n, errors.Is(err, io.EOF)
	if err != nil && !s.ended {
		return &tool.Error{Kind: tool.KindParse, Code: "PARQUET", Message: fmt.Sprintf("the parquet file is damaged: %v", err)}
	}
	return nil
}

func (s *parquetSource) nextGroup() error {
	if s.rows != nil {
		if err := s.rows.Close(); err != nil {
			return err
		}
		s.rows = nil
	}
	if len(s.groups) == 0 {
		return io.EOF
	}
	s.rows, s.groups, s.ended = s.groups[0].Rows(), s.groups[1:], false
	return nil
}

func (s *parquetSource) close() error {
	var errs []error
	if s.rows != nil {
		errs = append(errs, s.rows.Close())
	}
	errs = append(errs, s.file.Close())
	if s.temp {
		errs = append(errs, os.Remove(s.file.Name()))
	}
	return errors.Join(errs...)
}

// parquetKind says what a column holds and how to read a value of it.
func parquetKind(t parquet.Type) (kind, func(parquet.Value) any) {
	if logical := t.LogicalType(); logical != nil {
		if k, decode := logicalKind(t, logical.Value); decode != nil {
			return k, decode
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return boolean, func(v parquet.Value) any { return v.Boolean() }
	case parquet.Int32, parquet.Int64:
		return integer, func(v parquet.Value) any { return wholeOf(v) }
	case parquet.Float:
		return float, func(v parquet.Value) any { return shortest(v.Float()) }
	case parquet.Double:
		return float, func(v parquet.Value) any { return v.Double() }
	case parquet.Int96:
		return instant, func(v parquet.Value) any { return int96(v).Format(time.RFC3339Nano) }
	}
	return binary, func(v parquet.Value) any { return slices.Clone(v.ByteArray()) }
}

func logicalKind(t parquet.Type, logical format.LogicalTypeValue) (kind, func(parquet.Value) any) {
	switch logical := logical.(type) {
	case *format.StringType, *format.EnumType:
		return text, func(v parquet.Value) any { return string(v.ByteArray()) }
	case *format.JsonType:
		return jsonText, func(v parquet.Value) any { return json.RawMessage(slices.Clone(v.ByteArray())) }
	case *format.UUIDType:
		return uuid, func(v parquet.Value) any { return uuidText(v.ByteArray()) }
	case *format.DateType:
		return date, func(v parquet.Value) any {
			return time.Unix(int64(v.Int32())*86400, 0).UTC().Format("2006-01-02")
		}
	case *format.TimeType:
		unit := logical.Unit.Value.Duration()
		return timeOfDay, func(v parquet.Value) any {
			return time.Unix(0, wholeOf(v)*int64(unit)).UTC().Format("15:04:05.999999999")
		}
	case *format.TimestampType:
		unit := logical.Unit.Value.Duration()
		if logical.IsAdjustedToUTC {
			return instant, func(v parquet.Value) any { return fromEpoch(v.Int64(), unit).Format(time.RFC3339Nano) }
		}
		return moment, func(v parquet.Value) any { return fromEpoch(v.Int64(), unit).Format("2006-01-02T15:04:05.999999999") }
	case *format.DecimalType:
		scale := int(logical.Scale)
		return number, func(v parquet.Value) any { return decimalOf(v, scale) }
	case *format.IntType:
		if !logical.IsSigned {
			return integer, func(v parquet.Value) any { return unsigned(v) }
		}
	}
	return undecided, nil
}

func wholeOf(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

func unsigned(v parquet.Value) any {
	if v.Kind() == parquet.Int32 {
		return int64(uint32(v.Int32()))
	}
	if n := v.Int64(); n >= 0 {
		return n
	}
	return json.Number(new(big.Int).SetUint64(uint64(v.Int64())).String())
}

// fromEpoch is the moment that is so many units after 1970.
func fromEpoch(n int64, unit time.Duration) time.Time {
	per := int64(time.Second / unit)
	seconds, rest := n/per, n%per
	return time.Unix(seconds, rest*int64(unit)).UTC()
}

// int96 is the older form of a timestamp: nanoseconds of a day, then the day.
func int96(v parquet.Value) time.Time {
	n := v.Int96()
	nanos := int64(n[0]) | int64(n[1])<<32
	return time.Unix((int64(n[2])-2440588)*86400, nanos).UTC()
}

// decimalOf writes a number of which the last digits are a fraction.
func decimalOf(v parquet.Value, scale int) json.Number {
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		n.SetInt64(wholeOf(v))
	default:
		b := v.ByteArray()
		n.SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 { // two's complement
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
	}
	sign, digits := "", n.String()
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	if scale > 0 {
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	}
	return json.Number(sign + digits)
}

func uuidText(b []byte) string {
	if len(b) != 16 {
		return hex.EncodeToString(b)
	}
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
