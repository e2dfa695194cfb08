package control

import (
	"context"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// strayExecutions finds rows of executions the log knows nothing of. Rows and
// log are walked side by side, both by id.
func (v *verifier) strayExecutions(ctx context.Context) error {
	for after := event.ID(0); ; {
		rows, err := v.store.ProjectedExecutions(ctx, after, verifyPage)
		if err != nil {
			return storeError("list execution rows", err)
		}
		ids, err := v.store.LoggedExecutions(ctx, after, verifyPage)
		if err != nil {
			return storeError("list executions of the log", err)
		}
		upTo, more := bothReach(rows, ids)
		known := make(map[event.ID]bool, len(ids))
		for _, id := range ids {
			known[id] = true
		}
		for i := range rows {
			if rows[i].ExecutionID <= upTo && !known[rows[i].ExecutionID] {
				if err := v.strayExecution(ctx, &rows[i]); err != nil {
					return err
				}
			}
		}
		if !more {
			return nil
		}
		after = upTo
	}
}

// bothReach is the id up to which a page of rows and a page of the log can be
// compared, and whether there can be rows beyond it.
func bothReach(rows []store.Execution, ids []event.ID) (upTo event.ID, more bool) {
	upTo = math.MaxInt64
	if len(ids) == verifyPage {
		upTo = ids[len(ids)-1]
	}
	if len(rows) == verifyPage {
		return min(upTo, rows[len(rows)-1].ExecutionID), true
	}
	return upTo, len(rows) > 0 && rows[len(rows)-1].ExecutionID > upTo
}

// strayExecution looks again: the execution may have started after the log was read.
func (v *verifier) strayExecution(ctx context.Context, row *store.Execution) error {
	there, err := logged(ctx, v.store, row.ExecutionID)
	if err == nil && !there {
		v.add(noLog(row.ExecutionID))
	}
	return err
}

// farAway is so long that no lease lasts for it.
const farAway = 100 * 365 * 24 * time.Hour

// strayCommands finds commands that workers could be given although the log
// has no such execution.
func (v *verifier) strayCommands(ctx context.Context) error {
	future := v.o.Clock().Add(farAway)
	pending, err := v.store.PendingCommands(ctx, future, verifyOpenRows)
	if err != nil {
		return storeError("list pending commands", err)
	}
	held, err := v.store.ExpiredCommands(ctx, future, verifyOpenRows)
	if err != nil {
		return storeError("list held commands", err)
	}
	seen := make(map[event.ID]bool)
	for _, row := range append(pending, held...) {
		if seen[row.ExecutionID] {
			continue
		}
		seen[row.ExecutionID] = true
		there, err := logged(ctx, v.store, row.ExecutionID)
		if err != nil {
			return err
		}
		if !there {
			v.add(Difference{
				ExecutionID: event.StringID(row.ExecutionID), What: DifferentStrayCommand, Where: "command " + row.CommandID,
				Want: "no row, because the log has no such execution", Got: row.Status,
			})
		}
	}
	return nil
}
