package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

// maxResolved bounds how many values one replay looks up.
const maxResolved = 1000

// finder looks up values by locator: those in the results of this store.
func (p *Plane) finder(ctx context.Context) func(locator string) replay.Finding {
	looked := 0
	return func(locator string) replay.Finding {
		if !strings.HasPrefix(locator, "noetl://") {
			return replay.NotFound("the value is kept outside of this server")
		}
		if looked++; looked > maxResolved {
			return replay.NotFound(fmt.Sprintf("not looked up: a replay resolves %d values at most", maxResolved))
		}
		value, err := p.Result(ctx, locator)
		if err != nil {
			return replay.NotFound(err.Error())
		}
		return replay.FindingOf(value)
	}
}

// parityTries is how often an execution that moves is looked at again.
const parityTries = 5

// ReplayParity compares the rows of an execution with what its log folds into
// and returns a sentence for each contradiction. NotFound when the execution
// has no row; Conflict when it does not stand still long enough to be compared.
func (p *Plane) ReplayParity(ctx context.Context, execution event.ID) ([]string, error) {
	for range parityTries {
		row, err := p.Execution(ctx, execution)
		if err != nil {
			return nil, err
		}
		commands, err := p.store.CommandsOf(ctx, execution)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, storeError("read commands", err)
		}
		run, err := p.replayRun(ctx, replay.Options{ExecutionID: execution}, cutoff{}, 0, false)
		if err != nil {
			return nil, err
		}
		again, err := p.Execution(ctx, execution)
		if err != nil {
			return nil, err
		}
		if again.LastSeq != row.LastSeq {
			continue
		}
		found := replay.Differences(run.fold.State(), liveOf(row, commands))
		p.mismatched(found)
		return found, nil
	}
	return nil, event.Errorf(event.Conflict, "execution %s goes on too fast to be compared", execution)
}

func liveOf(row store.Execution, commands []store.Command) replay.Live {
	live := replay.Live{Status: row.Status, LastEventID: row.LastEventID, Events: row.LastSeq}
	for _, c := range commands {
		live.Commands = append(live.Commands, replay.LiveCommand{CommandID: c.CommandID, Status: c.Status, WorkerID: c.WorkerID})
	}
	return live
}
