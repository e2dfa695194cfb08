package postgres

import (
	"context"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const selectEvent = `SELECT execution_id, seq, event_id, catalog_id, coalesce(parent_event_id, 0),
	coalesce(parent_execution_id, 0), coalesce(duration, 0), created_at, event_type, coalesce(node_name, ''),
	coalesce(node_type, ''), coalesce(status, ''), coalesce(worker_id, ''), coalesce(command_key, ''),
	coalesce(error, ''), meta, result, context FROM noetl.event `

const (
	eventsSQL    = selectEvent + `WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	eventByIDSQL = selectEvent + `WHERE execution_id = $1 AND event_id = $2`
	eventIDsSQL  = `SELECT event_id FROM noetl.event WHERE execution_id = $1 AND event_id = ANY($2::int8[])`
)

func scanEvent(row scanner, e *event.Event) error {
	var seconds float64
	err := row.Scan(&e.ExecutionID, &e.Seq, &e.EventID, &e.CatalogID, &e.ParentEventID, &e.ParentExecutionID,
		&seconds, stamp{&e.CreatedAt}, (*string)(&e.Type), &e.NodeName, &e.NodeType, &e.Status, &e.WorkerID,
		&e.CommandID, &e.Error, (*[]byte)(&e.Meta), (*[]byte)(&e.Result), (*[]byte)(&e.Context))
	e.Duration = time.Duration(math.Round(seconds * float64(time.Second)))
	return err
}

// Events implements store.Log.
func (s *Store) Events(ctx context.Context, execution event.ID, after int64, limit int) ([]event.Event, error) {
	return many(ctx, s.shard(execution).pool, "read events", scanEvent, eventsSQL, execution, after, rowLimit(limit))
}

// Event implements store.Log.
func (s *Store) Event(ctx context.Context, execution, id event.ID) (event.Event, error) {
	return one(ctx, s.shard(execution).pool, "event "+id.String(), scanEvent, eventByIDSQL, execution, id)
}

// EventIDs implements store.Log. The answer is in the order of the question.
func (s *Store) EventIDs(ctx context.Context, execution event.ID, ids []event.ID) ([]event.ID, error) {
	if len(ids) == 0 {
		return nil, ctx.Err()
	}
	found, err := many(ctx, s.shard(execution).pool, "look up event ids", scanID, eventIDsSQL, execution, ids)
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
