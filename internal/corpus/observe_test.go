package corpus_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// observe runs an entry on a lane and looks at what it left behind. A refusal is
// a history; an error is a run that could not be watched to its end.
func observe(ctx context.Context, s *surroundings, st *stage) (_ *history, err error) {
	if st.scene, err = s.scene(ctx, st.lane); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	if err := st.lane.furnish(ctx, s, st.scene); err != nil {
		return nil, err
	}
	if err := st.setUp(ctx, s.nats); err != nil {
		return nil, err
	}
	st.began = len(st.api.Requests())
	doc := st.shelf.byFile[st.entry.Path]
	if doc == nil {
		return nil, fmt.Errorf("there is no file %s", st.entry.Path)
	}
	reg, err := st.lane.register(ctx, st.shelf, doc)
	if err != nil {
		return refused(err)
	}
	// Slashes around a path are not part of it.
	if reg.Path != strings.Trim(st.entry.CatalogPath, "/") {
		return nil, fmt.Errorf("registered as %q, want %q", reg.Path, st.entry.CatalogPath)
	}
	payload, err := st.entry.payload(st.places)
	if err != nil {
		return nil, err
	}
	started, err := st.lane.client.Execute(ctx, client.ExecuteRequest{CatalogID: reg.CatalogID, Payload: payload})
	if st.entry.Expect.Status[0] == registered {
		if err == nil || client.CodeOf(err) != client.Invalid {
			return nil, fmt.Errorf("it must not be executable, got %w", err)
		}
		return &history{status: registered}, nil
	}
	if err != nil {
		return refused(err)
	}
	return look(ctx, st, started.ExecutionID)
}

func refused(err error) (*history, error) {
	if refusal(err) {
		return &history{status: rejected, err: err.Error()}, nil
	}
	return nil, err
}

// look waits for an execution and its children and reads what they left.
func look(ctx context.Context, st *stage, id client.ID) (*history, error) {
	c := st.lane.client
	if _, err := c.Wait(ctx, id); err != nil {
		said, _ := c.Status(context.WithoutCancel(ctx), id)
		return nil, fmt.Errorf("wait for the end: %w; it is %s at %q", err, said.Status, said.CurrentStep)
	}
	detail, err := c.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &history{status: detail.Status, err: detail.Error, steps: map[string]engine.StepOutcome{}, tables: map[string]tableRows{}}
	for name, s := range detail.Steps {
		result := s.Result
		if s.Ref != "" {
			if result, err = c.Result(ctx, s.Ref); err != nil {
				return nil, fmt.Errorf("the result of %s: %w", name, err)
			}
		}
		h.steps[name] = engine.StepOutcome{Name: name, Status: s.Status, Runs: s.Runs, Result: result, Ref: s.Ref, Error: s.Error}
	}
	if h.events, err = eventsOf(ctx, c, id); err != nil {
		return nil, err
	}
	if h.children, err = childrenOf(ctx, st, id); err != nil {
		return nil, err
	}
	h.requests = st.api.Requests()[st.began:]
	for _, w := range st.entry.Expect.Tables {
		h.tables[w.SQL] = query(ctx, st.dsn, w.SQL, id.String())
	}
	h.playbook, _ = playbook.Parse(st.entry.Path, []byte(st.shelf.byFile[st.entry.Path].src))
	return h, nil
}

func eventsOf(ctx context.Context, c *client.Client, id client.ID) (all []event.Event, err error) {
	for {
		page, err := c.Events(ctx, id, int64(len(all)), 0)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
}

// childrenOf are the executions that one started, in their order.
func childrenOf(ctx context.Context, st *stage, id client.ID) ([]childRun, error) {
	c := st.lane.client
	rows, err := c.Executions(ctx, client.ExecutionFilter{ParentID: id, Limit: 100})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b client.Execution) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) })
	var children []childRun
	for _, row := range rows {
		if _, err := c.Wait(ctx, row.ExecutionID); err != nil {
			return nil, err
		}
		detail, err := c.Execution(ctx, row.ExecutionID)
		if err != nil {
			return nil, err
		}
		child := childRun{path: detail.Path, status: detail.Status}
		if doc := st.shelf.called(st.shelf.byFile[st.entry.Path])[detail.Path]; doc != nil {
			child.path = doc.path
		}
		if err := json.Unmarshal(detail.Workload, &child.workload); err != nil {
			return nil, err
		}
		children = append(children, child)
	}
	return children, nil
}
