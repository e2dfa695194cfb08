package event

import (
	"encoding/json"
	"time"
)

// ScheduleSpec is what somebody wants started by itself, as it is written in
// requests and playbooks. Durations are texts such as 90s, 10m or 1h30m, times
// RFC 3339.
type ScheduleSpec struct {
	Name          string          `json:"name,omitempty"`
	Path          string          `json:"path,omitempty"`
	Version       int             `json:"version,omitempty"` // of the playbook; 0 = the highest at each run
	Cron          string          `json:"cron,omitempty"`
	Every         string          `json:"every,omitempty"`
	Timezone      string          `json:"timezone,omitempty"`
	Overlap       string          `json:"overlap,omitempty"`
	QueueLimit    int             `json:"queue_limit,omitempty"`
	CatchUp       string          `json:"catch_up,omitempty"`
	CatchUpLimit  int             `json:"catch_up_limit,omitempty"`
	CatchUpWindow string          `json:"catch_up_window,omitempty"`
	Jitter        string          `json:"jitter,omitempty"`
	Start         string          `json:"start,omitempty"`
	End           string          `json:"end,omitempty"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	Pool          string          `json:"pool,omitempty"`
	MaxFailures   int             `json:"max_failures,omitempty"`
}

// ScheduleView is a schedule as the server shows it.
type ScheduleView struct {
	ID StringID `json:"schedule_id"`
	ScheduleSpec
	State         string            `json:"state"` // active, paused, ended
	PauseReason   string            `json:"pause_reason,omitempty"`
	PausedBy      string            `json:"paused_by,omitempty"`
	PausedAt      *time.Time        `json:"paused_at,omitempty"`
	Owner         string            `json:"owner,omitempty"` // the playbook that declares it
	NextAt        *time.Time        `json:"next_at"`
	LastTick      *time.Time        `json:"last_tick"`
	LastStatus    string            `json:"last_status,omitempty"`
	LastExecution StringID          `json:"last_execution_id,omitempty"`
	Failures      int               `json:"failures"` // in a row
	Backfill      *ScheduleBackfill `json:"backfill,omitempty"`
	Revision      int64             `json:"revision"`
	CreatedAt     time.Time         `json:"created_at"`
	UpdatedAt     time.Time         `json:"updated_at"`
}

// ScheduleBackfill is a range of ticks that is run afterwards.
type ScheduleBackfill struct {
	From        time.Time  `json:"from"`                  // inclusive
	To          time.Time  `json:"to"`                    // exclusive
	Next        *time.Time `json:"next,omitempty"`        // the tick that is next
	Concurrency int        `json:"concurrency,omitempty"` // how many run at once
	Ticks       int        `json:"ticks,omitempty"`       // in the whole range
	By          string     `json:"by,omitempty"`
}

// ScheduleRunView is what became of one tick.
type ScheduleRunView struct {
	Tick        time.Time  `json:"tick"`
	Kind        string     `json:"kind"`  // tick, backfill, manual
	State       string     `json:"state"` // due, queued, started, completed, failed, cancelled, skipped, missed
	Path        string     `json:"path"`
	Version     int        `json:"version,omitempty"`
	ExecutionID StringID   `json:"execution_id,omitempty"`
	DecidedAt   time.Time  `json:"decided_at"`
	StartedAt   *time.Time `json:"started_at"`
	EndedAt     *time.Time `json:"ended_at"`
	Ticks       int        `json:"ticks"` // how many ticks the row stands for
	Note        string     `json:"note,omitempty"`
}
