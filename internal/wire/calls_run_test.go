package wire

// shelfCalls is what is asked before anything runs.
var shelfCalls = []call{
	{by: probe, ask: "GET /health", status: 200, shape: `{status: "ok"}`},
	{by: probe, ask: "GET /api/health", status: 200, shape: `{status: "ok", database: "connected", nats: "connected"|"disconnected"|"not_configured", uptime_seconds: int, version: "1.2.3"}`},
	{by: probe, ask: "GET /metrics", status: 200, shape: `~text/plain; version=0.0.4`},
	{by: gui, ask: "GET /api/pool/status", status: 200, shape: `{pool_min: int, pool_max: int, pool_size: int, pool_available: int, requests_waiting: int, utilization: real, slots_available: int, status: text}`},

	{
		by: cli, ask: "POST /api/catalog/register", body: `{"content":"$yaml","resource_type":"Playbook"}`, status: 200,
		shape: `{status: "success", message: "Resource 'demo/two' version '1' registered.", path: "demo/two", version: 1, catalog_id: sid, kind: "playbook"}`, keep: "catalog=catalog_id",
	},
	{by: gui, ask: "POST /api/catalog/register", body: `{"content":"$yaml","unknown":{"field":[1]}}`, status: 200, shape: `{version: 2, catalog_id: sid}`, keep: "catalog2=catalog_id"},
	{by: gui, ask: "POST /api/catalog/list", body: `{"resource_type":"Playbook"}`, status: 200, shape: `{entries: [@entry+]}`},
	{by: cli, ask: "POST /api/catalog/list", body: `{}`, status: 200, shape: `{entries: [@entry+]}`},
	{by: cli, ask: "GET /api/catalog/list/Playbook", status: 200, shape: `["demo/two"+]`},
	{by: gui, ask: "POST /api/catalog/agents/list", body: `{"capability":"chat"}`, status: 200, shape: `{entries: [@entry]}`},
	{by: gui, ask: "GET /api/catalog/versions?path=demo/two", status: 200, shape: `{path: "demo/two", versions: [{catalog_id: sid, version: int, kind: "playbook", created_at: time, archived_at: null}+]}`},
	{by: worker, ask: "POST /api/catalog/resource", body: `{"path":"demo/two","version":"latest"}`, status: 200, shape: `@entry`},
	{by: gui, ask: "POST /api/catalog/resource", body: `{"catalog_id":"$catalog"}`, status: 200, shape: `{catalog_id: sid, version: 1, payload: {metadata: {name: "two"}, workload: any}, layout: [any+], meta: {team: "tests"}}`},
	{by: cli, ask: "POST /api/catalog/resource", body: `{"catalog_id":$catalog,"path":null}`, status: 200, shape: `{version: 1}`},
	{by: cli, ask: "POST /api/catalog/resource", body: `{"path":"demo/two","version":2}`, status: 200, shape: `{version: 2}`},
	{by: gui, ask: "POST /api/catalog/playbooks/validate", body: `{"content":"$yaml"}`, status: 200, shape: `{valid: true, errors: [text], warnings: [text], problems: [any]}`},
	{by: gui, ask: "POST /api/catalog/playbooks/validate", body: `{"content":"kind: Playbook"}`, status: 200, shape: `{valid: false, errors: [text+]}`},
	{
		by: gui, ask: "GET /api/catalog/demo/two/ui_schema?version=1", status: 200,
		shape: `{path: "demo/two", version: 1, kind: "playbook", title: text, description_markdown: str, exposed_in_ui: bool, generated_at: time,
			fields: [{name: text, kind: text, default: any, description: any, secret: bool, credential_glob: any, options: any, children: any}+]}`,
	},
}

