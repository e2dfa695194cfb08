package api

import (
	"context"
	"net/http"

	"github.com/noetl/noetl-go/internal/control"
)

// Retentions removes executions whose time is over.
type Retentions interface {
	RetentionState(ctx context.Context) (control.RetentionState, error)
	Retain(ctx context.Context, r control.RetentionRequest) (control.RetentionReport, error)
}

func (s *Server) retentionRoutes() []route {
	const report = `{dry_run, policy, looked, removed, kept: {reason: n}, rules: {rule: n}, rows: {table: n}, partitions, strays, archived, truncated, lag_seconds, duration_seconds}`
	state := entry(http.MethodGet, "/api/retention", Admin, s.retention, "tells how long executions are kept, and what would go now", "",
		`{policy, rules, every_seconds, next_run?, last_run?, last?, pending: `+report+`, archives}`).within(Everywhere)
	run := entry(http.MethodPost, "/api/retention/run", Admin, s.runRetention, "removes executions whose time is over", `{dry_run?, limit?}`, report).within(Everywhere).noted("retention.run")
	state.stream, run.stream = true, true
	return []route{state, run}
}

func (s *Server) retention(w http.ResponseWriter, r *http.Request) error {
	return s.prove(w, r, func(ctx context.Context) (any, error) { return s.opt.Plane.RetentionState(ctx) })
}

func (s *Server) runRetention(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		DryRun bool `json:"dry_run"`
		Limit  int  `json:"limit"`
	}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	return s.prove(w, r, func(ctx context.Context) (any, error) {
		return s.opt.Plane.Retain(ctx, control.RetentionRequest{DryRun: body.DryRun, Limit: body.Limit})
	})
}
