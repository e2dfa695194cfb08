package obs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

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
// Passwords in addresses are masked wherever they stand: in the message, in
// attributes and in the errors of libraries.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

// Handle adds the attributes.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	about, _ := ctx.Value(aboutKey{}).(*About)
	if about == nil {
		about = &About{}
	}
	at := trace.SpanContextFromContext(ctx)
	if !at.IsValid() {
		at = ParseTrace(about.Trace)
	}
	said := map[string]bool{}
	out := slog.NewRecord(r.Time, r.Level, masked(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = true
		out.AddAttrs(maskedAttr(a))
		return true
	})
	add := func(name, value string) {
		if value != "" && !said[name] {
			out.AddAttrs(slog.String(name, value))
		}
	}
	add("execution_id", about.ExecutionID)
	add("step", about.Step)
	if at.IsValid() {
		add("trace_id", at.TraceID().String())
	}
	return h.Handler.Handle(ctx, out)
}

// WithAttrs keeps the additions.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	list := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		list[i] = maskedAttr(a)
	}
	return logHandler{h.Handler.WithAttrs(list)}
}

// WithGroup keeps the additions.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// mask stands where a secret was.
const mask = "***"

var (
	// userinfo is what stands before the host of an address.
	userinfo = regexp.MustCompile(`://[^\s/?#"'<>]*@`)
	// password is one among the words of a connection string or a query.
	password = regexp.MustCompile(`(?i)\b(password|passwd|pwd)=('(?:[^'\\]|\\.)*'|[^\s&;,"']+)`)
)

// masked is a text without the passwords of its addresses.
func masked(text string) string {
	if strings.Contains(text, "://") && strings.Contains(text, "@") {
		text = userinfo.ReplaceAllString(text, "://"+mask+"@")
	}
	if strings.Contains(text, "=") {
		text = password.ReplaceAllString(text, "${1}="+mask)
	}
	return text
}

func maskedAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(masked(a.Value.String()))
	case slog.KindGroup:
		group := slices.Clone(a.Value.Group())
		for i := range group {
			group[i] = maskedAttr(group[i])
		}
		a.Value = slog.GroupValue(group...)
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case error:
			a.Value = maskedText(a.Value, v.Error)
		case fmt.Stringer:
			a.Value = maskedText(a.Value, v.String)
		case []string:
			list := slices.Clone(v)
			for i := range list {
				list[i] = masked(list[i])
			}
			a.Value = slog.AnyValue(list)
		}
	}
	return a
}

// maskedText is the value itself unless its text holds something to mask: what
// writes it may know a better form.
func maskedText(v slog.Value, text func() string) (out slog.Value) {
	defer func() {
		if recover() != nil { // a nil pointer, which handlers write in their own way
			out = v
		}
	}()
	plain := text()
	if m := masked(plain); m != plain {
		return slog.StringValue(m)
	}
	return v
}
