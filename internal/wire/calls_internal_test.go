package wire

// internalCalls is what system playbooks and the watchers of jobs ask, with the
// internal token.
var internalCalls = []call{
	{by: operator, ask: "GET /api/internal/outbox/pending-count", status: 200, shape: `{pending: int}`},
	{
		by: operator, ask: "POST /api/internal/outbox/claim", body: `{"limit":2}`, status: 200,
		shape: `{rows: [{outbox_id: id, event_id: id, execution_id: id, subject: text, payload: {event_id: id, execution_id: id, execution_id_str: sid, event_type: text, created_at: time}, payload_codec: "json", attempts: 1}+], claimed: int}`,
		keep:  "box=rows.0.outbox_id box2=rows.1.outbox_id",
	},
	{by: operator, ask: "POST /api/internal/outbox/mark-published", body: `{"outbox_ids":[$box]}`, status: 200, shape: `{marked: 1}`},
	{by: operator, ask: "POST /api/internal/outbox/mark-published", body: `{"outbox_ids":["$box"]}`, status: 200, shape: `{marked: 0}`},
	{by: operator, ask: "POST /api/internal/outbox/mark-published", body: `{"outbox_ids":[]}`, status: 400, shape: `@error`},
	{by: operator, ask: "POST /api/internal/outbox/mark-failed", body: `{"outbox_id":$box2,"error":"no broker","attempts":5}`, status: 200, shape: `{marked: true, available_at_in: 16}`},
	{by: operator, ask: "POST /api/internal/outbox/claim", body: ``, status: 200, shape: `{rows: [any], claimed: int}`},
	{
		by: operator, ask: "POST /api/internal/events/project", body: `{"events":[{"event_id":700000000000000006,"execution_id":$child,"event_type":"note.foreign","node_id":"x","node_name":"x","status":"DONE","timestamp":"2026-05-31T03:14:15","worker_id":"w","meta":{"k":1},"unknown":true},{"event_id":7}]}`, status: 200,
		shape: `{projected: 1, duplicates: 0, rejected: [{index: 1, error: text}+]}`,
	},
	{by: operator, ask: "POST /api/internal/events/project", body: `{"events":[{"event_id":"700000000000000006","execution_id":"$child","event_type":"note.foreign","node_name":"x"}]}`, status: 200, shape: `{projected: 0, duplicates: 1}`},
	{by: operator, ask: "POST /api/internal/events/project", body: `{"events":[]}`, status: 400, shape: `@error`},
	{by: operator, ask: "POST /api/internal/events/materialize", body: `[{"execution_id":$child,"step":"x","event_type":"note.own","event_id":700000000000000007,"payload":{"k":1}}]`, status: 200, shape: `{materialized: 1, duplicates: 0}`},
	{by: operator, ask: "POST /api/internal/projection/advance", body: `{"execution_ids":[$child,"1"]}`, status: 200, shape: `{advanced: [{execution_id: id, version: int, events: int}+], failed: [{execution_id: id, error: text}+]}`},
	{by: operator, ask: "POST /api/internal/cleanup/purge", body: `{"command_retention_days":7,"runtime_stale_minutes":60,"event_retention_days":0}`, status: 200, shape: `{commands_purged: int, runtime_purged: int, events_purged: int, outbox_purged: int, claims_purged: int, executions_purged: int, event_partitions_dropped: int, !}`},
	{by: operator, ask: "POST /api/internal/container-callback/$child/start", body: `{"state":"succeeded","job_name":"job-1","job_uid":"u-1","exit_code":0}`, status: 202, shape: `{status: "accepted_stale"}`},
	{by: operator, ask: "POST /api/internal/container-callback/$child/start", body: `{"state":"nonsense","job_name":"job-1"}`, status: 422, shape: `@error`},

	{by: operator, ask: "POST /api/catalog/delete", body: `{"path":"demo/two","version":1}`, status: 200, shape: `{status: "success", message: text, path: "demo/two", deleted: [{catalog_id: sid, version: 1}+], count: 1}`},
	{by: operator, ask: "POST /api/catalog/delete", body: `{"path":"demo/two","version":"1"}`, status: 200, shape: `{deleted: [], count: 0}`},
	{by: worker, ask: "POST /api/catalog/resource", body: `{"catalog_id":"$catalog"}`, status: 200, shape: `{version: 1}`},
	{by: operator, ask: "POST /api/catalog/restore", body: `{"path":"demo/two","version":1}`, status: 200, shape: `{status: "success", restored: [{catalog_id: sid, version: 1}+], count: 1}`},
}

// endCalls ends executions, and checks what they left in the database.
var endCalls = []call{
	{by: gui, ask: "POST /api/executions/$child/cancel", body: `{"reason":"enough"}`, status: 200, shape: `{execution_id: id, execution_id_str: sid, status: "cancelled", message: text, cancelled_executions: [id+]}`},
	{by: cli, ask: "POST /api/executions/$child/cancel", body: ``, status: 422, shape: `{error: "Cannot cancel execution in CANCELLED state", status: 422}`},
	{by: gui, ask: "POST /api/executions/$first/stop", body: `{}`, status: 200, shape: `{execution_id: id, status: "cancelled"}`},
	{by: gateway, ask: "POST /api/executions/$held/finalize", body: `{"status":"FAILED","error":"gave up"}`, status: 200, shape: `{execution_id: id, status: "FAILED", message: text}`},
	{by: operator, ask: "POST /api/executions/$rerun/finalize", body: `{"reason":"by hand"}`, status: 200, shape: `{execution_id: id, status: "FAILED"}`},
	{by: gateway, ask: "POST /api/executions/$held/finalize", body: `{"status":"WON"}`, status: 422, shape: `@error`},
	{by: cli, ask: "POST /api/executions/cleanup", body: `{"older_than_minutes":5,"dry_run":true}`, status: 200, shape: `{cancelled_count: 0, execution_ids: [id], message: text}`},
	{by: operator, ask: "POST /api/db/verify", body: `{}`, status: 200, shape: `{generated_at: time, clean: true, executions: int, events: int, commands: int, differences: any}`},
	{by: operator, ask: "POST /api/db/rebuild", body: `{"dry_run":true,"all":true}`, status: 200, shape: `{dry_run: true, executions: int, left_total: 0}`},
}