// startCalls starts executions in the words of each client.
var startCalls = []call{
	{by: gui, ask: "POST /api/execute", body: `{"catalog_id":"$catalog","path":"demo/two","version":"1","resource_kind":"playbook","payload":{"who":"gui"}}`, status: 200, shape: `@started`, keep: "run=execution_id"},
	{by: cli, ask: "POST /api/execute", body: `{"path":"demo/two","version":"latest","workload":{"who":"cli"},"resource_kind":"playbook"}`, status: 200, shape: `@started`, keep: "held=execution_id"},
	{by: worker, ask: "POST /api/execute", body: `{"path":"demo/two","version":null,"payload":{},"parent_execution_id":$run,"execution_pool":"shared","trace":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}`, status: 200, shape: `@started`, keep: "child=execution_id"},
	{by: gateway, ask: "POST /api/execute", body: `{"path":"demo/two","parent_execution_id":"$run","dedup":{"key":"message-7","window_secs":60}}`, status: 200, shape: `@started`, keep: "first=execution_id"},
	{by: gateway, ask: "POST /api/execute", body: `{"path":"demo/two","parent_execution_id":"$run","dedup":{"key":"message-7"}}`, status: 200, shape: `{execution_id: sid, status: "duplicate", commands_generated: 0}`},
	{
		by: worker, ask: "POST /api/execute/batch", body: `{"executions":[{"path":"demo/two","payload":{"n":1}},{"path":"nowhere"},{"catalog_id":"$catalog2","dedup":{"key":"message-8"}}]}`, status: 200,
		shape: `{count: 3, started: 2, duplicates: 0, failed: 1, results: [{index: int, status: "started", execution_id: sid, commands_generated: int}|{index: 1, status: "error", commands_generated: 0, error: text}+]}`,
	},
	{by: cli, ask: "POST /api/executions/$run/rerun", body: `{"workload":{"who":"again"},"resource_kind":"playbook"}`, status: 200, shape: `@started`, keep: "rerun=execution_id"},
	{by: gui, ask: "POST /api/executions/$run/rerun", body: ``, status: 200, shape: `@started`},
}

// workCalls is a worker of another make on the first command of an execution:
// its ids are numbers, those of events its own.
var workCalls = []call{
	{by: worker, ask: "GET /api/commands/$cmd", status: 200, shape: `@command`},
	{by: worker, ask: "POST /api/commands/$cmd/claim", body: `{"worker_id":"rust-1"}`, status: 200, shape: `@command`},
	{by: worker, ask: "POST /api/commands/$cmd/claim", body: `{"worker_id":"rust-1","locality":{"zone":"a"}}`, status: 200, shape: `{status: "ok", event_id: id, execution_id: id, action: "python"}`},
	{by: worker, ask: "POST /api/commands/$cmd/claim", body: `{"worker_id":"rust-2"}`, status: 409, shape: `@error`},
	{
		by: worker, ask: "POST /api/events", body: `{"execution_id":$run,"step":"start","event_type":"command.started","payload":{"command_id":"$cmd_id"},"meta":{"attempts":1},"worker_id":"rust-1","event_id":700000000000000001,"status":"STARTED"}`, status: 200,
		shape: `{status: "ok", event_id: 700000000000000001, commands_generated: 0}`,
	},
	{by: worker, ask: "GET /api/executions/$run/cancellation-check", status: 200, shape: `{execution_id: id, is_cancelled: false, status: "RUNNING", event_type: text, cancelled: false, completed: false, failed: false}`},
	{
		by: worker, ask: "PUT /api/result/$run", body: `{"name":"start","data":{"rows":[1,2,3]},"scope":"execution","source_step":"start","store":"auto","ttl":null,"correlation":{},"compress":false}`, status: 200,
		shape: `{ref: text, store: "db", scope: "execution", bytes: int, sha256: text, expires_at: null}`, keep: "ref=ref",
	},
	{by: worker, ask: "GET /api/result/resolve?ref=$ref", status: 200, shape: `{rows: [int+]}`},
	{
		by: worker, ask: "POST /api/events", body: `{"execution_id":$run,"step":"start","event_type":"call.done","payload":{"command_id":"$cmd_id","call_index":0,"result":{"status":"success","context":{"status":"success","data":{"n":1},"duration_ms":12.5}}},"meta":{"attempts":1},"worker_id":"rust-1","event_id":700000000000000002,"status":"COMPLETED","result_kind":"data","actionable":true,"informative":true,"created_at":"2026-05-31T03:14:15Z"}`, status: 200,
		shape: `{status: "ok", event_id: id, commands_generated: 0}`,
	},
	{
		by: worker, ask: "POST /api/events", body: `{"execution_id":$run,"step":"start","event_type":"command.completed","payload":{"command_id":"$cmd_id","status":"success"},"meta":{"attempts":1},"worker_id":"rust-1","event_id":700000000000000003,"status":"success"}`, status: 200,
		shape: `{status: "ok", event_id: 700000000000000003, commands_generated: 1}`,
	},
	{by: worker, ask: "POST /api/events/batch", body: `{"execution_id":"not read when there is nothing to say","events":[]}`, status: 200, shape: `{status: "ok", event_ids: [id], commands_generated: 0}`},
}

