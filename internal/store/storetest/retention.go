package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// past is the only batch of an execution that has ended.
func past(id, parent event.ID, status string, at time.Time) store.Batch {
	b := newBatch(id, 0, 3)
	b.Execution.Status, b.Execution.EndedAt, b.Execution.ParentExecutionID = status, at, parent
	b.Commands = []store.Command{newCommand(&b, event.StatusCompleted)}
	return b
}

// removal asks for an execution as past made it.
func removal(b *store.Batch) store.Removal {
	return store.Removal{ExecutionID: b.Execution.ExecutionID, LastSeq: b.Execution.LastSeq, Parent: b.Execution.ParentExecutionID}
}

var removalOptions = store.RemovalOptions{Now: epoch, PinnedSince: epoch.Add(time.Hour)}

// wantKept removes and compares the verdicts.
func wantKept(t *testing.T, s store.Store, o store.RemovalOptions, want string, list ...store.Removal) store.RemovalReport {
	t.Helper()
	report := must[store.RemovalReport](t)(s.RemoveExecutions(t.Context(), list, o))
	for i, got := range report.Kept {
		if got != want {
			t.Errorf("removal %d of %d: kept because of %q, want %q", i+1, len(list), got, want)
		}
	}
	return report
}

// wantGone fails unless nothing of an execution is left.
func wantGone(t *testing.T, s store.Store, id event.ID) {
	t.Helper()
	ctx := t.Context()
	_, err := s.Execution(ctx, id)
	wantErr(t, "row of a removed execution", err, store.ErrNotFound)
	if events := must[[]event.Event](t)(s.Events(ctx, id, 0, 0)); len(events) > 0 {
		t.Errorf("a removed execution has %d events", len(events))
	}
	if rows := must[[]store.Command](t)(s.CommandsOf(ctx, id)); len(rows) > 0 {
		t.Errorf("a removed execution has %d commands", len(rows))
	}
	if rows := must[[]store.Result](t)(s.ListResults(ctx, id, "", 0)); len(rows) > 0 {
		t.Errorf("a removed execution has %d results", len(rows))
	}
	if rows := must[[]store.Variable](t)(s.Variables(ctx, id)); len(rows) > 0 {
		t.Errorf("a removed execution has %d variables", len(rows))
	}
	_, err = s.Snapshot(ctx, id, "replay_state", id.String())
	wantErr(t, "snapshot of a removed execution", err, store.ErrNotFound)
	if at := must[time.Time](t)(s.RemovedAt(ctx, id)); !at.Equal(epoch) {
		t.Errorf("removed at %s, want %s", at, epoch)
	}
	if got := s.Append(ctx, newBatch(id, 0, 1)); got == nil || event.CodeOf(got) != event.NotFound {
		t.Errorf("a start of a removed execution = %v", got)
	} else {
		wantErr(t, "a start of a removed execution", got, store.ErrRemoved)
	}
	wantErr(t, "an append to a removed execution", s.Append(ctx, newBatch(id, 3, 1)), store.ErrConflict)
	wantErr(t, "a hold of a removed execution", s.HoldExecution(ctx, id, epoch), store.ErrRemoved)
	for what, err := range besides(ctx, s, id) {
		wantErr(t, what+" of a removed execution", err, store.ErrRemoved)
	}
	wantNothingBeside(t, s, id)
}

// besides writes beside the log of an execution, all that can be.
func besides(ctx context.Context, s store.Store, id event.ID) map[string]error {
	snap := newSnapshot(id, 1)
	snap.ID = id.String()
	return map[string]error{
		"a result":   s.PutResult(ctx, newResult(id, `{"late":true}`)),
		"a part":     s.PutPart(ctx, id, "late", 1, []byte("part")),
		"a variable": s.SetVariables(ctx, id, []store.Variable{newVariable("late", `1`)}),
		"a snapshot": s.PutSnapshot(ctx, snap),
	}
}

// wantNothingBeside fails when rows of an execution were left behind.
func wantNothingBeside(t *testing.T, s store.Store, id event.ID) {
	t.Helper()
	ctx := t.Context()
	_, part := s.Part(ctx, id, "late", 1)
	_, snapshot := s.Snapshot(ctx, id, "replay_state", id.String())
	results := must[[]store.Result](t)(s.ListResults(ctx, id, "", 0))
	variables := must[[]store.Variable](t)(s.Variables(ctx, id))
	if len(results) > 0 || len(variables) > 0 {
		t.Errorf("a removed execution left %d results and %d variables", len(results), len(variables))
	}
	wantErr(t, "a part of a removed execution", part, store.ErrNotFound)
	wantErr(t, "a snapshot of a removed execution", snapshot, store.ErrNotFound)
}

