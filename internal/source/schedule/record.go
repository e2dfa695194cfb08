package schedule

import (
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/schedule"
	"github.com/noetl/noetl-go/internal/store"
)

// How runs stand.
const (
	runDue       = "due"     // decided, to be started
	runQueued    = "queued"  // waits for an earlier run
	runStarted   = "started" // its execution goes on
	runCompleted = "completed"
	runFailed    = "failed" // its execution failed, or could not be started
	runCancelled = "cancelled"
	runSkipped   = "skipped" // an earlier run went on
	runMissed    = "missed"  // nobody was there for it
)

// What runs are for.
const (
	kindTick     = "tick"
	kindBackfill = "backfill"
	kindManual   = "manual"
)

// progress is how far a schedule got, beside what its row says.
type progress struct {
	Previous      time.Time               `json:"previous,omitzero"` // the last tick that was decided
	LastExecution event.StringID          `json:"last_execution,omitempty"`
	Failures      int                     `json:"failures,omitempty"` // in a row
	Pause         *pause                  `json:"pause,omitempty"`
	By            *event.Actor            `json:"by,omitempty"` // who made it what it is
	Backfill      *event.ScheduleBackfill `json:"backfill,omitempty"`
}

type pause struct {
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// record is a schedule that was read.
type record struct {
	row  store.Schedule
	plan *schedule.Plan
	progress
}

// read makes a record of a row. A row whose plan nobody can read any more has
// none and comes with the reason.
func read(row store.Schedule) (*record, error) {
	r := &record{row: row}
	if len(row.State) > 0 {
		if err := json.Unmarshal(row.State, &r.progress); err != nil {
			return r, err
		}
	}
	var spec event.ScheduleSpec
	if err := json.Unmarshal(row.Policy, &spec); err != nil {
		return r, err
	}
	spec.Payload = row.Payload
	plan, faults := schedule.Compile(spec)
	if len(faults) > 0 {
		return r, schedule.Err(faults)
	}
	r.plan = plan
	return r, nil
}

// write puts a record back into its row.
func (r *record) write(now time.Time) store.Schedule {
	row := r.row
	if r.plan != nil {
		spec := r.plan.Spec
		row.Name, row.Path, row.Version, row.Cron, row.Every, row.Timezone = spec.Name, spec.Path, spec.Version, spec.Cron, r.plan.Every, spec.Timezone
		row.Payload = spec.Payload
		spec.Payload = nil
		row.Policy, _ = json.Marshal(spec) // made of texts and numbers
	}
	row.State, _ = json.Marshal(r.progress)
	row.UpdatedAt = now
	return row
}

// follow moves the schedule to its first tick after t.
func (r *record) follow(t time.Time) { r.row.NextAt = r.plan.Next(t) }

// view is a schedule as it is shown.
func (r *record) view() event.ScheduleView {
	row := &r.row
	v := event.ScheduleView{
		ID: event.StringID(row.ScheduleID), State: "active", Owner: row.Owner, NextAt: shownTime(row.NextAt), LastTick: shownTime(row.LastAt), LastStatus: row.LastStatus,
		LastExecution: r.LastExecution, Failures: r.Failures, Backfill: r.Backfill, Revision: row.Revision, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
	if r.plan != nil {
		v.ScheduleSpec = r.plan.Spec
	}
	v.Name, v.Path = row.Name, row.Path
	switch {
	case !row.Enabled:
		v.State, v.NextAt = "paused", nil
		if r.Pause != nil {
			v.PauseReason, v.PausedBy, v.PausedAt = r.Pause.Reason, r.Pause.By, shownTime(r.Pause.At)
		}
	case row.NextAt.IsZero():
		v.State = "ended"
	}
	return v
}

func shownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func viewRun(r store.ScheduleRun) event.ScheduleRunView {
	return event.ScheduleRunView{
		Tick: r.Tick, Kind: r.Kind, State: r.State, Path: r.Path, Version: r.Version, ExecutionID: event.StringID(r.ExecutionID), DecidedAt: r.DecidedAt,
		StartedAt: shownTime(r.StartedAt), EndedAt: shownTime(r.EndedAt), Ticks: r.Ticks, Note: r.Note,
	}
}
