package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// listed returns the ids a filter finds.
func listed(t *testing.T, s store.Store, f store.ExecutionFilter) []event.ID {
	t.Helper()
	var out []event.ID
	for _, x := range must[[]store.Execution](t)(s.ListExecutions(t.Context(), f)) {
		out = append(out, x.ExecutionID)
	}
	return out
}

var listTests = map[string]func(*testing.T, store.Store){
	"executions are found by prefix, pool, time and keyset": func(t *testing.T, s store.Store) {
		ids := make([]event.ID, 8)
		for i := range ids {
			b := newBatch(newID(), 0, 1)
			ids[i] = b.Execution.ExecutionID
			b.Execution.Path = []string{"etl/daily", "etl/daily_2", "Etl/daily", "etl%/x"}[i%4]
			b.Execution.Pool = []string{"", "gpu", "gpu", "Gpu"}[i%4]
			b.Execution.Status = []string{event.StatusRunning, event.StatusCompleted}[i/4]
			b.Execution.StartedAt = after(i)
			if i == 7 {
				b.Execution.StartedAt = time.Time{}
			}
			mustAppend(t, s, b)
		}
		for name, c := range map[string]struct {
			filter store.ExecutionFilter
			want   []int
		}{
			"prefix":                    {store.ExecutionFilter{PathPrefix: "etl/"}, []int{5, 4, 1, 0}},
			"prefix is a whole path":    {store.ExecutionFilter{PathPrefix: "etl/daily_2"}, []int{5, 1}},
			"prefix has case":           {store.ExecutionFilter{PathPrefix: "Etl"}, []int{6, 2}},
			"prefix with percent":       {store.ExecutionFilter{PathPrefix: "etl%"}, []int{7, 3}},
			"prefix and status":         {store.ExecutionFilter{PathPrefix: "etl/", Status: event.StatusRunning}, []int{1, 0}},
			"prefix and part":           {store.ExecutionFilter{PathPrefix: "etl", Path: "DAILY"}, []int{5, 4, 1, 0}},
			"prefix nobody has":         {store.ExecutionFilter{PathPrefix: "zzz"}, nil},
			"pool":                      {store.ExecutionFilter{Pool: "gpu"}, []int{6, 5, 2, 1}},
			"pool and status":           {store.ExecutionFilter{Pool: "gpu", Status: event.StatusCompleted}, []int{6, 5}},
			"pool page":                 {store.ExecutionFilter{Pool: "gpu", Limit: 2, Offset: 1}, []int{5, 2}},
			"from":                      {store.ExecutionFilter{StartedFrom: after(5)}, []int{6, 5}},
			"to":                        {store.ExecutionFilter{StartedTo: after(2)}, []int{1, 0}},
			"from and to":               {store.ExecutionFilter{StartedFrom: after(2), StartedTo: after(5)}, []int{4, 3, 2}},
			"from and to and status":    {store.ExecutionFilter{StartedFrom: after(2), StartedTo: after(5), Status: event.StatusRunning}, []int{3, 2}},
			"an empty time range":       {store.ExecutionFilter{StartedFrom: after(5), StartedTo: after(5)}, nil},
			"an earlier time":           {store.ExecutionFilter{StartedTo: epoch.AddDate(-1, 0, 0)}, nil},
			"a later time":              {store.ExecutionFilter{StartedFrom: epoch.AddDate(1, 0, 0)}, nil},
			"before":                    {store.ExecutionFilter{Before: ids[3]}, []int{2, 1, 0}},
			"before and limit":          {store.ExecutionFilter{Before: ids[3], Limit: 2}, []int{2, 1}},
			"before and prefix":         {store.ExecutionFilter{Before: ids[5], PathPrefix: "etl/"}, []int{4, 1, 0}},
			"before the first":          {store.ExecutionFilter{Before: ids[0]}, nil},
			"a page over many statuses": {store.ExecutionFilter{PathPrefix: "etl/", Limit: 2, Offset: 1}, []int{4, 1}},
		} {
			var want []event.ID
			for _, i := range c.want {
				want = append(want, ids[i])
			}
			wantSame(t, name, want, listed(t, s, c.filter))
		}
	},
	"pages of a keyset hold still while executions start and end": func(t *testing.T, s store.Store) {
		var want []event.ID
		for range 12 {
			b := newBatch(newID(), 0, 1)
			mustAppend(t, s, b)
			want = append(want, b.Execution.ExecutionID)
		}
		slices.Reverse(want)
		var got []event.ID
		for f := (store.ExecutionFilter{Path: "hello", Limit: 5}); ; f.Before = got[len(got)-1] {
			page := listed(t, s, f)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			mustAppend(t, s, newBatch(newID(), 0, 1))
			end := newBatch(page[0], 1, 1)
			end.Execution.Status = event.StatusCompleted
			mustAppend(t, s, end)
		}
		wantSame(t, "pages", want, got)
	},
	"executions are counted by status": func(t *testing.T, s store.Store) {
		if got := must[map[string]int64](t)(s.CountExecutions(t.Context())); len(got) != 0 {
			t.Errorf("an empty store counts %v", got)
		}
		for i := range 6 {
			b := newBatch(newID(), 0, 1)
			b.Execution.Status = []string{event.StatusRunning, event.StatusRunning, event.StatusFailed}[i%3]
			mustAppend(t, s, b)
		}
		wantSame(t, "counts", map[string]int64{event.StatusRunning: 4, event.StatusFailed: 2}, must[map[string]int64](t)(s.CountExecutions(t.Context())))
	},
	"random filters find what looking at every row finds": randomFilters,
}

