package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// maxBatchBody is how many bytes a batch of starts may have.
const maxBatchBody = 16 << 20

func (s *Server) executeRoutes() []route {
	batch := entry(http.MethodPost, "/api/execute/batch", Operator, s.executeBatch, "starts many executions", `{executions: [{…}]}`, `{count, started, duplicates, failed, results: [{index, status, execution_id?, commands_generated, error?, warnings?}]}`).within(Permitted).noted(inLog)
	batch.maxBody = maxBatchBody
	return []route{
		entry(http.MethodPost, "/api/execute", Operator, s.execute, "starts an execution", `{path | catalog_id, version?, payload?, parent_execution_id?, execution_pool?, trace?, dedup?: {key, window_secs?}, resource_kind?}; Idempotency-Key, traceparent`, `{execution_id, status, commands_generated, warnings?}`).within(Permitted).noted(inLog),
		batch,
		entry(http.MethodPost, "/api/executions/{id}/rerun", Operator, s.rerun, "runs an execution again, or the part of it from a step on", `{payload?, from_step?, version?, trace?, resource_kind?}`, `{execution_id, status, commands_generated, rerun_of, from_step?, warnings?}`).within(ByExecution).noted(inLog),
	}
}

type executeBody struct {
	Path         string     `json:"path"`
	CatalogID    event.ID   `json:"catalog_id"`
	Version      version    `json:"version"`
	Payload      object     `json:"payload"`
	Workload     object     `json:"workload"` // older name of payload
	ParentID     event.ID   `json:"parent_execution_id"`
	Pool         string     `json:"execution_pool"`
	Trace        object     `json:"trace"`
	ResourceKind string     `json:"resource_kind"`
	Dedup        *dedupBody `json:"dedup"`
}

const (
	dedupWindow       = 300            // seconds a dedup key is held
	idempotencyWindow = 24 * time.Hour // how long an Idempotency-Key is held
)

type dedupBody struct {
	Key    string `json:"key"`
	Window *int64 `json:"window_secs"`
}

// claim is the key to start under; the window is cut to where it is refused
// anyway, so that it cannot overflow.
func (b *dedupBody) claim() *control.Dedup {
	secs := int64(dedupWindow)
	if b.Window != nil {
		secs = max(-1, min(*b.Window, 1<<31))
	}
	return &control.Dedup{Key: b.Key, Window: time.Duration(secs) * time.Second}
}

func (b *executeBody) check() error {
	if b.Path == "" && b.CatalogID == 0 {
		return event.Errorf(event.Invalid, "either path or catalog_id is needed")
	}
	if err := checkKind(b.ResourceKind); err != nil {
		return err
	}
	if e, bad := errors.AsType[*event.Error](event.CheckPool(b.Pool)); bad && b.Pool != "" {
		named := *e
		named.Message = "execution_pool: " + e.Message
		return &named
	}
	return nil
}

func checkKind(kind string) error {
	switch strings.ToLower(kind) {
	case "", "playbook", "agent":
		return nil
	}
	return event.Errorf(event.Invalid, "resource_kind: want playbook or agent, got %q", kind)
}

// request is what the control plane is asked for. trace is used when the body
// has none of its own.
func (b *executeBody) request(ctx context.Context, by *event.Actor, trace json.RawMessage) control.ExecuteRequest {
	r := control.ExecuteRequest{
		Actor:             by,
		Caller:            caller(ctx),
		Path:              b.Path,
		CatalogID:         b.CatalogID,
		Version:           int(b.Version),
		Payload:           json.RawMessage(b.Payload),
		ParentExecutionID: b.ParentID,
		Pool:              b.Pool,
		Trace:             json.RawMessage(b.Trace),
	}
	if b.Payload == nil {
		r.Payload = json.RawMessage(b.Workload)
	}
	if b.Trace == nil {
		r.Trace = trace
	}
	if b.Dedup != nil {
		r.Dedup = b.Dedup.claim()
	}
	return r
}

// missing says which version was asked for, since the path alone may exist.
func (b *executeBody) missing(err error) error {
	if b.CatalogID != 0 || b.Version == 0 {
		return err
	}
	return renamed(err, "Playbook not found: %s version %d", b.Path, b.Version)
}

// permitStart refuses a start the caller may not ask for, of a playbook or as a
// child of another execution.
func (s *Server) permitStart(ctx context.Context, b *executeBody) error {
	if err := s.permitEntry(ctx, control.EntryRef{CatalogID: b.CatalogID, Path: b.Path}, true); err != nil {
		return b.missing(err)
	}
	if b.ParentID == 0 {
		return nil
	}
	return s.permitExecution(ctx, b.ParentID)
}

type executeAnswer struct {
	ExecutionID       event.StringID `json:"execution_id"`
	Status            string         `json:"status"`
	CommandsGenerated int            `json:"commands_generated"`
	Warnings          []string       `json:"warnings,omitempty"`
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) error {
	var body executeBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	if err := s.permitStart(r.Context(), &body); err != nil {
		return err
	}
	request := body.request(r.Context(), s.starter(r.Context()), traceOf(r.Header))
	if keys := r.Header.Values("Idempotency-Key"); len(keys) > 0 && request.Dedup == nil {
		if keys[0] == "" { // whoever sends it counts on not starting twice
			return event.Errorf(event.Invalid, "Idempotency-Key: a key is needed")
		}
		request.Dedup = &control.Dedup{Key: keys[0], Window: idempotencyWindow}
	}
	a, err := s.opt.Plane.Execute(r.Context(), request)
	if err != nil {
		return body.missing(err)
	}
	return respond(w, executeAnswer{event.StringID(a.ExecutionID), a.Status, a.CommandsGenerated, a.Warnings})
}
