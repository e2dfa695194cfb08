package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/noetl/noetl-go/internal/obs"
)

// maxTraceHeader bounds what is kept of tracestate and baggage, because it goes
// with every command.
const maxTraceHeader = 8 << 10

// traceOf is the W3C trace context of a request as executions carry it; nil
// when it has none. What is malformed is left out: a trace must never keep
// anything from running.
func traceOf(h http.Header) json.RawMessage {
	trace := map[string]string{}
	if parent := strings.TrimSpace(h.Get("Traceparent")); isTraceparent(parent) {
		trace["traceparent"] = parent
		if state := joined(h, "Tracestate"); state != "" {
			trace["tracestate"] = state
		}
	}
	if baggage := joined(h, "Baggage"); baggage != "" {
		trace["baggage"] = baggage
	}
	if len(trace) == 0 {
		return nil
	}
	raw, err := json.Marshal(trace)
	if err != nil {
		return nil
	}
	return raw
}

// traced lets what is logged about a request say which trace it belongs to.
func traced(r *http.Request) *http.Request {
	if r.Header.Get("Traceparent") == "" {
		return r
	}
	about := &obs.About{Trace: traceOf(r.Header)}
	return r.WithContext(about.With(r.Context()))
}

// joined is a list header, whose parts may come in several lines.
func joined(h http.Header, name string) string {
	v := strings.TrimSpace(strings.Join(h.Values(name), ","))
	if len(v) > maxTraceHeader || strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) {
		return ""
	}
	return v
}

// isTraceparent tells whether text is version-traceid-parentid-flags. Versions
// to come may have more behind it.
func isTraceparent(text string) bool {
	const length = 55
	if len(text) < length || len(text) > length && (text[:2] == "00" || text[length] != '-') || len(text) > 512 {
		return false
	}
	part := strings.Split(text[:length], "-")
	if len(part) != 4 || part[0] == "ff" {
		return false
	}
	for i, size := range []int{2, 32, 16, 2} {
		if len(part[i]) != size || strings.Trim(part[i], "0123456789abcdef") != "" {
			return false
		}
	}
	return strings.Trim(part[1], "0") != "" && strings.Trim(part[2], "0") != ""
}
