package api_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/event"
)

func TestTheEndOfAJobIsReportedToItsStep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, status, payload string }{
		"succeeded": {
			`{"state":"succeeded","job_name":"j-1"}`, event.StatusCompleted,
			`{"status":"success","result":{"status":"success","context":{"terminal_state":"succeeded","job_name":"j-1","via":"callback"}}}`,
		},
		"everything": {
			`{"state":"succeeded","job_name":"j-1","job_uid":"u","completed_at":"2026-01-02 03:04:05","exit_code":0,"reason":"Done",
				"stdout_uri":"gs://o","stderr_uri":"gs://e","later":1}`, event.StatusCompleted,
			`{"status":"success","result":{"status":"success","context":{"terminal_state":"succeeded","job_name":"j-1","job_uid":"u",
				"completed_at":"2026-01-02T03:04:05Z","exit_code":0,"reason":"Done","stdout_uri":"gs://o","stderr_uri":"gs://e","via":"callback"}}}`,
		},
		"failed": {
			`{"state":"failed","job_name":"j-1","exit_code":3,"completed_at":null}`, event.StatusFailed,
			`{"status":"error","result":{"status":"error","context":{"terminal_state":"failed","job_name":"j-1","exit_code":3,"via":"callback"}},
				"error":{"kind":"logic","code":"failed","message":"job j-1 ended as failed: no reason was given","retryable":false}}`,
		},
		"a lost node": {
			`{"state":"failed_node_lost","job_name":"j-1","reason":"NodeLost"}`, event.StatusFailed,
			`{"status":"error","result":{"status":"error","context":{"terminal_state":"failed_node_lost","job_name":"j-1","reason":"NodeLost","via":"callback"}},
				"error":{"kind":"server_error","code":"failed_node_lost","message":"job j-1 ended as failed_node_lost: NodeLost","retryable":true}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got event.Report
			srv := newServer(t, recorder(&got), withToken)
			askInternal(t, srv, "POST", "/api/internal/container-callback/"+big+"/my%20step", tc.body).want(t, 202,
				`{"status":"accepted_in_flight","event_id":`+big+`}`)
			payload := got.Events[0].Payload
			if diff := cmp.Diff(tree(t, tc.payload), tree(t, string(payload))); diff != "" {
				t.Errorf("payload (-want +got):\n%s", diff)
			}
			want := event.Report{ExecutionID: 612489553370251264, Events: []event.Incoming{{
				Step: "my step", Type: event.CallDone, Status: tc.status, Payload: payload, Meta: json.RawMessage(`{"node_type":"container"}`),
			}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACallbackNobodyWaitsForIsStale(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnReport: func(event.Report) (event.ReportAnswer, error) {
		return event.ReportAnswer{Status: "ok", EventIDs: []event.ID{0}}, nil
	}}
	askInternal(t, newServer(t, p, withToken), "POST", "/api/internal/container-callback/7/s", `{"state":"succeeded","job_name":"j"}`).want(t, 202,
		`{"status":"accepted_stale"}`)
}

func TestACallbackForAnUnknownExecutionIsStale(t *testing.T) {
	t.Parallel()
	askInternal(t, newServer(t, started(7), withToken), "POST", "/api/internal/container-callback/8/s", `{"state":"failed","job_name":"j"}`).want(t, 202,
		`{"status":"accepted_stale"}`)
}

func TestCallbacksThatAreRefused(t *testing.T) {
	t.Parallel()
	srv := newServer(t, started(7), withToken)
	for _, tc := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"7/s", `{"state":"exploded","job_name":"j"}`, 422, `failed_timeout, succeeded, got "exploded"`},
		{"7/s", `{"job_name":"j"}`, 422, "state: want"},
		{"7/s", `{"state":"failed"}`, 422, "job_name is missing"},
		{"7/s", `{"state":"failed","job_name":"j","exit_code":"x"}`, 422, "exit_code: want"},
		{"7/s", `{"state":"failed","job_name":"j","completed_at":"yesterday"}`, 422, "completed_at: want an RFC 3339 time"},
		{"x/s", `{"state":"failed","job_name":"j"}`, 400, "decimal id"},
	} {
		askInternal(t, srv, "POST", "/api/internal/container-callback/"+tc.path, tc.body).wantError(t, tc.status, tc.want)
	}
}
