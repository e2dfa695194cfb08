package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// AddEntry implements store.Catalog.
func (s *Store) AddEntry(ctx context.Context, e store.Entry) (store.Entry, error) {
	e.Payload, e.Meta, e.CreatedAt = clip(e.Payload), clip(e.Meta), normalTime(e.CreatedAt)
	err := s.do(ctx, "AddEntry", func() error {
		if _, taken := s.byCatalog[e.CatalogID]; taken {
			return event.Errorf(event.Conflict, "catalog id %d is already stored", e.CatalogID)
		}
		e.Version = len(s.byPath[e.Path]) + 1
		s.byPath[e.Path] = append(s.byPath[e.Path], e.CatalogID)
		s.byCatalog[e.CatalogID] = len(s.entries)
		s.entries = append(s.entries, e)
		return nil
	})
	if err != nil {
		return store.Entry{}, err
	}
	return cloneEntry(e), nil
}

// Entry implements store.Catalog.
func (s *Store) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	var out store.Entry
	err := s.do(ctx, "Entry", func() error {
		i, ok := s.byCatalog[id]
		if !ok {
			return store.ErrNotFound
		}
		out = cloneEntry(s.entries[i])
		return nil
	})
	return out, err
}

// EntryByPath implements store.Catalog.
func (s *Store) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	var out store.Entry
	err := s.do(ctx, "EntryByPath", func() error {
		ids := s.byPath[path]
		if version == 0 {
			version = len(ids)
		}
		if version < 1 || version > len(ids) {
			return store.ErrNotFound
		}
		out = cloneEntry(s.entries[s.byCatalog[ids[version-1]]])
		return nil
	})
	return out, err
}

// ListEntries implements store.Catalog.
func (s *Store) ListEntries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error) {
	var out []store.Entry
	err := s.do(ctx, "ListEntries", func() error {
		for _, e := range s.entries {
			if (f.Kind == "" || e.Kind == f.Kind) && (f.Path == "" || e.Path == f.Path) {
				out = append(out, cloneEntry(e))
			}
		}
		slices.SortFunc(out, func(a, b store.Entry) int { return cmp.Compare(b.CatalogID, a.CatalogID) })
		out = page(out, f.Offset, f.Limit)
		return nil
	})
	return out, err
}

func cloneEntry(e store.Entry) store.Entry {
	e.Payload, e.Meta = clip(e.Payload), clip(e.Meta)
	return e
}
