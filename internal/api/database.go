package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// proofTime bounds a check or rebuild of the database asked for over HTTP.
const proofTime = 6 * time.Hour

// Databases checks and repairs what is stored.
type Databases interface {
	Migrate(ctx context.Context) error
	SchemaState(ctx context.Context) (store.SchemaState, error)
	Verify(ctx context.Context, o control.VerifyOptions) (control.VerifyReport, error)
	Rebuild(ctx context.Context, o control.RebuildOptions) (control.RebuildReport, error)
	Sweeps(ctx context.Context) (control.SweepReport, error)
}

func (s *Server) databaseRoutes() []route {
	const differences = `differences: [{execution_id, seq, what, where, want, got, repairable}]`
	verify := entry(http.MethodPost, "/api/db/verify", Admin, s.verifyDatabase, "holds the projections against the log", `{execution_id?}`,
		`{clean, executions, by_status, events, commands, results, references, external, children, purged, busy, differences_total, `+differences+`, generated_at, duration_seconds}`).within(Everywhere).noted(readsOnly)
	rebuild := entry(http.MethodPost, "/api/db/rebuild", Admin, s.rebuildDatabase, "writes the projections anew from the log", `{dry_run?, all?, execution_id?}`,
		`{dry_run, executions, rebuilt, unchanged, commands, busy, `+differences+`, left: […], left_total, generated_at, duration_seconds}`).within(Everywhere).noted("database.rebuilt")
	verify.stream, rebuild.stream = true, true
	return []route{
		entry(http.MethodPost, "/api/db/init", Admin, s.initDatabase, "brings the schema up to date", "", `{status, message}`).within(Everywhere).noted("database.migrated"),
		entry(http.MethodGet, "/api/db/validate", Admin, s.validateDatabase, "tells whether all tables are there", "", `{status, message, valid, tables, missing}`).within(Everywhere),
		verify, rebuild,
		entry(http.MethodGet, "/api/runtime/sweeps", Viewer, s.sweeps, "tells what the sweeps see and would do now", "",
			`{generated_at, mode, grace_seconds, pending: […], expired: […], stalled: [{execution_id, path, idle_seconds, nudges, verdict, cause}], counts}`).within(Everywhere),
	}
}

func (s *Server) initDatabase(w http.ResponseWriter, r *http.Request) error {
	if err := s.opt.Plane.Migrate(r.Context()); err != nil {
		return err
	}
	state, err := s.opt.Plane.SchemaState(r.Context())
	if err != nil {
		return err
	}
	return respond(w, struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}{"ok", fmt.Sprintf("the schema is at version %d", state.Version)})
}

func (s *Server) validateDatabase(w http.ResponseWriter, r *http.Request) error {
	state, err := s.opt.Plane.SchemaState(r.Context())
	if err != nil {
		return err
	}
	a := struct {
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Valid   bool     `json:"valid"`
		Tables  []string `json:"tables"`
		Missing []string `json:"missing"`
	}{"ok", fmt.Sprintf("all tables are there, at schema version %d", state.Version), true, bare(state.Tables), bare(state.Missing)}
	switch {
	case len(a.Missing) > 0:
		a.Status, a.Valid = "error", false
		a.Message = "missing tables: " + strings.Join(a.Missing, ", ")
	case state.Version < state.Want:
		a.Status, a.Valid = "error", false
		a.Message = fmt.Sprintf("the schema is at version %d, this server wants %d", state.Version, state.Want)
	}
	return respond(w, a)
}

// bare are table names without the schema they are in.
func bare(tables []string) []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t[strings.LastIndexByte(t, '.')+1:]
	}
	return names
}

func (s *Server) verifyDatabase(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ExecutionID event.ID `json:"execution_id"`
	}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	return s.prove(w, r, func(ctx context.Context) (any, error) {
		return s.opt.Plane.Verify(ctx, control.VerifyOptions{Execution: body.ExecutionID})
	})
}

func (s *Server) rebuildDatabase(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ExecutionID event.ID `json:"execution_id"`
		DryRun      bool     `json:"dry_run"`
		All         bool     `json:"all"`
	}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	return s.prove(w, r, func(ctx context.Context) (any, error) {
		return s.opt.Plane.Rebuild(ctx, control.RebuildOptions{Execution: body.ExecutionID, DryRun: body.DryRun, All: body.All})
	})
}

// prove runs what reads the whole log, which takes longer than other requests
// may. It ends with the client, and with the server.
func (s *Server) prove(w http.ResponseWriter, r *http.Request, f func(context.Context) (any, error)) error {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(r.Context(), proofTime)
	defer cancel()
	stop, give := context.WithCancel(ctx)
	defer give()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.stopping:
			give()
		case <-ended:
		}
	}()
	report, err := f(stop)
	switch {
	case err != nil && stop.Err() != nil && ctx.Err() == nil:
		return event.Errorf(event.Unavailable, "the server stops")
	case err != nil:
		return err
	}
	_ = rc.SetWriteDeadline(s.opt.Clock().Add(writeWait))
	return respond(w, report)
}

func (s *Server) sweeps(w http.ResponseWriter, r *http.Request) error {
	report, err := s.opt.Plane.Sweeps(r.Context())
	if err != nil {
		return err
	}
	return respond(w, report)
}
