package node

import "github.com/noetl/noetl-go/internal/obs"

// Tracing is where spans go. The zero value makes none, at no cost.
type Tracing struct {
	Tracer *obs.Tracer
	Count  func(*obs.Registry) // shows what becomes of the spans
	Close  func() error        // sends what waits, for a bounded time
}

// begin has the spans counted, and those that wait sent at the end.
func (t Tracing) begin(r *obs.Registry, clean *closers) {
	if t.Tracer == nil {
		return
	}
	if t.Count != nil {
		t.Count(r)
	}
	if t.Close != nil { // the first to be opened is the last to be closed
		*clean = append(closers{t.Close}, *clean...)
	}
}
