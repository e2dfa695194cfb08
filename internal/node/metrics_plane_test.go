package node_test

import (
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
)

// seldom has a plane look around rarely, so that days pass quickly.
func seldom(_ *bed, o *control.Options) {
	o.Sweep, o.Republish, o.Recover, o.Lease = 10*time.Minute, 10*time.Minute, 10*time.Minute, time.Hour
	o.Stall = control.StallOptions{Limit: 1, Interval: 20 * time.Minute}
}

// silentWorkers hold commands and are not heard of again.
func silentWorkers(b *bed) {
	id := b.begin(control.ExecuteRequest{})
	for range 2 { // its attempts
		b.take(id)
		time.Sleep(2 * time.Hour)
	}
	for range 300 {
		b.take(b.begin(control.ExecuteRequest{}))
	}
	time.Sleep(2 * time.Hour)
	b.without(func() { time.Sleep(time.Hour) }, "ExpiredCommands")
}

// waitingForDays has executions that wait for good reasons, and others.
func waitingForDays(b *bed) {
	held := b.take(b.begin(control.ExecuteRequest{}))
	b.begin(control.ExecuteRequest{}) // its pool is busy
	for range 3 {
		b.begin(control.ExecuteRequest{Pool: "lonely"})
	}
	for _, park := range []string{`{"callback":"approval"}`, `{"delay_seconds":864000}`, `{"child":{"path":"bed/one","wait":true}}`} {
		cmd := b.take(b.begin(control.ExecuteRequest{}))
		if err := b.tell(cmd, event.CommandParked, `,"park":`+park); err != nil {
			b.t.Fatal(err)
		}
	}
	parent := b.begin(control.ExecuteRequest{Pool: "lonely"})
	b.begin(control.ExecuteRequest{Pool: "lonely", ParentExecutionID: parent})
	for i := range 2 * 30 {
		beats := []event.Heartbeat{{ExecutionID: held.ExecutionID, EventID: held.EventID, WorkerID: "w", Attempt: 1}}
		if _, err := b.Heartbeat(b.t.Context(), beats); err != nil {
			b.t.Fatal(err)
		}
		if i%20 == 0 { // somebody still writes about the parent
			note := event.Event{ExecutionID: parent, EventID: b.ids.Next(), Type: "frame.note", NodeName: "start", CreatedAt: time.Now()}
			if _, err := b.Project(b.t.Context(), []event.Event{note, note}); err != nil {
				b.t.Fatal(err)
			}
		}
		time.Sleep(30 * time.Minute)
	}
	b.without(func() { time.Sleep(time.Hour) }, "OpenExecutions")
}

// aBusThatRefuses takes no notifications for a while.
func aBusThatRefuses(b *bed) {
	b.bus.commands.Store(true)
	b.begin(control.ExecuteRequest{})
	time.Sleep(time.Minute)
}

// aBadDayForTheRelay has the broker and the store refuse.
func aBadDayForTheRelay(b *bed) {
	for _, why := range []error{event.Errorf(event.Unavailable, "away"), event.Errorf(event.Limit, "too large")} {
		b.bus.events.Store(&why)
		b.begin(control.ExecuteRequest{})
		time.Sleep(10 * time.Second)
		b.look()
	}
	b.bus.events.Store(nil)
	b.without(func() {
		b.begin(control.ExecuteRequest{})
		time.Sleep(time.Minute)
	}, "MarkPublished")
	time.Sleep(time.Hour)
}