var retentionTests = map[string]func(*testing.T, store.Store){
	"everything of an execution goes, nothing of others does, and it cannot come back": func(t *testing.T, s store.Store) {
		ctx := t.Context()
		var batches []store.Batch
		for range 5 {
			b := past(newID(), 0, event.StatusCompleted, epoch)
			id := b.Execution.ExecutionID
			b.Publish = true
			r := newResult(id, `{"large":true}`)
			b.Results = []store.Result{r}
			mustAppend(t, s, b)
			if err := s.SetVariables(ctx, id, []store.Variable{newVariable("v", `1`)}); err != nil {
				t.Fatal(err)
			}
			snap := newSnapshot(id, 1)
			snap.ID = id.String()
			if err := s.PutSnapshot(ctx, snap); err != nil {
				t.Fatal(err)
			}
			if err := s.PutPart(ctx, id, "key", 1, []byte("part")); err != nil {
				t.Fatal(err)
			}
			for scope, key := range map[string]string{"local": "l", "global": "g"} {
				e := newEntryOf(id, key+id.String(), scope)
				if err := s.PutKeychain(ctx, e); err != nil {
					t.Fatal(err)
				}
			}
			batches = append(batches, b)
		}
		rows := must[[]store.OutboxRow](t)(s.ClaimOutbox(ctx, store.OutboxClaim{Token: "t", Now: epoch, Lease: time.Minute, Limit: 1000}))
		var ids []int64
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if n := must[int](t)(s.MarkPublished(ctx, "t", ids, epoch)); n != 15 {
			t.Fatalf("%d published", n)
		}
		report := wantKept(t, s, removalOptions, "", removal(&batches[1]), removal(&batches[3]))
		want := map[string]int{
			"execution": 2, "event": 6, "command": 2, "result_store": 2, "result_chunk": 2, "outbox": 6, "transient": 2, "projection_snapshot": 2, "keychain": 2,
		}
		wantSame(t, "rows removed", want, report.Rows)
		for i, b := range batches {
			id := b.Execution.ExecutionID
			_, err := s.Keychain(ctx, "g"+id.String(), epoch)
			if err != nil {
				t.Errorf("a secret for all went with an execution: %v", err)
			}
			if i == 1 || i == 3 {
				wantGone(t, s, id)
				_, err := s.Keychain(ctx, "l"+id.String(), epoch)
				wantErr(t, "secret of a removed execution", err, store.ErrNotFound)
				continue
			}
			if events := must[[]event.Event](t)(s.Events(ctx, id, 0, 0)); len(events) != 3 {
				t.Errorf("another execution has %d events left", len(events))
			}
			if _, err := s.Result(ctx, id, b.Results[0].Ref); err != nil {
				t.Errorf("a result of another execution: %v", err)
			}
		}
		counts := must[store.OutboxCounts](t)(s.CountOutbox(ctx, epoch, time.Minute))
		if counts.Published != 9 {
			t.Errorf("%d published rows are left, want 9", counts.Published)
		}
	},
	"only what is as it was when that was decided goes": func(t *testing.T, s store.Store) {
		running := newBatch(newID(), 0, 3)
		done := past(newID(), 0, event.StatusFailed, epoch)
		mustAppend(t, s, running, done)
		wantKept(t, s, removalOptions, store.KeptChanged, removal(&running))
		r := removal(&done)
		late := newBatch(done.Execution.ExecutionID, 3, 1)
		late.Execution.Status, late.Execution.EndedAt = event.StatusFailed, epoch
		mustAppend(t, s, late)
		wantKept(t, s, removalOptions, store.KeptChanged, r, store.Removal{ExecutionID: newID(), LastSeq: 3})
		r.LastSeq = 4
		dry := removalOptions
		dry.DryRun = true
		wantKept(t, s, dry, "", r)
		wantKept(t, s, removalOptions, "", r)
		wantKept(t, s, removalOptions, store.KeptChanged, r)
		wantGone(t, s, r.ExecutionID)
	},
	"a parent goes before its children, and not while one goes on": func(t *testing.T, s store.Store) {
		parent := past(newID(), 0, event.StatusCompleted, epoch)
		var children []store.Batch
		for range 6 {
			children = append(children, past(newID(), parent.Execution.ExecutionID, event.StatusCancelled, epoch))
		}
		open := newBatch(newID(), 0, 1)
		open.Execution.ParentExecutionID = parent.Execution.ExecutionID
		mustAppend(t, s, parent, open)
		mustAppend(t, s, children...)
		var list []store.Removal
		for i := range children {
			list = append(list, removal(&children[i]))
		}
		wantKept(t, s, removalOptions, store.KeptParent, list...)
		wantKept(t, s, removalOptions, store.KeptChild, removal(&parent))
		end := newBatch(open.Execution.ExecutionID, 1, 1)
		end.Execution.Status, end.Execution.ParentExecutionID = event.StatusCompleted, parent.Execution.ExecutionID
		mustAppend(t, s, end)
		wantKept(t, s, removalOptions, "", removal(&parent))
		wantKept(t, s, removalOptions, "", list...)
	},
	"a hold keeps an execution for its time": func(t *testing.T, s store.Store) {
		b := past(newID(), 0, event.StatusCompleted, epoch)
		mustAppend(t, s, b)
		ctx := t.Context()
		wantErr(t, "hold of nothing", s.HoldExecution(ctx, newID(), epoch), store.ErrNotFound)
		for _, until := range []time.Time{epoch.Add(time.Hour), epoch.Add(time.Minute)} {
			if err := s.HoldExecution(ctx, b.Execution.ExecutionID, until); err != nil {
				t.Fatal(err)
			}
		}
		o := removalOptions
		o.Now = epoch.Add(time.Hour - time.Microsecond)
		wantKept(t, s, o, store.KeptHeld, removal(&b))
		o.Now = epoch.Add(time.Hour)
		wantKept(t, s, o, "", removal(&b))
	},
	"values somebody may need keep their execution": func(t *testing.T, s store.Store) {
		ctx := t.Context()
		user := past(newID(), 0, event.StatusCompleted, epoch)
		mustAppend(t, s, user)
		used := func(change func(*store.Result)) (store.Batch, store.Result) {
			b := past(newID(), 0, event.StatusCompleted, epoch)
			mustAppend(t, s, b)
			r := newResult(b.Execution.ExecutionID, `1`)
			change(&r)
			if err := s.PutResult(ctx, r); err != nil {
				t.Fatal(err)
			}
			return b, r
		}
		permanent, _ := used(func(r *store.Result) { r.Scope = store.ScopePermanent })
		wantKept(t, s, removalOptions, store.KeptPermanent, removal(&permanent))
		pending, _ := used(func(r *store.Result) { r.Pending, r.Data = true, nil })
		wantKept(t, s, removalOptions, store.KeptValue, removal(&pending))
		away, value := used(func(r *store.Result) { r.Tier, r.Key, r.Data = "file", "somewhere", nil })
		wantKept(t, s, removalOptions, store.KeptValue, removal(&away))
		found := must[[]store.Result](t)(s.ValuesOf(ctx, []event.ID{away.Execution.ExecutionID, pending.Execution.ExecutionID, permanent.Execution.ExecutionID}))
		if len(found) != 1 || found[0].Ref != value.Ref {
			t.Fatalf("values elsewhere: %+v", found)
		}
		if retired := must[bool](t)(s.RetireResult(ctx, found[0], epoch)); !retired {
			t.Fatal("the value was not retired")
		}
		wantKept(t, s, removalOptions, store.KeptValue, removal(&away))
		if err := s.ForgetResult(ctx, value.ExecutionID, value.Ref); err != nil {
			t.Fatal(err)
		}
		wantKept(t, s, removalOptions, "", removal(&away))

		pinned, value := used(func(*store.Result) {})
		for _, holder := range []event.ID{user.Execution.ExecutionID, newID()} {
			if err := s.PinResult(ctx, value.ExecutionID, value.Ref, holder); err != nil {
				t.Fatal(err)
			}
		}
		wantKept(t, s, removalOptions, store.KeptPinned, removal(&pinned))
		wantKept(t, s, removalOptions, "", removal(&user))
		young := removalOptions
		young.PinnedSince = epoch.Add(-time.Hour) // the other is about to start
		wantKept(t, s, young, store.KeptPinned, removal(&pinned))
		wantKept(t, s, removalOptions, "", removal(&pinned))
	},
	"events that wait to be published keep their execution": func(t *testing.T, s store.Store) {
		b := past(newID(), 0, event.StatusCompleted, epoch)
		b.Publish = true
		mustAppend(t, s, b)
		wantKept(t, s, removalOptions, store.KeptUnpublished, removal(&b))
		o := removalOptions
		o.Unpublished = true
		wantKept(t, s, o, "", removal(&b))
		if rows := must[[]store.OutboxRow](t)(s.ClaimOutbox(t.Context(), outboxClaim("t", 0))); len(rows) > 0 {
			t.Errorf("%d rows of a removed execution are handed out", len(rows))
		}
	},
	"a message whose execution was removed starts none within its window": func(t *testing.T, s store.Store) {
		c := newClaim(newID(), "k")
		b := claimingStart(s, c)
		b.Execution.Status, b.Execution.EndedAt = event.StatusCompleted, epoch
		mustAppend(t, s, b)
		wantKept(t, s, removalOptions, "", removal(&b))
		wantClaimed(t, "a second start", s.Append(t.Context(), claimingStart(s, c)), b.Execution.ExecutionID)
		again := claimingStart(s, newClaim(newID(), "other"))
		again.Execution.ExecutionID = b.Execution.ExecutionID
		for i := range again.Events {
			again.Events[i].ExecutionID = b.Execution.ExecutionID
		}
		if s.Colocated(b.Execution.ExecutionID, *again.Claim) {
			wantErr(t, "a start of the removed execution with a claim", s.Append(t.Context(), again), store.ErrRemoved)
			_, err := s.ClaimHolder(t.Context(), *again.Claim)
			wantErr(t, "holder of its claim", err, store.ErrNotFound)
		}
	},
	"ended executions are found by age in the order of their ids": func(t *testing.T, s store.Store) {
		var want []event.ID
		for i := range 9 {
			b := past(newID(), 0, []string{event.StatusCompleted, event.StatusFailed, event.StatusCancelled}[i%3], epoch.Add(time.Duration(8-i)*time.Hour))
			b.Execution.Path = "a/b"
			if i == 4 {
				b = newBatch(b.Execution.ExecutionID, 0, 1)
			}
			mustAppend(t, s, b)
			if i >= 3 && i != 4 {
				want = append(want, b.Execution.ExecutionID)
			}
		}
		var got []event.ID
		for after := event.ID(0); ; {
			page := must[[]store.Execution](t)(s.EndedExecutions(t.Context(), after, epoch.Add(6*time.Hour), 2))
			if len(page) == 0 {
				break
			}
			for _, x := range page {
				after, got = x.ExecutionID, append(got, x.ExecutionID)
			}
		}
		wantSame(t, "ended executions", want, got)
		for nth, place := range map[int]int{1: len(want) - 1, 3: len(want) - 3} {
			if id := must[event.ID](t)(s.NewestEnded(t.Context(), "a/b", nth)); id != want[place] {
				t.Errorf("newest %d = %d, want %d", nth, id, want[place])
			}
		}
		for _, nth := range []int{0, 9} {
			if id := must[event.ID](t)(s.NewestEnded(t.Context(), "a/b", nth)); id != 0 {
				t.Errorf("newest %d of 8 = %d", nth, id)
			}
		}
		if id := must[event.ID](t)(s.NewestEnded(t.Context(), "a", 1)); id != 0 {
			t.Errorf("newest of another path = %d", id)
		}
	},
	"what is known of removed executions ends, too": func(t *testing.T, s store.Store) {
		var list []store.Removal
		for range 3 {
			b := past(newID(), 0, event.StatusCompleted, epoch)
			mustAppend(t, s, b)
			list = append(list, removal(&b))
		}
		wantKept(t, s, removalOptions, "", list...)
		for before, want := range map[time.Time]int{epoch: 0, epoch.Add(time.Second): 2} {
			if n := must[int](t)(s.PurgeRemoved(t.Context(), before, 2)); n != want {
				t.Errorf("PurgeRemoved(%s) = %d, want %d", before, n, want)
			}
		}
		left := 0
		for _, r := range list {
			if _, err := s.RemovedAt(t.Context(), r.ExecutionID); err == nil {
				left++
			}
		}
		if left != 1 {
			t.Errorf("%d are left, want 1", left)
		}
	},
	"a lease is held by one until it is over": func(t *testing.T, s store.Store) {
		for i, c := range []struct {
			holder string
			after  time.Duration
			want   bool
		}{{"a", 0, true}, {"b", time.Second, false}, {"a", 50 * time.Second, true}, {"b", 109 * time.Second, false}, {"b", 110 * time.Second, true}, {"a", 111 * time.Second, false}} {
			if got := must[bool](t)(s.TakeLease(t.Context(), "work", c.holder, epoch.Add(c.after), time.Minute)); got != c.want {
				t.Errorf("%d: %s after %s takes it: %v", i, c.holder, c.after, got)
			}
		}
		if !must[bool](t)(s.TakeLease(t.Context(), "other work", "b", epoch, time.Minute)) {
			t.Error("other work is not free")
		}
	},
	"the parts of the log are told, and a part that is none is not dropped": func(t *testing.T, s store.Store) {
		b := past(newID(), 0, event.StatusCompleted, epoch)
		mustAppend(t, s, b)
		state := must[store.LogState](t)(s.LogState(t.Context()))
		for _, p := range state.Parts {
			if p.From >= p.To || p.Name == "" || p.Shard >= s.Shards() {
				t.Errorf("part %+v", p)
			}
		}
		_, removed, err := s.RemoveRange(t.Context(), store.RangeRemoval{
			Part: store.LogPart{Name: "no such part", From: 1, To: b.Execution.ExecutionID + 1}, Members: []store.Removal{removal(&b)}, RemovalOptions: removalOptions,
		})
		if removed || err != nil {
			t.Errorf("RemoveRange of no part = %v, %v", removed, err)
		}
		for _, p := range state.Parts { // one that holds others than the members
			if b.Execution.ExecutionID >= p.From && b.Execution.ExecutionID < p.To && store.ShardIndex(b.Execution.ExecutionID, s.Shards()) == p.Shard {
				if _, removed, err := s.RemoveRange(t.Context(), store.RangeRemoval{Part: p, RemovalOptions: removalOptions}); removed || err != nil {
					t.Errorf("RemoveRange without its members = %v, %v", removed, err)
				}
			}
		}
		if _, err := s.Compact(t.Context()); err != nil {
			t.Error(err)
		}
		if got := must[[]event.Event](t)(s.Events(t.Context(), b.Execution.ExecutionID, 0, 0)); len(got) != 3 {
			t.Errorf("%d events are left", len(got))
		}
	},
	"of an append and a removal one wins": func(t *testing.T, s store.Store) {
		for range 25 {
			b := past(newID(), 0, event.StatusCompleted, epoch)
			id := b.Execution.ExecutionID
			mustAppend(t, s, b)
			late := newBatch(id, 3, 1)
			late.Execution.Status, late.Execution.EndedAt = event.StatusCompleted, epoch
			var all sync.WaitGroup
			var appended, held error
			var report store.RemovalReport
			var failed error
			all.Go(func() { appended = s.Append(t.Context(), late) })
			all.Go(func() { held = s.HoldExecution(t.Context(), id, epoch.Add(time.Hour)) })
			all.Go(func() { report, failed = s.RemoveExecutions(t.Context(), []store.Removal{removal(&b)}, removalOptions) })
			all.Wait()
			events := must[[]event.Event](t)(s.Events(t.Context(), id, 0, 0))
			_, err := s.Execution(t.Context(), id)
			switch {
			case failed != nil:
				t.Fatal(failed)
			case report.Kept[0] == "":
				wantErr(t, "append", appended, store.ErrConflict)
				wantErr(t, "hold", held, store.ErrRemoved)
				if err == nil || len(events) > 0 {
					t.Fatalf("half of an execution is left: %v, %d events", err, len(events))
				}
			case err != nil || len(events) < 3 || appended == nil && len(events) != 4:
				t.Fatalf("kept (%s), but: %v, %d events, append %v", report.Kept[0], err, len(events), appended)
			}
		}
	},
	"what comes while an execution is removed neither starts it again nor is left behind": func(t *testing.T, s store.Store) {
		ctx := t.Context()
		for range 25 {
			b := past(newID(), 0, event.StatusCompleted, epoch)
			id := b.Execution.ExecutionID
			mustAppend(t, s, b)
			var all sync.WaitGroup
			var started, failed error
			var late map[string]error
			var report store.RemovalReport
			all.Go(func() { started = s.Append(ctx, newBatch(id, 0, 1)) })
			all.Go(func() { late = besides(ctx, s, id) })
			all.Go(func() { report, failed = s.RemoveExecutions(ctx, []store.Removal{removal(&b)}, removalOptions) })
			all.Wait()
			if failed != nil || report.Kept[0] != "" {
				t.Fatalf("removal: %+v, %v", report, failed)
			}
			if !errors.Is(started, store.ErrConflict) && !errors.Is(started, store.ErrRemoved) {
				t.Errorf("a start of it = %v", started)
			}
			for what, err := range late {
				if err != nil && !errors.Is(err, store.ErrRemoved) {
					t.Errorf("%s of it = %v", what, err)
				}
			}
			_, err := s.Execution(ctx, id)
			wantErr(t, "the removed execution", err, store.ErrNotFound)
			wantNothingBeside(t, s, id)
		}
	},
	"random trees go like those of the model": runRemovalModel,
}

