package engine

import (
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Summary is everything the views of an execution show. It is the one place
// that derives status and progress.
type Summary struct {
	ExecutionID, CatalogID, ParentExecutionID event.ID

	Path           string
	Version        int
	Pool           string
	Status         string
	LastSeq        int64
	LastEventID    event.ID
	LastEventType  event.Type
	LastNodeName   string
	CurrentStep    string
	StepsTotal     int
	StepsCompleted int
	StepsRunning   int
	StepsFailed    int
	Error          string
	StartedAt      time.Time
	EndedAt        time.Time
	UpdatedAt      time.Time
	WakeAt         time.Time
}

// Summary condenses the state.
func (s *State) Summary() Summary {
	sum := Summary{
		ExecutionID: s.id, CatalogID: s.catalogID, ParentExecutionID: s.parentID,
		Path: s.path, Version: s.version, Pool: s.pool, Status: s.status,
		LastSeq: s.seq, LastEventID: s.lastEventID, LastEventType: s.lastType, LastNodeName: s.lastNode,
		CurrentStep: s.currentStep, Error: s.errorText,
		StartedAt: s.startedAt, EndedAt: s.endedAt, UpdatedAt: s.updatedAt, WakeAt: s.WakeAt(),
	}
	for _, st := range s.steps {
		if st.cur == nil || st.runs == 0 {
			continue
		}
		sum.StepsTotal++
		switch s.statusOf(st.cur) {
		case event.StatusRunning:
			sum.StepsRunning++
		case event.StatusFailed:
			sum.StepsFailed++
		case event.StatusCancelled:
		default:
			sum.StepsCompleted++
		}
	}
	return sum
}

// StepOutcome is how a step stands: its last run's status, how often it ran,
// and what its name shows to later steps.
type StepOutcome struct {
	Name   string
	Status string
	Runs   int
	Result json.RawMessage // nil when the name is undefined
	Ref    string          // where the whole is kept when Result is only a summary
	Error  string
	Reused event.ID // the execution whose outcome this is; 0 for a run of its own
}

// Outcome lists the steps in the order they were first reached.
func (s *State) Outcome() []StepOutcome {
	out := make([]StepOutcome, 0, len(s.order))
	for _, name := range s.order {
		st := s.steps[name]
		if st.cur == nil {
			continue
		}
		o := StepOutcome{Name: name, Status: s.statusOf(st.cur), Runs: st.runs, Error: st.cur.errText, Reused: st.cur.reused}
		if st.cur.phase == skipped && st.runs > 0 && st.cur.gen == st.runs {
			o.Runs-- // a run its guard refused did not run
		}
		if st.result != nil {
			o.Result = st.result.JSON()
			if ref := st.result.Info().Ref; ref != nil {
				o.Ref = ref.Ref
			}
		}
		out = append(out, o)
	}
	return out
}

// reasonCancelled marks a run whose command was cancelled.
const reasonCancelled = "cancelled"

// statusOf is how a run stands. One that the end of the execution interrupted
// did not fail: it was cancelled.
func (s *State) statusOf(r *run) string {
	if s.Final() && (r.phase == running || r.phase == failed && r.reason == reasonCancelled && !r.routed) {
		return event.StatusCancelled
	}
	return r.phase.String()
}
