package api

import (
	"context"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Outboxes is the side that publishes and projects events.
type Outboxes interface {
	ClaimOutbox(ctx context.Context, limit int) (control.OutboxBatch, error)
	MarkPublished(ctx context.Context, token string, ids []int64) (int, error)
	MarkFailed(ctx context.Context, f control.OutboxFailure) (wait time.Duration, marked bool, err error)
	OutboxState(ctx context.Context) (store.OutboxCounts, error)
	Project(ctx context.Context, events []event.Event) (control.Taken, error)
	Materialize(ctx context.Context, reports []event.Report) (control.Taken, error)
	Advance(ctx context.Context, ids []event.ID) ([]control.Advanced, []control.NotAdvanced, error)
	Purge(ctx context.Context, r control.PurgeRequest) (control.Purged, error)
	CallBack(ctx context.Context, execution event.ID, in event.Incoming, job string) (event.ID, error)
}

// maxProjection is the size of a request that carries many events.
const maxProjection = 32 << 20

func (s *Server) outboxRoutes() []route {
	project := entry(http.MethodPost, "/api/internal/events/project", Internal, s.project, "takes events of the stream into the logs of their executions", `{events}`, `{projected, duplicates, rejected?}`).within(Everywhere).noted(ofWorkers)
	materialize := entry(http.MethodPost, "/api/internal/events/materialize", Internal, s.materialize, "records events of any executions", `[{execution_id, step, event_type, event_id?, payload?, …}]`, `{materialized, duplicates, rejected?}`).within(Everywhere).noted(ofWorkers)
	project.maxBody, materialize.maxBody = maxProjection, maxProjection
	return []route{
		entry(http.MethodPost, "/api/internal/outbox/claim", Internal, s.claimOutbox, "hands events to a publisher, each execution's in order", `{limit?}`, `{rows, claimed, fencing_token}`).within(Everywhere).noted(ofWorkers),
		entry(http.MethodPost, "/api/internal/outbox/mark-published", Internal, s.markPublished, "ends outbox rows", `{outbox_ids, fencing_token?}`, `{marked}`).within(Everywhere).noted(ofWorkers),
		entry(http.MethodPost, "/api/internal/outbox/mark-failed", Internal, s.markFailed, "makes an outbox row wait", `{outbox_id, error, attempts?, max_delay_seconds?, fencing_token?}`, `{marked, available_at_in}`).within(Everywhere).noted(ofWorkers),
		entry(http.MethodGet, "/api/internal/outbox/pending-count", Internal, s.pendingCount, "counts outbox rows that could be claimed", "", `{pending}`).within(Everywhere),
		project,
		materialize,
		entry(http.MethodPost, "/api/internal/projection/advance", Internal, s.advance, "decides again on executions", `{execution_ids}`, `{advanced, failed}`).within(Everywhere).noted(ofWorkers),
		entry(http.MethodPost, "/api/internal/cleanup/purge", Internal, s.purge, "removes what has served its time", `{command_retention_days?, runtime_stale_minutes?, event_retention_days?}`, `{commands_purged, runtime_purged, events_purged, outbox_purged, claims_purged, executions_purged, event_partitions_dropped}`).within(Everywhere).noted("database.purged"),
	}
}

const defaultClaim = 100

func (s *Server) claimOutbox(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		Limit *int `json:"limit"`
	}{}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	limit := defaultClaim
	if body.Limit != nil {
		limit = *body.Limit
	}
	batch, err := s.opt.Plane.ClaimOutbox(r.Context(), limit)
	if err != nil {
		return err
	}
	if batch.Rows == nil {
		batch.Rows = []control.OutboxMessage{}
	}
	return respond(w, struct {
		Rows    []control.OutboxMessage `json:"rows"`
		Claimed int                     `json:"claimed"`
		Token   string                  `json:"fencing_token"`
	}{batch.Rows, len(batch.Rows), batch.Token})
}

func (s *Server) markPublished(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		IDs   []event.ID `json:"outbox_ids"`
		Token string     `json:"fencing_token"`
	}
	if err := decode(r, &body, false); err != nil {
		return err
	}
	ids := make([]int64, len(body.IDs))
	for i, id := range body.IDs {
		ids[i] = int64(id)
	}
	n, err := s.opt.Plane.MarkPublished(r.Context(), body.Token, ids)
	if err != nil {
		return err
	}
	return respond(w, map[string]int{"marked": n})
}

func (s *Server) markFailed(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		ID       event.ID `json:"outbox_id"`
		Error    string   `json:"error"`
		Attempts int      `json:"attempts"`
		MaxDelay int      `json:"max_delay_seconds"`
		Token    string   `json:"fencing_token"`
	}{Attempts: 1, MaxDelay: 300}
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if body.ID == 0 {
		return event.Errorf(event.Invalid, "outbox_id is missing")
	}
	const day = 24 * 60 * 60
	wait, marked, err := s.opt.Plane.MarkFailed(r.Context(), control.OutboxFailure{
		OutboxID: int64(body.ID), Token: body.Token, Error: body.Error, Attempts: body.Attempts,
		MaxDelay: time.Duration(min(body.MaxDelay, day)) * time.Second,
	})
	if err != nil {
		return err
	}
	return respond(w, struct {
		Marked bool  `json:"marked"`
		In     int64 `json:"available_at_in"`
	}{marked, int64(wait / time.Second)})
}

func (s *Server) pendingCount(w http.ResponseWriter, r *http.Request) error {
	c, err := s.opt.Plane.OutboxState(r.Context())
	if err != nil {
		return err
	}
	return respond(w, map[string]int64{"pending": c.Ready})
}

func (s *Server) advance(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		IDs []event.ID `json:"execution_ids"`
	}
	if err := decode(r, &body, false); err != nil {
		return err
	}
	advanced, failed, err := s.opt.Plane.Advance(r.Context(), body.IDs)
	if err != nil {
		return err
	}
	return respond(w, struct {
		Advanced []control.Advanced    `json:"advanced"`
		Failed   []control.NotAdvanced `json:"failed"`
	}{advanced, failed})
}

func (s *Server) purge(w http.ResponseWriter, r *http.Request) error {
	body := struct {
		CommandDays    int `json:"command_retention_days"`
		RuntimeMinutes int `json:"runtime_stale_minutes"`
		EventDays      int `json:"event_retention_days"`
	}{CommandDays: 7, RuntimeMinutes: 60}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	done, err := s.opt.Plane.Purge(r.Context(), control.PurgeRequest{
		CommandDays: body.CommandDays, RuntimeMinutes: body.RuntimeMinutes, EventDays: body.EventDays,
	})
	if err != nil {
		return err
	}
	return respond(w, done)
}
