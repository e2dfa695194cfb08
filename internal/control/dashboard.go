package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	summaryFor   = 3 * time.Second // how long a summary is shown again
	summaryRuns  = 10              // executions shown in it
	trendHours   = 24
	trendRuns    = 1000 // executions looked at for it
	gaugesFor    = 5 * time.Second
	gaugesWithin = 3 * time.Second
)

// Summary is the system at a glance.
type Summary struct {
	Executions map[string]int64 // by status
	Playbooks  int64            // paths
	Workers    int              // heard of lately
	Recent     []store.Execution
	Trend      []Hour
	Truncated  bool // there were more executions than the trend could look at
	At         time.Time
}

// Hour is what was started in an hour and how it stands now.
type Hour struct {
	Start     time.Time `json:"start"`
	Started   int       `json:"started"`
	Completed int       `json:"completed"`
	Failed    int       `json:"failed"`
}

// shortLived keeps a value for a short time, so that pages that ask every
// second cost the store one look. Concurrent callers wait for one of them.
type shortLived[T any] struct {
	turn  chan struct{} // holds one token, which guards the rest
	value T
	until time.Time
}

func newShortLived[T any]() *shortLived[T] {
	r := &shortLived[T]{turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	return r
}

func (r *shortLived[T]) get(ctx context.Context, now time.Time, keep time.Duration, load func() (T, error)) (v T, err error) {
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
		return v, event.Errorf(event.Unavailable, "the store takes too long: %w", ctx.Err())
	}
	if now.Before(r.until) {
		return r.value, nil
	}
	if v, err = load(); err == nil {
		r.value, r.until = v, now.Add(keep)
	}
	return v, err
}

// Summary looks at the system, at most once in a few seconds.
func (p *Plane) Summary(ctx context.Context) (Summary, error) {
	now := p.now()
	return p.summary.get(ctx, now, summaryFor, func() (Summary, error) { return p.sumUp(ctx, now) })
}

func (p *Plane) sumUp(ctx context.Context, now time.Time) (s Summary, err error) {
	s.At = now
	if s.Executions, err = p.store.CountExecutions(ctx); err != nil {
		return s, storeError("count executions", err)
	}
	if s.Playbooks, err = p.store.CountEntries(ctx, "playbook"); err != nil {
		return s, storeError("count playbooks", err)
	}
	if s.Workers, err = p.workers(ctx); err != nil {
		return s, err
	}
	if s.Recent, err = p.Executions(ctx, store.ExecutionFilter{Limit: summaryRuns}); err != nil {
		return s, err
	}
	first := now.Truncate(time.Hour).Add(-(trendHours - 1) * time.Hour)
	rows, err := p.Executions(ctx, store.ExecutionFilter{StartedFrom: first, Limit: trendRuns})
	if err != nil {
		return s, err
	}
	s.Trend, s.Truncated = trend(first, rows), len(rows) == trendRuns
	return s, nil
}

// SummaryOf sums up some executions, newest first, for those who may not see
// all of them. Truncated says that there may be more.
func SummaryOf(rows []store.Execution, playbooks int64, truncated bool, now time.Time) Summary {
	s := Summary{Executions: map[string]int64{}, Playbooks: playbooks, At: now, Truncated: truncated}
	for i := range rows {
		s.Executions[rows[i].Status]++
	}
	s.Recent = rows[:min(len(rows), summaryRuns)]
	s.Trend = trend(now.Truncate(time.Hour).Add(-(trendHours-1)*time.Hour), rows)
	return s
}

func (p *Plane) workers(ctx context.Context) (n int, err error) {
	list, err := p.Registered(ctx, RegisteredFilter{Kind: event.KindWorkerPool})
	for _, r := range list {
		if r.Status != offline {
			n++
		}
	}
	return n, err
}

