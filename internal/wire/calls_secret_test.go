package wire

// walletCalls registers credentials and looks at them in the words of those who
// own them. None of the answers holds a secret but the one to the internal token.
var walletCalls = []call{
	{
		by: cli, ask: "POST /api/credentials", body: `{"name":"pg_demo","type":"postgres","data":{"db_host":"h","db_password":"canary-5c1d77"},"meta":{"team":"x"},"tags":["a"],"description":"Demo"}`, status: 200,
		shape: `@credential`, keep: "credential=id",
	},
	{by: gui, ask: "POST /api/credentials", body: `{"name":"pg_demo","type":"postgres","data":{"db_host":"h","db_password":"canary-5c1d78"},"tags":["a"],"description":"Demo","unknown":1}`, status: 200, shape: `{id: sid, name: "pg_demo"}`},
	{by: operator, ask: "POST /api/credentials", body: `{"name":"api_key","type":"secret","data":{"value":"canary-5c1d79"}}`, status: 200, shape: `{id: sid, name: "api_key", type: "secret", created_at: time, updated_at: time}`},
	{by: gui, ask: "POST /api/credentials", body: `{"name":"pg_demo","type":"postgres"}`, status: 422, shape: `@error`},
	{by: gui, ask: "GET /api/credentials", status: 200, shape: `{items: [{id: sid, name: text, type: text, created_at: time, updated_at: time}+]}`},
	{by: cli, ask: "GET /api/credentials?type=postgres&q=DEMO", status: 200, shape: `{items: [@credential+], filter: {type: "postgres", q: "DEMO"}}`},
	{by: gui, ask: "GET /api/credentials/pg_demo", status: 200, shape: `@credential`},
	{by: gateway, ask: "GET /api/credentials/$credential?include_data=false", status: 200, shape: `@credential`},
	{by: gui, ask: "GET /api/credentials/pg_demo?include_data=true", status: 403, shape: `@error`},
	{by: operator, ask: "GET /api/credentials/pg_demo?include_data=true&execution_id=$run", status: 200, shape: `{id: sid, data: {db_host: "h", db_password: "canary-5c1d78"}}`},
	{by: gui, ask: "GET /api/credentials/nobody", status: 404, shape: `@error`},
	{by: cli, ask: "GET /api/credentials/pg_demo/check", status: 200, shape: `{name: "pg_demo", type: "postgres", ok: true, fields: ["db_host"|"db_password"+], key_version: text}`},
}

// sealedCalls is a worker that holds a command and asks for its secrets, which
// nobody else can open on their way; and others, which get none.
var sealedCalls = []call{
	{by: worker, ask: "POST /api/secrets/resolve", body: `{"execution_id":"$held","event_id":"$held_cmd","worker_id":"go-2","attempt":1,"aliases":["pg_demo"]}`, status: 400, shape: `{error: text, status: 400, reason: "no_pubkey"}`},
	{by: worker, ask: "POST /api/worker/pool/register", body: `{"name":"go-2","kind":"worker_pool","status":"ready","runtime":{"worker_public_key":"$public_key"}}`, status: 200, shape: `@runtime`},
	{by: worker, ask: "POST /api/worker/pool/register", body: `{"name":"go-2","kind":"worker_pool","runtime":{"worker_public_key":"$other_key"}}`, status: 409, shape: `{error: text, reason: "key_in_use"}`},
	{by: worker, ask: "POST /api/secrets/resolve", body: `{"execution_id":"$held","event_id":"$held_cmd","worker_id":"go-2","attempt":1,"aliases":["pg_demo"]}`, status: 403, shape: `{error: text, status: 403, reason: "stale_claim"}`},
	{by: worker, ask: "GET /api/credentials/pg_demo/sealed?worker_id=go-2&execution_id=$held", status: 403, shape: `@error`},
	{by: worker, ask: "POST /api/commands/$held_cmd/claim", body: `{"worker_id":"go-2","heartbeats":true}`, status: 200, shape: `@command`, keep: "attempt=meta.attempt held_id=meta.command_id"},
	{by: worker, ask: "POST /api/secrets/resolve", body: `{"execution_id":"$held","event_id":"$held_cmd","worker_id":"go-2","attempt":$attempt,"aliases":["pg_demo","api_key"]}`, status: 200, shape: `{sealed: {alg: text, v: 2, eph_pub: text, ciphertext: text}}`},
	{by: worker, ask: "POST /api/secrets/resolve", body: `{"execution_id":$held,"event_id":$held_cmd,"worker_id":"go-2","attempt":$attempt,"aliases":["pg_demo","nobody"]}`, status: 404, shape: `@error`},
	{by: worker, ask: "GET /api/credentials/pg_demo/sealed?worker_id=go-2&execution_id=$held", status: 200, shape: `{alg: "x25519-hkdf-sha256-chacha20-poly1305", v: 1, eph_pub: text, ciphertext: text}`},
	{by: worker, ask: "GET /api/credentials/pg_demo/sealed?worker_id=go-2", status: 400, shape: `@error`},
}

