package control

import (
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// executionRow is the projection row of an execution.
func executionRow(s engine.Summary) store.Execution {
	return store.Execution{
		ExecutionID: s.ExecutionID, CatalogID: s.CatalogID, ParentExecutionID: s.ParentExecutionID,
		Path: s.Path, Version: s.Version, Pool: s.Pool, Status: s.Status,
		LastSeq: s.LastSeq, LastEventID: s.LastEventID, LastEventType: s.LastEventType, LastNodeName: s.LastNodeName,
		CurrentStep: s.CurrentStep, StepsTotal: s.StepsTotal, StepsCompleted: s.StepsCompleted,
		StepsRunning: s.StepsRunning, StepsFailed: s.StepsFailed, Error: s.Error,
		StartedAt: s.StartedAt, EndedAt: s.EndedAt, UpdatedAt: s.UpdatedAt, WakeAt: s.WakeAt,
	}
}

// commandRows are the rows of the commands the attempt changed, each once, as
// they stand at its end.
func (ps *pass) commandRows() []store.Command {
	if len(ps.changed) == 0 {
		return nil
	}
	catalog := ps.state.Summary().CatalogID
	rows := make([]store.Command, 0, len(ps.changed))
	written := make(map[event.ID]struct{}, len(ps.changed))
	for _, c := range ps.changed {
		if _, twice := written[c.EventID]; twice {
			continue
		}
		written[c.EventID] = struct{}{}
		rows = append(rows, ps.commandRow(c, catalog))
	}
	return rows
}

func (ps *pass) commandRow(c *engine.Command, catalog event.ID) store.Command {
	row := foldedCommand(c, ps.id, catalog, ps.state.Pool())
	if held(c.Status) {
		// The fold knows the lease of the claim, not its renewals. Whatever
		// changed a held command came from its holder, who is therefore alive.
		row.LeaseUntil = c.LeaseUntil
		if alive := ps.env.Now.Add(ps.p.o.Lease); alive.After(row.LeaseUntil) {
			row.LeaseUntil = alive
		}
	}
	return row
}

// foldedCommand is the projection row of a command as far as the log tells: all
// but the lease.
func foldedCommand(c *engine.Command, execution, catalog event.ID, pool string) store.Command {
	return store.Command{
		ExecutionID: execution, EventID: c.EventID, CommandID: c.ID, CatalogID: catalog,
		Step: c.Step, ToolKind: c.Kind, Pool: pool, Status: c.Status,
		WorkerID: c.Worker, Attempt: c.Attempt, MaxAttempts: c.MaxAttempts, IterIndex: c.Index,
		CreatedAt: c.CreatedAt, ClaimedAt: c.ClaimedAt, EndedAt: c.EndedAt, Error: c.Error,
	}
}

// held tells whether a command in this status belongs to a worker.
func held(status string) bool {
	return status == event.StatusClaimed || status == event.StatusRunning
}
