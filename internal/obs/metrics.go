package obs

import "slices"

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

var (
	quick   = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	coarse  = []float64{.001, .005, .025, .1, .5, 2.5, 10} // of metrics with many series
	batches = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000}
)

// Vocabulary is what the labels of a server's metrics range over.
type Vocabulary struct {
	EventTypes []string
	Pools      []string
	JobStates  []string
	Version    string
}

// Metrics are those of a server. Every one is written by something.
type Metrics struct {
	Registry

	EventsIngested   Counter   // event_type, status
	IngestDuration   Histogram // event_type
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

	Appends   Counter
	Events    Counter
	Conflicts Counter

	Running        Gauge
	OutboxPending  Gauge
	OutboxInFlight Gauge
	OutboxDead     Gauge
	OutboxAge      Gauge
	OutboxSent     Counter
	OutboxTaken    Counter
	Workers        Gauge

	SecretsReleased    Counter // operation
	SecretsDenied      Counter // operation
	SecretAuditDropped Counter
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
		Label{Name: "table", Values: []string{"command", "runtime", "outbox", "subscription_dedup"}})
	m.Appends = m.Counter("noetl_appends_total", "Batches of events appended to the log.")
	m.Events = m.Counter("noetl_events_appended_total", "Events in them.")
	m.Conflicts = m.Counter("noetl_conflicts_total", "Appends repeated because another replica was first.")
	m.Running = m.Gauge("noetl_executions_running", "Executions that have not ended.")
	m.OutboxPending = m.Gauge("noetl_outbox_pending", "Events that wait to be published.")
	m.OutboxInFlight = m.Gauge("noetl_outbox_in_flight", "Events being published.")
	m.OutboxDead = m.Gauge("noetl_outbox_dead", "Events whose publication was given up.")
	m.OutboxAge = m.Gauge("noetl_outbox_oldest_pending_age_seconds", "Age of the oldest event that waits to be published.")
	m.OutboxSent = m.Counter("noetl_outbox_published_total", "Events this server has published.")
	m.OutboxTaken = m.Counter("noetl_outbox_reclaimed_total", "Events taken over from a publisher that did not report.")
	m.Workers = m.Gauge("noetl_workers", "Registered workers that have been heard of lately.")
	operations := Label{Name: "operation", Values: []string{"get_credential", "get_sealed", "resolve_keychain", "check"}, Open: true}
	m.SecretsReleased = m.Counter("noetl_secret_released_total", "Secrets that were handed out.", operations)
	m.SecretsDenied = m.Counter("noetl_secret_denied_total", "Secrets that were asked for and not handed out.", operations)
	m.SecretAuditDropped = m.Counter("noetl_secret_audit_dropped_total", "Lines of the secret audit that could not be written.")
	return m
}

// SecretMeter counts the use of secrets.
type SecretMeter struct{ Metrics *Metrics }

// Released counts a secret that was handed out.
func (s SecretMeter) Released(operation string) { s.Metrics.SecretsReleased.Inc(operation) }

// Denied counts one that was asked for and not handed out.
func (s SecretMeter) Denied(operation string) { s.Metrics.SecretsDenied.Inc(operation) }

// AuditDropped counts audit lines that were lost.
func (s SecretMeter) AuditDropped(lines int) { s.Metrics.SecretAuditDropped.Add(float64(lines)) }

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
