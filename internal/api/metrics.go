package api

import (
	"context"
	"net/http"
	"time"

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
	age := 0.0
	if !g.Outbox.Oldest.IsZero() {
		age = max(g.At.Sub(g.Outbox.Oldest).Seconds(), 0)
	}
	m.OutboxAge.Set(age)
}