// keptCalls keeps what was resolved for a playbook, as token caches do.
var keptCalls = []call{
	{by: worker, ask: "POST /api/keychain/$catalog/tok", body: `{"data":{"token":"canary-5c1d80"}}`, status: 403, shape: `@error`},
	{by: operator, ask: "POST /api/keychain/$catalog/tok", body: `{"data":{"token":"canary-5c1d80"}}`, status: 200, shape: `{status: "success", cache_key: "tok:$catalog:global", expires_at: time}`},
	{
		by: operator, ask: "POST /api/keychain/$catalog/tok", body: `{"token_data":{"token":"canary-5c1d81"},"credential_type":"bearer","ttl_seconds":60,"scope_type":"local","execution_id":$held,"auto_renew":false}`, status: 200,
		shape: `{status: "success", cache_key: "tok:$catalog:$held", expires_at: time}`,
	},
	{by: operator, ask: "POST /api/keychain/$catalog/tok", body: `{"data":{"token":"x"},"scope_type":"world"}`, status: 422, shape: `@error`},
	{by: operator, ask: "POST /api/keychain/$catalog/tok", body: `{"data":{"token":"x"},"expires_in":-1}`, status: 422, shape: `@error`},
	{by: operator, ask: "POST /api/keychain/1/tok", body: `{"data":{"token":"x"}}`, status: 404, shape: `@error`},
	{by: worker, ask: "GET /api/keychain/$catalog/tok?scope_type=global", status: 403, shape: `@error`},
	{
		by: operator, ask: "GET /api/keychain/$catalog/tok?scope_type=local&execution_id=$held", status: 200,
		shape: `{status: "found", data: {token: "canary-5c1d81"}, token_data: {token: "canary-5c1d81"}, credential_type: "bearer", expires_at: time, ttl_seconds: int, auto_renew: false, access_count: 1}`,
	},
	{by: operator, ask: "GET /api/keychain/$catalog/tok?scope_type=shared&execution_id=$held", status: 200, shape: `{status: "not_found"}`},
	{
		by: gui, ask: "GET /api/keychain/catalog/$catalog", status: 200,
		shape: `{catalog_id: "$catalog", count: 2, entries: [{cache_key: text, keychain_name: "tok", catalog_id: sid, credential_type: text, cache_type: text, scope_type: "local"|"global", execution_id: sid|null,
			expires_at: time, expired: false, created_at: time, accessed_at: time|null, access_count: int, auto_renew: false}+]}`,
	},
	{by: operator, ask: "DELETE /api/keychain/$catalog/tok?scope_type=local&execution_id=$held", status: 200, shape: `{status: "deleted", cache_key: "tok:$catalog:$held"}`},
	{by: operator, ask: "DELETE /api/keychain/$catalog/tok?scope_type=local&execution_id=$held", status: 200, shape: `{status: "not_found", cache_key: "tok:$catalog:$held"}`},
}

// keyCalls is the care of the keys, and who used what.
var keyCalls = []call{
	{
		by: operator, ask: "POST /api/internal/wallet/rotate-kek", body: `{"batch_size":1,"max_batches":10}`, status: 200,
		shape: `{credential: {processed: 2, rewrapped: 0, skipped: 2, failed: 0}, keychain: {processed: 1, failed: 0}, key_version: text}`,
	},
	{by: operator, ask: "POST /api/internal/wallet/rotate-kek", body: ``, status: 200, shape: `{credential: {processed: 2}, key_version: text}`},
	{by: operator, ask: "POST /api/internal/wallet/rotate-kek", body: `{"batch_size":-1}`, status: 422, shape: `@error`},
	{by: operator, ask: "GET /api/internal/wallet/key-status", status: 200, shape: `{credential: {*: 2}, keychain: {*: 1}, current: text}`},
	{
		by: operator, ask: "GET /api/internal/secret-audit?credential=pg_demo", status: 200,
		shape: `{items: [{audit_id: sid, occurred_at: time, credential: "pg_demo", operation: text, outcome: "ok"|"denied"|"no_pubkey", actor: text, request_id?: text, worker_id?: "go-2", execution_id?: sid}+], count: int}`,
	},
	{by: operator, ask: "GET /api/internal/secret-audit?execution_id=$held&limit=2", status: 200, shape: `{items: [{execution_id: "$held"}+], count: 2}`},
	{by: operator, ask: "GET /api/internal/secret-audit?credential=nobody&from=2020-01-01T00:00:00Z", status: 200, shape: `{items: [{credential: "nobody", outcome: "credential_not_found"}+], count: 1}`},
	{by: operator, ask: "GET /api/internal/secret-audit?from=yesterday", status: 422, shape: `@error`},
	{by: gui, ask: "DELETE /api/credentials/pg_demo", status: 200, shape: `{message: text, id: "$credential"}`},
	{by: gui, ask: "DELETE /api/credentials/pg_demo", status: 404, shape: `@error`},
}
