package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newEntry(path string) store.Entry {
	return store.Entry{
		CatalogID: newID(), Path: path, Kind: "playbook", Content: "kind: Playbook # ü\n",
		Payload: []byte(`{"kind":"Playbook"}`), CreatedAt: epoch,
	}
}

var catalogTests = map[string]func(*testing.T, store.Store){
	"an entry comes back complete with the next version of its path": func(t *testing.T, s store.Store) {
		for version := 1; version <= 3; version++ {
			e := newEntry("examples/a")
			e.CreatedAt = epoch.In(time.FixedZone("x", 3600))
			if version == 2 {
				e.Meta, e.Kind = []byte(`{"team":"data"}`), "custom_kind"
			}
			got := must[store.Entry](t)(s.AddEntry(t.Context(), e))
			e.Version, e.CreatedAt = version, epoch
			wantSame(t, "added", e, got)
			wantSame(t, "by id", e, must[store.Entry](t)(s.Entry(t.Context(), e.CatalogID)))
			wantSame(t, "by version", e, must[store.Entry](t)(s.EntryByPath(t.Context(), e.Path, version)))
			wantSame(t, "latest", e, must[store.Entry](t)(s.EntryByPath(t.Context(), e.Path, 0)))
			wantSame(t, "another path", 1, must[store.Entry](t)(s.AddEntry(t.Context(), newEntry(fmt.Sprint("other/", version)))).Version)
		}
	},
	"an unknown entry is not found": func(t *testing.T, s store.Store) {
		must[store.Entry](t)(s.AddEntry(t.Context(), newEntry("known")))
		_, err := s.Entry(t.Context(), newID())
		wantErr(t, "Entry", err, store.ErrNotFound)
		for path, version := range map[string]int{"unknown": 0, "known": 2, "Known": 1} {
			_, err := s.EntryByPath(t.Context(), path, version)
			wantErr(t, "EntryByPath", err, store.ErrNotFound)
		}
	},
	"a catalog id is stored once": func(t *testing.T, s store.Store) {
		e := must[store.Entry](t)(s.AddEntry(t.Context(), newEntry("once")))
		other := newEntry("twice")
		other.CatalogID = e.CatalogID
		if _, err := s.AddEntry(t.Context(), other); err == nil || event.CodeOf(err) != event.Conflict {
			t.Errorf("AddEntry = %v, want a conflict", err)
		}
		_, err := s.EntryByPath(t.Context(), "twice", 0)
		wantErr(t, "EntryByPath", err, store.ErrNotFound)
	},
	"entries are listed newest first with filters and pages": func(t *testing.T, s store.Store) {
		ids := make([]event.ID, 6)
		for i := range ids {
			e := newEntry([]string{"a", "b", "c"}[i%3])
			e.Kind = []string{"playbook", "credential"}[i%2]
			ids[i] = must[store.Entry](t)(s.AddEntry(t.Context(), e)).CatalogID
		}
		for name, c := range map[string]struct {
			filter store.EntryFilter
			want   []int // indexes into ids
		}{
			"all":           {store.EntryFilter{}, []int{5, 4, 3, 2, 1, 0}},
			"kind":          {store.EntryFilter{Kind: "playbook"}, []int{4, 2, 0}},
			"path":          {store.EntryFilter{Path: "b"}, []int{4, 1}},
			"kind and path": {store.EntryFilter{Kind: "playbook", Path: "b"}, []int{4}},
			"page":          {store.EntryFilter{Limit: 2, Offset: 1}, []int{4, 3}},
			"offset alone":  {store.EntryFilter{Offset: 4}, []int{1, 0}},
			"nothing":       {store.EntryFilter{Kind: "Playbook"}, nil},
		} {
			var want, got []event.ID
			for _, i := range c.want {
				want = append(want, ids[i])
			}
			for _, e := range must[[]store.Entry](t)(s.ListEntries(t.Context(), c.filter)) {
				got = append(got, e.CatalogID)
			}
			wantSame(t, name, want, got)
		}
	},
}