var (
	randomPaths    = []string{"a", "a/b", "a/b/c", "A/b", "b", "b_c", "bxc", "ab%", `a\b`, "data/load/Daily", "data/load/hourly", "z"}
	randomParts    = []string{"", "", "", "a", "A", "/", "b_", "%", `\`, "LOAD", "daily", "none"}
	randomPrefixes = []string{"", "", "", "a", "a/b", "A", "data/", "data/load/D", "b_", "ab%", "zz"}
	randomStatuses = []string{"", event.StatusRunning, event.StatusCompleted, event.StatusFailed, event.StatusCancelled}
)

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

// randomFilters compares lists with a walk over all rows.
func randomFilters(t *testing.T, s store.Store) {
	const executions, filters = 250, 400
	rng := rand.New(rand.NewPCG(20261115, 1))
	var rows []store.Execution
	for i := range executions {
		b := newBatch(newID(), 0, 1)
		x := &b.Execution
		x.Path, x.Status = pick(rng, randomPaths), pick(rng, randomStatuses[1:])
		x.CatalogID, x.Pool = event.ID(1+rng.IntN(5)), pick(rng, []string{"", "", "gpu", "cpu"})
		x.StartedAt = after(rng.IntN(600))
		if i > 10 && rng.IntN(3) == 0 {
			x.ParentExecutionID = rows[rng.IntN(5)].ExecutionID
		}
		mustAppend(t, s, b)
		rows = append(rows, *x)
	}
	slices.SortFunc(rows, func(a, b store.Execution) int { return cmp.Compare(b.ExecutionID, a.ExecutionID) })
	for range filters {
		f := randomFilter(rng, rows)
		var want []event.ID
		for i := range rows {
			if looksLike(&rows[i], f) {
				want = append(want, rows[i].ExecutionID)
			}
		}
		limit := f.Limit
		if limit == 0 {
			limit = 50
		}
		want = want[min(f.Offset, len(want)):]
		want = want[:min(limit, len(want))]
		if len(want) == 0 {
			want = nil
		}
		wantSame(t, fmt.Sprintf("%+v", f), want, listed(t, s, f))
	}
}

// randomFilter restricts by a few fields at once.
func randomFilter(rng *rand.Rand, rows []store.Execution) store.ExecutionFilter {
	f := store.ExecutionFilter{
		Status: pick(rng, randomStatuses), Path: pick(rng, randomParts), PathPrefix: pick(rng, randomPrefixes),
		Limit: pick(rng, []int{0, 1, 7, 200}), Offset: pick(rng, []int{0, 0, 0, 1, 20}),
	}
	if rng.IntN(3) == 0 {
		f.CatalogID = event.ID(1 + rng.IntN(6))
	}
	if rng.IntN(4) == 0 {
		f.Pool = pick(rng, []string{"gpu", "cpu", "none"})
	}
	if rng.IntN(5) == 0 {
		f.ParentID = pick(rng, rows).ParentExecutionID
	}
	if rng.IntN(3) == 0 {
		f.StartedFrom = after(rng.IntN(600))
	}
	if rng.IntN(3) == 0 {
		f.StartedTo = after(rng.IntN(600))
	}
	if rng.IntN(3) == 0 {
		f.Before = pick(rng, rows).ExecutionID
	}
	return f
}

func looksLike(x *store.Execution, f store.ExecutionFilter) bool {
	return (f.Status == "" || f.Status == x.Status) &&
		strings.Contains(strings.ToLower(x.Path), strings.ToLower(f.Path)) &&
		strings.HasPrefix(x.Path, f.PathPrefix) &&
		(f.CatalogID == 0 || f.CatalogID == x.CatalogID) &&
		(f.ParentID == 0 || f.ParentID == x.ParentExecutionID) &&
		(f.Pool == "" || f.Pool == x.Pool) &&
		(f.StartedFrom.IsZero() || !x.StartedAt.Before(f.StartedFrom)) &&
		(f.StartedTo.IsZero() || x.StartedAt.Before(f.StartedTo)) &&
		(f.Before == 0 || x.ExecutionID < f.Before)
}