// secondCalls is the same on the second command, in the words of the page, of
// an older worker, and of our own.
var secondCalls = []call{
	{by: gui, ask: "GET /api/commands/$cmd_b?execution_id=$run", status: 200, shape: `@command`},
	{by: worker, ask: "POST /api/events", body: `{"execution_id":"$run","node_name":"finish","name":"command.claimed","context":{"command_id":"$cmd_b_id"},"worker_id":"python-1"}`, status: 200, shape: `{status: "ok", event_id: id}`},
	{by: worker, ask: "POST /api/events", body: `{"execution_id":"$run","node_name":"finish","name":"command.claimed","context":{"command_id":"$cmd_b_id"},"worker_id":"python-1"}`, status: 200, shape: `{status: "ok", event_id: 0}`},
	{by: worker, ask: "POST /api/events", body: `{"execution_id":"$run","node_name":"finish","name":"command.claimed","context":{"command_id":"$cmd_b_id"},"worker_id":"python-2"}`, status: 409, shape: `@error`},
	{
		by: worker, ask: "POST /api/events/batch", body: `{"execution_id":$run,"worker_id":"python-1","events":[
		{"step":"finish","event_type":"command.started","payload":{"command_id":"$cmd_b_id"},"actionable":false},
		{"step":"finish","name":"call.done","context":{"command_id":"$cmd_b_id","call_index":0,"result":{"status":"success","context":{"status":"success","data":{"n":2},"duration_ms":1}}},"event_id":"700000000000000004","status":"COMPLETED","meta":{"attempts":1},"created_at":"2026-05-31 03:14:16"},
		{"step":"finish","event_type":"command.completed","payload":{"command_id":"$cmd_b_id","status":"success"},"event_id":700000000000000005,"status":"success"}]}`, status: 200,
		shape: `{status: "ok", event_ids: [id+], commands_generated: 0}`,
	},
}

// heldCalls is our own worker, which asks for many commands at once and beats
// for those it holds.
var heldCalls = []call{
	{
		by: worker, ask: "POST /api/commands/claim", body: `{"worker_id":"go-1","heartbeats":true,"commands":[{"event_id":"$held_cmd","execution_id":"$held"},{"event_id":1}]}`, status: 200,
		shape: `{results: [{event_id: id, status: "ok", command: @command}|{event_id: 1, status: "not_found", error: text, code: "not_found"}+]}`,
	},
	{by: worker, ask: "POST /api/commands/$held_cmd/heartbeat", body: `{"worker_id":"go-1","execution_id":"$held","attempt":1}`, status: 200, shape: `{lease_until: time, cancel: false}`},
	{by: worker, ask: "POST /api/commands/heartbeat", body: `{"worker_id":"go-1","commands":[{"event_id":$held_cmd},{"event_id":1}]}`, status: 200, shape: `{answers: [{cancel: bool}+]}`},
	{by: worker, ask: "POST /api/commands/$held_cmd/release", body: `{"worker_id":"go-1","attempt":1}`, status: 200, shape: `{status: "ok"}`},
	{by: worker, ask: "POST /api/commands/$held_cmd/heartbeat", body: `{"worker_id":"go-1","attempt":1}`, status: 409, shape: `@error`},
}
