package obs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/noetl/noetl-go/internal/obs"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceparentIsReadAndWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		traceparent: traceparent,
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00":      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more": traceparent, // a version to come
		traceparent + "-more": "",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x": "",
		"": "", "00-1-2-01": "",
	} {
		if got := obs.Traceparent(obs.ParseTraceparent(text, "")); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}

func TestRetraceKeepsWhatElseIsCarried(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`{"traceparent":"` + traceparent + `","tracestate":"a=b","baggage":"k=v","n":1}`)
	at := obs.Derived(obs.ParseTrace(raw), 42)
	if at.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || at.SpanID().String() == "b7ad6b7169203331" || !at.IsSampled() {
		t.Fatalf("derived %v", at)
	}
	var got map[string]any
	if err := json.Unmarshal(obs.Retrace(raw, at), &got); err != nil {
		t.Fatal(err)
	}
	if got["traceparent"] != obs.Traceparent(at) || got["tracestate"] != "a=b" || got["baggage"] != "k=v" || got["n"] != 1.0 {
		t.Errorf("carries %v", got)
	}
	for _, odd := range []string{"", "null", "[1]", `"x"`, "{"} {
		if again := obs.ParseTrace(obs.Retrace(json.RawMessage(odd), at)); again.SpanID() != at.SpanID() {
			t.Errorf("%q became %v", odd, again)
		}
	}
	if obs.Retrace(nil, obs.SpanContext{}) != nil {
		t.Error("no place in a trace became one")
	}
}

func TestSpansOfDifferentThingsDiffer(t *testing.T) {
	t.Parallel()
	root := obs.ParseTraceparent(traceparent, "")
	seen := map[string]uint64{}
	for id := range uint64(10000) {
		span := obs.Derived(root, id).SpanID().String()
		if other, twice := seen[span]; twice {
			t.Fatalf("%d and %d are the same span", other, id)
		}
		seen[span] = id
	}
	if !obs.Derived(root, 7).Equal(obs.Derived(root, 7)) {
		t.Error("one thing has two spans")
	}
}

func TestRecordKeepsTimesAndPlaces(t *testing.T) {
	t.Parallel()
	e := tracetest.NewInMemoryExporter()
	tracer := obs.NewTracer(sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithIDGenerator(obs.IDs{})))
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	tracer.Record(obs.Span{Name: "late", Parent: obs.ParseTraceparent(traceparent, ""), ID: 3, Start: start, End: start.Add(-time.Hour)})
	tracer.Record(obs.Span{Name: "root", Start: start, End: start})
	got := e.GetSpans()
	if len(got) != 2 || got[0].EndTime.Before(got[0].StartTime) || !got[0].StartTime.Equal(start) {
		t.Fatalf("spans %+v", got)
	}
	if want := obs.Derived(obs.ParseTraceparent(traceparent, ""), 3).SpanID(); got[0].SpanContext.SpanID() != want {
		t.Errorf("span id %s, want %s", got[0].SpanContext.SpanID(), want)
	}
	if got[1].Parent.IsValid() || got[1].SpanContext.TraceID() == got[0].SpanContext.TraceID() {
		t.Errorf("a span without a parent is in trace %s", got[1].SpanContext.TraceID())
	}
}

func TestLogLinesSayWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(obs.LogHandler(slog.NewJSONHandler(&out, nil))).With("worker", "w")
	about := &obs.About{ExecutionID: "12", Step: "one", Trace: json.RawMessage(`{"traceparent":"` + traceparent + `"}`)}
	ctx := about.With(context.Background())
	for _, c := range []struct {
		ctx  context.Context
		args []any
		want string
	}{
		{ctx, nil, `"execution_id":"12","step":"one","trace_id":"0af7651916cd43dd8448eb211c80319c"`},
		{ctx, []any{"execution_id", "13"}, `"execution_id":"13","step":"one"`},
		{context.Background(), nil, `"msg":"m","worker":"w"}`},
	} {
		out.Reset()
		log.WarnContext(c.ctx, "m", c.args...)
		if got := out.String(); !strings.Contains(got, c.want) || strings.Count(got, "execution_id") > 1 {
			t.Errorf("the line is %s, want %s", got, c.want)
		}
	}
}
