package sqlite

import (
	"context"
	"strings"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Append implements store.Log.
func (s *Store) Append(ctx context.Context, b store.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	return s.queue.Submit(ctx, (*appendOp)(&b))
}

type appendOp store.Batch

func (o *appendOp) size() int { return (*store.Batch)(o).Size() }

// apply claims the sequence first: a conflict is found before anything is
// written. Rows that can share a statement with others of the group are left
// to the writer's flush.
func (o *appendOp) apply(w *writer) error {
	if o.Expected == 0 {
		if err := w.notRemoved(o.Execution.ExecutionID); err != nil {
			return err
		}
	}
	if o.Claim != nil {
		if err := w.takeClaim(o.Claim, o.Execution.ExecutionID); err != nil {
			return err
		}
	}
	if err := w.putExecution(&o.Execution, o.Expected); err != nil {
		return err
	}
	for i := range o.Events {
		w.newEvents = append(w.newEvents, &o.Events[i])
	}
	if o.Publish {
		w.newOutbox = append(w.newOutbox, w.newEvents[len(w.newEvents)-len(o.Events):]...)
	}
	for i := range o.Commands {
		c := &o.Commands[i]
		if len(o.Events) > 0 && c.EventID >= o.Events[0].EventID {
			w.newCommands = append(w.newCommands, c)
		} else if err := w.putCommand(c); err != nil {
			return err
		}
	}
	for i := range o.Results {
		if err := w.putResult(&o.Results[i]); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the rows the ops have left.
func (w *writer) flush() error {
	if err := w.putEvents(w.newEvents); err != nil {
		return err
	}
	w.newEvents = w.newEvents[:0]
	if err := w.putOutbox(w.newOutbox); err != nil {
		return err
	}
	w.newOutbox = w.newOutbox[:0]
	err := w.putNewCommands(w.newCommands)
	w.newCommands = w.newCommands[:0]
	return err
}

// eventRows and commandRows are the row counts of the insert statements,
// largest first: most of the price of a row is its statement.
var (
	eventRows   = [...]int{32, 4, 1}
	commandRows = [...]int{8, 1}
)

// OR FAIL spares the undo journal of the statement: after a failure the writer
// rolls back more than that.
const insertEventSQL = `INSERT OR FAIL INTO event (execution_id, seq, event_id, catalog_id, parent_event_id, parent_execution_id,
	event_type, node_name, node_type, status, duration_ns, created_at, worker_id, command_key, error, meta, result, context)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// repeatRow turns an insert of one row into one of several.
func repeatRow(insert string, rows int) string {
	row := insert[strings.LastIndex(insert, "(?"):]
	row = row[:strings.Index(row, ")")+1]
	return strings.Replace(insert, row, row+strings.Repeat(", "+row, rows-1), 1)
}

func (w *writer) putEvents(events []*event.Event) error {
	for i, rows := range eventRows {
		s := w.insertEvents[i]
		for len(events) >= rows {
			for _, e := range events[:rows] {
				bindEvent(s, e)
			}
			if _, err := s.exec(); err != nil {
				return insertError(err)
			}
			events = events[rows:]
		}
	}
	return nil
}

// insertError recognises an event id that is already there. Sequence numbers
// cannot collide: putExecution has just claimed them.
func insertError(err error) error {
	if resultCode(err) == code.SQLITE_CONSTRAINT_UNIQUE {
		return store.ErrDuplicate
	}
	return coded("store event", err)
}

func bindEvent(s *statement, e *event.Event) {
	s.id(e.ExecutionID).int(e.Seq).id(e.EventID).id(e.CatalogID).nullID(e.ParentEventID).nullID(e.ParentExecutionID)
	s.str(string(e.Type)).text(e.NodeName).text(e.NodeType).text(e.Status).nullID(event.ID(e.Duration)).time(e.CreatedAt)
	s.text(e.WorkerID).text(e.CommandID).text(e.Error).json(e.Meta).json(e.Result).json(e.Context)
}

// insertCommandSQL and updateCommandSQL take the same arguments in the same order.
const insertCommandSQL = `INSERT INTO command (command_key, catalog_id, step_name, tool_kind, pool, status, worker_id,
	attempt, max_attempts, iter_index, lease_until, created_at, claimed_at, completed_at, error, event_id, execution_id)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

const updateCommandSQL = `UPDATE command SET command_key = ?, catalog_id = ?, step_name = ?, tool_kind = ?, pool = ?,
	status = ?, worker_id = ?, attempt = ?, max_attempts = ?, iter_index = ?, lease_until = ?, created_at = ?,
	claimed_at = ?, completed_at = ?, error = ? WHERE event_id = ? AND execution_id = ?`

// putCommand stores a row that is there already, as a rule.
func (w *writer) putCommand(c *store.Command) error {
	bindCommand(w.updateCommand, c)
	if n, err := w.updateCommand.exec(); n == 1 || err != nil {
		return coded("store command", err)
	}
	w.newCommands = append(w.newCommands, c)
	return w.flush()
}

// putNewCommands stores rows that are new, as a rule. A statement that met
// another kind is followed by updates, which repeat what it did or do what it
// left undone.
func (w *writer) putNewCommands(commands []*store.Command) error {
	for i, rows := range commandRows {
		s := w.insertCommands[i]
		for len(commands) >= rows {
			for _, c := range commands[:rows] {
				bindCommand(s, c)
			}
			n, err := s.exec()
			for j := 0; err == nil && n < int64(rows) && j < rows; j++ {
				bindCommand(w.updateCommand, commands[j])
				_, err = w.updateCommand.exec()
			}
			if err != nil {
				return coded("store command", err)
			}
			commands = commands[rows:]
		}
	}
	return nil
}

func bindCommand(s *statement, c *store.Command) {
	s.text(c.CommandID).id(c.CatalogID).text(c.Step).text(c.ToolKind).text(c.Pool).str(c.Status).text(c.WorkerID)
	s.int(int64(c.Attempt)).int(int64(c.MaxAttempts)).int(int64(c.IterIndex))
	s.time(c.LeaseUntil).time(c.CreatedAt).time(c.ClaimedAt).time(c.EndedAt).text(c.Error).id(c.EventID).id(c.ExecutionID)
}
