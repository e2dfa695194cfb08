package api_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/testkit"
)

// brokenBus refuses notifications while it is told to.
type brokenBus struct {
	bus.Bus
	broken  atomic.Bool
	refused chan struct{}
}

func (b *brokenBus) Publish(ctx context.Context, notes ...event.Notification) error {
	if b.broken.Load() {
		select {
		case b.refused <- struct{}{}:
		default:
		}
		return errors.New("down")
	}
	return b.Bus.Publish(ctx, notes...)
}

// families splits a scrape by metric.
func families(text string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, "# HELP ") {
		if name, rest, ok := strings.Cut(part, " "); ok {
			out[name] = rest
		}
	}
	return out
}

func metrics(t *testing.T, l *living) string {
	t.Helper()
	l.pass(10 * time.Second) // figures of the store are kept for a while
	a := ask(t, l.Server, "GET", "/metrics", "")
	if a.status != 200 || a.header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %s: %s", a.status, a.header.Get("Content-Type"), a.body)
	}
	return a.body
}

var series = regexp.MustCompile(`(?m)^[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (\d+(\.\d+)?(e[-+]\d+)?)$`)

// writtenBeside are the metrics that do not move here: what keeps watch of the
// process and its surroundings, brokers, object stores, providers of secrets and
// sweeps write them, and are tested themselves.
var writtenBeside = regexp.MustCompile(`^(noetl_(server_build_info|outbox_publish.*|.*_sweep_total|retention_.*|(database|disk)_.*|broker_up|lease_held|nats_consumer_lag` +
	`|result_tier_gc_.*|object_store_ops_total|event_ingest_publish_skipped_total|keychain_renew_total|secret_(audit_writes|resolve|refresh|dynamic|cache|residency).*` +
	`|credentials_sealed_total|replay_parity_mismatch_total)|go_.*|process_.*)$`)

