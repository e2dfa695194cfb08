package obs

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans. A nil Tracer makes none, and whoever holds one asks
// before it prepares anything, so that traces nobody wants cost nothing.
type Tracer struct{ t trace.Tracer }

// NewTracer makes spans with a provider, which has to take its ids from IDs.
func NewTracer(p trace.TracerProvider) *Tracer {
	return &Tracer{p.Tracer("github.com/noetl/noetl-go")}
}

// SpanContext is a place in a trace; see ParseTrace.
type SpanContext = trace.SpanContext

// Attribute is what a span says of itself.
type Attribute = attribute.KeyValue

// The part a span plays: it answers somebody, or is our own business.
const (
	Serving  = trace.SpanKindServer
	Internal = trace.SpanKindInternal
)

// ParseTrace reads the trace context that executions and commands carry. What
// cannot be read is no place in a trace: the result is not valid.
func ParseTrace(raw json.RawMessage) SpanContext {
	if len(raw) == 0 {
		return SpanContext{}
	}
	var m struct {
		Parent string `json:"traceparent"`
		State  string `json:"tracestate"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return SpanContext{}
	}
	return ParseTraceparent(m.Parent, m.State)
}

// ParseTraceparent reads the two headers of a W3C trace context.
func ParseTraceparent(parent, state string) SpanContext {
	const length = 55 // version, trace id, span id and flags
	if len(parent) < length || len(parent) > length && (strings.HasPrefix(parent, "00") || parent[length] != '-') {
		return SpanContext{}
	}
	part := strings.Split(parent[:length], "-")
	if len(part) != 4 || len(part[0]) != 2 || part[0] == "ff" || strings.Trim(part[0]+part[3], "0123456789abcdef") != "" {
		return SpanContext{}
	}
	id, err := trace.TraceIDFromHex(part[1])
	if err != nil {
		return SpanContext{}
	}
	span, err := trace.SpanIDFromHex(part[2])
	if err != nil {
		return SpanContext{}
	}
	c := trace.SpanContextConfig{TraceID: id, SpanID: span, Remote: true}
	if strings.ContainsRune("13579bdf", rune(part[3][1])) {
		c.TraceFlags = trace.FlagsSampled
	}
	if state != "" {
		c.TraceState, _ = trace.ParseTraceState(state) // a state nobody can read is left out
	}
	return trace.NewSpanContext(c)
}

// Traceparent is a place in a trace as the header says it; "" when it is none.
func Traceparent(c SpanContext) string {
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & trace.FlagsSampled).String()
}

// Retrace is the trace context raw at another place. Whatever else it carries
// stays.
func Retrace(raw json.RawMessage, at SpanContext) json.RawMessage {
	if !at.IsValid() {
		return raw
	}
	m := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	m["traceparent"] = json.RawMessage(`"` + Traceparent(at) + `"`)
	delete(m, "tracestate")
	if state := at.TraceState().String(); state != "" {
		m["tracestate"], _ = json.Marshal(state) // text
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

// Derived is the place of the span that stands for the thing with this id, in
// the trace of c. Every process finds the same, so that whoever knows the trace
// can name the span of an execution or a command before it is made.
func Derived(c SpanContext, id uint64) SpanContext {
	if !c.IsValid() {
		return c
	}
	return c.WithSpanID(spanIDOf(id)).WithRemote(true)
}

// spanIDOf mixes the bits of an id, so that ids made one after the other look
// as random as span ids must. Different ids give different spans.
func spanIDOf(id uint64) (s trace.SpanID) {
	x := id + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	binary.BigEndian.PutUint64(s[:], max(x, 1))
	return s
}

// Text is an attribute of a span.
func Text(name, value string) Attribute { return attribute.String(name, value) }

// Number is an attribute of a span.
func Number(name string, value int) Attribute { return attribute.Int(name, value) }

// Span is something that took place: all that is known of it once it is over.
type Span struct {
	Name       string
	Parent     SpanContext // a root when it is not valid
	ID         uint64      // of what it stands for, see Derived; 0 = a span of its own
	Kind       trace.SpanKind
	Start, End time.Time
	Attributes []Attribute
	Marks      []Mark
	Error      string // "" when it went well; without secrets
}

// Mark is a moment within a span.
type Mark struct {
	Name       string
	At         time.Time
	Attributes []Attribute
}

// Record makes a span of what is over.
func (t *Tracer) Record(s Span) {
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), s.Parent)
	if s.ID != 0 {
		ctx = context.WithValue(ctx, spanIDKey{}, spanIDOf(s.ID))
	}
	_, span := t.t.Start(ctx, s.Name, trace.WithTimestamp(s.Start), trace.WithSpanKind(s.Kind), trace.WithAttributes(s.Attributes...))
	for _, m := range s.Marks {
		span.AddEvent(m.Name, trace.WithTimestamp(m.At), trace.WithAttributes(m.Attributes...))
	}
	if s.Error != "" {
		span.SetStatus(codes.Error, s.Error)
	}
	if s.End.Before(s.Start) {
		s.End = s.Start // clocks of two machines
	}
	span.End(trace.WithTimestamp(s.End))
}

// Active is a span that has begun. A nil one is none; its methods do nothing.
type Active struct{ span trace.Span }

// Begin starts a span below parent; without one it begins a trace.
func (t *Tracer) Begin(ctx context.Context, name string, parent SpanContext, kind trace.SpanKind, at time.Time, attrs ...Attribute) (context.Context, *Active) {
	ctx, span := t.t.Start(trace.ContextWithRemoteSpanContext(ctx, parent), name,
		trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, &Active{span}
}

// Context is the span's place in its trace.
func (a *Active) Context() SpanContext {
	if a == nil {
		return SpanContext{}
	}
	return a.span.SpanContext()
}

// Set adds what was learned on the way.
func (a *Active) Set(attrs ...Attribute) {
	if a != nil {
		a.span.SetAttributes(attrs...)
	}
}

// End ends the span; failure is "" when it went well, and holds no secrets.
func (a *Active) End(at time.Time, failure string) {
	if a == nil {
		return
	}
	if failure != "" {
		a.span.SetStatus(codes.Error, failure)
	}
	a.span.End(trace.WithTimestamp(at))
}

type spanIDKey struct{}

// IDs gives spans their ids: random ones, but for those that stand for
// something with an id of its own. It is what a provider of NewTracer needs.
type IDs struct{}

// NewIDs begins a trace.
func (IDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id, IDs{}.NewSpanID(ctx, id)
}

// NewSpanID makes the id of a span.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) (span trace.SpanID) {
	if id, ok := ctx.Value(spanIDKey{}).(trace.SpanID); ok {
		return id
	}
	for !span.IsValid() {
		_, _ = rand.Read(span[:])
	}
	return span
}
