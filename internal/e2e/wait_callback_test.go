package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// job is a step that no worker of ours runs.
const job = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: job, path: e2e/job}
workflow:
  - {step: build, tool: {kind: container, image: busybox}}
`

// internalToken opens the internal routes of servers started with tokenEnv.
const internalToken = "e2e-internal-token"

var tokenEnv = []string{"NOETL_INTERNAL_API_TOKEN=" + internalToken}

// foreign claims the open command of an execution and says, as workers of
// another make do, that it will be called back.
func (s *system) foreign(p *process, id event.ID) {
	s.t.Helper()
	issued := s.logged(p, id, event.CommandIssued)
	cmd, err := p.client.Claim(s.ctx(), client.ClaimRequest{EventID: issued.EventID, ExecutionID: id, WorkerID: "foreign"})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = p.client.Report(s.ctx(), client.Report{ExecutionID: id, WorkerID: "foreign", Events: []client.Incoming{{
		Step: "build", Type: event.CommandCompleted, Status: "success",
		Payload: fmt.Appendf(nil, `{"command_id":%q,"result":{"status":"success","context":{"pending_callback":true,"job_name":"j"}}}`, cmd.Meta.CommandID),
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	st, err := p.client.Status(s.ctx(), id)
	if err != nil || st.Final() {
		s.t.Fatalf("the execution did not wait to be called back: %+v, %v", st, err)
	}
}

// callBack reports the end of a job and returns how that was taken.
func (s *system) callBack(p *process, id event.ID, body string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.ctx(), http.MethodPost,
		fmt.Sprintf("%s/api/internal/container-callback/%s/build", p.url, id), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+internalToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var a struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusAccepted {
		s.t.Fatalf("the callback was answered with %s: %v", resp.Status, err)
	}
	return a.Status
}

func TestCallbackEndsTheWaitOfAForeignWorker(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		first := s.serverWith(tokenEnv, 0, "--no-worker")
		well, badly := s.start(first, job), s.start(first, job)
		s.foreign(first, well)
		s.foreign(first, badly)
		first.Kill()

		second := s.serverWith(tokenEnv, 0, "--no-worker")
		const done = `{"state":"succeeded","job_name":"j","exit_code":0}`
		for _, want := range []string{"accepted_in_flight", "accepted_stale"} {
			if got := s.callBack(second, well, done); got != want {
				t.Errorf("the callback was answered with %q, want %q", got, want)
			}
		}
		result(t, s.ended(second, well, event.StatusCompleted), "build", `{"exit_code":0,"job_name":"j","terminal_state":"succeeded","via":"callback"}`)

		s.callBack(second, badly, `{"state":"failed_oom","job_name":"j","reason":"too greedy"}`)
		if d := s.ended(second, badly, event.StatusFailed); !strings.Contains(d.Error, "job j ended as failed_oom: too greedy") {
			t.Errorf("error %q", d.Error)
		}
		s.stop(second)
		db := s.open()
		prove(t, db, well)
		prove(t, db, badly)
	})
}
