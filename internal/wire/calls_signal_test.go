package wire

// signalCalls is a step that waits for a person, and what it gets; the worker
// that ran it holds nothing meanwhile.
var signalCalls = []call{
	{by: cli, ask: "GET /api/executions/$held/waits", status: 200, shape: `{execution_id: sid, waits: []}`},
	{
		by: worker, ask: "POST /api/events", body: `{"execution_id":"$held","step":"start","event_type":"command.parked","worker_id":"go-2","event_id":"700000000000000010","meta":{"command_id":"$held_id","attempt":$attempt},
			"payload":{"command_id":"$held_id","park":{"signal":{"name":"approval","message":"Ship it?","form":{"type":"object","required":["approved"],"properties":{"approved":{"type":"boolean"}}},"approve":"fail"},"delay_seconds":3600}}}`, status: 200,
		shape: `{status: "ok", event_id: 700000000000000010}`,
	},
	{
		by: gui, ask: "GET /api/executions/$held/waits", status: 200,
		shape: `{execution_id: "$held", waits: [{step: "start", command_id: text, for: "signal", signal: "approval", message: "Ship it?", form: {type: "object"}, approval: true, since: time, until: time}+]}`,
	},
	{by: gui, ask: "POST /api/executions/$held/signals/approval", body: `{"data":{"approved":"perhaps"}}`, status: 422, shape: `@error`},
	{by: gui, ask: "POST /api/executions/$held/signals/approval", body: `{"data":{"approved":true},"sender":"anna","event_id":"700000000000000011"}`, status: 200, shape: `{execution_id: "$held", signal: "approval", status: "delivered", woken: 1, event_id: "700000000000000011"}`},
	{by: gui, ask: "POST /api/executions/$held/signals/approval", body: `{"data":{"approved":true},"sender":"anna","event_id":700000000000000011}`, status: 200, shape: `{status: "duplicate", woken: 0, event_id: "700000000000000011"}`},
	{by: gateway, ask: "POST /api/executions/$held/signals/more", body: ``, status: 202, shape: `{execution_id: sid, signal: "more", status: "buffered", woken: 0, event_id: sid}`},
	{by: cli, ask: "POST /api/executions/$run/signals/more", body: `{"by":"anna"}`, status: 409, shape: `{error: text, status: 409, reason: "already_ended"}`},
	{by: gui, ask: "GET /api/executions/$held/waits", status: 200, shape: `{waits: []}`},
}

// logCalls is what a tool printed.
var logCalls = []call{
	{by: gui, ask: "GET /api/executions/$held/logs", status: 200, shape: `{execution_id: "$held", chunks: [{seq: int, time: time, step: "start", command_id: text, event_id: sid, attempt: 1, text: "one\n"|"two\n"}+], truncated: false, after: int}`, keep: "seen=chunks.0.seq"},
	{by: gui, ask: "GET /api/executions/$held/logs?step=start&after=$seen", status: 200, shape: `{chunks: [{text: "two\n"}+]}`},
	{by: cli, ask: "GET /api/executions/$held/logs?step=nowhere", status: 200, shape: `{chunks: [], truncated: false}`},
	{by: gui, ask: "GET /api/executions/$run/logs?follow=true", status: 200, shape: `~text/event-stream`},
	{by: gui, ask: "GET /api/executions/$held/logs?after=x", status: 422, shape: `@error`},
}
