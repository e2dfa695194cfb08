package obs

import (
	"cmp"
	"slices"
)

// Statuses of counted operations.
const (
	OK      = "ok"
	Refused = "refused" // the caller's fault
	Error   = "error"
)

// Routes by which a worker hears of a command.
const (
	ByBus      = "bus"
	ByHandover = "handover" // with the answer to a report or claim
)

// Outcomes of asking for an execution.
const (
	Started   = "new"
	Duplicate = "duplicate"
)

// Parts of a decision.
const (
	PhaseLoad   = "load"
	PhaseDecide = "decide"
	PhaseAppend = "append"
)

// Why stored events do not go to the outbox.
const (
	SkippedOff    = "off"
	SkippedSystem = "system_playbook"
)

// Where the state of an execution came from.
const (
	StateCached = "cache"
	StateFolded = "log"
)

// Why events are not published.
const (
	OutboxBroker    = "broker"
	OutboxTooLarge  = "too_large"
	OutboxStore     = "store"
	OutboxPublisher = "publisher" // one outside of this process says so
)

var (
	quick   = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	coarse  = []float64{.001, .005, .025, .1, .5, 2.5, 10} // of metrics with many series
	long    = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 86400}
	batches = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000}
)

// Vocabulary is what the labels of a server's metrics range over.
type Vocabulary struct {
	EventTypes []string
	Pools      []string
	JobStates  []string
	Verdicts   []string // on executions without progress
	Surfaces   []string // what a replay is compared with
	Version    string
	Region     string // of the server; "" when it knows none
}

// Metrics are those of a server. Every one is written by something.
type Metrics struct {
	Registry

	System
	Sweeps
	Secrets

	EventsIngested   Counter   // event_type, status
	IngestDuration   Histogram // event_type
	IngestPhase      Histogram // phase
	Outboxed         Counter   // event_type
	NotOutboxed      Counter   // reason
	StatesBuilt      Counter   // mode, outcome
	ExecutionTime    Histogram // status
	ExecuteOutcomes  Counter   // entry, outcome
	ExecuteBatchSize Histogram
	Published        Counter // route, pool
	PublishFailed    Counter // pool

	ResultPut       Counter   // status
	ResultPutTime   Histogram // status
	ResultFound     Counter   // status
	ResultFoundTime Histogram // status

	Callbacks      Counter // state
	CallbacksStale Counter // state

	Purged Counter // table

	RetentionExecutions Counter // outcome
	RetentionPartitions Counter
	RetentionLag        Gauge

	Appends   Counter
	Events    Counter
	Conflicts Counter

	Running        Gauge
	OutboxPending  Gauge
	OutboxInFlight Gauge
	OutboxDead     Gauge
	OutboxAge      Gauge
	OutboxSent     Counter
	OutboxFailed   Counter // reason
	OutboxTaken    Counter
	Workers        Gauge

	CatalogRemoved     Counter // outcome
	Projected          Counter
	ProjectedTwice     Counter
	ProjectionAdvanced Counter
	ReplayTime         Histogram
	ParityMismatches   Counter // surface
}