// callRetention makes the calls of callAll that concern removing.
func callRetention(ctx context.Context, s store.Store, errs map[string]error) {
	_, errs["EndedExecutions"] = s.EndedExecutions(ctx, 0, epoch, 1)
	_, errs["NewestEnded"] = s.NewestEnded(ctx, "p", 1)
	_, errs["ValuesOf"] = s.ValuesOf(ctx, []event.ID{1})
	_, errs["RemoveExecutions"] = s.RemoveExecutions(ctx, []store.Removal{{ExecutionID: 1}}, removalOptions)
	errs["HoldExecution"] = s.HoldExecution(ctx, 1, epoch)
	_, errs["RemovedAt"] = s.RemovedAt(ctx, 1)
	_, errs["PurgeRemoved"] = s.PurgeRemoved(ctx, epoch, 1)
	_, errs["LogState"] = s.LogState(ctx)
	_, errs["Compact"] = s.Compact(ctx)
	_, errs["TakeLease"] = s.TakeLease(ctx, "n", "h", epoch, time.Minute)
}

// newEntryOf is a keychain entry of an execution.
func newEntryOf(execution event.ID, key, scope string) store.KeychainEntry {
	return store.KeychainEntry{
		CacheKey: key, Name: "k", CatalogID: 77, CredentialType: "bearer", CacheType: "token", Scope: scope,
		ExecutionID: execution, Sealed: "x", ExpiresAt: epoch.Add(time.Hour), CreatedAt: epoch,
	}
}

