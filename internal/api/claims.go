package api

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	maxClaims    = 256 // commands in one request
	claimsAtOnce = 32
)

// How one claim of several went. They are what the statuses 200, 409, 404 and
// 503 say about a single one.
const (
	claimConflict = "conflict"
	claimNotFound = "not_found"
	claimRetry    = "retry"
)

type claimsBody struct {
	WorkerID   string `json:"worker_id"`
	Heartbeats bool   `json:"heartbeats"`
	Commands   []struct {
		EventID     event.ID `json:"event_id"`
		ExecutionID event.ID `json:"execution_id"`
	} `json:"commands"`
}

// claims asks for many commands. Each is decided on its own: one that somebody
// else has does not keep the others from being claimed.
func (s *Server) claims(w http.ResponseWriter, r *http.Request) error {
	var body claimsBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	switch {
	case body.WorkerID == "":
		return event.Errorf(event.Invalid, "worker_id is missing")
	case len(body.Commands) > maxClaims:
		return event.Errorf(event.Invalid, "%d commands in one claim: at most %d are accepted", len(body.Commands), maxClaims)
	}
	for i, c := range body.Commands {
		if c.EventID == 0 {
			return event.Errorf(event.Invalid, "commands[%d]: event_id is missing", i)
		}
	}
	commands, errs := make([]*event.Command, len(body.Commands)), make([]error, len(body.Commands))
	passageOf(r.Context()).permitted = true
	for i, c := range body.Commands {
		errs[i] = s.permitCommand(r.Context(), c.ExecutionID, c.EventID)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, claimsAtOnce)
	for i, c := range body.Commands {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if errs[i] != nil {
				return
			}
			commands[i], errs[i] = s.opt.Plane.Claim(r.Context(), event.ClaimRequest{
				EventID: c.EventID, ExecutionID: c.ExecutionID, WorkerID: body.WorkerID, Heartbeats: body.Heartbeats,
			})
			errs[i] = noCommand(errs[i], c.EventID)
		})
	}
	all.Wait()
	b := append(make([]byte, 0, 1024*len(commands)+32), `{"results":[`...)
	for i, c := range body.Commands {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendClaim(b, c.ExecutionID, c.EventID, commands[i], errs[i])
	}
	writeBody(w, http.StatusOK, append(b, ']', '}'))
	return nil
}

func (s *Server) appendClaim(b []byte, execution, id event.ID, c *event.Command, err error) []byte {
	b = append(b, `{"event_id":`...)
	b = strconv.AppendInt(b, int64(id), 10)
	if err == nil {
		b = append(b, `,"status":"ok","command":`...)
		return append(appendCommand(b, c), '}')
	}
	status := claimRetry // whatever is not final may go better later
	switch event.CodeOf(err) {
	case event.Conflict:
		status = claimConflict
	case event.NotFound:
		status = claimNotFound
	}
	f := failureOf(err)
	if f.ID != "" {
		s.opt.Logger.Error("claim failed", "execution_id", execution, "event_id", id, "error", err, "id", f.ID)
	}
	b = append(b, `,"status":"`...)
	b = append(b, status...)
	b = append(b, `","error":`...)
	b = appendString(b, f.Message)
	b = append(b, `,"code":`...)
	b = appendString(b, cmp.Or(f.Code, string(event.Internal)))
	if f.Reason != "" {
		b = append(b, `,"reason":`...)
		b = appendString(b, f.Reason)
	}
	return append(b, '}')
}
