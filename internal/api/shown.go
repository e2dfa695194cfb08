package api

import (
	"io"
	"net/http"
	"strings"

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

// veil is an answer that passes a filter: one for JSON, which events of a
// stream are, too, or one for plain text.
type veil struct {
	http.ResponseWriter
	filter io.WriteCloser // made when the type of the answer is known
}

var shapes redact.Secrets // knows no values, and all shapes and names

func newVeil(w http.ResponseWriter) *veil { return &veil{ResponseWriter: w} }

func (v *veil) Write(p []byte) (int, error) {
	if v.filter == nil {
		if strings.HasPrefix(v.Header().Get("Content-Type"), "text/plain") {
			v.filter = shapes.Text(v.ResponseWriter)
		} else {
			v.filter = shapes.Shown(v.ResponseWriter)
		}
	}
	return v.filter.Write(p)
}

// FlushError is what http.ResponseController flushes with. Of plain text the
// line that is not complete stays behind.
func (v *veil) FlushError() error {
	if f, ok := v.filter.(*redact.Shown); ok {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(v.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (v *veil) Unwrap() http.ResponseWriter { return v.ResponseWriter }

func (v *veil) close() {
	if v.filter != nil {
		_ = v.filter.Close()
	}
}
