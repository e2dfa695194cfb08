package sqlite

import (
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

const selectEvent = `SELECT execution_id, seq, event_id, catalog_id, coalesce(parent_event_id, 0),
	coalesce(parent_execution_id, 0), event_type, coalesce(node_name, ''), coalesce(node_type, ''),
	coalesce(status, ''), coalesce(duration_ns, 0), created_at, coalesce(worker_id, ''),
	coalesce(command_key, ''), coalesce(error, ''), meta, result, context FROM event `

const (
	eventsSQL    = selectEvent + `WHERE execution_id = ? AND seq > ? ORDER BY seq LIMIT ?`
	eventByIDSQL = selectEvent + `WHERE execution_id = ? AND event_id = ?`
	eventIDsSQL  = `SELECT event_id FROM event WHERE execution_id = ? AND event_id IN (SELECT value FROM json_each(?))`
)

func scanEvent(row scanner, e *event.Event) error {
	return row.Scan(&e.ExecutionID, &e.Seq, &e.EventID, &e.CatalogID, &e.ParentEventID, &e.ParentExecutionID,
		&e.Type, &e.NodeName, &e.NodeType, &e.Status, &e.Duration, micros{&e.CreatedAt}, &e.WorkerID,
		&e.CommandID, &e.Error, (*[]byte)(&e.Meta), (*[]byte)(&e.Result), (*[]byte)(&e.Context))
}

// Events implements store.Log.
func (s *Store) Events(ctx context.Context, execution event.ID, after int64, limit int) ([]event.Event, error) {
	rows, err := s.reads.events.QueryContext(ctx, execution, after, rowLimit(limit))
	return collect("read events", rows, err, scanEvent)
}

// Event implements store.Log.
func (s *Store) Event(ctx context.Context, execution, id event.ID) (event.Event, error) {
	return one("event "+id.String(), s.reads.eventByID.QueryRowContext(ctx, execution, id), scanEvent)
}

// EventIDs implements store.Log. The answer is in the order of the question.
func (s *Store) EventIDs(ctx context.Context, execution event.ID, ids []event.ID) ([]event.ID, error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.reads.eventIDs.QueryContext(ctx, execution, string(list))
	found, err := collect("look up event ids", rows, err, scanID)
	if err != nil {
		return nil, err
	}
	stored := make(map[event.ID]bool, len(found))
	for _, id := range found {
		stored[id] = true
	}
	var out []event.ID
	for _, id := range ids {
		if stored[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

func scanID(row scanner, id *event.ID) error { return row.Scan(id) }
