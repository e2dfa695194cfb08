package storetest

import (
	"testing"

	"github.com/noetl/noetl-go/internal/store"
)

// usedEntry adds a version of a path that an execution refers to.
func usedEntry(t *testing.T, s store.Store, path string) store.Entry {
	t.Helper()
	e := must[store.Entry](t)(s.AddEntry(t.Context(), newEntry(path)))
	b := newBatch(newID(), 0, 1)
	b.Execution.CatalogID, b.Execution.Path = e.CatalogID, path
	mustAppend(t, s, b)
	return e
}

func versions(entries []store.Entry) []int {
	var out []int
	for _, e := range entries {
		out = append(out, e.Version)
	}
	return out
}

var archiveTests = map[string]func(*testing.T, store.Store){
	"removed entries are archived, whether or not an execution refers to them": func(t *testing.T, s store.Store) {
		used := usedEntry(t, s, "p")
		free := must[store.Entry](t)(s.AddEntry(t.Context(), newEntry("p")))
		other := must[store.Entry](t)(s.AddEntry(t.Context(), newEntry("p/q")))
		got := must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 0, after(5)))
		used.ArchivedAt, free.ArchivedAt = after(5), after(5)
		wantSame(t, "taken", []store.Entry{used, free}, got)
		wantSame(t, "archived, by id", used, must[store.Entry](t)(s.Entry(t.Context(), used.CatalogID)))
		wantSame(t, "never used, by id", free, must[store.Entry](t)(s.Entry(t.Context(), free.CatalogID)))
		for version := range 3 {
			_, err := s.EntryByPath(t.Context(), "p", version)
			wantErr(t, "by path", err, store.ErrNotFound)
		}
		wantSame(t, "another path", other, must[store.Entry](t)(s.EntryByPath(t.Context(), "p/q", 0)))
		list := func(archived bool) []store.Entry {
			return must[[]store.Entry](t)(s.ListEntries(t.Context(), store.EntryFilter{Archived: archived}))
		}
		wantSame(t, "listed", []store.Entry{other}, list(false))
		wantSame(t, "listed with archived ones", []store.Entry{other, free, used}, list(true))
		wantSame(t, "taken again", 0, len(must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 0, after(6)))))
		wantSame(t, "an unknown path", 0, len(must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "P", 0, after(6)))))
		wantSame(t, "listed by its path", 1, len(listed(t, s, store.ExecutionFilter{PathPrefix: "p"})))
	},
	"one version is removed and the highest left is the latest": func(t *testing.T, s store.Store) {
		for range 3 {
			usedEntry(t, s, "p")
		}
		wantSame(t, "taken", []int{3}, versions(must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 3, epoch))))
		wantSame(t, "latest", 2, must[store.Entry](t)(s.EntryByPath(t.Context(), "p", 0)).Version)
		wantSame(t, "unknown version", 0, len(must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 9, epoch))))
		wantSame(t, "taken", []int{1, 2}, versions(must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 0, epoch))))
		wantSame(t, "next version", 4, must[store.Entry](t)(s.AddEntry(t.Context(), newEntry("p"))).Version)
	},
	"archived entries come back": func(t *testing.T, s store.Store) {
		var entries []store.Entry
		for range 3 {
			entries = append(entries, usedEntry(t, s, "p"))
		}
		must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "p", 0, epoch))
		wantSame(t, "one", entries[1:2], must[[]store.Entry](t)(s.RestoreEntries(t.Context(), "p", 2)))
		wantSame(t, "latest", entries[1], must[store.Entry](t)(s.EntryByPath(t.Context(), "p", 0)))
		wantSame(t, "again", 0, len(must[[]store.Entry](t)(s.RestoreEntries(t.Context(), "p", 2))))
		wantSame(t, "the rest", []int{1, 3}, versions(must[[]store.Entry](t)(s.RestoreEntries(t.Context(), "p", 0))))
		wantSame(t, "latest of all", entries[2], must[store.Entry](t)(s.EntryByPath(t.Context(), "p", 0)))
		wantSame(t, "an unknown path", 0, len(must[[]store.Entry](t)(s.RestoreEntries(t.Context(), "q", 0))))
	},
	"paths of a kind are counted without archived ones": func(t *testing.T, s store.Store) {
		usedEntry(t, s, "a")
		usedEntry(t, s, "a")
		usedEntry(t, s, "b")
		e := newEntry("c")
		e.Kind = "credential"
		must[store.Entry](t)(s.AddEntry(t.Context(), e))
		count := func(kind string) int64 { return must[int64](t)(s.CountEntries(t.Context(), kind)) }
		wantSame(t, "playbooks", int64(2), count("playbook"))
		wantSame(t, "credentials", int64(1), count("credential"))
		wantSame(t, "others", int64(0), count("mcp"))
		must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "b", 0, epoch))
		must[[]store.Entry](t)(s.RemoveEntries(t.Context(), "a", 2, epoch))
		wantSame(t, "playbooks left", int64(1), count("playbook"))
	},
}
