package obs

// Outcomes of asking the bus for a command.
const (
	PullDelivered = "delivered"
	PullEmpty     = "empty"
	PullError     = "error"
)

// Parts of the way from the notification of a command to its run.
const (
	PickupPull  = "pull"  // until the bus had a notification
	PickupClaim = "claim" // until the server gave the command
)

// Why a worker had to join its command queue again.
const (
	ReasonConnection = "connection"
	ReasonConsumer   = "consumer"
	ReasonSilence    = "silence"
)

// WorkerVocabulary is what the labels of a worker's metrics range over.
type WorkerVocabulary struct {
	ToolKinds  []string
	EventTypes []string
	Version    string
}

// WorkerMetrics are those of a worker, alone or within a server.
type WorkerMetrics struct {
	Pulls             Counter // outcome
	PullDuration      Histogram
	ClaimSucceeded    Counter
	ClaimFailed       Counter
	ClaimDeadLettered Counter
	DispatchDuration  Histogram // tool_kind
	DispatchErrors    Counter   // tool_kind
	EmitDuration      Histogram // event_type
	EmitRetries       Counter   // event_type
	EmitFailed        Counter   // event_type
	PickupPhase       Histogram // phase
	ToolResultErrors  Counter
	Parked            Counter // tool_kind
	Concurrent        Gauge
	ResultPutDuration Histogram
	ResultPutBytes    Counter
	ResultPutErrors   Counter
	Ready             Gauge
	Reconnects        Counter // reason
	SpoolWaiting      Gauge
	SpoolReplayed     Counter // status
}

// NewWorker makes the metrics of a worker in a registry, all at zero.
func NewWorker(r *Registry, v WorkerVocabulary) *WorkerMetrics {
	kinds := Label{Name: "tool_kind", Values: v.ToolKinds, Open: true}
	types := Label{Name: "event_type", Values: v.EventTypes, Open: true}
	r.Gauge("noetl_worker_build_info", "Always 1; the label tells the version.", Label{Name: "version", Values: []string{v.Version}}).Set(1, v.Version)
	return &WorkerMetrics{
		Pulls: r.Counter("noetl_worker_pulls_total", "Times the worker asked the bus for a command.",
			Label{Name: "outcome", Values: []string{PullDelivered, PullEmpty, PullError}}),
		PullDuration:      r.Histogram("noetl_worker_pull_duration_seconds", "Time until the bus had a command.", quick),
		ClaimSucceeded:    r.Counter("noetl_worker_claim_succeeded_total", "Commands the worker got the right to run."),
		ClaimFailed:       r.Counter("noetl_worker_claim_failed_total", "Claims that were refused or got no answer."),
		ClaimDeadLettered: r.Counter("noetl_worker_claim_dead_lettered_total", "Notifications of commands that nobody knows, put aside."),
		DispatchDuration:  r.Histogram("noetl_worker_dispatch_duration_seconds", "Time a command ran.", coarse, kinds),
		DispatchErrors:    r.Counter("noetl_worker_dispatch_errors_total", "Commands that failed.", kinds),
		EmitDuration:      r.Histogram("noetl_worker_event_emit_duration_seconds", "Time until the server had taken an event.", coarse, types),
		EmitRetries:       r.Counter("noetl_worker_event_emit_retries_total", "Events sent again because the server did not answer.", types),
		PickupPhase: r.Histogram("noetl_worker_command_pickup_phase_seconds", "Time from the notification of a command to its run.", quick,
			Label{Name: "phase", Values: []string{PickupPull, PickupClaim}}),
		ToolResultErrors:  r.Counter("noetl_worker_tool_result_error_total", "Commands whose tool ended with an error, those that were stopped not counted."),
		Parked:            r.Counter("noetl_worker_call_done_skipped_pending_callback_total", "Commands that were parked until somebody calls back.", kinds),
		EmitFailed:        r.Counter("noetl_worker_event_emit_failed_total", "Events the server was not given in time.", types),
		Concurrent:        r.Gauge("noetl_worker_concurrent_dispatches", "Commands the worker runs now."),
		ResultPutDuration: r.Histogram("noetl_worker_result_store_put_duration_seconds", "Time until a large value was stored.", quick),
		ResultPutBytes:    r.Counter("noetl_worker_result_store_put_bytes_total", "Bytes of large values that were stored."),
		ResultPutErrors:   r.Counter("noetl_worker_result_store_put_errors_total", "Large values that could not be stored."),
		Ready:             r.Gauge("noetl_worker_ready", "1 while the worker takes commands."),
		Reconnects: r.Counter("noetl_worker_command_loop_reconnect_total", "Times the worker joined its command queue again.",
			Label{Name: "reason", Values: []string{ReasonConnection, ReasonConsumer, ReasonSilence}, Open: true}),
		SpoolWaiting: r.Gauge("noetl_worker_spool_reports", "Reports kept on disk until the server is back."),
		SpoolReplayed: r.Counter("noetl_worker_spool_replayed_total", "Kept reports the server has taken, or refused for good.",
			Label{Name: "status", Values: []string{OK, Refused}}),
	}
}
