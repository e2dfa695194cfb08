package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/redact"
)

// shown marks routes whose answers tell people what executions did. Secrets that
// got into the log by other ways than our own workers, which let none through,
// are not shown by them.
func shown(routes []route) []route {
	for i := range routes {
		routes[i].shown = routes[i].Method == http.MethodGet
	}
	return routes
}

// veil is an answer whose JSON passes a filter.
type veil struct {
	http.ResponseWriter
	filter *redact.Shown
}

var shapes redact.Secrets // knows no values, and all shapes and names

func newVeil(w http.ResponseWriter) *veil {
	return &veil{ResponseWriter: w, filter: shapes.Shown(w)}
}

func (v *veil) Write(p []byte) (int, error) { return v.filter.Write(p) }

// FlushError is what http.ResponseController flushes with.
func (v *veil) FlushError() error {
	if err := v.filter.Flush(); err != nil {
		return err
	}
	return http.NewResponseController(v.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (v *veil) Unwrap() http.ResponseWriter { return v.ResponseWriter }

func (v *veil) close() { _ = v.filter.Close() }
