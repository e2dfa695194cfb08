package control_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

var caller = json.RawMessage(`{"traceparent":"00-` + callerTrace + `-` + callerSpan + `-01","baggage":"who=me"}`)

// tracing keeps the spans of planes in memory.
func tracing() (*tracetest.InMemoryExporter, func(*control.Options)) {
	e := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e), sdktrace.WithIDGenerator(obs.IDs{}))
	t := obs.NewTracer(provider)
	return e, func(o *control.Options) { o.Tracer = t }
}

// find returns the spans whose name begins so.
func find(e *tracetest.InMemoryExporter, name string) []tracetest.SpanStub {
	var out []tracetest.SpanStub
	for _, s := range e.GetSpans() {
		if strings.HasPrefix(s.Name, name) {
			out = append(out, s)
		}
	}
	return out
}

// one returns the only span whose name begins so.
func one(t *testing.T, e *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	found := find(e, name)
	if len(found) != 1 {
		t.Fatalf("%d spans %q, want 1", len(found), name)
	}
	return found[0]
}

// said is an attribute of a span.
func said(s tracetest.SpanStub, name string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == name {
			return a.Value.String()
		}
	}
	return ""
}

// below fails unless s hangs below parent in the caller's trace.
func below(t *testing.T, s, parent tracetest.SpanStub) {
	t.Helper()
	if s.SpanContext.TraceID().String() != callerTrace {
		t.Errorf("%s is in trace %s", s.Name, s.SpanContext.TraceID())
	}
	if s.Parent.SpanID() != parent.SpanContext.SpanID() {
		t.Errorf("%s hangs below %s, not below %s (%s)", s.Name, s.Parent.SpanID(), parent.Name, parent.SpanContext.SpanID())
	}
}

func TestAnExecutionIsOneTraceBelowItsCaller(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		spans, traced := tracing()
		p, q := r.plane(nil, traced), r.plane(nil, traced) // two replicas take turns
		r.register(p, parent)
		r.register(p, child)
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane, q.Plane}, says: asks(`{"path":"test/child","return_step":"work","wait":true}`)}, 1)
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/parent", Trace: caller})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, a.ExecutionID)
		synctest.Wait()

		request := one(t, spans, "playbook.execute")
		if request.Parent.SpanID().String() != callerSpan || request.SpanContext.TraceID().String() != callerTrace {
			t.Errorf("the request hangs below %s of %s", request.Parent.SpanID(), request.Parent.TraceID())
		}
		execution := one(t, spans, "execution test/parent")
		below(t, execution, request)
		if said(execution, "status") != "COMPLETED" || said(execution, "path") != "test/parent" || said(execution, "version") != "1" || said(execution, "execution_id") != a.ExecutionID.String() {
			t.Errorf("the execution says %v", execution.Attributes)
		}
		asking := one(t, spans, "command start")
		below(t, asking, execution)
		inner := one(t, spans, "execution test/child")
		below(t, inner, asking)
		below(t, one(t, spans, "command work"), inner)
		for _, s := range find(spans, "command end") {
			if s.Parent.SpanID() != execution.SpanContext.SpanID() && s.Parent.SpanID() != inner.SpanContext.SpanID() {
				t.Errorf("%s hangs below %s", s.Name, s.Parent.SpanID())
			}
			if said(s, "worker") != "w" || said(s, "attempt") != "1" || said(s, "tool_kind") != "noop" || said(s, "pool") != "shared" {
				t.Errorf("a command says %v", s.Attributes)
			}
		}
		if got := len(find(spans, "event.ingest")); got != 4 { // a command is parked, three are completed
			t.Errorf("%d spans of reports, want 4", got)
		}
		if len(find(spans, "command.claim")) == 0 {
			t.Error("no claim has a span")
		}
		known := map[string]bool{callerSpan: true}
		for _, s := range spans.GetSpans() {
			known[s.SpanContext.SpanID().String()] = true
		}
		for _, s := range spans.GetSpans() {
			if !known[s.Parent.SpanID().String()] {
				t.Errorf("%s is an orphan below %s", s.Name, s.Parent.SpanID())
			}
		}
		start, err := p.Events(t.Context(), a.ExecutionID, 0, 1)
		if err != nil || !strings.Contains(string(start[0].Meta), `"baggage":"who=me"`) {
			t.Errorf("the start carries %s (%v)", start[0].Meta, err)
		}
	})
}

