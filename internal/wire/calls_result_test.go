package wire

// resultCalls puts bytes aside, lists what was put aside, and removes it.
var resultCalls = []call{
	{
		by: worker, ask: "PUT /api/result/$run/blob?name=picture&media_type=image/png&scope=permanent&source_step=finish", body: "\x89PNG, and what follows", status: 200,
		shape: `{ref: text, store: text, scope: "permanent", bytes: 22, sha256: text, media_type: "image/png", expires_at: null}`, keep: "picture=ref",
	},
	{by: worker, ask: "PUT /api/result/$run/blob?name=note&ttl=1h", body: `{"n":1}`, status: 200, shape: `{ref: text, bytes: 7, sha256: text, expires_at: time}`},
	{by: worker, ask: "PUT /api/result/$run/blob?name=note", body: `{"n":`, status: 422, shape: `@error`},
	{by: worker, ask: "PUT /api/result/$run/blob", body: `x`, status: 422, shape: `@error`},
	{by: worker, ask: "PUT /api/result/$run/blob?name=n&scope=nonsense", body: `x`, status: 422, shape: `@error`},
	{by: gui, ask: "GET /api/result/resolve?ref=$picture", status: 200, shape: `~image/png`},
	{
		by: gui, ask: "GET /api/result/$run/list", status: 200,
		shape: `{results: [{ref: text, name: "start"|"picture"|"note", source_step?: text, store: text, scope: text, bytes: int, sha256: text, media_type?: text, created_at: time, expires_at: time|null}+]}`,
	},
	{by: cli, ask: "GET /api/result/$run/list?limit=1", status: 200, shape: `{results: [{name: "note"}+], next: text}`, keep: "after=next"},
	{by: cli, ask: "GET /api/result/$run/list?limit=2&after=$after", status: 200, shape: `{results: [{name: "picture"|"start"}+]}`},
	{by: operator, ask: "GET /api/internal/results/collect", status: 200, shape: `{dry_run: true, looked: int, removed: 0, bytes: int, kept: {*: int}, failed: 0, results: [any]}`},
	{by: operator, ask: "POST /api/internal/results/collect?dry_run=true", status: 200, shape: `{dry_run: true, removed: 0}`},
	{by: operator, ask: "POST /api/internal/results/collect", body: `{}`, status: 200, shape: `{dry_run: false, looked: int, removed: 0, failed: 0}`},
	{by: gui, ask: "DELETE /api/result/$run?scope=nonsense", status: 422, shape: `@error`},
	{by: gui, ask: "DELETE /api/result/$run?scope=permanent", status: 200, shape: `{removed: 1}`},
	{by: gui, ask: "GET /api/result/resolve?ref=$picture", status: 404, shape: `@error`},
	{by: gui, ask: "DELETE /api/result/$run", status: 200, shape: `{removed: 2}`},
	{by: worker, ask: "GET /api/result/$run/list", status: 200, shape: `{results: []}`},
}
