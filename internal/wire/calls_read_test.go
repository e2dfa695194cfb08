package wire

// readCalls is what is asked about an execution that has completed.
var readCalls = []call{
	{by: gui, ask: "GET /api/executions", status: 200, shape: `[@row+]`},
	{by: gui, ask: "GET /api/executions?page=1&page_size=20&status=completed&path=TWO", status: 200, shape: `[@row+]`},
	{by: cli, ask: "GET /api/executions?limit=5&offset=0&catalog_id=$catalog", status: 200, shape: `[@row+]`},
	{by: gui, ask: "GET /api/executions?parent_execution_id=$run", status: 200, shape: `[{execution_id: id, parent_execution_id: id, parent_execution_id_str: sid}+]`},
	{
		by: worker, ask: "GET /api/executions/$run", status: 200,
		shape: `{execution_id: id, execution_id_str: sid, catalog_id: id, path: "demo/two", status: "COMPLETED", started_at: time, completed_at: time, parent_execution_id: null,
			workload: {who: "gui", city: "Paris"}, result: any, error: null, current_step: text|null, events_included: true, events_endpoint: text, events: [@event+], steps: {start: any, finish: any}}`,
	},
	{by: gui, ask: "GET /api/executions/$run?page=1&page_size=10&event_type=call.done", status: 200, shape: `{events: [{event_type: "call.done", result: any, error: null}+], pagination: @pages}`},
	{by: cli, ask: "GET /api/executions/$run?include_events=false", status: 200, shape: `{status: "COMPLETED", events_included: false, events: []}`},
	{by: gui, ask: "GET /api/executions/$run/events?page=1&page_size=10", status: 200, shape: `{events: [@event+], pagination: @pages}`},
	{by: gui, ask: "GET /api/executions/$run/events?since_event_id=$cmd", status: 200, shape: `{events: [@event+]}`},
	{
		by: worker, ask: "GET /api/executions/$run/status", status: 200,
		shape: `{execution_id: id, execution_id_str: sid, status: "COMPLETED", current_step: text|null, is_cancelled: false, completed: true, failed: false,
			progress: {total_steps: 2, completed_steps: 2, running_steps: 0, failed_steps: 0}, completed_steps: [text+],
			start_time: time, end_time: time, duration_seconds: real, duration_human: text, error: null, completion_inferred: bool, source: text}`,
	},
	{by: cli, ask: "GET /api/executions/$child/status", status: 200, shape: `{status: "RUNNING", current_step: text, is_cancelled: false, completed: false, end_time: null, error: null}`},
	{by: cli, ask: "GET /api/executions/$run/explain?step=finish", status: 200, shape: `{execution_id: sid, path: "demo/two", status: "COMPLETED", steps: [{step: "finish", status: text}+]}`},
	{by: gui, ask: "GET /api/executions/$run/stream", status: 200, shape: `~text/event-stream`},
	{by: worker, ask: "GET /api/executions/1/cancellation-check", status: 200, shape: `{execution_id: id, is_cancelled: false}`},

	{
		by: operator, ask: "GET /api/replay/state?execution_id=$run", status: 200,
		shape: `{tenant_id: "default", organization_id: "default", execution_id: id, projection: "all", event_count: int, last_event_id: id, last_event_type: "playbook.completed",
			execution: {status: "COMPLETED", last_node_name: text, payload_refs: [any]}, stages: {*: any}, frames: {*: any}, business_objects: {*: any}, loops: {*: any},
			commands: {*: {command_id: any, status: text, issued_event_id: id, last_event_id: id}}, checksum: @checksum,
			projection_checksums: {execution: @checksum, stage: @checksum, frame: @checksum, command: @checksum, business_object: @checksum, loop: @checksum}}`,
	},
	{by: operator, ask: "GET /api/replay/state?execution_id=1", status: 200, shape: `{execution_id: 1, event_count: 0, execution: {status: "UNKNOWN"}, commands: {*: any}, checksum: @checksum}`},
	{by: operator, ask: "GET /api/replay/state?execution_id=$run&as_of_event_id=1&as_of_position=1", status: 400, shape: `@error`},
	{by: operator, ask: "GET /api/replay/state?execution_id=$run&projection=nonsense", status: 400, shape: `@error`},
	{
		by: gateway, ask: "GET /api/runtime/shard-info?execution_id=42&shard_count=4", status: 200,
		shape: `{execution_id: 42, shard_count: 4, shard_index: 3, source: "noetl-server", hash_function: "twox_hash::XxHash64", seed: 0, server_config: {shard_index: int, shard_count: int}}`,
	},
	{by: gateway, ask: "GET /api/runtime/shard-info?execution_id=42&shard_count=1025", status: 400, shape: `@error`},
}