func TestEveryMetricIsWrittenBySomething(t *testing.T) {
	t.Parallel()
	b := &brokenBus{Bus: membus.New(membus.Options{}), refused: make(chan struct{}, 1)}
	l := newLiving(t, b, func(o *control.Options, a *api.Options) {
		o.Outbox = control.OutboxOptions{On: true, MaxAttempts: 1}
		a.Secrets = newKeeper(t, obs.SecretMeter{Metrics: a.Metrics})
	})
	before := metrics(t, l)
	for line := range strings.Lines(before) {
		if !strings.HasPrefix(line, "#") && !series.MatchString(strings.TrimSpace(line)) {
			t.Errorf("not a line of the text format: %s", line)
		}
	}
	for _, want := range []string{
		`noetl_events_ingested_total{event_type="call.done",status="error"} 0`,
		`noetl_events_ingested_total{event_type="other",status="ok"} 0`,
		`noetl_execute_outcomes_total{entry="batch",outcome="duplicate"} 0`,
		`noetl_write_requests_total{endpoint="POST /api/execute",status="ok"} 0`,
		`noetl_server_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(before, want+"\n") {
			t.Errorf("not there from the start: %s", want)
		}
	}

	run := exercise(t, l, b)
	exerciseSecrets(t, l)
	exerciseRepair(t, l, run)
	after := metrics(t, l)
	was, is := families(before), families(after)
	for name := range was {
		if was[name] == is[name] && !writtenBeside.MatchString(name) {
			t.Errorf("nothing writes %s", name)
		}
	}
	for _, want := range []string{
		`noetl_events_ingested_total{event_type="other",status="ok"} 1`,
		`noetl_execute_outcomes_total{entry="single",outcome="error"} 1`,
		`noetl_execute_outcomes_total{entry="single",outcome="new"} 3`,
		`noetl_execute_outcomes_total{entry="batch",outcome="new"} 2`,
		`noetl_execute_batch_size_sum 2`,
		`noetl_container_callback_stale_total{state="failed_oom"} 1`,
		`noetl_result_store_resolve_total{status="refused"} 1`,
		`noetl_workers 1`,
		`noetl_cleanup_rows_purged_total{table="runtime"} 1`,
	} {
		if !strings.Contains(after, want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(after, "invented") {
		t.Error("an event type a client made up has become a series")
	}
}

// exercise does at least once what each metric counts.
// exerciseRepair brings events from elsewhere, looks back and takes away.
func exerciseRepair(t *testing.T, l *living, run string) {
	t.Helper()
	const note = `{"events":[{"event_id":700000000000000006,"execution_id":%s,"event_type":"note.foreign","node_name":"x"}]}`
	l.internal(t, "/api/internal/events/project", fmt.Sprintf(note, run))
	l.internal(t, "/api/internal/events/project", fmt.Sprintf(note, run)) // is there already
	l.internal(t, "/api/internal/projection/advance", `{"execution_ids":[`+run+`]}`)
	l.internal(t, "/api/internal/wallet/rotate-kek", `{}`)
	ask(t, l.Server, "GET", "/api/replay/state?execution_id="+run, "").ok(t)
	l.internal(t, "/api/catalog/delete", `{"path":"demo/two","version":1}`)
}

func exercise(t *testing.T, l *living, b *brokenBus) (run string) {
	t.Helper()
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"gone"}`)
	l.pass(2 * time.Hour)
	l.internal(t, "/api/internal/cleanup/purge", `{"runtime_stale_minutes":60}`)
	l.register(t, twoSteps)
	ask(t, l.Server, "POST", "/api/execute", `{"path":"nowhere"}`).wantError(t, 404, "nowhere")
	run = l.execute(t, "demo/two")
	command := l.command(t, run)
	b.broken.Store(true)
	l.execute(t, "demo/two")
	<-b.refused
	b.broken.Store(false)
	for _, res := range l.plane.ExecuteBatch(t.Context(), []control.ExecuteRequest{{Path: "demo/two"}, {Path: "demo/two"}}) {
		if res.Err != nil {
			t.Error(res.Err)
		}
	}
	report := func(body string) {
		t.Helper()
		if a := ask(t, l.Server, "POST", "/api/events", body); a.status != 200 {
			t.Errorf("report: %s", a.body)
		}
	}
	report(`{"execution_id":"` + run + `","step":"start","event_type":"invented.by.a.client"}`)
	claimed := ask(t, l.Server, "POST", fmt.Sprintf("/api/commands/%d/claim", command), `{"worker_id":"w1"}`)
	meta, _ := claimed.field(t, "meta").(map[string]any)
	report(fmt.Sprintf(`{"execution_id":%s,"step":"start","event_type":"command.completed","status":"success","worker_id":"w1","eager":1,
		"payload":{"command_id":"%v","result":{"status":"success","context":{}}},"meta":{"command_id":"%[2]v","attempt":1}}`, run, meta["command_id"]))

	stored := ask(t, l.Server, "PUT", "/api/result/"+run, `{"name":"start","data":{"x":1}}`)
	ask(t, l.Server, "GET", fmt.Sprintf("/api/result/resolve?ref=%v", stored.field(t, "ref")), "")
	ask(t, l.Server, "GET", "/api/result/resolve?ref=noetl://execution/1/result/start/2", "").wantError(t, 404, "")
	l.internal(t, "/api/internal/container-callback/"+run+"/start", `{"state":"failed_oom","job_name":"j"}`)
	ask(t, l.Server, "POST", "/api/worker/pool/register", `{"name":"w1"}`)

	// A replica appends behind the plane's back.
	loser := l.execute(t, "demo/two")
	other, err := control.New(control.Options{Store: l.store, Bus: b, IDs: snowflake.New(2, time.Now).Next, Clock: l.now})
	if err != nil {
		t.Fatal(err)
	}
	lost, err := event.ParseID(loser)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Report(t.Context(), event.Report{ExecutionID: lost, Events: []event.Incoming{{Step: "start", Type: "note"}}}); err != nil {
		t.Fatal(err)
	}
	ask(t, l.Server, "POST", "/api/executions/"+loser+"/cancel", `{}`)

	// Of the events of the outbox one is given up, one is being published, and one
	// is taken over from a publisher that fell silent.
	for _, c := range []store.OutboxClaim{
		{Token: "silent", Now: l.now().Add(-time.Hour), MaxAttempts: 1},
		{Token: "busy", Now: l.now(), MaxAttempts: 1},
		{Token: "silent too", Now: l.now().Add(-time.Hour)},
		{Token: "heir", Now: l.now()},
	} {
		c.Lease, c.Limit = time.Minute, 1
		if rows, err := l.store.ClaimOutbox(t.Context(), c); err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v: %v", c.Token, rows, err)
		}
	}
	l.pass(time.Second) // the oldest that waits is older than nothing
	return run
}

// stream takes every event.
type stream struct{}

func (stream) OpenEvents(context.Context, bus.EventOptions) error        { return nil }
func (stream) PublishEvents(context.Context, []bus.EventMessage) []error { return nil }
func (stream) MaxEvent() int                                             { return 1 << 20 }
func (stream) Connected() bool                                           { return true }

func TestPublishedEventsAreCounted(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, func(o *control.Options, _ *api.Options) {
		o.Outbox = control.OutboxOptions{On: true, Stream: stream{}}
	})
	l.register(t, twoSteps)
	l.execute(t, "demo/two")
	testkit.Eventually(t, func() bool {
		return !strings.Contains(metrics(t, l), "noetl_outbox_published_total 0\n")
	}, 20*time.Second)
}

func TestMetricsCanBeHidden(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, func(_ *control.Options, o *api.Options) { o.DisableMetrics = true })
	ask(t, l.Server, "GET", "/metrics", "").wantError(t, 404, "switched off")
}

func TestRefusedRequestsAreCountedByTheirRoute(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	ask(t, l.Server, "POST", "/api/vars/7", `{`)
	ask(t, l.Server, "POST", "/api/vars/8", `{"a":1}`)
	ask(t, l.Server, "POST", "/api/made/up", `{}`)
	got := metrics(t, l)
	if want := `noetl_write_requests_total{endpoint="POST /api/vars/{execution_id}",status="refused"} 2`; !strings.Contains(got, want+"\n") {
		t.Errorf("no %s in\n%s", want, got)
	}
	if strings.Contains(got, "made/up") {
		t.Error("a path a client made up has become a series")
	}
}
