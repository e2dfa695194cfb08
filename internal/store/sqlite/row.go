package sqlite

import (
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const insertExecutionSQL = `INSERT INTO execution (last_seq, version, last_event_id, last_event_type,
	last_node_name, current_step, steps_total, steps_completed, steps_running, steps_failed, error,
	start_time, end_time, updated_at, wake_at, status, path, pool, catalog_id, parent_execution_id, execution_id)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

const setExecution = `UPDATE execution SET last_seq = ?, version = ?, last_event_id = ?,
	last_event_type = ?, last_node_name = ?, current_step = ?, steps_total = ?, steps_completed = ?,
	steps_running = ?, steps_failed = ?, error = ?, start_time = ?, end_time = ?, updated_at = ?`

// sameIndexed are the indexed columns that almost no batch changes. The plus
// signs keep the planner on the primary key.
const sameIndexed = `+status = ? AND +path = ? AND +pool IS ? AND +catalog_id = ? AND +parent_execution_id IS ?
	AND execution_id = ? AND last_seq = ?`

// touchExecutionSQL is for the common batch, which leaves the indexed columns
// as they are: naming one in SET would make SQLite rewrite its index entry.
// wakeExecutionSQL is for those that set, move or clear a timer.
const (
	touchExecutionSQL  = setExecution + ` WHERE +wake_at IS ? AND ` + sameIndexed
	wakeExecutionSQL   = setExecution + `, wake_at = ? WHERE ` + sameIndexed
	updateExecutionSQL = setExecution + `, wake_at = ?, status = ?, path = ?, pool = ?, catalog_id = ?, parent_execution_id = ?
	WHERE execution_id = ? AND last_seq = ?`
)

// putExecution is the compare-and-set.
func (w *writer) putExecution(x *store.Execution, expected int64) error {
	attempts := w.updateExecution[:]
	switch {
	case expected == 0:
		attempts = w.insertExecution[:]
	case event.IsFinal(x.Status):
		attempts = attempts[len(attempts)-1:]
	}
	for _, s := range attempts {
		bindExecution(s, x)
		if expected > 0 {
			s.int(expected)
		}
		if n, err := s.exec(); err != nil {
			return coded("store execution", err)
		} else if n == 1 {
			return nil
		}
	}
	return store.ErrConflict
}

func bindExecution(s *statement, x *store.Execution) {
	s.int(x.LastSeq).int(int64(x.Version)).id(x.LastEventID).text(string(x.LastEventType))
	s.text(x.LastNodeName).text(x.CurrentStep).int(int64(x.StepsTotal)).int(int64(x.StepsCompleted))
	s.int(int64(x.StepsRunning)).int(int64(x.StepsFailed)).text(x.Error)
	s.time(x.StartedAt).time(x.EndedAt).time(x.UpdatedAt).time(x.WakeAt)
	s.str(x.Status).str(x.Path).text(x.Pool).id(x.CatalogID).nullID(x.ParentExecutionID).id(x.ExecutionID)
}
