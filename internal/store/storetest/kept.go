package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// elsewhere is a value that is kept outside its row.
func elsewhere(execution event.ID, scope string) store.Result {
	r := newResult(execution, `1`)
	r.Data, r.Bytes, r.Scope, r.Tier, r.Key, r.MediaType = nil, 77, scope, "file", "a/b", "text/csv"
	r.Frames, r.SourceStep = []byte{0, 1, 255}, "fetch"
	return r
}

// ended stores an execution that ended at the given time.
func ended(t *testing.T, s store.Store, at time.Time) event.ID {
	t.Helper()
	b := newBatch(newID(), 0, 1)
	b.Execution.Status, b.Execution.EndedAt = event.StatusCompleted, at
	mustAppend(t, s, b)
	return b.Execution.ExecutionID
}

func refsOf(rows []store.Result) []string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Ref)
	}
	return out
}

func wantRefs(t *testing.T, what string, rows []store.Result, err error, want ...store.Result) {
	t.Helper()
	if got := refsOf(rows); err != nil || !slices.Equal(got, refsOf(want)) {
		t.Errorf("%s = %q, %v; want %q", what, got, err, refsOf(want))
	}
	for _, r := range rows {
		if r.Data != nil {
			t.Errorf("%s brings the data of %s", what, r.Ref)
		}
	}
}

func retire(t *testing.T, s store.Store, r store.Result, want bool) {
	t.Helper()
	if done, err := s.RetireResult(t.Context(), r, epoch); err != nil || done != want {
		t.Errorf("RetireResult(%s) = %v, %v; want %v", r.Ref, done, err, want)
	}
}