// runRemovalModel has the store and the model remove the same from the same
// random trees.
func runRemovalModel(t *testing.T, s store.Store) {
	r, model := rand.New(rand.NewPCG(7, 11)), memstore.New()
	both := []store.Store{s, model}
	var list []store.Removal
	for range 120 {
		parent := event.ID(0)
		if len(list) > 0 && r.IntN(3) > 0 {
			parent = list[r.IntN(len(list))].ExecutionID
		}
		b := past(newID(), parent, event.StatusCompleted, epoch)
		if r.IntN(6) == 0 {
			b.Execution.Status, b.Execution.EndedAt = event.StatusRunning, time.Time{}
		}
		b.Publish = r.IntN(12) == 0
		value := newResult(b.Execution.ExecutionID, `1`)
		if r.IntN(3) == 0 {
			b.Results = []store.Result{value}
		}
		holder, held := newID(), r.IntN(10) == 0
		if len(list) > 0 && r.IntN(2) == 0 {
			holder = list[r.IntN(len(list))].ExecutionID
		}
		list = append(list, removal(&b))
		for _, each := range both {
			mustAppend(t, each, b)
			if len(b.Results) > 0 {
				if err := each.PinResult(t.Context(), value.ExecutionID, value.Ref, holder); err != nil {
					t.Fatal(err)
				}
			}
			if held {
				if err := each.HoldExecution(t.Context(), b.Execution.ExecutionID, epoch.Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for round := range 6 {
		some := slices.Clone(list)
		r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:r.IntN(len(some))]
		o := removalOptions
		o.DryRun, o.Unpublished = round == 0, round > 3
		var reports []store.RemovalReport
		for _, each := range both {
			reports = append(reports, must[store.RemovalReport](t)(each.RemoveExecutions(t.Context(), some, o)))
		}
		wantSame(t, fmt.Sprint("round ", round), reports[1], reports[0])
	}
	for _, x := range list {
		want := must[[]event.Event](t)(model.Events(t.Context(), x.ExecutionID, 0, 0))
		got := must[[]event.Event](t)(s.Events(t.Context(), x.ExecutionID, 0, 0))
		if len(got) != len(want) {
			t.Errorf("execution %d has %d events, in the model %d", x.ExecutionID, len(got), len(want))
		}
	}
}
