package obs

import (
	"context"
	"encoding/json"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// About is what work is about; lines that are logged under its context say so.
type About struct {
	ExecutionID string
	Step        string
	Trace       json.RawMessage // as commands carry it, for lines written where no span is active
}

type aboutKey struct{}

// With makes lines logged under the context say what they are about.
func (a *About) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, aboutKey{}, a)
}

// LogHandler adds to every record what its context tells: trace_id,
// execution_id and step. Names the record has already are left as they are.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle adds the attributes.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	about, _ := ctx.Value(aboutKey{}).(*About)
	at := trace.SpanContextFromContext(ctx)
	if about == nil && !at.IsValid() {
		return h.Handler.Handle(ctx, r)
	}
	if about == nil {
		about = &About{}
	}
	if !at.IsValid() {
		at = ParseTrace(about.Trace)
	}
	said := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool { said[a.Key] = true; return true })
	r = r.Clone()
	add := func(name, value string) {
		if value != "" && !said[name] {
			r.AddAttrs(slog.String(name, value))
		}
	}
	add("execution_id", about.ExecutionID)
	add("step", about.Step)
	if at.IsValid() {
		add("trace_id", at.TraceID().String())
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the additions.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the additions.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
