package otlp_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/obs/otlp"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/testkit/otlpd"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func open(t *testing.T, s otlp.Settings) *otlp.Exporter {
	t.Helper()
	e, err := otlp.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func record(e *otlp.Exporter, n int) {
	at := time.Now()
	for range n {
		e.Tracer.Record(obs.Span{Name: "work", Parent: obs.ParseTraceparent(caller, ""), Kind: obs.Internal, Start: at, End: at.Add(time.Second)})
	}
}

// text is the registry as it is shown.
func text(t *testing.T, r *obs.Registry) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSpansArriveAtTheCollector(t *testing.T) {
	t.Parallel()
	for _, compression := range []string{"", "gzip", "none"} {
		t.Run("compression "+compression, func(t *testing.T) {
			t.Parallel()
			c := otlpd.Start(t)
			var r obs.Registry
			e := open(t, otlp.Settings{
				Endpoint: c.URL, Headers: "api-key=a%2Cb,x=1", Part: "part", ServiceName: "me", Resource: "service.name=other,zone=z", Compression: compression,
			})
			e.Count(&r)
			at := time.Now()
			e.Tracer.Record(obs.Span{
				Name: "work", Parent: obs.ParseTraceparent(caller, "a=b"), ID: 7, Kind: obs.Serving, Start: at, End: at.Add(time.Second),
				Attributes: []obs.Attribute{obs.Text("step", "one"), obs.Number("attempt", 2)}, Error: "it broke",
				Marks: []obs.Mark{{Name: "claimed", At: at}},
			})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			spans := c.Spans()
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			s := spans[0]
			if s.Trace != "0af7651916cd43dd8448eb211c80319c" || s.Parent != "b7ad6b7169203331" || s.Service != "me" || s.End.Sub(s.Start) != time.Second {
				t.Errorf("span %+v", s)
			}
			if want := obs.Derived(obs.ParseTraceparent(caller, ""), 7).SpanID().String(); s.ID != want {
				t.Errorf("span id %s, want the derived %s", s.ID, want)
			}
			if !s.Failed || s.Error != "it broke" || s.Attributes["step"] != "one" || s.Attributes["attempt"] != "2" || len(s.Marks) != 1 {
				t.Errorf("span %+v", s)
			}
			h := c.Headers()[0]
			if h.Get("Api-Key") != "a,b" || h.Get("X") != "1" {
				t.Errorf("headers %v", h)
			}
			if zipped := h.Get("Content-Encoding") == "gzip"; zipped != (compression != "none") {
				t.Errorf("content encoding %q", h.Get("Content-Encoding"))
			}
			if got := text(t, &r); !strings.Contains(got, "noetl_trace_spans_exported_total 1\n") || !strings.Contains(got, "noetl_trace_spans_dropped_total 0\n") {
				t.Errorf("metrics:\n%s", got)
			}
		})
	}
}

func TestSpansAreSentAgainToABusyCollector(t *testing.T) {
	t.Parallel()
	c := otlpd.Start(t)
	c.Refuse(2)
	e := open(t, otlp.Settings{Endpoint: c.URL})
	record(e, 3)
	c.Await(t, 3, func(otlpd.Span) bool { return true }, 20*time.Second)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatACollectorRejectsIsCounted(t *testing.T) {
	t.Parallel()
	c := otlpd.Start(t)
	c.Reject(2)
	var r obs.Registry
	e := open(t, otlp.Settings{Endpoint: c.URL})
	e.Count(&r)
	record(e, 5)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got := text(t, &r); !strings.Contains(got, "noetl_trace_spans_exported_total 3\n") || !strings.Contains(got, "noetl_trace_spans_dropped_total 2\n") {
		t.Errorf("metrics:\n%s", got)
	}
}

// Nobody listens: the work that makes the spans must not notice, and the end
// must come.
func TestAnAbsentCollectorHoldsNothingUp(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	e := open(t, otlp.Settings{Endpoint: "http://127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))})
	e.Count(&r)
	const many = 30000 // more than may wait
	record(e, many)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	record(e, 1) // after the end
	got := text(t, &r)
	if !strings.Contains(got, "noetl_trace_spans_exported_total 0\n") || !strings.Contains(got, "noetl_trace_spans_dropped_total 30000\n") {
		t.Errorf("metrics:\n%s", got)
	}
}

func TestSamplersAreRespected(t *testing.T) {
	t.Parallel()
	unsampled := strings.TrimSuffix(caller, "01") + "00"
	for _, c := range []struct {
		sampler, arg, parent string
		want                 int
	}{
		{"", "", "", 1},
		{"", "", caller, 1},
		{"", "", unsampled, 0},
		{"always_on", "", unsampled, 1},
		{"always_off", "", caller, 0},
		{"traceidratio", "0", caller, 0},
		{"traceidratio", "1", unsampled, 1},
		{"parentbased_always_off", "", caller, 1},
		{"parentbased_always_off", "", "", 0},
		{"parentbased_traceidratio", "0", "", 0},
		{"parentbased_traceidratio", "0.0", caller, 1},
	} {
		t.Run(c.sampler+c.arg+c.parent, func(t *testing.T) {
			t.Parallel()
			receiver := otlpd.Start(t)
			e := open(t, otlp.Settings{TracesEndpoint: receiver.URL + "/v1/traces", Sampler: c.sampler, SamplerArg: c.arg})
			e.Tracer.Record(obs.Span{Name: "work", Parent: obs.ParseTraceparent(c.parent, ""), Start: time.Now(), End: time.Now()})
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			if got := len(receiver.Spans()); got != c.want {
				t.Errorf("%d spans, want %d", got, c.want)
			}
		})
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		s    otlp.Settings
		want string
	}{
		{"grpc", otlp.Settings{Endpoint: "http://x:4317", Protocol: "grpc"}, "http/protobuf"},
		{"json", otlp.Settings{Endpoint: "http://x:4318", Protocol: "http/json"}, "http/protobuf"},
		{"no scheme", otlp.Settings{Endpoint: "localhost:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"no host", otlp.Settings{TracesEndpoint: "http:///v1/traces"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{"headers", otlp.Settings{Endpoint: "http://x", Headers: "Bearer hunter2"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		{"resource", otlp.Settings{Endpoint: "http://x", Resource: "=1"}, "OTEL_RESOURCE_ATTRIBUTES"},
		{"sampler", otlp.Settings{Endpoint: "http://x", Sampler: "sometimes"}, "parentbased_always_on"},
		{"ratio", otlp.Settings{Endpoint: "http://x", Sampler: "traceidratio", SamplerArg: "NaN"}, "OTEL_TRACES_SAMPLER_ARG"},
		{"compression", otlp.Settings{Endpoint: "http://x", Compression: "zip"}, "gzip"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := otlp.Open(context.Background(), c.s, slog.New(slog.DiscardHandler))
			if err == nil || event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v does not say %q", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a header: %v", err)
			}
		})
	}
	if (otlp.Settings{}).On() || (otlp.Settings{Endpoint: "http://x", Disabled: true}).On() {
		t.Error("on without being asked")
	}
}
