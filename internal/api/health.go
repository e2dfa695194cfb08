package api

import (
	"net/http"
)

func (s *Server) healthRoutes() []route {
	return []route{
		entry(http.MethodGet, "/health", Anyone, s.live, "tells that the process answers", "", `{status}`).within(Pathless),
		entry(http.MethodGet, "/api/health", Anyone, s.health, "tells whether the dependencies answer; 503 when the database does not", "", `{status, database, nats, uptime_seconds, version}`).within(Pathless),
		entry(http.MethodGet, "/metrics", s.metricsRole(), s.scrape, "shows the metrics in the text format of Prometheus", "", "text").within(Everywhere),
	}
}

func (s *Server) live(w http.ResponseWriter, _ *http.Request) error {
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

type healthAnswer struct {
	Status   string `json:"status"`
	Database string `json:"database"`
	NATS     string `json:"nats"`
	Uptime   int64  `json:"uptime_seconds"`
	Version  string `json:"version"`
}

// health reports readiness. Only the database decides: without NATS commands
// wait, but nothing is lost and everything can be read.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	h := s.opt.Plane.Health(r.Context())
	a := healthAnswer{
		Status:   "ok",
		Database: connected(h.Database),
		NATS:     connected(h.NATS),
		Uptime:   int64(h.Uptime.Seconds()),
		Version:  s.opt.Version,
	}
	status := http.StatusOK
	if !h.Database {
		a.Status = "unhealthy"
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", retryAfter)
	}
	return respondStatus(w, status, a)
}

func connected(ok bool) string {
	if ok {
		return "connected"
	}
	return "disconnected"
}
