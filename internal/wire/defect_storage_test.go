package wire

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

// Ids of two layouts stood in one table.
func TestDefect_60_IdsHaveTwoLayouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.register(twoSteps).id("catalog_id")
	id := w.again("demo/two", "")
	claim := w.claim(w.command(id, "start"), "w").ok()
	w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","worker_id":"w","payload":{"command_id":%q}}`, id, claim.text("meta.command_id"))).ok()
	ids := []event.ID{catalog, id, w.post("/api/worker/pool/register", `{"name":"w"}`).ok().id("runtime_id")}
	for _, r := range w.log(id) {
		ids = append(ids, r.EventID)
	}
	epoch := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, id := range ids {
		at, machine := epoch.Add(time.Duration(id>>22)*time.Millisecond), id>>12&1023
		if age := time.Since(at); age < -time.Minute || age > time.Hour || machine != 1 {
			t.Errorf("%d was made at %v by machine %d", id, at, machine)
		}
	}
}

// What had served its time stayed for ever.
func TestDefect_62_NothingIsEverRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: func(o *control.Options) { o.Outbox.On = true }})
	w.register(oneStep)
	id := w.again("demo/one", `,"dedup":{"key":"k","window_secs":60}`)
	w.worker("w").finish(id, `1`)
	w.post("/api/worker/pool/register", `{"name":"w"}`).ok()
	rows, _ := w.internal("POST", "/api/internal/outbox/claim", "").ok().at("rows").([]any)
	var boxes []string
	for _, r := range rows {
		boxes = append(boxes, fmt.Sprint(r.(map[string]any)["outbox_id"]))
	}
	w.internal("POST", "/api/internal/outbox/mark-published", `{"outbox_ids":[`+strings.Join(boxes, ",")+`]}`).ok()
	const body = `{"command_retention_days":7,"runtime_stale_minutes":60}`
	w.internal("POST", "/api/internal/cleanup/purge", body).ok().shaped(`{commands_purged: 0, runtime_purged: 0, events_purged: 0, outbox_purged: 0, claims_purged: 0}`)
	w.pass(8 * 24 * time.Hour)
	w.internal("POST", "/api/internal/cleanup/purge", body).ok().
		equal("commands_purged", "1").equal("runtime_purged", "1").equal("outbox_purged", fmt.Sprint(len(boxes))).equal("claims_purged", "1")
	w.wantStatus(id, "COMPLETED") // what happened stays on record, until that is asked for, too
	const events = `{"event_retention_days":9}`
	w.internal("POST", "/api/internal/cleanup/purge", events).ok().equal("executions_purged", "0").equal("events_purged", "0")
	w.wantStatus(id, "COMPLETED")
	w.pass(2 * 24 * time.Hour)
	w.internal("POST", "/api/internal/cleanup/purge", events).ok().shaped(`{executions_purged: 1, events_purged: int, event_partitions_dropped: int}`)
	w.get("/api/executions/%d", id).refused(404, "")
}

// A moment meant something else where the database was set to another zone.
func TestDefect_64_TheZoneOfTheDatabaseMovesTime(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), fmt.Sprintf(`ALTER DATABASE %s SET timezone TO 'Pacific/Kiritimati'`, pgx.Identifier{strings.TrimPrefix(u.Path, "/")}.Sanitize()))
	_ = conn.Close(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, setting{store: func(t *testing.T) store.Store {
		s, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
	id := w.start(oneStep)
	at := func(d time.Duration, zone *time.Location) string {
		return url.QueryEscape(time.Now().Add(d).In(zone).Format(time.RFC3339))
	}
	n := fmt.Sprint(len(w.log(id)))
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 9*3600), time.FixedZone("west", -7*3600)} {
		w.get("/api/replay/state?execution_id=%d&as_of_time=%s", id, at(time.Minute, zone)).ok().equal("event_count", n)
		w.get("/api/replay/state?execution_id=%d&as_of_time=%s", id, at(-time.Minute, zone)).ok().equal("event_count", "0")
	}
	started, err := time.Parse(time.RFC3339Nano, w.get("/api/executions/%d", id).ok().text("started_at"))
	if err != nil || time.Since(started).Abs() > time.Hour {
		t.Errorf("it started at %v: %v", started, err)
	}
	w.get("/api/executions?started_after=%s", at(-time.Minute, time.UTC)).ok().equal("0.execution_id", id.String())
	w.get("/api/executions?started_after=%s", at(time.Minute, time.UTC)).ok().shaped(`[]`)
}

// Passwords stood in errors and logs.
func TestDefect_67_PasswordsAreShown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	const secret = "hunter2secret"
	var errs []error
	for _, dsn := range []string{"postgres://noetl:" + secret + "@127.0.0.1:1/x?connect_timeout=2", "postgres://noetl:" + secret + "@127.0.0.1:port/x", "host=127.0.0.1 port=1 password=" + secret + " connect_timeout=2", "host=127.0.0.1 port=x password=" + secret} {
		_, err := postgres.Open(ctx, postgres.Options{DSN: dsn})
		errs = append(errs, err)
	}
	for _, address := range []string{"nats://noetl:" + secret + "@127.0.0.1:1", "nats://noetl:" + secret + "@127.0.0.1:port"} {
		_, err := nats.Connect(ctx, nats.Options{URL: address, Logger: logger})
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
			t.Errorf("the error shows it, or there is none: %v", err)
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log shows it: %s", log.String())
	}
}

// Every name a client made up became a series for ever.
func TestDefect_68_ClientsMakeUpSeries(t *testing.T) {
	t.Parallel()
	metrics := control.NewMetrics("1.2.3")
	w := newWorld(t, setting{
		plane: func(o *control.Options) { o.Metrics = metrics },
		api:   func(o *api.Options) { o.Metrics = metrics },
	})
	id := w.start(oneStep)
	series := func() int { return strings.Count(w.get("/metrics").ok().body, "noetl_events_ingested_total{") }
	before := series()
	for i := range 20 {
		w.note(id, fmt.Sprintf(`"step":"s","event_type":"made.up.%d"`, i))
	}
	body := w.get("/metrics").ok().body
	if after := series(); after != before || strings.Contains(body, "made.up") || !strings.Contains(body, `event_type="other"`) {
		t.Errorf("%d series became %d", before, after)
	}
	if !strings.Contains(body, `noetl_events_ingested_total{event_type="other",status="ok"} 20`) {
		t.Errorf("the made up ones are not counted together")
	}
}
