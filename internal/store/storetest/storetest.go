// Package storetest is the conformance suite of the storage contract: what
// passes it can carry the control plane. It also measures the raw speed of the
// databases, to compare drivers with. It must not know any driver of ours but the model.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Run tests every sentence of the contract. open returns a fresh, empty store
// and closes it with the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	t.Helper()
	groups := []map[string]func(*testing.T, store.Store){
		logTests, raceTests, executionTests, timerTests, commandTests, resultTests, keptTests, catalogTests, lifeTests,
		claimTests, outboxTests, variableTests, runtimeTests, snapshotTests, projectionTests, schemaTests, listTests, archiveTests,
		credentialTests, keychainTests, auditTests, retentionTests, scheduleTests, tokenTests, sessionTests, actionTests,
	}
	for _, tests := range groups {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, open(t))
			})
		}
	}
	t.Run("random operations give the same answers as the model", func(t *testing.T) {
		t.Parallel()
		runModel(t, open)
	})
}

// epoch is the time all rows of the suite are made at.
var epoch = time.Date(2026, 11, 15, 12, 30, 0, 123456000, time.UTC)

var lastID atomic.Int64

// newID returns ids that ascend and look like snowflakes of epoch.
func newID() event.ID {
	const snowflakeEpoch = 1704067200000
	return event.ID((epoch.UnixMilli()-snowflakeEpoch)<<22 + lastID.Add(1))
}

// newBatch is a plausible batch of n events on top of expected.
func newBatch(execution event.ID, expected int64, n int) store.Batch {
	b := store.Batch{Expected: expected}
	for i := range n {
		b.Events = append(b.Events, newEvent(execution, expected+int64(i)+1))
	}
	b.Execution = store.Execution{
		ExecutionID: execution, CatalogID: 77, Path: "examples/hello", Version: 1, Status: event.StatusRunning,
		LastSeq: expected + int64(n), StartedAt: epoch, UpdatedAt: epoch,
	}
	if n > 0 {
		b.Execution.LastEventID = b.Events[n-1].EventID
		b.Execution.LastEventType = b.Events[n-1].Type
	}
	return b
}

func newEvent(execution event.ID, seq int64) event.Event {
	return event.Event{
		ExecutionID: execution, Seq: seq, EventID: newID(), CatalogID: 77, Type: event.StepEnter, NodeName: "fetch",
		Status: event.StatusEntered, CreatedAt: epoch, Meta: json.RawMessage(`{"n":` + fmt.Sprint(seq) + `}`),
	}
}

// newCommand is a command of the batch's first event.
func newCommand(b *store.Batch, status string) store.Command {
	return store.Command{
		ExecutionID: b.Execution.ExecutionID, EventID: b.Events[0].EventID, CommandID: "cmd-" + b.Events[0].EventID.String(),
		CatalogID: 77, Step: "fetch", ToolKind: "http", Status: status, MaxAttempts: 3, IterIndex: -1, CreatedAt: epoch,
	}
}

// heldCommand stores an execution with one command held by worker.
func heldCommand(t *testing.T, s store.Store, worker string, attempt int, until time.Time) store.Command {
	t.Helper()
	b := newBatch(newID(), 0, 1)
	c := newCommand(&b, event.StatusClaimed)
	c.WorkerID, c.Attempt, c.LeaseUntil, c.ClaimedAt = worker, attempt, until, epoch
	b.Commands = []store.Command{c}
	mustAppend(t, s, b)
	return c
}

func mustAppend(t *testing.T, s store.Store, batches ...store.Batch) {
	t.Helper()
	for _, b := range batches {
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatalf("Append(execution %d, expected %d): %v", b.Execution.ExecutionID, b.Expected, err)
		}
	}
}

// wantErr fails unless err is the sentinel itself.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %q", what, err, want)
	}
}

// wantSame compares rows; JSON columns count as equal when they mean the same.
func wantSame(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Transformer("json", meaning), cmp.FilterValues(bothEmpty, cmp.Ignore())); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func meaning(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "broken: " + string(raw)
	}
	return v
}

func bothEmpty(a, b []byte) bool { return len(a) == 0 && len(b) == 0 }

// must unwraps a call that has to succeed.
func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var lifeTests = map[string]func(*testing.T, store.Store){
	"an open store answers a ping": func(t *testing.T, s store.Store) {
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("Ping = %v", err)
		}
	},
	"a context that has ended fails every call": func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, err := range callAll(ctx, s) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s = %v, want context.Canceled", name, err)
			}
		}
		if got := must[[]store.Execution](t)(s.ListExecutions(t.Context(), store.ExecutionFilter{})); len(got) != 0 {
			t.Errorf("a cancelled Append left %d executions", len(got))
		}
	},
	"a closed store fails every call": func(t *testing.T, s store.Store) {
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		for name, err := range callAll(t.Context(), s) {
			if code := event.CodeOf(err); err == nil || code != event.Unavailable {
				t.Errorf("%s = %v (%s), want an unavailable error", name, err, code)
			}
		}
	},
}

