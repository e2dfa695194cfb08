package cli

import (
	"context"
	"fmt"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// awaitChildren waits for the executions that one started without waiting for
// them itself: they end with the process otherwise. What became of them does
// not change the exit code, so those that did not complete are told of.
func awaitChildren(ctx context.Context, env *Env, plane *control.Plane, id event.ID) error {
	rows, err := plane.Settle(ctx, id)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Status != event.StatusCompleted {
			fmt.Fprintf(env.Stderr, "execution %s of playbook %s %s: %s\n", row.ExecutionID, row.Path, row.Status, row.Error)
		}
	}
	return nil
}
