package api

import (
	"encoding/json"
	"net/http"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// maxBatchItems is how many executions one request may start.
const maxBatchItems = 1000

type startsBody struct {
	Executions []json.RawMessage `json:"executions"`
}

type startsAnswer struct {
	Count      int          `json:"count"`
	Started    int          `json:"started"`
	Duplicates int          `json:"duplicates"`
	Failed     int          `json:"failed"`
	Results    []startsItem `json:"results"`
}

type startsItem struct {
	Index             int             `json:"index"`
	Status            string          `json:"status"` // started, duplicate or error
	ExecutionID       *event.StringID `json:"execution_id,omitempty"`
	CommandsGenerated int             `json:"commands_generated"`
	Error             string          `json:"error,omitempty"`
	Warnings          []string        `json:"warnings,omitempty"`
}

// executeBatch starts what can be started. Each item stands alone, so the
// answer is a success even when some, or all, of them failed.
func (s *Server) executeBatch(w http.ResponseWriter, r *http.Request) error {
	var body startsBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if n := len(body.Executions); n == 0 || n > maxBatchItems {
		return event.Errorf(event.Invalid, "executions: want a list of 1 to %d executions, got %d", maxBatchItems, n)
	}
	items := make([]executeBody, len(body.Executions))
	results := make([]control.BatchResult, len(items))
	var requests []control.ExecuteRequest
	var places []int // of the requests among the items
	trace, by := traceOf(r.Header), s.starter(r.Context())
	for i, raw := range body.Executions {
		if results[i].Err = items[i].read(raw); results[i].Err == nil {
			results[i].Err = s.permitStart(r.Context(), &items[i])
		}
		if results[i].Err == nil {
			requests, places = append(requests, items[i].request(r.Context(), by, trace)), append(places, i)
		}
	}
	for i, result := range s.opt.Plane.ExecuteBatch(r.Context(), requests) {
		results[places[i]] = result
	}
	answer := startsAnswer{Count: len(items), Results: make([]startsItem, len(items))}
	for i, result := range results {
		if result.Err != nil {
			result.Err = items[i].missing(result.Err)
		}
		answer.Results[i] = s.startsItem(r, i, result)
		switch answer.Results[i].Status {
		case "started":
			answer.Started++
		case "duplicate":
			answer.Duplicates++
		default:
			answer.Failed++
		}
	}
	return respond(w, answer)
}

// read takes one item of a batch.
func (b *executeBody) read(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, b); err != nil {
		return malformed(raw, b, err)
	}
	return b.check()
}

func (s *Server) startsItem(r *http.Request, i int, result control.BatchResult) startsItem {
	if result.Err != nil {
		f := failureOf(result.Err)
		if f.Status == http.StatusInternalServerError {
			s.opt.Logger.Error("execution of a batch not started", "method", r.Method, "path", r.URL.Path, "id", f.ID, "error", result.Err)
		}
		return startsItem{Index: i, Status: "error", Error: classes[event.Code(f.Code)] + f.Message}
	}
	id := event.StringID(result.ExecutionID)
	return startsItem{
		Index: i, Status: result.Status, ExecutionID: &id,
		CommandsGenerated: result.CommandsGenerated, Warnings: result.Warnings,
	}
}

// classes are the words that tell the class of an error where no status can.
var classes = map[event.Code]string{
	event.NotFound:    "Resource not found: ",
	event.Invalid:     "Validation error: ",
	event.BadRequest:  "Bad request: ",
	event.Conflict:    "Conflict: ",
	event.Forbidden:   "Forbidden: ",
	event.Limit:       "Validation error: ",
	event.Unavailable: "Service unavailable: ",
	event.Internal:    "Internal error: ",
}
