package api

import (
	"net/http"
	"reflect"

	"github.com/noetl/noetl-go/internal/api/openapi"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// What the handlers of workers read and write by hand.
type (
	reportAnswer struct {
		Status            string           `json:"status"`
		EventIDs          []event.ID       `json:"event_ids"`
		CommandsGenerated int              `json:"commands_generated"`
		Commands          []*event.Command `json:"commands,omitempty"`
	}
	eventAnswer struct {
		Status            string           `json:"status"`
		EventID           event.ID         `json:"event_id"`
		CommandsGenerated int              `json:"commands_generated"`
		Commands          []*event.Command `json:"commands,omitempty"`
	}
	claimResult struct {
		EventID event.ID       `json:"event_id"`
		Status  string         `json:"status"`
		Command *event.Command `json:"command,omitempty"`
		Error   string         `json:"error,omitempty"`
		Code    string         `json:"code,omitempty"`
		Reason  string         `json:"reason,omitempty"`
	}
	claimsAnswer struct {
		Results []claimResult `json:"results"`
	}
	heldBody struct {
		WorkerID    string   `json:"worker_id"`
		ExecutionID event.ID `json:"execution_id"`
		Attempt     int      `json:"attempt"`
	}
	heartbeatsAnswer struct {
		Answers []event.HeartbeatAnswer `json:"answers"`
	}
	leaveBody struct {
		Name          string `json:"name"`
		Kind          string `json:"kind"`
		ComponentType string `json:"component_type"`
	}
	leaveAnswer struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Name    string `json:"name"`
		Deleted bool   `json:"deleted"`
	}
	resultsAnswer struct {
		Results []control.ListedResult `json:"results"`
		Next    string                 `json:"next,omitempty"`
	}
	removedAnswer struct {
		Removed int `json:"removed"`
	}
	variableMapAnswer struct {
		ExecutionID event.ID                  `json:"execution_id"`
		Variables   map[string]mappedVariable `json:"variables"`
		Count       int                       `json:"count"`
	}
	variablesSetAnswer struct {
		ExecutionID event.ID `json:"execution_id"`
		Set         int      `json:"variables_set"`
		Names       []string `json:"var_names"`
		Status      string   `json:"status"`
	}
	variableDeletedAnswer struct {
		ExecutionID event.ID `json:"execution_id"`
		Name        string   `json:"var_name"`
		Status      string   `json:"status"`
	}
	variablesDeletedAnswer struct {
		ExecutionID event.ID `json:"execution_id"`
		Deleted     int      `json:"variables_deleted"`
		Status      string   `json:"status"`
	}
)

var (
	noCommandThere = map[int]string{http.StatusNotFound: "There is no such command."}
	notYours       = map[int]string{http.StatusNotFound: "There is no such command.", http.StatusConflict: "The claim was lost (reason claim_lost): stop, and report nothing more about it."}
	leaving        = description{
		tag: tagWork, body: mayTake[leaveBody](), gives: gives[leaveAnswer](), text: "The answer is the same whether or not it was known. Who cannot send a body says it in the query.",
		params: []parameter{textParam("name", "Of the worker, when there is no body."), textParam("kind", "Of the process, when there is no body.")},
	}
)

// under is a description with an operation id.
func (d description) under(id string, old bool) description {
	d.id, d.old = id, old
	return d
}

var workDescriptions = map[string]description{
	"POST /api/events": {
		id: "reportEvent", tag: tagWork, text: "step and event_type are needed; node_name, name and context are older names of step, event_type and payload. An event_id that is known already is not recorded twice.",
		body: takes[eventBody]("execution_id"), gives: gives[eventAnswer](), fails: noRun,
	},
	"POST /api/events/batch": {
		id: "reportEvents", tag: tagWork, text: "All of them are recorded, or none; at most 1000. With eager the answer brings further commands of the execution, claimed already.",
		body: takes[batchBody](), gives: gives[reportAnswer](), fails: noRun,
	},
	"GET /api/commands/{event_id}": {id: "getCommand", tag: tagWork, params: []parameter{idParam("execution_id", "Saves a look-up.")}, gives: gives[event.Command](), fails: noCommandThere},
	"POST /api/commands/{event_id}/claim": {
		id: "claimCommand", tag: tagWork, body: takes[event.ClaimRequest]("worker_id"), gives: gives[event.Command](),
		fails: map[int]string{http.StatusNotFound: "There is no such command.", http.StatusConflict: "It has ended or was cancelled, or somebody else runs it (reason active_claim, with Retry-After)."},
	},
	"POST /api/commands/claim":                {id: "claimCommands", tag: tagWork, text: "Each is decided on its own; at most 256.", body: takes[claimsBody]("worker_id"), gives: gives[claimsAnswer]()},
	"POST /api/commands/{event_id}/heartbeat": {id: "keepCommand", tag: tagWork, body: takes[heldBody]("worker_id"), gives: gives[event.HeartbeatAnswer](), fails: notYours},
	"POST /api/commands/{event_id}/release":   {id: "releaseCommand", tag: tagWork, body: takes[heldBody]("worker_id"), gives: gives[liveAnswer](), fails: notYours},
	"POST /api/commands/heartbeat":            {id: "keepCommands", tag: tagWork, text: "Answers come in the order of the commands; one without lease_until was lost.", body: takes[heartbeatsBody](), gives: gives[heartbeatsAnswer]()},
	"POST /api/worker/pool/register":          {id: "registerWorker", tag: tagWork, text: "component_type and base_url are older names of kind and uri.", body: takes[registrationBody]("name"), gives: gives[event.Registered]()},
	"POST /api/worker/pool/heartbeat": {
		id: "keepWorker", tag: tagWork, text: "With registration a worker that was forgotten is known again. Who sends no commands at all keeps all it claimed lately.",
		body: takes[pulseBody](), gives: gives[pulseAnswer](), fails: map[int]string{http.StatusNotFound: "Nobody of this name is known."},
	},
	"POST /api/worker/pool/deregister":   leaving.under("deregisterWorker", false),
	"DELETE /api/worker/pool/deregister": leaving.under("deleteWorker", true),
	"GET /api/worker/pools": {
		id: "listWorkers", tag: tagWork, gives: gives[[]event.Registered](),
		params: []parameter{textParam("kind", "Such as worker_pool."), textParam("status", "Such as ready or offline."), textParam("name", "Of the worker; % stands for anything.")},
	},
}

