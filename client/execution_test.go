package client_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestEveryFilterOfTheListReachesTheServer(t *testing.T) {
	t.Parallel()
	var got store.ExecutionFilter
	c := dial(t, handler(&apitest.Plane{OnList: func(f store.ExecutionFilter) ([]store.Execution, error) { got = f; return nil, nil }}))
	from := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	_, err := c.Executions(t.Context(), client.ExecutionFilter{
		Status: "FAILED", Path: "a&b", PathPrefix: "x/", CatalogID: 1, ParentID: 2, Pool: "gpu",
		StartedAfter: from, StartedBefore: from.Add(time.Hour), Before: 3, Limit: 4, Offset: 5,
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, store.ExecutionFilter{
		Status: "FAILED", Path: "a&b", PathPrefix: "x/", CatalogID: 1, ParentID: 2, Pool: "gpu",
		StartedFrom: from.UTC(), StartedTo: from.Add(time.Hour).UTC(), Before: 3, Limit: 4, Offset: 5,
	}, got)
}

func TestSeveralClaimsAreAnsweredOneByOne(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnClaim: func(_ context.Context, r event.ClaimRequest) (*event.Command, error) {
		switch r.EventID {
		case 1:
			return &event.Command{EventID: 1, ExecutionID: r.ExecutionID, Action: "noop"}, nil
		case 2:
			return nil, &event.Error{Code: event.Conflict, Message: "taken by " + r.WorkerID, Reason: "active_claim"}
		case 3:
			return nil, event.Errorf(event.NotFound, "not found")
		}
		return nil, event.Errorf(event.Unavailable, "busy")
	}}
	got, err := dial(t, handler(p)).ClaimAll(t.Context(), "w", true, []client.ClaimRequest{{EventID: 1, ExecutionID: 9}, {EventID: 2}, {EventID: 3}, {EventID: 4}})
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v: %v", got, err)
	}
	if got[0].Status != "ok" || got[0].Command.ExecutionID != 9 {
		t.Errorf("%+v", got[0])
	}
	same(t, client.Claimed{EventID: 2, Status: "conflict", Message: "taken by w", Reason: "active_claim"}, got[1])
	same(t, client.Claimed{EventID: 3, Status: "not_found", Message: "command.issued event not found: 3"}, got[2])
	same(t, client.Claimed{EventID: 4, Status: "retry", Message: "busy"}, got[3])
}

func TestExecutionsAreEndedAndCleanedUpByHand(t *testing.T) {
	t.Parallel()
	var end control.FinalizeRequest
	var clean control.CleanupRequest
	c := dial(t, handler(&apitest.Plane{
		OnFinalize: func(_ event.ID, r control.FinalizeRequest) (control.FinalizeAnswer, error) {
			end = r
			return control.FinalizeAnswer{Status: r.Status, Before: true, Message: "m"}, nil
		},
		OnCleanup: func(r control.CleanupRequest) (control.CleanupAnswer, error) {
			clean = r
			return control.CleanupAnswer{Executions: []event.ID{7}, Message: "n"}, nil
		},
	}))
	a, err := c.Finalize(t.Context(), 5, client.Failed, "why")
	if err != nil {
		t.Fatal(err)
	}
	same(t, client.FinalizeAnswer{ExecutionID: 5, Status: "FAILED", Outcome: "already_completed", Message: "m"}, a)
	same(t, control.FinalizeRequest{Status: "FAILED", Error: "why"}, end)
	b, err := c.Cleanup(t.Context(), 90*time.Second, false)
	if err != nil {
		t.Fatal(err)
	}
	same(t, client.CleanupAnswer{Cancelled: 1, Executions: []client.ID{7}, Message: "n"}, b)
	same(t, control.CleanupRequest{Silence: 90 * time.Second}, clean)
}

func TestRowsTheLogDoesNotHoldAreNoEvents(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(store.Execution{ExecutionID: 5, Status: event.StatusRunning}, `{}`)
	p.Append(5, event.Event{Type: event.CommandCompleted, NodeName: "s", CommandID: "c", Result: json.RawMessage(`{"context":{"data":1}}`)})
	d, err := dial(t, handler(p)).Execution(t.Context(), 5)
	if err != nil || len(d.Events) != 1 || d.Events[0].Type != event.CommandCompleted {
		t.Errorf("%+v: %v", d.Events, err)
	}
}
