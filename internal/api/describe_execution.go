package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/noetl/noetl-go/internal/api/openapi"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// eventView is what appendEvent writes, and appendShown.
type eventView struct {
	EventID       wireID          `json:"event_id"`
	ExecutionID   wireID          `json:"execution_id"`
	CatalogID     *wireID         `json:"catalog_id"`
	Seq           int64           `json:"seq"`
	Type          event.Type      `json:"event_type"`
	NodeID        string          `json:"node_id"`
	NodeName      string          `json:"node_name"`
	NodeType      *string         `json:"node_type"`
	Status        *string         `json:"status"`
	Context       json.RawMessage `json:"context"`
	Result        json.RawMessage `json:"result"`
	Meta          json.RawMessage `json:"meta"`
	Error         *string         `json:"error"`
	WorkerID      *string         `json:"worker_id"`
	ParentEventID *wireID         `json:"parent_event_id"`
	ParentID      *wireID         `json:"parent_execution_id"`
	Duration      float64         `json:"duration"`
	CreatedAt     *time.Time      `json:"created_at"`
	Timestamp     *time.Time      `json:"timestamp"`
	Derived       bool            `json:"derived,omitempty"`
}

// What the handlers of executions write by hand.
type (
	stepView struct {
		Status    string          `json:"status"`
		Runs      int             `json:"runs"`
		Result    json.RawMessage `json:"result,omitempty"`
		ResultRef string          `json:"result_ref,omitempty"`
		Error     string          `json:"error,omitempty"`
		Reused    event.StringID  `json:"reused_from,omitempty"`
	}
	detailAnswer struct {
		detailView
		Steps  map[string]stepView `json:"steps"`
		Events []eventView         `json:"events"`
	}
	logAnswer struct {
		ExecutionID wireID      `json:"execution_id"`
		Events      []eventView `json:"events"`
		LastSeq     int64       `json:"last_seq"`
		NextAfter   int64       `json:"next_after"`
		HasMore     bool        `json:"has_more"`
		Pagination  *pagination `json:"pagination,omitempty"`
	}
	streamEnd struct {
		ExecutionID wireID  `json:"execution_id"`
		Status      string  `json:"status"`
		Error       *string `json:"error"`
	}
	explainAnswer struct {
		ExecutionID event.StringID      `json:"execution_id"`
		Path        string              `json:"path"`
		Status      string              `json:"status"`
		Error       string              `json:"error,omitempty"`
		Steps       []event.Explanation `json:"steps"`
	}
	outputAnswer struct {
		ExecutionID event.StringID `json:"execution_id"`
		Chunks      []outputChunk  `json:"chunks"`
		Truncated   bool           `json:"truncated"`
		After       uint64         `json:"after"`
	}
	waitsAnswer struct {
		ExecutionID event.StringID     `json:"execution_id"`
		Waits       []event.SignalWait `json:"waits"`
	}
	startItem     executeBody
	startsRequest struct {
		Executions []startItem `json:"executions"`
	}
)

var (
	noRun     = map[int]string{http.StatusNotFound: "There is no such execution."}
	noEndable = map[int]string{http.StatusNotFound: "There is no such execution.", http.StatusUnprocessableEntity: "It has ended already, or cannot end so."}
	tracing   = []parameter{
		header("Traceparent", "W3C trace context, which the execution continues."), header("Tracestate", "W3C trace context."), header("Baggage", "W3C baggage."),
	}
	idempotent = header("Idempotency-Key", "What is sent under one key within a day happens once.")
)