func trend(first time.Time, rows []store.Execution) []Hour {
	hours := make([]Hour, trendHours)
	for i := range hours {
		hours[i].Start = first.Add(time.Duration(i) * time.Hour)
	}
	for _, x := range rows {
		at := int(x.StartedAt.Sub(first) / time.Hour)
		if x.StartedAt.Before(first) || at >= len(hours) {
			continue
		}
		hours[at].Started++
		switch x.Status {
		case event.StatusCompleted:
			hours[at].Completed++
		case event.StatusFailed:
			hours[at].Failed++
		}
	}
	return hours
}

// Gauges are figures for those who watch the system by machine.
type Gauges struct {
	Stats   Stats
	Running int64 // executions
	Workers int
	Outbox  store.OutboxCounts
	Pending map[string]int64     // commands that wait, by pool
	Pools   map[string]PoolGauge // of workers heard of lately
	Lags    []bus.Lag            // of the broker's consumers
	At      time.Time
}

// PoolGauge is what serves a pool.
type PoolGauge struct{ Workers, Slots int }

const (
	pendingMost = 100_000 // commands that are counted
	lagMost     = 64
)

// Gauges looks at the store, at most once in a few seconds; Stats are those of now.
func (p *Plane) Gauges(ctx context.Context) (Gauges, error) {
	now := p.now()
	g, err := p.gauges.get(ctx, now, gaugesFor, func() (Gauges, error) { return p.gauge(ctx, now) })
	g.Stats = p.Stats()
	return g, err
}

func (p *Plane) gauge(ctx context.Context, now time.Time) (g Gauges, err error) {
	ctx, cancel := context.WithTimeout(ctx, gaugesWithin)
	defer cancel()
	g.At = now
	counts, err := p.store.CountExecutions(ctx)
	if err != nil {
		return g, storeError("count executions", err)
	}
	for status, n := range counts {
		if !event.IsFinal(status) {
			g.Running += n
		}
	}
	if g.Outbox, err = p.store.CountOutbox(ctx, now, p.o.Outbox.Lease); err != nil {
		return g, storeError("count the outbox", err)
	}
	if g.Pending, err = p.store.CountPending(ctx, pendingMost); err != nil {
		return g, storeError("count pending commands", err)
	}
	if g.Workers, g.Pools, err = p.serving(ctx); err != nil {
		return g, err
	}
	if broker, ok := p.bus.(bus.Lagging); ok {
		g.Lags, _ = broker.Lags(ctx, lagMost) // a broker that is away shows elsewhere
	}
	return g, nil
}

// serving counts the workers heard of lately, and the pools they serve.
func (p *Plane) serving(ctx context.Context) (n int, pools map[string]PoolGauge, err error) {
	list, err := p.Registered(ctx, RegisteredFilter{Kind: event.KindWorkerPool})
	pools = map[string]PoolGauge{}
	for _, r := range list {
		if r.Status == offline {
			continue
		}
		n++
		for _, name := range poolsServed(r.Labels) {
			g := pools[name]
			g.Workers++
			if r.Capacity != nil {
				g.Slots += *r.Capacity
			}
			pools[name] = g
		}
	}
	return n, pools, err
}

// poolsServed are the pools that a worker names in its labels; one that names
// none is taken for a worker of the shared pool.
func poolsServed(labels json.RawMessage) []string {
	var said struct {
		Pool  string   `json:"pool_name"`
		Pools []string `json:"pools"`
	}
	_ = json.Unmarshal(labels, &said) // what cannot be read says nothing
	switch {
	case len(said.Pools) > 0:
		return said.Pools
	case said.Pool != "":
		return []string{said.Pool}
	}
	return []string{poolOf("")}
}

// Ready tells whether the database answers and the broker is connected.
func (p *Plane) Ready(ctx context.Context) (database, broker bool) {
	ctx, cancel := context.WithTimeout(ctx, gaugesWithin)
	defer cancel()
	return p.store.Ping(ctx) == nil, p.bus.Connected()
}

// PoolState is the state of the connections to the database.
func (p *Plane) PoolState() store.PoolState { return p.store.PoolState() }

// Shards is the number of databases executions are spread over.
func (p *Plane) Shards() int { return p.store.Shards() }
