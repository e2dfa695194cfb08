package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// ErrNameTaken refuses a schedule whose name another one has.
var ErrNameTaken = &event.Error{Code: event.Conflict, Message: "another schedule has this name", Reason: "name_taken"}

// Schedule says when a playbook is started by itself, and how far that got.
// The row changes only as a whole and only from the revision that was read, so
// that of several replicas one decides what becomes of a tick.
type Schedule struct {
	ScheduleID event.ID
	Name       string // unique
	Revision   int64  // 1 when made; each change adds one
	Path       string
	Version    int // of the playbook; 0 = the highest
	Cron       string
	Every      time.Duration // whole seconds
	Timezone   string
	Enabled    bool
	Owner      string // path of the playbook that declares it; empty when made by hand
	Payload    []byte // JSON object, or empty
	Policy     []byte // JSON: how it fires
	State      []byte // JSON: how far it got
	NextAt     time.Time
	LastAt     time.Time
	LastStatus string
	WakeAt     time.Time // when it has to be looked at; zero = not before it is changed
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// ScheduleRun is what became of one tick of a schedule.
type ScheduleRun struct {
	ScheduleID  event.ID
	Tick        time.Time // with the schedule, its key
	Kind        string    // tick, backfill, manual
	State       string
	Path        string // of the playbook as it was when the tick was decided
	Version     int
	ExecutionID event.ID
	DecidedAt   time.Time
	StartedAt   time.Time
	EndedAt     time.Time // zero while something is still to be done or awaited
	Previous    time.Time // the tick before it; zero when it is the first
	Ticks       int       // how many ticks the row stands for
	Note        string
}

// ScheduleFilter selects schedules; zero fields do not restrict.
type ScheduleFilter struct {
	Path  string   // exact
	Owner string   // exact
	After event.ID // only ids above
	Limit int      // 0 = all
}

// ScheduleRunFilter selects the runs of one schedule.
type ScheduleRunFilter struct {
	ScheduleID event.ID
	Open       bool      // only those that have not ended
	From       time.Time // ticks not before; zero = any
	Before     time.Time // only ticks before; zero = any
	Limit      int       // 0 = all
}

// Schedules keeps schedules and what became of their ticks.
type Schedules interface {
	// AddSchedule stores a new schedule as its first revision. ErrNameTaken when
	// its name is.
	AddSchedule(ctx context.Context, s Schedule) error
	// SaveSchedule replaces the schedule and writes runs, those of known ticks
	// anew, as one. The stored revision must be s.Revision, and becomes one more:
	// ErrConflict when it is another, ErrNotFound when the schedule is gone,
	// ErrNameTaken when its new name is another's.
	SaveSchedule(ctx context.Context, s Schedule, runs []ScheduleRun) error
	// Schedule returns one by id. ErrNotFound when absent.
	Schedule(ctx context.Context, id event.ID) (Schedule, error)
	// ScheduleByName returns one by name. ErrNotFound when absent.
	ScheduleByName(ctx context.Context, name string) (Schedule, error)
	// ListSchedules returns schedules by id.
	ListSchedules(ctx context.Context, f ScheduleFilter) ([]Schedule, error)
	// DueSchedules returns schedules whose WakeAt is not after the given time,
	// earliest first, at most limit (0 = all): an index look-up.
	DueSchedules(ctx context.Context, until time.Time, limit int) ([]Schedule, error)
	// DeleteSchedule removes one with its runs and tells whether it was there.
	DeleteSchedule(ctx context.Context, id event.ID) (bool, error)
	// ScheduleRuns returns runs, the latest tick first.
	ScheduleRuns(ctx context.Context, f ScheduleRunFilter) ([]ScheduleRun, error)
	// CountSchedules counts by state: active, paused (not Enabled) and ended
	// (enabled without a NextAt).
	CountSchedules(ctx context.Context) (map[string]int64, error)
	// PurgeScheduleRuns removes runs that ended before the given time, at most
	// limit, and returns how many.
	PurgeScheduleRuns(ctx context.Context, before time.Time, limit int) (int, error)
}
