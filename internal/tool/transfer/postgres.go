package transfer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
)

// session settings under which values read the same everywhere.
const plainText = `SET datestyle = 'ISO'; SET intervalstyle = 'iso_8601'; SET timezone = 'UTC'; SET bytea_output = 'hex'; SET extra_float_digits = 3`

func dial(ctx context.Context, s *session, e *end) (*pgconn.PgConn, error) {
	conn, err := postgres.Dial(ctx, s.call, e.Fields)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, plainText).ReadAll(); err != nil {
		closeConn(conn)
		return nil, postgres.Classify(err)
	}
	return conn, nil
}

// closeConn ends a connection soon; an open transaction is rolled back.
func closeConn(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = conn.Close(ctx) // whether or not the server hears of it
}

// postgresSource reads the rows of a query as the server sends them.
type postgresSource struct {
	conn   *pgconn.PgConn
	result *pgconn.ResultReader
	cols   []column
	decode []func([]byte) any
	row    []any
}

func openPostgresSource(ctx context.Context, s *session, p *plan) (source, error) {
	query, err := p.source.String("query", "command", "sql")
	if err != nil {
		return nil, err
	}
	table, err := p.source.String("table")
	if err != nil {
		return nil, err
	}
	switch {
	case query != "":
	case table != "":
		name, err := parseTable(table)
		if err != nil {
			return nil, err
		}
		query = "SELECT * FROM " + name.quoted()
	default:
		return nil, tool.ConfigErrorf("source.query is missing; write a SELECT, or table")
	}
	conn, err := dial(ctx, s, p.source)
	if err != nil {
		return nil, err
	}
	src := &postgresSource{conn: conn}
	src.result = conn.ExecParams(ctx, query, nil, nil, nil, nil)
	if err := src.describe(p.target.kind == "postgres"); err != nil {
		closeConn(conn)
		return nil, err
	}
	return src, nil
}

// describe learns the columns. Rows for another PostgreSQL stay the text that
// it reads itself.
func (s *postgresSource) describe(asText bool) error {
	for _, f := range s.result.FieldDescriptions() {
		c := columnOf(f.DataTypeOID, f.TypeModifier)
		c.name = f.Name
		s.cols = append(s.cols, c)
		decode := decoder(f.DataTypeOID)
		if asText && f.DataTypeOID != pgtype.BoolOID {
			decode = asString
		}
		s.decode = append(s.decode, decode)
	}
	if len(s.cols) > 0 {
		s.row = make([]any, len(s.cols))
		return nil
	}
	if _, err := s.result.Close(); err != nil {
		return postgres.Classify(err)
	}
	return tool.ConfigErrorf("source.query gives no rows; write one SELECT")
}

func (s *postgresSource) columns() []column { return s.cols }

func (s *postgresSource) next(ctx context.Context) (record, error) {
	if !s.result.NextRow() {
		if _, err := s.result.Close(); err != nil {
			if ctx.Err() != nil {
				return record{}, ctx.Err()
			}
			return record{}, postgres.Classify(err)
		}
		return record{}, io.EOF
	}
	for i, b := range s.result.Values() {
		if b == nil {
			s.row[i] = nil
		} else {
			s.row[i] = s.decode[i](b)
		}
	}
	return record{values: s.row}, nil
}

func (s *postgresSource) close() error {
	closeConn(s.conn)
	return nil
}

// kindsByOID are the types that mean more than text.
var kindsByOID = map[uint32]kind{
	pgtype.BoolOID: boolean, pgtype.Int2OID: integer, pgtype.Int4OID: integer, pgtype.Int8OID: integer, pgtype.OIDOID: integer,
	pgtype.Float4OID: float, pgtype.Float8OID: float, pgtype.NumericOID: number, pgtype.ByteaOID: binary,
	pgtype.JSONOID: jsonText, pgtype.JSONBOID: jsonText, pgtype.UUIDOID: uuid, pgtype.DateOID: date,
	pgtype.TimeOID: timeOfDay, pgtype.TimestampOID: moment, pgtype.TimestamptzOID: instant,
}

func columnOf(oid uint32, modifier int32) column {
	c := column{kind: text}
	if k, known := kindsByOID[oid]; known {
		c.kind = k
	}
	if c.kind == number && modifier > 4 {
		c.width, c.scale = int((modifier-4)>>16), int((modifier-4)&0xffff)
	}
	return c
}

func asString(b []byte) any { return string(b) }

// decoder reads the text that the server writes for a type.
func decoder(oid uint32) func([]byte) any {
	switch kindsByOID[oid] {
	case boolean:
		return func(b []byte) any { return b[0] == 't' }
	case integer:
		return func(b []byte) any {
			n, err := strconv.ParseInt(string(b), 10, 64)
			if err != nil {
				return string(b)
			}
			return n
		}
	case float:
		return func(b []byte) any {
			f, err := strconv.ParseFloat(string(b), 64)
			if err != nil {
				return string(b)
			}
			return f
		}
	case number:
		return func(b []byte) any {
			if c := b[len(b)-1]; c < '0' || c > '9' { // NaN, Infinity
				return string(b)
			}
			return json.Number(b)
		}
	case jsonText:
		return func(b []byte) any { return json.RawMessage(append([]byte(nil), b...)) }
	case binary:
		return func(b []byte) any {
			raw, err := hex.DecodeString(strings.TrimPrefix(string(b), `\x`))
			if err != nil {
				return string(b)
			}
			return raw
		}
	case moment:
		return func(b []byte) any { return strings.Replace(string(b), " ", "T", 1) }
	case instant:
		return func(b []byte) any {
			return strings.Replace(strings.Replace(string(b), " ", "T", 1), "+00", "Z", 1)
		}
	}
	return asString
}