var startDescriptions = map[string]description{
	"POST /api/execute": {
		id: "execute", tag: tagStart, params: append([]parameter{idempotent}, tracing...), body: takes[executeBody](), gives: gives[executeAnswer](),
		text:  "Name the playbook by path and version, or by catalog_id. With dedup or an Idempotency-Key a second start under the same key answers with the first execution.",
		fails: map[int]string{http.StatusNotFound: "There is no such playbook or version.", http.StatusConflict: "A start under the same key is going on, or was another one."},
	},
	"POST /api/execute/batch": {
		id: "executeBatch", tag: tagStart, params: tracing, body: takes[startsRequest]("executions"), gives: gives[startsAnswer](),
		text: "Each item stands alone: the answer is a success also when some, or all, were not started, and says so for each.",
	},
	"POST /api/executions/{id}/rerun": {
		id: "rerun", tag: tagStart, params: tracing, body: mayTake[rerunBody](), gives: gives[rerunAnswer](),
		text:  "Without from_step everything runs again; with it, what came before is taken over from the first run.",
		fails: map[int]string{http.StatusNotFound: "There is no such execution.", http.StatusConflict: "It still runs, or its parts cannot be reused."},
	},
}

var logPages = []parameter{
	numberParam("page", "Of the log, counted from the oldest event.", 1, 1), numberParam("page_size", "Events of a page, at most 500.", 100, 1),
	idParam("since_event_id", "Only events behind this one."), textParam("event_type", "Only events of this type."),
}

