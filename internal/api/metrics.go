package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

// writes names the routes whose requests are counted: those that change something.
func writes(table []route) []string {
	var list []string
	for _, rt := range table {
		if rt.counted() {
			list = append(list, rt.endpoint())
		}
	}
	return list
}

func (rt route) counted() bool    { return rt.Method != "" && rt.Method != http.MethodGet }
func (rt route) endpoint() string { return rt.Method + " " + rt.Pattern }

// quiet tells that requests are not worth a line of the log: machines make them
// every few seconds.
func (rt route) quiet() bool {
	switch rt.Pattern {
	case "/health", "/api/health", "/metrics":
		return true
	}
	return strings.HasSuffix(rt.Pattern, "/heartbeat") || strings.HasPrefix(rt.Pattern, "/api/worker/pool/")
}

// executionIn is the execution that the path of a request names; "" when it
// names none.
func executionIn(r *http.Request) string {
	if id := r.PathValue("execution_id"); id != "" {
		return id
	}
	if strings.HasPrefix(r.URL.Path, "/api/executions/") {
		return r.PathValue("id")
	}
	return ""
}

// count notes how a request ended. The endpoint is the pattern of its route,
// so that no client can invent one.
func (s *Server) count(rt route, status int, took time.Duration) {
	if !rt.counted() {
		return
	}
	how := obs.OK
	switch {
	case status >= http.StatusInternalServerError || status == 0:
		how = obs.Error
	case status >= http.StatusBadRequest:
		how = obs.Refused
	}
	s.requests.Total.Inc(rt.endpoint(), how)
	s.requests.Duration.Observe(took.Seconds(), rt.endpoint())
}

// metricsRole is who may read the metrics: scrapers without a token only where a
// setting says so.
func (s *Server) metricsRole() Role {
	if s.opt.OpenMetrics {
		return Anyone
	}
	return Viewer
}

// scrape answers in the text format of Prometheus. Figures the store does not
// give stay what they were: a database that is away must not hide the rest.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	if s.opt.DisableMetrics {
		return event.Errorf(event.NotFound, "metrics are switched off here")
	}
	s.gauge(r.Context())
	buf := scratch()
	defer done(buf)
	if err := s.opt.Metrics.WriteText(buf); err != nil {
		return err
	}
	w.Header().Set("Content-Type", obs.ContentType)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(buf.Bytes())
	return nil
}

func (s *Server) gauge(ctx context.Context) {
	m := s.opt.Metrics
	g, err := s.opt.Plane.Gauges(ctx)
	m.Appends.Reach(float64(g.Stats.Appends))
	m.Events.Reach(float64(g.Stats.Events))
	m.Conflicts.Reach(float64(g.Stats.Conflicts))
	m.OutboxSent.Reach(float64(g.Stats.Relayed))
	s.standing(ctx)
	if err != nil {
		s.opt.Logger.Warn("some metrics are not up to date", "error", err)
		return
	}
	m.Running.Set(float64(g.Running))
	m.Workers.Set(float64(g.Workers))
	m.OutboxPending.Set(float64(g.Outbox.Ready + g.Outbox.Waiting))
	m.OutboxInFlight.Set(float64(g.Outbox.InFlight))
	m.OutboxDead.Set(float64(g.Outbox.Dead))
	m.OutboxTaken.Reach(float64(g.Outbox.Reclaimed))
	m.PendingCommands.Replace(pending(g))
	workers, slots := make([]obs.Row, 0, len(g.Pools)), make([]obs.Row, 0, len(g.Pools))
	for name, p := range g.Pools {
		workers = append(workers, obs.Row{Labels: []string{name}, Value: float64(p.Workers)})
		slots = append(slots, obs.Row{Labels: []string{name}, Value: float64(p.Slots)})
	}
	m.PoolWorkers.Replace(workers)
	m.PoolSlots.Replace(slots)
	lags := make([]obs.Row, 0, len(g.Lags))
	for _, l := range g.Lags {
		lags = append(lags, obs.Row{Labels: []string{l.Stream, l.Consumer}, Value: float64(l.Waiting)})
	}
	m.ConsumerLag.Replace(lags)
	age := 0.0
	if !g.Outbox.Oldest.IsZero() {
		age = max(g.At.Sub(g.Outbox.Oldest).Seconds(), 0)
	}
	m.OutboxAge.Set(age)
}

// pending is a series for every pool that is served, so that whoever scales by
// it sees a zero too, and for those nobody serves.
func pending(g control.Gauges) []obs.Row {
	rows := make([]obs.Row, 0, len(g.Pools)+len(g.Pending))
	for name := range g.Pools {
		rows = append(rows, obs.Row{Labels: []string{name}, Value: float64(g.Pending[name])})
	}
	for name, n := range g.Pending {
		if _, served := g.Pools[name]; !served {
			rows = append(rows, obs.Row{Labels: []string{cmp.Or(name, "shared")}, Value: float64(n)})
		}
	}
	return rows
}

// standing shows what the server stands on.
func (s *Server) standing(ctx context.Context) {
	m := s.opt.Metrics
	database, broker := s.opt.Plane.Ready(ctx)
	m.DatabaseUp.Set(one(database))
	m.BrokerUp.Set(one(broker))
	p := s.opt.Plane.PoolState()
	m.Connections.Set(float64(p.Open), obs.ConnOpen)
	m.Connections.Set(float64(p.Idle), obs.ConnIdle)
	m.Connections.Set(float64(p.Max), obs.ConnMost)
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
