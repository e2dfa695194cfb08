// Package otlpd is a collector for tests: it takes traces over OTLP/HTTP as the
// real one does, gzip and partial success included, and keeps the spans. It must
// not know what they are about.
package otlpd

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one that was received.
type Span struct {
	Trace, ID, Parent, Name string
	Service                 string
	Start, End              time.Time
	Attributes              map[string]string
	Marks                   []string
	Error                   string // of a span that failed
	Failed                  bool
}

// Receiver takes spans.
type Receiver struct {
	URL string

	mu       sync.Mutex // guards what follows
	spans    []Span
	requests []http.Header
	refusals int // requests to be answered with 503 before one is taken
	reject   int // spans of the next request that are not taken
	changed  chan struct{}
}

// Start listens on a free port until the test ends.
func Start(t testing.TB) *Receiver { return StartAt(t, "127.0.0.1:0") }

// StartAt listens at an address.
func StartAt(t testing.TB, addr string) *Receiver {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatalf("start collector: %v", err)
	}
	r := &Receiver{URL: "http://" + ln.Addr().String(), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.take)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln) // ends with the test
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return r
}

// Refuse answers the next n requests with 503, which asks to try again.
func (r *Receiver) Refuse(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals = n
}

// Reject does not take n spans of the next request, and says so.
func (r *Receiver) Reject(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reject = n
}

// Headers are those of the requests that were taken.
func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Spans are those received so far, in the order they began.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return all
}

// Await waits until enough of the spans that were received fit.
func (r *Receiver) Await(t testing.TB, n int, fits func(Span) bool, timeout time.Duration) []Span {
	t.Helper()
	late := time.After(timeout)
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		var found []Span
		for _, s := range r.Spans() {
			if fits(s) {
				found = append(found, s)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%d of %d spans came; there are:\n%s", len(found), n, Tree(r.Spans()))
		}
	}
}

func (r *Receiver) take(w http.ResponseWriter, q *http.Request) {
	if media := q.Header.Get("Content-Type"); media != "application/x-protobuf" {
		http.Error(w, "unknown media type "+media, http.StatusUnsupportedMediaType)
		return
	}
	r.mu.Lock()
	refuse := r.refusals > 0
	if refuse {
		r.refusals--
	}
	r.mu.Unlock()
	if refuse {
		w.Header().Set("Retry-After", "0")
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	body, err := read(q)
	var request collectorpb.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := proto.Marshal(r.keep(q.Header, request.GetResourceSpans()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func read(q *http.Request) ([]byte, error) {
	var in io.Reader = http.MaxBytesReader(nil, q.Body, 64<<20)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = z
	}
	return io.ReadAll(in)
}

func (r *Receiver) keep(h http.Header, resources []*tracepb.ResourceSpans) *collectorpb.ExportTraceServiceResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, h.Clone())
	answer, rejected := &collectorpb.ExportTraceServiceResponse{}, 0
	for _, res := range resources {
		service := attributes(res.GetResource().GetAttributes())["service.name"]
		for _, scope := range res.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				if rejected < r.reject {
					rejected++
					continue
				}
				r.spans = append(r.spans, spanOf(s, service))
			}
		}
	}
	if r.reject = 0; rejected > 0 {
		answer.PartialSuccess = &collectorpb.ExportTracePartialSuccess{RejectedSpans: int64(rejected), ErrorMessage: "too many"}
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return answer
}

func spanOf(s *tracepb.Span, service string) Span {
	out := Span{
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Name: s.GetName(), Service: service, Attributes: attributes(s.GetAttributes()),
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Error: s.GetStatus().GetMessage(),
	}
	for _, e := range s.GetEvents() {
		out.Marks = append(out.Marks, e.GetName())
	}
	return out
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		}
	}
	return m
}

// Tree shows spans below their parents, in the order they began.
func Tree(spans []Span) string {
	known := map[string]bool{}
	for _, s := range spans {
		known[s.ID] = true
	}
	var b strings.Builder
	var show func(parent string, depth int)
	line := func(s Span, depth int) {
		b.WriteString(strings.Repeat("  ", depth) + s.Name + " [" + s.Service)
		for _, name := range []string{"status", "attempt", "try", "loop_index"} {
			if v := s.Attributes[name]; v != "" {
				b.WriteString(" " + name + "=" + v)
			}
		}
		b.WriteString("] " + s.End.Sub(s.Start).Round(time.Millisecond).String())
		if s.Failed {
			b.WriteString(" ! " + s.Error)
		}
		b.WriteString("\n")
	}
	show = func(parent string, depth int) {
		for _, s := range spans {
			if s.Parent == parent {
				line(s, depth)
				show(s.ID, depth+1)
			}
		}
	}
	for _, s := range spans {
		if !known[s.Parent] {
			line(s, 0)
			show(s.ID, 1)
		}
	}
	return b.String()
}

// Orphans are the spans whose parent did not come, roots and those below the
// caller's span excepted.
func Orphans(spans []Span, caller string) []Span {
	known := map[string]bool{"": true, caller: true}
	for _, s := range spans {
		known[s.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(spans), func(s Span) bool { return known[s.Parent] })
}
