package postgres

import (
	"encoding/binary"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/noetl/noetl-go/internal/event"
)

// records is an array of composite values in PostgreSQL's binary format, built
// in place. One array per table is the cheapest way to hand over many rows in
// one statement; memory is reused from group to group.
type records struct {
	typ    uint32 // of the elements
	fields int
	count  int
	start  int // of the open element
	buf    []byte
}

// arrayHeader is dimensions, null flag, element type, length, lower bound.
const arrayHeader = 20

// keepBytes is the largest buffer kept for the next group.
const keepBytes = 8 << 20

func newRecords(typ uint32, fields int) records {
	return records{typ: typ, fields: fields, buf: make([]byte, arrayHeader, 4096)}
}

func (r *records) reset() {
	if cap(r.buf) > keepBytes {
		r.buf = make([]byte, arrayHeader, 4096)
	}
	r.buf, r.count = r.buf[:arrayHeader], 0
}

// bytes finishes the array.
func (r *records) bytes() []byte {
	put := binary.BigEndian.PutUint32
	put(r.buf[0:], 1)
	put(r.buf[4:], 0) // no element is null
	put(r.buf[8:], r.typ)
	put(r.buf[12:], uint32(r.count))
	put(r.buf[16:], 1)
	if r.count == 0 {
		put(r.buf[0:], 0) // an empty array has no dimensions
		return r.buf[:12]
	}
	return r.buf
}

// begin opens an element; its fields follow in the order of the type.
func (r *records) begin() *records {
	r.count++
	r.start = len(r.buf)
	r.buf = binary.BigEndian.AppendUint32(r.buf, 0) // length, set by end
	r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(r.fields))
	return r
}

func (r *records) end() {
	binary.BigEndian.PutUint32(r.buf[r.start:], uint32(len(r.buf)-r.start-4))
}

func (r *records) head(typ, size uint32) {
	r.buf = binary.BigEndian.AppendUint32(r.buf, typ)
	r.buf = binary.BigEndian.AppendUint32(r.buf, size)
}

func (r *records) null(typ uint32) *records {
	r.head(typ, math.MaxUint32)
	return r
}

func (r *records) word(typ uint32, v uint64) *records {
	r.head(typ, 8)
	r.buf = binary.BigEndian.AppendUint64(r.buf, v)
	return r
}

func (r *records) int8(v int64) *records  { return r.word(pgtype.Int8OID, uint64(v)) }
func (r *records) id(v event.ID) *records { return r.word(pgtype.Int8OID, uint64(v)) }

// nullID adds a reference; 0 is none.
func (r *records) nullID(v event.ID) *records {
	if v == 0 {
		return r.null(pgtype.Int8OID)
	}
	return r.id(v)
}

func (r *records) int4(v int) *records {
	r.head(pgtype.Int4OID, 4)
	r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(int32(v)))
	return r
}

// str adds a string. PostgreSQL refuses broken UTF-8 and NUL; a tool's error
// message with either must not wedge an execution.
func (r *records) str(v string) *records {
	v = cleanText(v)
	r.head(pgtype.TextOID, uint32(len(v)))
	r.buf = append(r.buf, v...)
	return r
}

// text is str with NULL for the empty string.
func (r *records) text(v string) *records {
	if v == "" {
		return r.null(pgtype.TextOID)
	}
	return r.str(v)
}

func cleanText(v string) string {
	if utf8.ValidString(v) && strings.IndexByte(v, 0) < 0 {
		return v
	}
	return strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD")
}

func (r *records) json(v []byte) *records {
	if len(v) == 0 {
		return r.null(pgtype.JSONOID)
	}
	r.head(pgtype.JSONOID, uint32(len(v)))
	r.buf = append(r.buf, v...)
	return r
}

// time adds a point in time, as timestamptz or as a timestamp that means UTC.
func (r *records) time(typ uint32, t time.Time) *records {
	const pgEpoch = 946684800000000 // 2000-01-01 in Unix microseconds
	if t.IsZero() {
		return r.null(typ)
	}
	return r.word(typ, uint64(t.UnixMicro()-pgEpoch))
}

func (r *records) stamp(t time.Time) *records { return r.time(pgtype.TimestamptzOID, t) }

func (r *records) seconds(d time.Duration) *records {
	if d == 0 {
		return r.null(pgtype.Float8OID)
	}
	return r.word(pgtype.Float8OID, math.Float64bits(d.Seconds()))
}