func TestALostAttemptHasASpanOfItsOwn(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		spans, traced := tracing()
		p := r.plane(nil, traced)
		r.register(p, single)
		var dead atomic.Bool
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, drop: func(*event.Command) bool { return !dead.Swap(true) }}, 2)
		id := r.start(p, "test/single")
		r.await(p, id)
		synctest.Wait()
		command := one(t, spans, "command start")
		if said(command, "attempt") != "2" || said(command, "status") != "COMPLETED" {
			t.Errorf("the command says %v", command.Attributes)
		}
		lost := one(t, spans, "command.attempt")
		if lost.Parent.SpanID() != command.SpanContext.SpanID() || said(lost, "attempt") != "1" || lost.Status.Description == "" {
			t.Errorf("the lost attempt hangs below %s and says %v %v", lost.Parent.SpanID(), lost.Attributes, lost.Status)
		}
		if took := lost.EndTime.Sub(lost.StartTime); took < time.Minute {
			t.Errorf("it lasted %s, less than its lease", took)
		}
	})
}

func TestFailuresAreRecordedWithoutSecrets(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		spans, traced := tracing()
		p := r.plane(nil, traced)
		r.register(p, single)
		says := func(*event.Command) *event.Incoming {
			return &event.Incoming{Type: event.CommandFailed, Payload: json.RawMessage(`{"status":"error","error":{"kind":"http","message":"refused: Authorization: Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345"}}`)}
		}
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: says}, 1)
		r.await(p, r.start(p, "test/single"))
		synctest.Wait()
		for _, name := range []string{"command start", "execution test/single"} {
			s := one(t, spans, name)
			if !strings.Contains(s.Status.Description, "refused") || strings.Contains(s.Status.Description, "ghp_") {
				t.Errorf("%s failed with %q", name, s.Status.Description)
			}
		}
	})
}

// An execution that is not to be kept leaves nothing, all the way down.
func TestWhatTheCallerDoesNotSampleIsNotRecorded(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		spans, traced := tracing()
		p := r.plane(nil, traced)
		r.register(p, linear)
		r.hire("w", 1, 0, p)
		unsampled := json.RawMessage(strings.Replace(string(caller), "-01", "-00", 1))
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/linear", Trace: unsampled})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, a.ExecutionID)
		synctest.Wait()
		if got := spans.GetSpans(); len(got) > 0 {
			t.Errorf("%d spans were made, the first %s", len(got), got[0].Name)
		}
	})
}

func TestRerunsAndChildrenByNameJoinTheTrace(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		spans, traced := tracing()
		p := r.plane(nil, traced)
		r.register(p, single)
		r.hire("w", 1, 0, p)
		first, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", Trace: caller})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, first.ExecutionID)
		second, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", ParentExecutionID: first.ExecutionID})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, second.ExecutionID)
		third, err := p.Rerun(t.Context(), first.ExecutionID, control.RerunRequest{})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, third.ExecutionID)
		synctest.Wait()
		byID := map[string]tracetest.SpanStub{}
		for _, s := range find(spans, "execution ") {
			byID[said(s, "execution_id")] = s
		}
		requests := find(spans, "playbook.execute")
		if len(requests) != 3 || len(byID) != 3 {
			t.Fatalf("%d requests and %d executions, want 3 of each", len(requests), len(byID))
		}
		below(t, requests[1], byID[first.ExecutionID.String()])
		below(t, byID[second.ExecutionID.String()], requests[1])
		below(t, byID[third.ExecutionID.String()], requests[2])
	})
}
