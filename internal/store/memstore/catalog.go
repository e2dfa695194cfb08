package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// AddEntry implements store.Catalog.
func (s *Store) AddEntry(ctx context.Context, e store.Entry) (store.Entry, error) {
	e = cloneEntry(&e)
	e.CreatedAt, e.ArchivedAt = normalTime(e.CreatedAt), time.Time{}
	err := s.do(ctx, "AddEntry", func() error {
		if s.entries[e.CatalogID] != nil {
			return event.Errorf(event.Conflict, "catalog id %d is already stored", e.CatalogID)
		}
		e.Version = 1
		for _, other := range s.entries {
			if other.Path == e.Path {
				e.Version = max(e.Version, other.Version+1)
			}
		}
		stored := cloneEntry(&e)
		s.entries[e.CatalogID] = &stored
		return nil
	})
	if err != nil {
		return store.Entry{}, err
	}
	return e, nil
}

// Entry implements store.Catalog.
func (s *Store) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	var out store.Entry
	err := s.do(ctx, "Entry", func() error {
		e := s.entries[id]
		if e == nil {
			return store.ErrNotFound
		}
		out = cloneEntry(e)
		return nil
	})
	return out, err
}

// EntryByPath implements store.Catalog.
func (s *Store) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	var out store.Entry
	err := s.do(ctx, "EntryByPath", func() error {
		found := s.entriesOf(path, version, false)
		if len(found) == 0 {
			return store.ErrNotFound
		}
		out = cloneEntry(found[len(found)-1])
		return nil
	})
	return out, err
}

// entriesOf returns a version of a path, or all when version is 0, by version.
func (s *Store) entriesOf(path string, version int, archived bool) []*store.Entry {
	var out []*store.Entry
	for _, e := range s.entries {
		if e.Path == path && (version == 0 || e.Version == version) && e.ArchivedAt.IsZero() != archived {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *store.Entry) int { return cmp.Compare(a.Version, b.Version) })
	return out
}

// ListEntries implements store.Catalog.
func (s *Store) ListEntries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error) {
	var out []store.Entry
	err := s.do(ctx, "ListEntries", func() error {
		for _, e := range s.entries {
			if (f.Kind == "" || e.Kind == f.Kind) && (f.Path == "" || e.Path == f.Path) && (f.Archived || e.ArchivedAt.IsZero()) {
				out = append(out, cloneEntry(e))
			}
		}
		slices.SortFunc(out, func(a, b store.Entry) int { return cmp.Compare(b.CatalogID, a.CatalogID) })
		out = page(out, f.Offset, f.Limit)
		return nil
	})
	return out, err
}

// RemoveEntries implements store.Catalog.
func (s *Store) RemoveEntries(ctx context.Context, path string, version int, now time.Time) ([]store.Entry, error) {
	return s.changeEntries(ctx, "RemoveEntries", path, version, false, func(e *store.Entry) { e.ArchivedAt = normalTime(now) })
}

// RestoreEntries implements store.Catalog.
func (s *Store) RestoreEntries(ctx context.Context, path string, version int) ([]store.Entry, error) {
	return s.changeEntries(ctx, "RestoreEntries", path, version, true, func(e *store.Entry) { e.ArchivedAt = time.Time{} })
}

// changeEntries changes the entries of a path that are archived, or that are not.
func (s *Store) changeEntries(ctx context.Context, op, path string, version int, archived bool, change func(*store.Entry)) ([]store.Entry, error) {
	var out []store.Entry
	err := s.do(ctx, op, func() error {
		for _, e := range s.entriesOf(path, version, archived) {
			change(e)
			out = append(out, cloneEntry(e))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// CountEntries implements store.Catalog.
func (s *Store) CountEntries(ctx context.Context, kind string) (int64, error) {
	n, err := s.count(ctx, "CountEntries", func() int {
		paths := map[string]bool{}
		for _, e := range s.entries {
			if e.Kind == kind && e.ArchivedAt.IsZero() {
				paths[e.Path] = true
			}
		}
		return len(paths)
	})
	return int64(n), err
}

func cloneEntry(e *store.Entry) store.Entry {
	out := *e
	out.Payload, out.Meta = clip(e.Payload), clip(e.Meta)
	return out
}
