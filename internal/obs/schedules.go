package obs

// Schedules are the metrics of a scheduler.
type Schedules struct {
	Fired Counter   // outcome
	Lag   Histogram // from when a tick was to be run to its start
	Kept  Gauge     // state
}

// ScheduleOutcomes are what becomes of ticks; ScheduleStates how schedules stand.
var (
	ScheduleOutcomes = []string{"started", "failed", "queued", "skipped", "missed"}
	ScheduleStates   = []string{"active", "paused", "ended"}
)

// NewSchedules makes the metrics of a scheduler.
func NewSchedules(r *Registry) *Schedules {
	return &Schedules{
		Fired: r.Counter("noetl_schedule_fired_total", "Ticks of schedules by what became of them.", Label{Name: "outcome", Values: ScheduleOutcomes}),
		Lag:   r.Histogram("noetl_schedule_lag_seconds", "Time from when a tick was to be run to the start of its execution.", []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}),
		Kept:  r.Gauge("noetl_schedules", "Schedules by how they stand.", Label{Name: "state", Values: ScheduleStates}),
	}
}