// sideCalls is what stands beside executions: variables, workers, numbers to look at.
var sideCalls = []call{
	{by: worker, ask: "POST /api/vars/$child", body: `{"city":"Rome","n":3}`, status: 200, shape: `{execution_id: id, variables_set: 2, status: "ok", var_names: [text+]}`},
	{by: gui, ask: "POST /api/vars/$child", body: `{"variables":[{"var_name":"a","var_value":{"x":1},"var_type":"computed","source_step":"start"}]}`, status: 200, shape: `{execution_id: id, variables_set: 1, status: "ok"}`},
	{by: cli, ask: "POST /api/vars/$child", body: `{"variables":{"b":[1]},"var_type":"user_defined","source_step":null}`, status: 200, shape: `{execution_id: id, variables_set: 1}`},
	{by: cli, ask: "POST /api/vars/$child", body: `{"variables":{"b":1},"var_type":"nonsense"}`, status: 422, shape: `@error`},
	{by: gui, ask: "GET /api/vars/$child", status: 200, shape: `[@variable+]`},
	{by: cli, ask: "GET /api/vars/$child?format=map", status: 200, shape: `{execution_id: id, variables: {city: {value: "Rome", type: "user_defined"}}, count: 4}`},
	{by: worker, ask: "GET /api/vars/$child/city", status: 200, shape: `{var_name: "city", var_value: "Rome", access_count: 1, accessed_at: time}`},
	{by: gui, ask: "DELETE /api/vars/$child/city", status: 200, shape: `{execution_id: id, var_name: "city", status: "deleted"}`},
	{by: gui, ask: "DELETE /api/vars/$child/city", status: 404, shape: `@error`},
	{by: gui, ask: "DELETE /api/vars/$child", status: 200, shape: `{execution_id: id, variables_deleted: 3, status: "ok"}`},

	{
		by: worker, ask: "POST /api/worker/pool/register", body: `{"name":"rust-1","component_type":"worker_pool","base_url":"http://w:1","status":"ready","labels":{"pool":"shared"},"capabilities":["python"],"capacity":4,"runtime":{"kind":"rust","worker_public_key":"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="},"hostname":"host-7"}`, status: 200,
		shape: `{runtime_id: id, name: "rust-1", kind: "worker_pool", uri: "http://w:1", status: "ready", labels: {pool: "shared"}, capabilities: ["python"+], capacity: 4, runtime: {kind: "rust"}, heartbeat: time, created_at: time, updated_at: time}`,
	},
	{by: worker, ask: "POST /api/worker/pool/register", body: `{"name":"x","kind":"nonsense"}`, status: 422, shape: `@error`},
	{by: worker, ask: "POST /api/worker/pool/heartbeat", body: `{"name":"rust-1"}`, status: 200, shape: `{status: "ok", message: "Heartbeat recorded"}`},
	{by: worker, ask: "POST /api/worker/pool/heartbeat", body: `{"name":"python-1","registration":{"name":"python-1","kind":"worker_pool","status":"ready"}}`, status: 200, shape: `{status: "ok"}`},
	{by: gui, ask: "GET /api/worker/pools", status: 200, shape: `[@runtime+]`},
	{by: cli, ask: "GET /api/worker/pools?kind=worker_pool&status=ready&name=rust%25", status: 200, shape: `[{name: "rust-1"}+]`},
	{by: worker, ask: "POST /api/worker/pool/deregister", body: `{"name":"rust-1","component_type":"worker_pool"}`, status: 200, shape: `{status: "ok"}`},
	{by: worker, ask: "DELETE /api/worker/pool/deregister", body: `{"name":"python-1"}`, status: 200, shape: `{status: "ok"}`},

	{
		by: gui, ask: "GET /api/dashboard/stats", status: 200,
		shape: `{status: "ok", stats: @totals, total_playbooks: int, total_executions: int, active_executions: int, success_rate: real, recent_executions: [@row+]}`,
	},
	{by: gui, ask: "GET /api/dashboard/widgets", status: 200, shape: `{widgets: [{id: text, type: text, title: text, config: {*: any}, data: any}+]}`},
	{
		by: gui, ask: "GET /api/status", status: 200,
		shape: `{system: {cpu_percent: real, memory_percent: real, total_memory_mb: real, used_memory_mb: real, available_memory_mb: real},
			process: {pid: int, cpu_percent: real, memory_rss_mb: real, memory_vms_mb: real, num_threads: int, start_time: time, uptime_seconds: int}}`,
	},
	{by: operator, ask: "GET /api/runtime/sweeps", status: 200, shape: `{generated_at: time, mode: text, grace_seconds: int, pending: [any], expired: [any], stalled: [any], counts: {pending: int, expired: int, stalled: int}}`},
	{by: cli, ask: "POST /api/db/init", status: 200, shape: `{status: "ok", message: text}`},
	{by: cli, ask: "GET /api/db/validate", status: 200, shape: `{status: "ok", message: text, valid: true, tables: [text+], missing: []}`},
}
