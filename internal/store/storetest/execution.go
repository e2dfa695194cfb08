package storetest

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var executionTests = map[string]func(*testing.T, store.Store){
	"every field of an execution comes back": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 2)
		b.Execution = store.Execution{
			ExecutionID: b.Execution.ExecutionID, CatalogID: 5, ParentExecutionID: 6, Path: "a/b'c", Version: 3, Pool: "gpu",
			Status: event.StatusRunning, LastSeq: 2, LastEventID: 7, LastEventType: event.StepExit, LastNodeName: "n",
			CurrentStep: "s", StepsTotal: 9, StepsCompleted: 4, StepsRunning: 3, StepsFailed: 2, Error: "boom",
			StartedAt: epoch.In(time.FixedZone("x", -7200)), UpdatedAt: epoch.Add(time.Microsecond),
		}
		mustAppend(t, s, b)
		want := b.Execution
		want.StartedAt = epoch
		wantSame(t, "running", want, must[store.Execution](t)(s.Execution(t.Context(), want.ExecutionID)))

		next := newBatch(want.ExecutionID, 2, 1)
		want = store.Execution{
			ExecutionID: want.ExecutionID, CatalogID: 8, Path: "d", Version: 4, Status: event.StatusCompleted, LastSeq: 3,
			LastEventID: 9, StartedAt: epoch, EndedAt: epoch.Add(time.Hour), UpdatedAt: epoch.Add(time.Hour),
		}
		next.Execution = want
		mustAppend(t, s, next)
		wantSame(t, "completed", want, must[store.Execution](t)(s.Execution(t.Context(), want.ExecutionID)))
	},
	"the row of a running execution follows every batch": func(t *testing.T, s store.Store) {
		x := newID()
		mustAppend(t, s, newBatch(x, 0, 1))
		for seq := int64(1); seq < 4; seq++ {
			b := newBatch(x, seq, 1)
			b.Execution.CatalogID += event.ID(seq % 2)
			b.Execution.ParentExecutionID = event.ID(seq % 3)
			b.Execution.StepsRunning = int(seq)
			mustAppend(t, s, b)
			wantSame(t, "row", b.Execution, must[store.Execution](t)(s.Execution(t.Context(), x)))
		}
	},
	"an unknown execution is not found": func(t *testing.T, s store.Store) {
		_, err := s.Execution(t.Context(), newID())
		wantErr(t, "Execution", err, store.ErrNotFound)
	},
	"executions are listed newest first with filters and pages": func(t *testing.T, s store.Store) {
		ids := make([]event.ID, 8)
		for i := range ids {
			b := newBatch(newID(), 0, 1)
			ids[i] = b.Execution.ExecutionID
			b.Execution.Path = []string{"Etl/Daily_Load", "etl/dailyXload", "100%/safe", "etl/other"}[i%4]
			b.Execution.Status = []string{event.StatusRunning, event.StatusFailed}[i%2]
			b.Execution.CatalogID = event.ID(10 + i%2)
			if i > 5 {
				b.Execution.ParentExecutionID = ids[0]
			}
			mustAppend(t, s, b)
		}
		for name, c := range map[string]struct {
			filter store.ExecutionFilter
			want   []int // indexes into ids
		}{
			"all":                      {store.ExecutionFilter{}, []int{7, 6, 5, 4, 3, 2, 1, 0}},
			"status":                   {store.ExecutionFilter{Status: event.StatusFailed}, []int{7, 5, 3, 1}},
			"catalog":                  {store.ExecutionFilter{CatalogID: 10}, []int{6, 4, 2, 0}},
			"parent":                   {store.ExecutionFilter{ParentID: ids[0]}, []int{7, 6}},
			"path ignores case":        {store.ExecutionFilter{Path: "DAILY"}, []int{5, 4, 1, 0}},
			"underscore is a letter":   {store.ExecutionFilter{Path: "daily_l"}, []int{4, 0}},
			"percent is a letter":      {store.ExecutionFilter{Path: "0%/"}, []int{6, 2}},
			"backslash is a letter":    {store.ExecutionFilter{Path: `\`}, nil},
			"limit":                    {store.ExecutionFilter{Limit: 3}, []int{7, 6, 5}},
			"offset":                   {store.ExecutionFilter{Limit: 3, Offset: 6}, []int{1, 0}},
			"offset without limit":     {store.ExecutionFilter{Offset: 6}, []int{1, 0}},
			"offset beyond the end":    {store.ExecutionFilter{Offset: 9}, nil},
			"everything together":      {store.ExecutionFilter{Status: event.StatusRunning, Path: "safe", CatalogID: 10, ParentID: ids[0], Limit: 5}, []int{6}},
			"unknown status":           {store.ExecutionFilter{Status: "NEVER"}, nil},
			"status and page together": {store.ExecutionFilter{Status: event.StatusRunning, Limit: 2, Offset: 1}, []int{4, 2}},
		} {
			var want, got []event.ID
			for _, i := range c.want {
				want = append(want, ids[i])
			}
			for _, x := range must[[]store.Execution](t)(s.ListExecutions(t.Context(), c.filter)) {
				got = append(got, x.ExecutionID)
			}
			wantSame(t, name, want, got)
		}
	},
	"a list without limit has fifty rows": func(t *testing.T, s store.Store) {
		for range 53 {
			mustAppend(t, s, newBatch(newID(), 0, 1))
		}
		if got := must[[]store.Execution](t)(s.ListExecutions(t.Context(), store.ExecutionFilter{})); len(got) != 50 {
			t.Errorf("listed %d, want 50", len(got))
		}
		if got := must[[]store.Execution](t)(s.ListExecutions(t.Context(), store.ExecutionFilter{Limit: 100})); len(got) != 53 {
			t.Errorf("listed %d, want 53", len(got))
		}
	},
	"open executions are the unfinished ones nobody touched lately": func(t *testing.T, s store.Store) {
		var open []event.ID
		for i, status := range []string{event.StatusRunning, event.StatusCompleted, event.StatusRunning, event.StatusFailed, event.StatusCancelled, event.StatusRunning, event.StatusRunning} {
			b := newBatch(newID(), 0, 1)
			b.Execution.Status = status
			b.Execution.UpdatedAt = epoch
			switch i {
			case 5:
				b.Execution.UpdatedAt = epoch.Add(time.Minute)
			case 6:
				b.Execution.UpdatedAt = time.Time{}
			}
			mustAppend(t, s, b)
			if status == event.StatusRunning && i != 5 {
				open = append(open, b.Execution.ExecutionID)
			}
		}
		find := func(after event.ID, before time.Time, limit int) []event.ID {
			return must[[]event.ID](t)(s.OpenExecutions(t.Context(), after, before, limit))
		}
		soon := epoch.Add(time.Second)
		wantSame(t, "all", open, find(0, soon, 0))
		wantSame(t, "first page", open[:2], find(0, soon, 2))
		wantSame(t, "second page", open[2:], find(open[1], soon, 2))
		wantSame(t, "updated at that very time", open[2:], find(0, epoch, 10))
		if got := find(0, epoch.Add(time.Hour), 10); len(got) != 4 {
			t.Errorf("%d open an hour later, want 4", len(got))
		}
	},
	"a finished execution is no longer open": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		mustAppend(t, s, b)
		end := newBatch(b.Execution.ExecutionID, 1, 1)
		end.Execution.Status = event.StatusCompleted
		mustAppend(t, s, end)
		if got := must[[]event.ID](t)(s.OpenExecutions(t.Context(), 0, epoch.Add(time.Hour), 5)); len(got) != 0 {
			t.Errorf("open executions = %v", got)
		}
	},
}