const storedText = "What became of the value. ref finds it again."

var resultDescriptions = map[string]description{
	"PUT /api/result/{execution_id}": {id: "putResult", tag: tagResults, body: takes[resultBody]("name", "data"), gives: []content{givesAs[event.StoredResult](200, storedText)}, fails: noRun},
	"PUT /api/result/{execution_id}/blob": {
		id: "putBlob", tag: tagResults, body: blobBody, gives: []content{givesAs[event.StoredResult](200, storedText)}, fails: noRun,
		params: []parameter{
			textParam("name", "Usually the step.").must(), choiceParam("scope", "How long it is kept.", "", resultScopes[1:]...), textParam("ttl", "Such as 30m, 1h, 1d or forever."),
			textParam("store", "Where: auto, db, nats, file or s3."), textParam("source_step", "The step it comes from."), textParam("media_type", "Of the bytes; JSON when nothing is said."),
			header("Content-Encoding", "zstd, or none."),
		},
	},
	"GET /api/result/resolve": {
		id: "getResult", tag: tagResults, text: "Ranges and conditions of HTTP work as usual.",
		params: []parameter{textParam("ref", "noetl://execution/<execution>/result/<name>/<id>").must(), header("Range", "bytes=first-last"), header("If-Range", "An ETag."), header("If-None-Match", "An ETag.")},
		gives: []content{
			{media: "application/json", schema: &openapi.Schema{}, more: []string{"*/*"}, text: "The value as it was put.", headers: resultHeaders},
			{status: http.StatusPartialContent, media: "*/*", schema: &openapi.Schema{}, text: "The range of it.", headers: resultHeaders},
			{status: http.StatusNotModified, text: "It has not changed."},
		},
		fails: map[int]string{
			http.StatusBadRequest: "The reference cannot be read.", http.StatusNotFound: "There is no such value, or not any more (reason collected).",
			http.StatusRequestedRangeNotSatisfiable: "The range lies outside of it.",
		},
	},
	"GET /api/result/{execution_id}/list": {
		id: "listResults", tag: tagResults, gives: gives[resultsAnswer](), fails: noRun,
		params: []parameter{textParam("after", "Only those behind this reference: next of the page before."), numberParam("limit", "At most 1000.", listedMost, 1)},
	},
	"DELETE /api/result/{execution_id}":  {id: "deleteResults", tag: tagResults, params: []parameter{choiceParam("scope", "Only of this scope.", "", resultScopes[1:]...)}, gives: gives[removedAnswer](), fails: noRun},
	"GET /api/internal/results/collect":  {id: "listCollectable", tag: tagInternal, gives: gives[control.CollectReport]()},
	"POST /api/internal/results/collect": {id: "collectResults", tag: tagInternal, params: []parameter{flagParam("dry_run", "Only tell.", false)}, gives: gives[control.CollectReport]()},
}

var resultHeaders = map[string]string{
	"ETag": "The SHA-256 of the value.", "X-Noetl-Store": "Where it is kept.", "X-Noetl-Scope": "How long it is kept.", "X-Noetl-Expires": "Until when, if that is known.",
}

var noVariable = map[int]string{http.StatusNotFound: "There is no such variable."}

var sideDescriptions = map[string]description{
	"GET /api/vars/{execution_id}": {
		id: "listVariables", tag: tagVariables, params: []parameter{choiceParam("format", "The form of the answer.", "list", "list", "map")},
		gives: []content{{media: "application/json", text: "A list, or with format=map an object by name.", either: []reflect.Type{typeOf[[]variableView](), typeOf[variableMapAnswer]()}}},
	},
	"POST /api/vars/{execution_id}":          {id: "setVariables", tag: tagVariables, body: takes[variablesBody](), gives: gives[variablesSetAnswer](), fails: noRun},
	"DELETE /api/vars/{execution_id}":        {id: "deleteVariables", tag: tagVariables, gives: gives[variablesDeletedAnswer]()},
	"GET /api/vars/{execution_id}/{name}":    {id: "getVariable", tag: tagVariables, gives: gives[variableView](), fails: noVariable},
	"DELETE /api/vars/{execution_id}/{name}": {id: "deleteVariable", tag: tagVariables, gives: gives[variableDeletedAnswer](), fails: noVariable},
}
