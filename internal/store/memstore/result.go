package memstore

import (
	"context"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type resultKey struct {
	execution event.ID
	ref       string
}

// PutResult implements store.Results.
func (s *Store) PutResult(ctx context.Context, r store.Result) error {
	return s.do(ctx, "PutResult", func() error { s.putResult(r); return nil })
}

func (s *Store) putResult(r store.Result) {
	k := resultKey{r.ExecutionID, r.Ref}
	if _, there := s.results[k]; there {
		return
	}
	r.Data, r.CreatedAt = slices.Clone(r.Data), normalTime(r.CreatedAt)
	s.results[k] = r
}

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	var out store.Result
	err := s.do(ctx, "Result", func() error {
		r, ok := s.results[resultKey{execution, ref}]
		if !ok {
			return store.ErrNotFound
		}
		out = r
		out.Data = slices.Clone(r.Data)
		return nil
	})
	return out, err
}
