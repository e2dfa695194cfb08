package transfer

import "context"

// source gives rows, one after the other.
type source interface {
	// columns are those of every row; nil when each row has fields of its own.
	columns() []column
	// next is the next row; io.EOF after the last. What it gives is used up
	// before next is called again.
	next(ctx context.Context) (record, error)
	close() error
}

// target takes rows. Begin and commit may follow each other several times; what
// was not committed is not in the target.
type target interface {
	// name is the table or file, for people.
	name() string
	// columns are those of a table that is there; nil when any will do.
	columns() []column
	begin(ctx context.Context, cols []column) error
	write(ctx context.Context, row []any) error
	commit(ctx context.Context) error
	// close drops what was not committed.
	close() error
}

// opener opens one end of a transfer.
type opener[E any] func(ctx context.Context, s *session, p *plan) (E, error)

// sources and targets are the systems that rows can come from and go to. A new
// one is a line here and a file of its own.
var (
	sources map[string]opener[source]
	targets map[string]opener[target]
)

func init() {
	sources = map[string]opener[source]{
		"postgres": openPostgresSource,
		"duckdb":   openDuckDBSource,
		"http":     openHTTP,
		"csv":      openFileSource,
		"json":     openFileSource,
		"ndjson":   openFileSource,
		"parquet":  openFileSource,
		"result":   openResultSource,
	}
	targets = map[string]opener[target]{
		"postgres": openPostgresTarget,
		"duckdb":   openDuckDBTarget,
		"csv":      openFileTarget,
		"ndjson":   openFileTarget,
		"parquet":  openFileTarget,
		"result":   openResultTarget,
	}
}

// column is a column of a table and what its values mean.
type column struct {
	name string
	kind kind
	// list tells that the column holds lists of the kind.
	list bool
	// width and scale are the digits of a decimal, 0 when it has no bounds.
	width, scale int
}

// kind is what the values of a column mean, whatever system they are in.
type kind string

const (
	text      kind = "text" // and all that has no kind here
	boolean   kind = "bool"
	integer   kind = "int"
	float     kind = "float"
	number    kind = "decimal" // json.Number
	binary    kind = "bytes"
	moment    kind = "timestamp" // without a zone
	instant   kind = "timestamptz"
	date      kind = "date"
	timeOfDay kind = "time"
	jsonText  kind = "json"
	uuid      kind = "uuid"
	undecided kind = "" // of fields that are only seen row by row
)

// record is one row: the values of columns, or fields of its own. Values are
// nil, bool, int64, float64, json.Number, string, []byte (binary) and
// json.RawMessage (JSON that is no plain value).
type record struct {
	values []any
	fields []member
}
