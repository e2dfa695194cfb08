package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// outcome is what `run --json` and `execute --wait --json` print as the last
// line of stdout.
type outcome struct {
	ExecutionID event.StringID         `json:"execution_id"`
	Status      string                 `json:"status"`
	DurationMS  int64                  `json:"duration_ms"`
	Error       string                 `json:"error,omitempty"`
	Steps       map[string]stepOutcome `json:"steps"`
}

// stepOutcome is one step of an outcome. Result is what the step's name shows
// to later steps.
type stepOutcome struct {
	Status string          `json:"status"`
	Runs   int             `json:"runs"`
	Result json.RawMessage `json:"result,omitempty"`
	Ref    string          `json:"result_ref,omitempty"` // where the whole is kept when Result is only a summary
	Error  string          `json:"error,omitempty"`
}

// timedOut is the status of an execution nobody waited for any longer.
const timedOut = "TIMED_OUT"

// interrupted is the status of one somebody stopped to wait for.
const interrupted = "INTERRUPTED"

// finish prints the outcome and turns it into the exit code.
func (o outcome) finish(env *Env, f outputFlags, p *progress) error {
	switch f.form() {
	case "json": // always one line: it is the last one
		if err := printLine(env, o); err != nil {
			return err
		}
	case "yaml":
		if err := printYAML(env, o); err != nil {
			return err
		}
	case "name":
		fmt.Fprintln(env.Stdout, event.ID(o.ExecutionID))
	default:
		p.end(o)
	}
	switch o.Status {
	case event.StatusCompleted:
		return nil
	case timedOut:
		return exit(ExitTimedOut)
	case interrupted:
		return exit(ExitInterrupted)
	}
	return exit(ExitFailed)
}

// durationOf is the time between two instants in milliseconds, for people and
// machines alike.
func durationOf(from, to time.Time) int64 {
	if from.IsZero() || to.Before(from) {
		return 0
	}
	return to.Sub(from).Milliseconds()
}