// publishersElsewhere claim rows, fail and fall silent.
func publishersElsewhere(b *bed) {
	b.begin(control.ExecuteRequest{})
	for range 4 { // claims, until the rows are given up
		batch, err := b.ClaimOutbox(b.t.Context(), 100)
		if err != nil {
			b.t.Fatal(err)
		}
		b.look()
		time.Sleep(2 * time.Minute)
		b.look()
		if len(batch.Rows) == 0 {
			break
		}
	}
	b.begin(control.ExecuteRequest{})
	batch, err := b.ClaimOutbox(b.t.Context(), 1)
	if err != nil || len(batch.Rows) == 0 {
		b.t.Fatalf("claimed %+v, %v", batch, err)
	}
	_, _, err = b.MarkFailed(b.t.Context(), control.OutboxFailure{OutboxID: batch.Rows[0].OutboxID, Token: batch.Token, Error: "x", MaxDelay: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

// twoReplicas decide on the same executions.
func twoReplicas(b *bed) {
	other := b.plane(control.Options{Store: b.store, Bus: b.bus, IDs: b.ids.Next, ServerURL: "http://other"})
	for range 20 {
		id := b.begin(control.ExecuteRequest{})
		cmd := b.take(id)
		if _, err := other.Cancel(b.t.Context(), id, control.CancelRequest{Reason: "x"}); err != nil {
			b.t.Fatal(err)
		}
		_ = b.tell(cmd, event.CommandCompleted, "")
	}
}

// aStoreThatIsAway fails what is asked for.
func aStoreThatIsAway(b *bed) {
	id := b.begin(control.ExecuteRequest{})
	cmd := b.take(id)
	done := b.finish(control.ExecuteRequest{})
	forgetful := b.plane(control.Options{Store: b.store, Bus: b.bus, IDs: b.ids.Next, ServerURL: "http://other", Metrics: b.metrics})
	b.without(func() {
		if err := b.tell(cmd, event.CommandCompleted, ""); err == nil {
			b.t.Error("a report was taken by a store that is away")
		}
		if _, err := b.RemoveEntries(b.t.Context(), "bed/one", 0); err == nil {
			b.t.Error("an entry was removed from a store that is away")
		}
		_, _ = forgetful.Cancel(b.t.Context(), id, control.CancelRequest{})
		_, _, _ = b.OpenBlob(b.t.Context(), "noetl://execution/1/result/x/1", 0, 0)
		if got := b.ask(http.MethodPost, "/api/execute", `{"path":"bed/one"}`); got < 500 {
			b.t.Errorf("a request to a store that is away is answered with %d", got)
		}
	}, "Append", "RemoveEntries", "Events", "Result", "EntryByPath")
	_, _ = forgetful.Cancel(b.t.Context(), 404, control.CancelRequest{})
	_, _ = forgetful.Cancel(b.t.Context(), id, control.CancelRequest{})
	if _, err := b.Report(b.t.Context(), event.Report{ExecutionID: 404, Events: []event.Incoming{{EventID: 1, Type: event.CommandCompleted, Step: "start"}}}); err == nil {
		b.t.Error("a report about nothing was taken")
	}
	b.store.lies = true
	if list, err := b.ReplayParity(b.t.Context(), done); err != nil || len(list) < 2 {
		b.t.Errorf("contradictions %q, %v", list, err)
	}
	b.store.lies = false
}

// values that were put aside, refused, lost and collected.
func collections(b *bed, pass func(time.Duration)) {
	put := func(id event.ID, o event.ResultOptions, text string) (event.StoredResult, error) {
		o.Name = "n"
		return b.PutBlob(b.t.Context(), id, o, strings.NewReader(text))
	}
	id := b.finish(control.ExecuteRequest{})
	if _, err := put(404, event.ResultOptions{}, "{}"); err == nil {
		b.t.Error("a value of no execution was put aside")
	}
	if _, _, err := b.OpenBlob(b.t.Context(), "nonsense", 0, 0); err == nil {
		b.t.Error("a reference that is none was resolved")
	}
	b.tier.stuck.Store(true)
	if _, err := put(id, event.ResultOptions{Store: "file"}, "{}"); err == nil {
		b.t.Error("a value was put on a shelf that is full")
	}
	b.tier.stuck.Store(false)
	parent := b.begin(control.ExecuteRequest{})
	child := b.finish(control.ExecuteRequest{ParentExecutionID: parent})
	for _, owner := range []event.ID{id, child} {
		at, err := put(owner, event.ResultOptions{Store: "file"}, "{}")
		if err != nil {
			b.t.Fatal(err)
		}
		body, _, err := b.OpenBlob(b.t.Context(), at.Ref, 0, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		_ = body.Close()
	}
	if _, err := put(id, event.ResultOptions{Store: "file", TTL: "1h"}, "{}"); err != nil {
		b.t.Fatal(err)
	}
	b.without(func() { // neither finished nor taken back
		_, _ = put(id, event.ResultOptions{Store: "file"}, "{}")
	}, "FinishResult", "RetireResult", "ForgetResult")
	for _, stuck := range []bool{true, false} {
		b.tier.stuck.Store(stuck)
		pass(72 * time.Hour)
		_, _ = b.CollectResults(b.t.Context(), false)
	}
	b.without(func() { _, _ = b.CollectResults(b.t.Context(), false) }, "ExpiredResults")
}

// retention removes what is over.
func retention(b *bed, pass func(time.Duration)) {
	for range 4 {
		b.belongings(b.finish(control.ExecuteRequest{}))
	}
	pass(48 * time.Hour)
	policy, err := control.ParseRetention("1d,keep=1")
	if err != nil {
		b.t.Fatal(err)
	}
	b.without(func() {
		if _, err := b.Retain(b.t.Context(), control.RetentionRequest{Policy: policy}); err == nil {
			b.t.Error("executions were removed from a store that is away")
		}
	}, "RemoveExecutions")
	r, err := b.Retain(b.t.Context(), control.RetentionRequest{Policy: policy, Limit: 1})
	if err != nil || r.Removed != 1 || !r.Truncated {
		b.t.Fatalf("report %+v, %v", r, err)
	}
	b.look() // how far behind it is
	if r, err = b.Retain(b.t.Context(), control.RetentionRequest{Policy: policy}); err != nil || r.Removed != 2 {
		b.t.Fatalf("report %+v, %v", r, err)
	}
	b.finish(control.ExecuteRequest{})
	pass(100 * 24 * time.Hour)
	b.store.part = true
	if policy, err = control.ParseRetention("1d"); err != nil {
		b.t.Fatal(err)
	}
	if r, err = b.Retain(b.t.Context(), control.RetentionRequest{Policy: policy}); err != nil || r.Partitions != 1 {
		b.t.Fatalf("report %+v, %v", r, err)
	}
}

// belongings are what goes with an execution.
func (b *bed) belongings(id event.ID) {
	b.t.Helper()
	now := time.Now()
	_, err := b.PutBlob(b.t.Context(), id, event.ResultOptions{Name: "n", Store: "db"}, strings.NewReader(`"`+strings.Repeat("x", 300_000)+`"`))
	for _, e := range []error{
		err,
		b.store.PutSnapshot(b.t.Context(), store.Snapshot{ExecutionID: id, Type: "t", ID: "a", Seq: 1, State: []byte("{}"), UpdatedAt: now}),
		b.store.SetVariables(b.t.Context(), id, []store.Variable{{Name: "v", Value: []byte("1")}}),
		b.store.PutKeychain(b.t.Context(), store.KeychainEntry{
			CacheKey: id.String(), Name: "k", CacheType: "secret", Scope: "local", ExecutionID: id, Sealed: "x", ExpiresAt: now.Add(10000 * time.Hour), CreatedAt: now, AccessedAt: now,
		}),
	} {
		if e != nil {
			b.t.Fatal(e)
		}
	}
}

// yearsLater even what reminds of executions goes.
func yearsLater(b *bed) {
	b.finish(control.ExecuteRequest{Dedup: &control.Dedup{Key: "once", Window: time.Hour}})
	if _, err := b.Enlist(b.t.Context(), event.Registration{Name: "w"}); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(time.Minute) // all is published
	for range 2 {
		b.late.Add(int64(6 * 365 * 24 * time.Hour))
		time.Sleep(time.Hour)
	}
	if _, err := b.Purge(b.t.Context(), control.PurgeRequest{RuntimeMinutes: 1}); err != nil {
		b.t.Fatal(err)
	}
}

// inYears moves the clock of a bed, and keeps executions for a day.
func inYears(b *bed, o *control.Options) {
	policy, err := control.ParseRetention("1d")
	if err != nil {
		b.t.Fatal(err)
	}
	o.Retention.Policy = policy
	o.Clock = func() time.Time { return time.Now().Add(27*365*24*time.Hour + time.Duration(b.late.Load())) }
	b.ids = snowflake.New(1, o.Clock)
	o.IDs = b.ids.Next
	o.Outbox = control.OutboxOptions{On: true, Stream: b.bus}
}

func init() {
	for name, s := range map[string]scenario{
		"workers that fall silent": {[]string{
			`noetl_orphan_sweep_total{outcome="candidate"}`, `noetl_orphan_sweep_total{outcome="requeued"}`, `noetl_orphan_sweep_total{outcome="terminated"}`,
			`noetl_orphan_sweep_total{outcome="capped"}`, `noetl_orphan_sweep_total{outcome="error"}`,
		}, onBed(silentWorkers, seldom, func(_ *bed, o *control.Options) { o.MaxAttempts = 2 })},
		"executions that wait for days": {[]string{
			`noetl_nonconvergence_sweep_total{outcome="capped"}`, `noetl_nonconvergence_sweep_total{outcome="terminated"}`, `noetl_nonconvergence_sweep_total{outcome="error"}`,
			`noetl_nonconvergence_sweep_total{outcome="skipped_parent_active"}`, "noetl_events_projected_total", "noetl_events_projected_duplicates_total",
		}, onBed(waitingForDays, seldom, func(_ *bed, o *control.Options) { o.Recover = 100 * time.Hour })},
		"a bus that refuses commands": {[]string{"noetl_command_publish_failed_total"}, onBed(aBusThatRefuses)},
		"a bad day for the relay": {[]string{
			`noetl_outbox_publish_failures_total{reason="broker"}`, `noetl_outbox_publish_failures_total{reason="too_large"}`, `noetl_outbox_publish_failures_total{reason="store"}`,
			"noetl_outbox_oldest_pending_age_seconds", "noetl_outbox_pending", "noetl_outbox_published_total",
		}, onBed(aBadDayForTheRelay, func(b *bed, o *control.Options) { o.Outbox = control.OutboxOptions{On: true, Stream: b.bus} })},
		"publishers elsewhere": {[]string{
			`noetl_outbox_publish_failures_total{reason="publisher"}`, "noetl_outbox_dead", "noetl_outbox_in_flight", "noetl_outbox_reclaimed_total",
		}, onBed(publishersElsewhere, func(_ *bed, o *control.Options) { o.Outbox = control.OutboxOptions{On: true, MaxAttempts: 2} })},
		"two replicas": {[]string{"noetl_conflicts_total"}, onBed(twoReplicas)},
		"a store that is away": {[]string{
			`noetl_events_ingested_total{status="error"}`, `noetl_catalog_delete_total{outcome="error"}`, `noetl_state_build_total{outcome="error"}`,
			`noetl_state_build_total{outcome="refused"}`, `noetl_state_build_total{mode="log"}`, `noetl_event_ingest_phase_seconds{phase="load"}`,
			`noetl_replay_parity_mismatch_total{surface="execution"}`, `noetl_replay_parity_mismatch_total{surface="command"}`,
			`noetl_write_requests_total{status="error"}`,
		}, onBed(aStoreThatIsAway)},
		"values that are collected": {[]string{
			`noetl_result_store_put_total{status="refused"}`, `noetl_result_store_put_total{status="error"}`, `noetl_result_store_resolve_total{status="refused"}`,
			`noetl_result_tier_gc_objects_total{action="failed"}`, `noetl_result_tier_gc_objects_total{action="kept"}`, `noetl_result_tier_gc_total{outcome="error"}`,
		}, atDesk(collections)},
		"executions whose time is over": {[]string{
			`noetl_retention_executions_total{outcome="removed"}`, `noetl_retention_executions_total{outcome="kept"}`, `noetl_retention_executions_total{outcome="failed"}`,
			"noetl_retention_lag_seconds", "noetl_retention_partitions_dropped_total",
		}, atDesk(retention)},
		"years later": {[]string{
			`noetl_cleanup_rows_purged_total{table="execution_removed"}`, `noetl_cleanup_rows_purged_total{table="outbox"}`, `noetl_cleanup_rows_purged_total{table="runtime"}`,
			`noetl_cleanup_rows_purged_total{table="subscription_dedup"}`,
		}, onBed(yearsLater, seldom, inYears)},
	} {
		scenarios[name] = s
	}
}