var executionDescriptions = map[string]description{
	"GET /api/executions": {
		id: "listExecutions", tag: tagExecutions,
		text: "Where the next page begins stands in the headers Link and X-Next-Before.",
		params: []parameter{
			choiceParam("status", "Only executions in it; in any case.", "", executionStatuses...), textParam("path", "Only of this playbook."),
			textParam("path_prefix", "Only of playbooks below it."), idParam("catalog_id", "Only of this version."), idParam("parent_execution_id", "Only those it started."),
			textParam("pool", "Only of this pool."), textParam("execution_pool", "The older name of pool.").older(),
			timeParam("started_after", "Started then or later."), timeParam("started_before", "Started before then."),
			numberParam("limit", "At most 100.", defaultRows, 1), idParam("before", "Only executions with a smaller id: the way to the next page."),
			numberParam("offset", "Rows to pass over.", 0, 0).older(), numberParam("page", "Counted from 1.", 1, 1).older(), numberParam("page_size", "At most 100.", defaultRows, 1).older(),
		},
		gives: []content{{media: "application/json", of: typeOf[[]executionView](), headers: map[string]string{
			"Link": "The query of the next page, when there is one.", "X-Next-Before": "The value of before for the next page.",
		}}},
	},
	"GET /api/executions/{id}": {
		id: "getExecution", tag: tagExecutions, params: append([]parameter{flagParam("include_events", "With the end of the log, or the page that is asked for.", true)}, logPages...),
		gives: gives[detailAnswer](), fails: noRun,
	},
	"GET /api/executions/{id}/events": {
		id: "listEvents", tag: tagExecutions, text: "Programs go by position (after, limit; go on with next_after while has_more), people by pages.",
		params: append([]parameter{numberParam("after", "Only events behind this position.", 0, 0), numberParam("limit", "At most 1000.", maxEvents, 1)}, logPages...),
		gives:  gives[logAnswer](), fails: noRun,
	},
	"GET /api/executions/{id}/status":             {id: "getStatus", tag: tagExecutions, gives: gives[statusAnswer](), fails: noRun},
	"GET /api/executions/{id}/explain":            {id: "explain", tag: tagExecutions, params: []parameter{textParam("step", "Only this step.")}, gives: gives[explainAnswer](), fails: map[int]string{http.StatusNotFound: "There is no such execution or step."}},
	"GET /api/executions/{id}/cancellation-check": {id: "checkCancellation", tag: tagWork, text: "An execution that is not known counts as not cancelled.", gives: gives[cancellationAnswer]()},
	"POST /api/executions/{id}/cancel":            {id: "cancel", tag: tagExecutions, text: "Executions it started are cancelled, too, unless cascade is false.", body: mayTake[cancelBody](), gives: gives[cancelAnswer](), fails: noEndable},
	"POST /api/executions/{id}/stop":              {id: "stop", tag: tagExecutions, old: true, text: "The older name of cancel. Executions it started are cancelled, too, unless cascade is false.", body: mayTake[cancelBody](), gives: gives[cancelAnswer](), fails: noEndable},
	"POST /api/executions/{id}/finalize":          {id: "finalize", tag: tagExecutions, text: "Without a status it has failed: nobody ends by hand what is well.", body: mayTake[finalizeBody](), gives: gives[finalizeAnswer](), fails: noRun},
	"POST /api/executions/cleanup":                {id: "cleanup", tag: tagExecutions, body: mayTake[cleanupBody](), gives: gives[cleanupAnswer]()},
	"GET /api/executions/{id}/stream": {
		id: "streamEvents", tag: tagExecutions, fails: noRun,
		text:   "Each event of the log is one server-sent event, named by its type, with its position as id. Behind the last one comes one named end. Comments keep the connection alive.",
		params: []parameter{numberParam("after", "Only events behind this position.", 0, 0), header("Last-Event-ID", "The same; browsers send it when they connect again.")},
		gives:  []content{{events: map[string]reflect.Type{"*": typeOf[eventView](), "end": typeOf[streamEnd]()}}},
	},
	"GET /api/executions/{id}/logs": {
		id: "readOutput", tag: tagExecutions, fails: noRun, text: "As JSON, as plain text (Accept: text/plain), or as it is printed (follow=true, or Accept: text/event-stream).",
		params: []parameter{
			textParam("step", "Only of this step."), numberParam("after", "Only what stands behind this position.", 0, 0),
			flagParam("follow", "Go on until the execution has ended.", false), header("Last-Event-ID", "The same as after."), header("Accept", "The form of the answer."),
		},
		gives: []content{{
			media: "application/json", of: typeOf[outputAnswer](), more: []string{"text/plain"},
			events: map[string]reflect.Type{"log": typeOf[outputChunk](), "end": typeOf[streamEnd]()},
		}},
	},
	"POST /api/executions/{id}/signals/{name}": {
		id: "sendSignal", tag: tagSignals, params: []parameter{idempotent}, body: mayTake[signalBody](),
		gives: []content{givesAs[signalAnswer](http.StatusOK, "Somebody waited for it."), givesAs[signalAnswer](http.StatusAccepted, "It is kept until somebody waits for it.")},
		fails: map[int]string{http.StatusNotFound: "There is no such execution.", http.StatusUnprocessableEntity: "The data does not fit the form; misfits says where."},
	},
	"GET /api/executions/{id}/waits": {id: "listWaits", tag: tagSignals, gives: gives[waitsAnswer](), fails: noRun},
	"GET /api/replay/state": {
		id: "replay", tag: tagExecutions, gives: gives[control.ReplayAnswer](),
		text: "At most one of as_of_event_id, as_of_position and as_of_time says where to stop.",
		params: []parameter{
			idParam("execution_id", "Whose log.").must(), textParam("tenant_id", "Goes into the checksum."), textParam("organization_id", "Goes into the checksum."),
			idParam("as_of_event_id", "Up to this event."), idParam("as_of_position", "Up to this position."), timeParam("as_of_time", "Up to this time."),
			textParam("projection", "Which part: all, or one of execution, stage, frame, command, business_object, loop."), numberParam("limit", "Events to fold.", 0, 1),
			flagParam("only", "Nothing but the projection.", false), flagParam("resolve_payloads", "Look up values that were put aside.", false), flagParam("snapshot", "Name the snapshot that was used.", false),
		},
		fails: map[int]string{http.StatusBadRequest: "A parameter is missing or cannot be read."},
	},
}

// blobBody is a body of any kind and size.
var blobBody = &content{media: "*/*", schema: &openapi.Schema{}, text: "The bytes, as they are or with Content-Encoding: zstd."}
