package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
)

// What the handlers read and write in structs of their own.
type (
	messageAnswer struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	schemaAnswer struct {
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Valid   bool     `json:"valid"`
		Tables  []string `json:"tables"`
		Missing []string `json:"missing"`
	}
	verifyBody struct {
		ExecutionID event.ID `json:"execution_id"`
	}
	rebuildBody struct {
		ExecutionID event.ID `json:"execution_id"`
		DryRun      bool     `json:"dry_run"`
		All         bool     `json:"all"`
	}
	widgetsAnswer struct {
		Widgets []widget `json:"widgets"`
	}
	claimOutboxBody struct {
		Limit *int `json:"limit"`
	}
	claimOutboxAnswer struct {
		Rows    []control.OutboxMessage `json:"rows"`
		Claimed int                     `json:"claimed"`
		Token   string                  `json:"fencing_token"`
	}
	publishedBody struct {
		IDs   []event.ID `json:"outbox_ids"`
		Token string     `json:"fencing_token"`
	}
	markedAnswer struct {
		Marked int `json:"marked"`
	}
	outboxFailedBody struct {
		ID       event.ID `json:"outbox_id"`
		Error    string   `json:"error"`
		Attempts int      `json:"attempts"`
		MaxDelay int      `json:"max_delay_seconds"`
		Token    string   `json:"fencing_token"`
	}
	outboxFailedAnswer struct {
		Marked bool  `json:"marked"`
		In     int64 `json:"available_at_in"`
	}
	pendingAnswer struct {
		Pending int64 `json:"pending"`
	}
	projectBody struct {
		Events []json.RawMessage `json:"events"`
	}
	projectAnswer struct {
		Projected  int                 `json:"projected"`
		Duplicates int                 `json:"duplicates"`
		Rejected   []control.Rejection `json:"rejected,omitempty"`
	}
	materializeAnswer struct {
		Materialized int                 `json:"materialized"`
		Duplicates   int                 `json:"duplicates"`
		Rejected     []control.Rejection `json:"rejected,omitempty"`
	}
	advanceBody struct {
		IDs []event.ID `json:"execution_ids"`
	}
	advanceAnswer struct {
		Advanced []control.Advanced    `json:"advanced"`
		Failed   []control.NotAdvanced `json:"failed"`
	}
	purgeBody struct {
		CommandDays    int `json:"command_retention_days"`
		RuntimeMinutes int `json:"runtime_stale_minutes"`
		EventDays      int `json:"event_retention_days"`
	}
	callbackAnswer struct {
		Status  string   `json:"status"`
		EventID event.ID `json:"event_id,omitempty"`
	}
	credentialsAnswer struct {
		Items  []credentialView  `json:"items"`
		Filter map[string]string `json:"filter,omitempty"`
	}
	checkedAnswer struct {
		Name       string   `json:"name"`
		Type       string   `json:"type"`
		OK         bool     `json:"ok"`
		Fields     []string `json:"fields"`
		KeyVersion string   `json:"key_version"`
	}
	credentialDeletedAnswer struct {
		Message string `json:"message"`
		ID      string `json:"id"`
	}
	auditAnswer struct {
		Items []auditView `json:"items"`
		Count int         `json:"count"`
	}
	keptAnswer struct {
		Status      string          `json:"status"`
		Data        json.RawMessage `json:"data,omitempty"`
		TokenData   json.RawMessage `json:"token_data,omitempty"`
		Type        string          `json:"credential_type,omitempty"`
		ExpiresAt   *time.Time      `json:"expires_at,omitempty"`
		TTL         *int64          `json:"ttl_seconds,omitempty"`
		AutoRenew   *bool           `json:"auto_renew,omitempty"`
		AccessCount *int64          `json:"access_count,omitempty"`
	}
	keepAnswer struct {
		Status    string    `json:"status"`
		CacheKey  string    `json:"cache_key"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	dropAnswer struct {
		Status   string `json:"status"`
		CacheKey string `json:"cache_key"`
	}
	keptListAnswer struct {
		CatalogID string     `json:"catalog_id"`
		Entries   []keptView `json:"entries"`
		Count     int        `json:"count"`
	}
)

var systemDescriptions = map[string]description{
	"GET /api/dashboard/stats":   {id: "getStats", tag: tagSystem, gives: gives[statsAnswer]()},
	"GET /api/dashboard/widgets": {id: "getWidgets", tag: tagSystem, gives: gives[widgetsAnswer]()},
	"GET /api/status":            {id: "getSystem", tag: tagSystem, text: "Since it was asked the last time.", gives: gives[systemAnswer]()},
	"GET /api/pool/status":       {id: "getConnections", tag: tagSystem, gives: gives[poolAnswer]()},
	"GET /api/runtime/shard-info": {
		id: "getShard", tag: tagSystem, gives: gives[shardAnswer](), fails: map[int]string{http.StatusBadRequest: "A parameter is missing or cannot be read."},
		params: []parameter{idParam("execution_id", "Whose shard.").must(), numberParam("shard_count", "Of how many, up to 1024; the server's own when nothing is said.", 0, 1)},
	},
	"GET /api/runtime/sweeps": {id: "getSweeps", tag: tagSystem, gives: gives[control.SweepReport]()},
	"POST /api/db/init":       {id: "migrate", tag: tagDatabase, gives: gives[messageAnswer]()},
	"GET /api/db/validate":    {id: "checkSchema", tag: tagDatabase, gives: gives[schemaAnswer]()},
	"POST /api/db/verify":     {id: "verify", tag: tagDatabase, text: "It reads the whole log, or that of one execution, and may take long.", body: mayTake[verifyBody](), gives: gives[control.VerifyReport]()},
	"POST /api/db/rebuild":    {id: "rebuild", tag: tagDatabase, text: "It works beside running servers and may take long. Without all only rows that differ are written.", body: mayTake[rebuildBody](), gives: gives[control.RebuildReport]()},
}

var internalDescriptions = map[string]description{
	"POST /api/internal/outbox/claim":          {id: "claimOutbox", tag: tagInternal, body: mayTake[claimOutboxBody](), gives: gives[claimOutboxAnswer]()},
	"POST /api/internal/outbox/mark-published": {id: "markPublished", tag: tagInternal, body: takes[publishedBody]("outbox_ids"), gives: gives[markedAnswer]()},
	"POST /api/internal/outbox/mark-failed":    {id: "markFailed", tag: tagInternal, body: takes[outboxFailedBody]("outbox_id"), gives: gives[outboxFailedAnswer]()},
	"GET /api/internal/outbox/pending-count":   {id: "countPending", tag: tagInternal, gives: gives[pendingAnswer]()},
	"POST /api/internal/events/project": {
		id: "projectEvents", tag: tagInternal, text: "Events as the stream carries them. Those that cannot be taken are named in rejected, the others are taken.",
		body: takes[projectBody]("events"), gives: gives[projectAnswer](),
	},
	"POST /api/internal/events/materialize": {
		id: "materializeEvents", tag: tagInternal, text: "Events as workers report them, of any executions. Those that cannot be taken are named in rejected, the others are recorded.",
		body: takes[[]json.RawMessage](), gives: gives[materializeAnswer](),
	},
	"POST /api/internal/projection/advance": {id: "advance", tag: tagInternal, body: takes[advanceBody]("execution_ids"), gives: gives[advanceAnswer]()},
	"POST /api/internal/cleanup/purge":      {id: "purge", tag: tagInternal, body: mayTake[purgeBody](), gives: gives[control.Purged]()},
	"POST /api/internal/container-callback/{execution_id}/{step}": {
		id: "reportJob", tag: tagInternal, text: "The answer is the same kind of success when nobody waits any more: watchers repeat themselves.",
		body: takes[callbackBody]("state", "job_name"), gives: []content{givesAs[callbackAnswer](http.StatusAccepted, "It is known.")},
	},
}

var (
	noCredential = map[int]string{http.StatusNotFound: "There is no such credential."}
	keptScope    = []parameter{idParam("execution_id", "The execution it is kept for."), textParam("scope_type", "global, catalog, local or shared.")}
)

var secretDescriptions = map[string]description{
	"POST /api/credentials": {id: "putCredential", tag: tagSecrets, text: "One of the same name is replaced.", body: takes[secret.Registration]("name", "type", "data"), gives: gives[credentialView]()},
	"GET /api/credentials":  {id: "listCredentials", tag: tagSecrets, params: []parameter{textParam("type", "Only of this type."), textParam("q", "Only with this in the name or the description.")}, gives: gives[credentialsAnswer]()},
	"GET /api/credentials/{identifier}": {
		id: "getCredential", tag: tagSecrets, gives: gives[credentialView](), fails: map[int]string{http.StatusNotFound: "There is no such credential.", http.StatusForbidden: "include_data is for the internal token alone."},
		params: []parameter{
			flagParam("include_data", "With what is secret; for emergencies, and written down.", false),
			idParam("execution_id", "On whose behalf, for the record."), idParam("parent_execution_id", "On whose behalf, for the record."),
		},
	},
	"GET /api/credentials/{identifier}/check": {id: "checkCredential", tag: tagSecrets, gives: gives[checkedAnswer](), fails: noCredential},
	"DELETE /api/credentials/{identifier}":    {id: "deleteCredential", tag: tagSecrets, gives: gives[credentialDeletedAnswer](), fails: noCredential},
	"POST /api/internal/wallet/rotate-kek":    {id: "rotateKeys", tag: tagInternal, text: "What is secret is not decrypted. May be repeated.", body: mayTake[secret.RotateRequest](), gives: gives[secret.RotationReport]()},
	"GET /api/internal/wallet/key-status":     {id: "getKeyStatus", tag: tagInternal, gives: gives[secret.KeyStatus]()},
	"GET /api/internal/secret-audit": {
		id: "listSecretUses", tag: tagInternal, gives: gives[auditAnswer](),
		params: []parameter{
			textParam("credential", "Only of this one."), idParam("execution_id", "Only on behalf of this execution."),
			timeParam("from", "Then or later."), timeParam("to", "Before then."), numberParam("limit", "How many.", 0, 1),
		},
	},
	"POST /api/secrets/resolve": {
		id: "resolveSecrets", tag: tagSecrets, text: "Only the worker that holds the command gets them, and only what the command names.",
		body: takes[event.SecretRequest]("execution_id", "event_id", "worker_id", "aliases"), gives: gives[event.SecretAnswer](),
		fails: map[int]string{http.StatusForbidden: "The worker does not hold the command, or the command does not name the secret.", http.StatusNotFound: "There is no such credential."},
	},
	"GET /api/credentials/{identifier}/sealed": {
		id: "getSealedCredential", tag: tagSecrets, gives: gives[event.Sealed](), fails: noCredential,
		params: []parameter{textParam("worker_id", "The worker, which has registered a key.").must(), idParam("execution_id", "The execution it works for.").must()},
	},
	"GET /api/keychain/catalog/{catalog_id}":   {id: "listKept", tag: tagSecrets, gives: gives[keptListAnswer]()},
	"GET /api/keychain/{catalog_id}/{name}":    {id: "getKept", tag: tagSecrets, params: keptScope, gives: gives[keptAnswer](), fails: map[int]string{http.StatusForbidden: "Only the internal token gets it."}},
	"POST /api/keychain/{catalog_id}/{name}":   {id: "keepValue", tag: tagSecrets, params: keptScope, text: "data or token_data, its older name, is needed.", body: takes[keepBody](), gives: gives[keepAnswer]()},
	"DELETE /api/keychain/{catalog_id}/{name}": {id: "dropValue", tag: tagSecrets, params: keptScope, gives: gives[dropAnswer]()},
}
