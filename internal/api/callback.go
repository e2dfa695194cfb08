package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) callbackRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/internal/container-callback/{execution_id}/{step}", Internal, s.containerCallback, "reports the end of a job to the step that waits for it", `{state, job_name, job_uid?, completed_at?, exit_code?, reason?, stdout_uri?, stderr_uri?, index?}`, `{status, event_id?}`).within(Everywhere).noted(inLog),
	}
}

// jobStates are the ends of a job, each with the kind of error it is for the
// rules of a playbook. Trying again helps when it was not the job's own fault.
var jobStates = map[string]struct {
	kind      string // "" = none
	retryable bool
}{
	"succeeded":         {},
	"failed":            {kind: "logic"},
	"failed_image_pull": {kind: "config", retryable: true},
	"failed_oom":        {kind: "resource_limit"},
	"failed_node_lost":  {kind: "server_error", retryable: true},
	"failed_timeout":    {kind: "timeout", retryable: true},
}

// callbackBody is what the watcher of a cluster knows of a job that has ended.
type callbackBody struct {
	State       string  `json:"state"`
	JobName     string  `json:"job_name"`
	JobUID      string  `json:"job_uid"`
	CompletedAt instant `json:"completed_at"`
	ExitCode    *int    `json:"exit_code"`
	Reason      string  `json:"reason"`
	StdoutURI   string  `json:"stdout_uri"`
	StderrURI   string  `json:"stderr_uri"`
	Index       *int    `json:"index"` // of the iteration the job ran for
}

// jobEnd is the same as the data of the step that waited for it.
type jobEnd struct {
	TerminalState string    `json:"terminal_state"`
	JobName       string    `json:"job_name"`
	JobUID        string    `json:"job_uid,omitempty"`
	CompletedAt   time.Time `json:"completed_at,omitzero"`
	ExitCode      *int      `json:"exit_code,omitempty"`
	Reason        string    `json:"reason,omitempty"`
	StdoutURI     string    `json:"stdout_uri,omitempty"`
	StderrURI     string    `json:"stderr_uri,omitempty"`
	Via           string    `json:"via"` // how it became known; workers that look themselves say poll
}

// jobError is the error of a job that failed.
type jobError struct {
	Kind      string `json:"kind"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

type jobResult struct {
	Status  string `json:"status"`
	Context jobEnd `json:"context"`
}

// jobReport is the payload of call.done, in the shape workers give it.
type jobReport struct {
	Status string    `json:"status"`
	Result jobResult `json:"result"`
	Error  *jobError `json:"error,omitempty"`
}

// containerCallback reports the end of a job to the step that is parked on it.
// The answer is 202 also when nobody waits any more, or the execution is
// unknown: watchers repeat themselves, and could do nothing about it.
func (s *Server) containerCallback(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	var body callbackBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if _, known := jobStates[body.State]; !known {
		return event.Errorf(event.Invalid, "state: want %s, got %q", strings.Join(slices.Sorted(maps.Keys(jobStates)), ", "), body.State)
	}
	if body.JobName == "" {
		return event.Errorf(event.Invalid, "job_name is missing")
	}
	in, err := body.event(r.PathValue("step"))
	if err != nil {
		return err
	}
	told, err := s.opt.Plane.CallBack(r.Context(), id, in, body.JobUID)
	if err != nil {
		return err
	}
	answer := struct {
		Status  string   `json:"status"`
		EventID event.ID `json:"event_id,omitempty"`
	}{Status: "accepted_stale"}
	s.opt.Metrics.Callbacks.Inc(body.State)
	if told != 0 {
		answer.Status, answer.EventID = "accepted_in_flight", told
	} else {
		s.opt.Metrics.CallbacksStale.Inc(body.State)
	}
	return respondStatus(w, http.StatusAccepted, answer)
}

func (b *callbackBody) event(step string) (event.Incoming, error) {
	end := jobEnd{
		TerminalState: b.State, JobName: b.JobName, JobUID: b.JobUID, CompletedAt: time.Time(b.CompletedAt), ExitCode: b.ExitCode,
		Reason: b.Reason, StdoutURI: b.StdoutURI, StderrURI: b.StderrURI, Via: "callback",
	}
	status, p := event.StatusCompleted, jobReport{Status: event.ToolSuccess}
	if state := jobStates[b.State]; state.kind != "" {
		status, p.Status = event.StatusFailed, event.ToolError
		p.Error = &jobError{
			Kind: state.kind, Code: b.State, Retryable: state.retryable,
			Message: fmt.Sprintf("job %s ended as %s: %s", b.JobName, b.State, cmp.Or(b.Reason, "no reason was given")),
		}
	}
	p.Result = jobResult{Status: p.Status, Context: end}
	payload, err := json.Marshal(p)
	if err != nil {
		return event.Incoming{}, fmt.Errorf("encode callback: %w", err)
	}
	meta := json.RawMessage(`{"node_type":"container"}`)
	if b.Index != nil {
		meta = fmt.Appendf(nil, `{"node_type":"container","iteration_index":%d}`, *b.Index)
	}
	return event.Incoming{Step: step, Type: event.CallDone, Status: status, Payload: payload, Meta: meta}, nil
}