// callAll makes one plausible call of every method.
func callAll(ctx context.Context, s store.Store) map[string]error {
	errs := map[string]error{
		"Append": s.Append(ctx, newBatch(newID(), 0, 1)), "PutResult": s.PutResult(ctx, newResult(1, `1`)), "Ping": s.Ping(ctx),
	}
	_, errs["Events"] = s.Events(ctx, 1, 0, 0)
	_, errs["EventIDs"] = s.EventIDs(ctx, 1, []event.ID{1})
	_, errs["Event"] = s.Event(ctx, 1, 1)
	_, errs["Execution"] = s.Execution(ctx, 1)
	_, errs["ListExecutions"] = s.ListExecutions(ctx, store.ExecutionFilter{})
	_, errs["OpenExecutions"] = s.OpenExecutions(ctx, 0, epoch, 1)
	_, errs["DueExecutions"] = s.DueExecutions(ctx, epoch, 1)
	_, errs["Result"] = s.Result(ctx, 1, "r")
	_, errs["Command"] = s.Command(ctx, 0, 1)
	_, errs["PendingCommands"] = s.PendingCommands(ctx, epoch, 1)
	_, errs["CountPending"] = s.CountPending(ctx, 1)
	_, errs["ExpiredCommands"] = s.ExpiredCommands(ctx, epoch, 1)
	_, errs["RenewLeases"] = s.RenewLeases(ctx, []event.Heartbeat{{EventID: 1, WorkerID: "w", Attempt: 1}}, epoch)
	_, errs["ExpireLeases"] = s.ExpireLeases(ctx, "w", epoch)
	_, errs["AddEntry"] = s.AddEntry(ctx, newEntry("life"))
	_, errs["Entry"] = s.Entry(ctx, 1)
	_, errs["EntryByPath"] = s.EntryByPath(ctx, "life", 0)
	_, errs["ListEntries"] = s.ListEntries(ctx, store.EntryFilter{})
	callMore(ctx, s, errs)
	callSecrets(ctx, s, errs)
	callSchedules(ctx, s, errs)
	callAccess(ctx, s, errs)
	return errs
}

// callMore makes the calls of callAll that concern what is kept beside the log.
func callMore(ctx context.Context, s store.Store, errs map[string]error) {
	_, errs["CountExecutions"] = s.CountExecutions(ctx)
	_, errs["RenewWorker"] = s.RenewWorker(ctx, "w", epoch, epoch)
	_, errs["RemoveEntries"] = s.RemoveEntries(ctx, "life", 0, epoch)
	_, errs["RestoreEntries"] = s.RestoreEntries(ctx, "life", 0)
	_, errs["CountEntries"] = s.CountEntries(ctx, "playbook")
	_, errs["ClaimHolder"] = s.ClaimHolder(ctx, newClaim(1, "k"))
	_, errs["PurgeClaims"] = s.PurgeClaims(ctx, epoch, 1)
	_, errs["ClaimOutbox"] = s.ClaimOutbox(ctx, outboxClaim("t", 0))
	_, errs["MarkPublished"] = s.MarkPublished(ctx, "t", []int64{1}, epoch)
	_, errs["MarkFailed"] = s.MarkFailed(ctx, "t", 1, "no", epoch)
	_, errs["ReleaseOutbox"] = s.ReleaseOutbox(ctx, "t", []int64{1})
	_, errs["CountOutbox"] = s.CountOutbox(ctx, epoch, time.Minute)
	_, errs["PurgeOutbox"] = s.PurgeOutbox(ctx, epoch, 1)
	errs["SetVariables"] = s.SetVariables(ctx, 1, []store.Variable{newVariable("v", `1`)})
	_, errs["Variables"] = s.Variables(ctx, 1)
	_, errs["Variable"] = s.Variable(ctx, 1, "v", epoch)
	_, errs["DeleteVariables"] = s.DeleteVariables(ctx, 1, "")
	_, errs["PutRuntime"] = s.PutRuntime(ctx, newRuntime("worker_pool", "w"))
	_, errs["BeatRuntime"] = s.BeatRuntime(ctx, "worker_pool", "w", epoch)
	_, errs["Runtime"] = s.Runtime(ctx, "worker_pool", "w")
	_, errs["DeleteRuntime"] = s.DeleteRuntime(ctx, "worker_pool", "w")
	_, errs["ListRuntimes"] = s.ListRuntimes(ctx, store.RuntimeFilter{})
	_, errs["PurgeRuntimes"] = s.PurgeRuntimes(ctx, epoch)
	errs["PutSnapshot"] = s.PutSnapshot(ctx, newSnapshot(1, 1))
	_, errs["Snapshot"] = s.Snapshot(ctx, 1, "replay_state", "1")
	_, errs["LoggedExecutions"] = s.LoggedExecutions(ctx, 0, 1)
	_, errs["ProjectedExecutions"] = s.ProjectedExecutions(ctx, 0, 1)
	_, errs["CommandsOf"] = s.CommandsOf(ctx, 1)
	errs["Reproject"] = s.Reproject(ctx, newBatch(1, 0, 1).Execution, nil)
	_, errs["PurgeCommands"] = s.PurgeCommands(ctx, epoch, 1)
	callRetention(ctx, s, errs)
	errs["Migrate"] = s.Migrate(ctx)
	_, errs["SchemaState"] = s.SchemaState(ctx)
}