// New makes the metrics of a server, all at zero.
func New(v Vocabulary) *Metrics {
	m := &Metrics{}
	types := Label{Name: "event_type", Values: v.EventTypes, Open: true}
	pools := Label{Name: "pool", Values: v.Pools, Open: true}
	states := Label{Name: "state", Values: v.JobStates, Open: true}
	status := Label{Name: "status", Values: []string{OK, Refused, Error}}

	m.Gauge("noetl_server_build_info", "Always 1; the label tells the version.", Label{Name: "version", Values: []string{v.Version}}).Set(1, v.Version)
	m.EventsIngested = m.Counter("noetl_events_ingested_total", "Events reported by workers and clients.", types, status)
	m.IngestDuration = m.Histogram("noetl_event_ingest_duration_seconds", "Time until a reported event was durable.", coarse, types)
	m.IngestPhase = m.Histogram("noetl_event_ingest_phase_seconds", "Time the parts of a decision took.", quick,
		Label{Name: "phase", Values: []string{PhaseLoad, PhaseDecide, PhaseAppend}})
	m.Outboxed = m.Counter("noetl_event_ingest_published_total", "Stored events that were put into the outbox.", types)
	m.NotOutboxed = m.Counter("noetl_event_ingest_publish_skipped_total", "Stored events that were not.",
		Label{Name: "reason", Values: []string{SkippedOff, SkippedSystem}})
	m.StatesBuilt = m.Counter("noetl_state_build_total", "Where the state of an execution came from.",
		Label{Name: "mode", Values: []string{StateCached, StateFolded}}, Label{Name: "outcome", Values: []string{OK, Refused, Error}})
	m.ExecutionTime = m.Histogram("noetl_execution_duration_seconds", "Time from the start of an execution to its end.", long,
		Label{Name: "status", Values: []string{"COMPLETED", "FAILED", "CANCELLED"}})
	m.ExecuteOutcomes = m.Counter("noetl_execute_outcomes_total", "Requests for an execution and what came of them.",
		Label{Name: "entry", Values: []string{"single", "batch"}}, Label{Name: "outcome", Values: []string{Started, Duplicate, Error}})
	m.ExecuteBatchSize = m.Histogram("noetl_execute_batch_size", "Executions asked for in one batch.", batches)
	m.Published = m.Counter("noetl_command_publish_total", "Commands that workers were told of.",
		Label{Name: "route", Values: []string{ByBus, ByHandover}}, pools)
	m.PublishFailed = m.Counter("noetl_command_publish_failed_total", "Notifications the bus did not take; they are sent again.", pools)
	m.ResultPut = m.Counter("noetl_result_store_put_total", "Values put aside because they are too large for the log.", status)
	m.ResultPutTime = m.Histogram("noetl_result_store_put_duration_seconds", "Time until such a value was durable.", quick, status)
	m.ResultFound = m.Counter("noetl_result_store_resolve_total", "References resolved to their values.", status)
	m.ResultFoundTime = m.Histogram("noetl_result_store_resolve_duration_seconds", "Time until a reference was resolved.", quick, status)
	m.Callbacks = m.Counter("noetl_container_callback_total", "Ends of jobs that were reported.", states)
	m.CallbacksStale = m.Counter("noetl_container_callback_stale_total", "Ends of jobs that nothing waited for.", states)
	m.Purged = m.Counter("noetl_cleanup_rows_purged_total", "Rows removed because they had served their time.",
		Label{Name: "table", Values: []string{"command", "runtime", "outbox", "subscription_dedup", "result_store", "event", "execution", "result_chunk", "transient", "projection_snapshot", "keychain", "execution_removed"}, Open: true})
	m.RetentionExecutions = m.Counter("noetl_retention_executions_total", "Executions whose time is over, by what became of them.",
		Label{Name: "outcome", Values: []string{"removed", "kept", "failed"}})
	m.RetentionPartitions = m.Counter("noetl_retention_partitions_dropped_total", "Parts of the log that were dropped as a whole.")
	m.RetentionLag = m.Gauge("noetl_retention_lag_seconds", "How long ago the oldest execution should have been removed that the last run left for the next.")
	m.Appends = m.Counter("noetl_appends_total", "Batches of events appended to the log.")
	m.Events = m.Counter("noetl_events_appended_total", "Events in them.")
	m.Conflicts = m.Counter("noetl_conflicts_total", "Appends repeated because another replica was first.")
	m.Running = m.Gauge("noetl_executions_running", "Executions that have not ended.")
	m.OutboxPending = m.Gauge("noetl_outbox_pending", "Events that wait to be published.")
	m.OutboxInFlight = m.Gauge("noetl_outbox_in_flight", "Events being published.")
	m.OutboxDead = m.Gauge("noetl_outbox_dead", "Events whose publication was given up.")
	m.OutboxAge = m.Gauge("noetl_outbox_oldest_pending_age_seconds", "Age of the oldest event that waits to be published.")
	m.OutboxSent = m.Counter("noetl_outbox_published_total", "Events this server has published.")
	m.OutboxFailed = m.Counter("noetl_outbox_publish_failures_total", "Events that were not published; they are tried again.",
		Label{Name: "reason", Values: []string{OutboxBroker, OutboxTooLarge, OutboxStore, OutboxPublisher}})
	m.OutboxTaken = m.Counter("noetl_outbox_reclaimed_total", "Events taken over from a publisher that did not report.")
	m.Workers = m.Gauge("noetl_workers", "Registered workers that have been heard of lately.")
	m.CatalogRemoved = m.Counter("noetl_catalog_delete_total", "Requests to take something out of the catalog.",
		Label{Name: "outcome", Values: []string{OK, Refused, Error}})
	m.Projected = m.Counter("noetl_events_projected_total", "Events that were brought from elsewhere and stored.")
	m.ProjectedTwice = m.Counter("noetl_events_projected_duplicates_total", "Events that were brought and had been stored before.")
	m.ProjectionAdvanced = m.Counter("noetl_projection_advanced_total", "Executions that were decided on again because somebody asked for it.")
	m.ReplayTime = m.Histogram("noetl_replay_duration_seconds", "Time a replay of a log took.", quick)
	m.ParityMismatches = m.Counter("noetl_replay_parity_mismatch_total", "Contradictions between a log and the rows beside it.",
		Label{Name: "surface", Values: v.Surfaces})
	m.System = newSystem(&m.Registry)
	m.Sweeps = newSweeps(&m.Registry, v.Verdicts)
	m.Secrets = newSecrets(&m.Registry, cmp.Or(v.Region, noRegion))
	m.Process()
	return m
}

// Requests are the metrics of the routes that change something.
type Requests struct {
	Total    Counter   // endpoint, status
	Duration Histogram // endpoint
}

// Requests makes the metrics of endpoints, or returns those made before.
func (m *Metrics) Requests(endpoints []string) Requests {
	at := Label{Name: "endpoint", Values: slices.Clone(endpoints), Open: true}
	return Requests{
		Total: m.Counter("noetl_write_requests_total", "Requests that change something, by outcome.", at,
			Label{Name: "status", Values: []string{OK, Refused, Error}}),
		Duration: m.Histogram("noetl_write_request_duration_seconds", "Time such requests took.", coarse, at),
	}
}
