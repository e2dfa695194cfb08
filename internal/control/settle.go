package control

import (
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Settle waits until the executions that an ended one started have ended, and
// those that these started. It returns the rows of those that nobody else waited
// for.
func (p *Plane) Settle(ctx context.Context, id event.ID) ([]store.Execution, error) {
	var ended []store.Execution
	for parents := []event.ID{id}; len(parents) > 0; parents = parents[1:] {
		children, err := p.childrenOf(ctx, parents[0])
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			row, err := p.Wait(ctx, child.ExecutionID)
			if err != nil {
				return nil, err
			}
			waited, err := p.waitedFor(ctx, child.ExecutionID)
			if err != nil {
				return nil, err
			}
			if !waited {
				ended = append(ended, row)
			}
			parents = append(parents, child.ExecutionID)
		}
	}
	return ended, nil
}

// waitedFor tells whether a command of the parent waits, or waited, for the end
// of an execution.
func (p *Plane) waitedFor(ctx context.Context, id event.ID) (bool, error) {
	start, err := p.startOf(ctx, id)
	if err != nil {
		return false, err
	}
	var meta struct {
		Returns event.ChildRequest `json:"returns"`
	}
	if err := json.Unmarshal(start.Meta, &meta); err != nil {
		return false, event.Errorf(event.Internal, "read start of execution %s: %w", id, err)
	}
	return meta.Returns.Wait, nil
}

// childrenOf lists all executions that one started, newest first.
func (p *Plane) childrenOf(ctx context.Context, id event.ID) ([]store.Execution, error) {
	var all []store.Execution
	for {
		page, err := p.Executions(ctx, store.ExecutionFilter{ParentID: id, Limit: cascadePage, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < cascadePage {
			return all, nil
		}
	}
}
