package duckdb

import "context"

// engine is the library behind the build tag.
type engine interface {
	// open opens a database file, or a database in memory when path is Memory.
	open(path string, settings map[string]string) (database, error)
	// plain turns a value of the library's own types into one of this package.
	plain(v any) any
}

type database interface {
	connect(ctx context.Context) (connection, error)
	close() error
}

type connection interface {
	// query runs one statement. Rows must be closed before the next.
	query(ctx context.Context, text string, args []any) (rows, error)
	// describe lists the columns of a SELECT and their types as DuckDB writes
	// them; it is empty for every other statement, and for columns whose type is
	// sure without it.
	describe(ctx context.Context, text string, args []any) ([]Column, error)
	// appender feeds rows of text into the query, as a table called
	// appended_data with the columns col1, col2, ….
	appender(query string, columns int) (appender, error)
	close() error
}

type rows interface {
	columns() []Column
	// next fills the values of the next row; io.EOF after the last.
	next(values []any) error
	// changes tells that the rows are none of the author's: the statement
	// changed data, or did something, and says no more than how many.
	changes() bool
	close() error
}

type appender interface {
	row(values []any) error
	flush(ctx context.Context) error
	close() error
}

// column is a column of a result.
type column struct {
	name string
	kind *kind
}

func readColumns(described []Column) []column {
	out := make([]column, len(described))
	for i, c := range described {
		out[i] = column{c.Name, parseKind(c.Type)}
	}
	return out
}

// Values of the library that Go has no type for.
type (
	decimal  string // as written
	interval struct {
		months, days int32
		micros       int64
	}
	pairs struct{ keys, values []any } // a MAP
	union struct {
		tag   string
		value any
	}
)