var keptTests = map[string]func(*testing.T, store.Store){
	"a value kept elsewhere is found with all that is known of it": func(t *testing.T, s store.Store) {
		r := elsewhere(newID(), store.ScopeWorkflow)
		r.ExpiresAt = epoch.Add(time.Hour)
		mustPut(t, s, r)
		got, err := s.Result(t.Context(), r.ExecutionID, r.Ref)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Result", r, got)
	},
	"a value that is being put cannot be read before it is finished": func(t *testing.T, s store.Store) {
		r := elsewhere(newID(), store.ScopeExecution)
		r.Pending, r.ExpiresAt, r.Bytes, r.SHA256, r.Frames = true, epoch.Add(time.Hour), 0, "", nil
		mustPut(t, s, r)
		wantNoResult(t, s, r)
		rows, err := s.ListResults(t.Context(), r.ExecutionID, "", 0)
		wantRefs(t, "ListResults", rows, err)
		wantErr(t, "PinResult", s.PinResult(t.Context(), r.ExecutionID, r.Ref, newID()), store.ErrNotFound)
		done := r
		done.Pending, done.ExpiresAt, done.Bytes, done.SHA256, done.Frames, done.Tier, done.Key = false, time.Time{}, 5, "sum", []byte{9}, "s3", "c"
		if err := s.FinishResult(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		got, err := s.Result(t.Context(), r.ExecutionID, r.Ref)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "Result", done, got)
		wantErr(t, "FinishResult again", s.FinishResult(t.Context(), done), store.ErrNotFound)
		retire(t, s, r, false) // it was read before it was finished
		wantErr(t, "FinishResult of nothing", s.FinishResult(t.Context(), elsewhere(newID(), "")), store.ErrNotFound)
	},
	"a reservation that was given up leaves nothing": func(t *testing.T, s store.Store) {
		r := elsewhere(newID(), store.ScopeExecution)
		r.Pending, r.ExpiresAt = true, epoch
		mustPut(t, s, r)
		rows, err := s.ExpiredResults(t.Context(), epoch, 0)
		wantRefs(t, "ExpiredResults", rows, err, r)
		retire(t, s, r, true)
		wantErr(t, "FinishResult", s.FinishResult(t.Context(), r), store.ErrNotFound)
		rows, err = s.ExpiredResults(t.Context(), epoch, 0)
		wantRefs(t, "ExpiredResults", rows, err, r)
		if err := s.ForgetResult(t.Context(), r.ExecutionID, r.Ref); err != nil {
			t.Fatal(err)
		}
		rows, err = s.ExpiredResults(t.Context(), epoch, 0)
		wantRefs(t, "ExpiredResults", rows, err)
		r.Pending = false
		mustPut(t, s, r) // the reference is free again
	},
	"a removed value says that it was collected": func(t *testing.T, s store.Store) {
		inRow, apart := newResult(newID(), `{"a":1}`), elsewhere(newID(), store.ScopeStep)
		for _, r := range []store.Result{inRow, apart} {
			mustPut(t, s, r)
			retire(t, s, r, true)
			retire(t, s, r, false)
			_, err := s.Result(t.Context(), r.ExecutionID, r.Ref)
			wantErr(t, "Result", err, store.ErrCollected)
			wantErr(t, "Result", err, store.ErrNotFound)
			wantErr(t, "PinResult", s.PinResult(t.Context(), r.ExecutionID, r.Ref, 5), store.ErrCollected)
			rows, err := s.ListResults(t.Context(), r.ExecutionID, "", 0)
			wantRefs(t, "ListResults", rows, err)
		}
		rows, err := s.ExpiredResults(t.Context(), epoch, 0)
		wantRefs(t, "what may be left of it", rows, err, apart)
		if len(rows) == 1 && (rows[0].Key != "a/b" || rows[0].Tier != "file" || rows[0].GoneAt.IsZero()) {
			t.Errorf("where it is left is not known: %+v", rows[0])
		}
		if err := s.ForgetResult(t.Context(), apart.ExecutionID, apart.Ref); err != nil {
			t.Fatal(err)
		}
		rows, err = s.ExpiredResults(t.Context(), epoch, 0)
		wantRefs(t, "ExpiredResults", rows, err)
		_, err = s.Result(t.Context(), apart.ExecutionID, apart.Ref)
		wantErr(t, "Result", err, store.ErrCollected)
		mustPut(t, s, apart) // values never come back
		_, err = s.Result(t.Context(), apart.ExecutionID, apart.Ref)
		wantErr(t, "Result", err, store.ErrCollected)
	},
	"a value that another execution refers to is not removed behind its back": func(t *testing.T, s store.Store) {
		r := newResult(newID(), `1`)
		mustPut(t, s, r)
		for _, holder := range []event.ID{7, 77, 7} {
			if err := s.PinResult(t.Context(), r.ExecutionID, r.Ref, holder); err != nil {
				t.Fatal(err)
			}
		}
		retire(t, s, r, false)
		got, err := s.Result(t.Context(), r.ExecutionID, r.Ref)
		if err != nil || !slices.Equal(got.PinnedBy, []event.ID{7, 77}) {
			t.Errorf("pinned by %v, %v", got.PinnedBy, err)
		}
		retire(t, s, got, true)
		wantErr(t, "PinResult of nothing", s.PinResult(t.Context(), r.ExecutionID, "noetl://no", 7), store.ErrNotFound)
	},
	"results of an execution are listed by reference": func(t *testing.T, s store.Store) {
		x := newID()
		var all []store.Result
		for i := range 4 {
			r := newResult(x, `{"a":1}`)
			r.Ref = fmt.Sprintf("noetl://execution/%d/result/%s/1", x, []string{"B", "Z", "a", "c"}[i])
			all = append(all, r)
			mustPut(t, s, r)
		}
		mustPut(t, s, newResult(newID(), `2`))
		rows, err := s.ListResults(t.Context(), x, "", 0)
		wantRefs(t, "all", rows, err, all...)
		rows, err = s.ListResults(t.Context(), x, all[0].Ref, 2)
		wantRefs(t, "a page", rows, err, all[1:3]...)
	},
	"expired results are found, the earliest first": func(t *testing.T, s store.Store) {
		var all []store.Result
		for i := range 4 {
			r := newResult(newID(), `1`)
			r.ExpiresAt = epoch.Add(time.Duration(i) * time.Minute)
			all = append(all, r)
		}
		for _, i := range []int{2, 0, 3, 1} {
			mustPut(t, s, all[i])
		}
		mustPut(t, s, newResult(newID(), `1`))
		rows, err := s.ExpiredResults(t.Context(), epoch.Add(2*time.Minute), 0)
		wantRefs(t, "all", rows, err, all[:3]...)
		rows, err = s.ExpiredResults(t.Context(), epoch.Add(time.Hour), 2)
		wantRefs(t, "a batch", rows, err, all[:2]...)
	},
	"results of executions that ended are found in order": func(t *testing.T, s store.Store) {
		early, late := ended(t, s, epoch.Add(-time.Hour)), ended(t, s, epoch)
		third := ended(t, s, epoch.Add(-time.Minute))
		open := newBatch(newID(), 0, 1)
		mustAppend(t, s, open)
		step, workflow, other := newResult(early, `1`), elsewhere(early, store.ScopeWorkflow), newResult(third, `3`)
		step.Scope = store.ScopeStep
		permanent, timed, pending := newResult(early, `1`), newResult(early, `1`), elsewhere(early, store.ScopeStep)
		permanent.Scope, timed.ExpiresAt, pending.Pending = store.ScopePermanent, epoch.Add(time.Hour), true
		for _, r := range []store.Result{
			step, workflow, other, permanent, timed, pending,
			newResult(late, `1`), newResult(open.Execution.ExecutionID, `1`), newResult(newID(), `1`),
		} {
			mustPut(t, s, r)
		}
		rows, err := s.EndedResults(t.Context(), epoch, store.ResultPosition{}, 0)
		wantRefs(t, "all", rows, err, step, workflow, other)
		rows, err = s.EndedResults(t.Context(), epoch, store.ResultPosition{}, 1)
		wantRefs(t, "a batch", rows, err, step)
		rows, err = s.EndedResults(t.Context(), epoch, step.Position(), 0)
		wantRefs(t, "the rest", rows, err, workflow, other)
		retire(t, s, workflow, true)
		rows, err = s.EndedResults(t.Context(), epoch, store.ResultPosition{}, 0)
		wantRefs(t, "without what is gone", rows, err, step, other)
	},
	"parts come back as they were put": func(t *testing.T, s store.Store) {
		x, large := newID(), bytes.Repeat([]byte{0, 255, 'x'}, 200<<10)
		for part, data := range [][]byte{{1}, large, {}} {
			for range 2 { // a part that is sent again is the same part
				if err := s.PutPart(t.Context(), x, "k", part, data); err != nil {
					t.Fatal(err)
				}
			}
			got, err := s.Part(t.Context(), x, "k", part)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("part %d: %d bytes, %v; want %d", part, len(got), err, len(data))
			}
		}
		if err := s.PutPart(t.Context(), x, "k2", 0, []byte("other")); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{2, 1, 0} {
			if n, err := s.DeleteParts(t.Context(), x, "k", 2); err != nil || n != want {
				t.Errorf("DeleteParts = %d, %v; want %d", n, err, want)
			}
		}
		_, err := s.Part(t.Context(), x, "k", 0)
		wantErr(t, "Part", err, store.ErrNotFound)
		if got, err := s.Part(t.Context(), x, "k2", 0); err != nil || string(got) != "other" {
			t.Errorf("the part beside it is %q, %v", got, err)
		}
		if n, err := s.DeleteParts(t.Context(), x, "k2", 0); err != nil || n != 1 {
			t.Errorf("DeleteParts of all = %d, %v", n, err)
		}
	},
}
