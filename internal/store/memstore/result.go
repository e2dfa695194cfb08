package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type resultKey struct {
	execution event.ID
	ref       string
}

// PutResult implements store.Results.
func (s *Store) PutResult(ctx context.Context, r store.Result) error {
	return s.doBeside(ctx, "PutResult", r.ExecutionID, func() { s.putResult(r) })
}

func (s *Store) putResult(r store.Result) {
	k := resultKey{r.ExecutionID, r.Ref}
	if _, there := s.results[k]; there {
		return
	}
	r = cloneResult(r.Normal())
	r.CreatedAt, r.ExpiresAt, r.GoneAt = normalTime(r.CreatedAt), normalTime(r.ExpiresAt), time.Time{}
	r.PinnedBy = nil
	s.results[k] = r
}

// cloneResult copies what callers might still write to.
func cloneResult(r store.Result) store.Result {
	r.Data, r.Frames, r.PinnedBy = clip(r.Data), clip(r.Frames), slices.Clone(r.PinnedBy)
	return r
}

// FinishResult implements store.Results.
func (s *Store) FinishResult(ctx context.Context, r store.Result) error {
	return s.do(ctx, "FinishResult", func() error {
		k := resultKey{r.ExecutionID, r.Ref}
		row, there := s.results[k]
		if !there || !row.Pending || !row.GoneAt.IsZero() {
			return store.ErrNotFound
		}
		n := r.Normal()
		row.Pending, row.Bytes, row.SHA256, row.Frames = false, n.Bytes, n.SHA256, clip(n.Frames)
		row.Tier, row.Key, row.ExpiresAt = n.Tier, n.Key, normalTime(n.ExpiresAt)
		s.results[k] = row
		return nil
	})
}

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	var out store.Result
	err := s.do(ctx, "Result", func() error {
		r, ok := s.results[resultKey{execution, ref}]
		if err := readable(r, ok); err != nil {
			return err
		}
		out = cloneResult(r)
		return nil
	})
	return out, err
}

func readable(r store.Result, there bool) error {
	switch {
	case !there || r.Pending:
		return store.ErrNotFound
	case !r.GoneAt.IsZero():
		return store.ErrCollected
	}
	return nil
}

// resultsWhere collects rows without their data.
func (s *Store) resultsWhere(limit int, keep func(*store.Result) bool, order func(a, b store.Result) int) []store.Result {
	var out []store.Result
	for _, r := range s.results {
		if keep(&r) {
			r.Data = nil
			out = append(out, cloneResult(r))
		}
	}
	slices.SortFunc(out, order)
	return page(out, 0, limit)
}

func byPosition(a, b store.Result) int { return a.Position().Compare(b.Position()) }

// ListResults implements store.Results.
func (s *Store) ListResults(ctx context.Context, execution event.ID, after string, limit int) (out []store.Result, err error) {
	err = s.do(ctx, "ListResults", func() error {
		out = s.resultsWhere(limit, func(r *store.Result) bool {
			return r.ExecutionID == execution && r.Ref > after && readable(*r, true) == nil
		}, byPosition)
		return nil
	})
	return out, err
}

// ExpiredResults implements store.Results.
func (s *Store) ExpiredResults(ctx context.Context, now time.Time, limit int) (out []store.Result, err error) {
	err = s.do(ctx, "ExpiredResults", func() error {
		out = s.resultsWhere(limit, func(r *store.Result) bool {
			return !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now)
		}, func(a, b store.Result) int { return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), byPosition(a, b)) })
		return nil
	})
	return out, err
}

// EndedResults implements store.Results.
func (s *Store) EndedResults(ctx context.Context, before time.Time, after store.ResultPosition, limit int) (out []store.Result, err error) {
	err = s.do(ctx, "EndedResults", func() error {
		out = s.resultsWhere(limit, func(r *store.Result) bool {
			x := s.executions[r.ExecutionID]
			return x != nil && event.IsFinal(x.row.Status) && !x.row.EndedAt.IsZero() && x.row.EndedAt.Before(before) &&
				r.Scope != store.ScopePermanent && r.ExpiresAt.IsZero() && readable(*r, true) == nil && r.Position().Compare(after) > 0
		}, byPosition)
		return nil
	})
	return out, err
}

// RetireResult implements store.Results.
func (s *Store) RetireResult(ctx context.Context, r store.Result, now time.Time) (done bool, err error) {
	err = s.do(ctx, "RetireResult", func() error {
		k := resultKey{r.ExecutionID, r.Ref}
		row, there := s.results[k]
		done = there && row.GoneAt.IsZero() && row.Pending == r.Pending && slices.Equal(row.PinnedBy, r.PinnedBy)
		if !done {
			return nil
		}
		row.GoneAt, row.Data, row.ExpiresAt = normalTime(now), nil, time.Time{}
		if row.Key != "" {
			row.ExpiresAt = row.GoneAt
		}
		s.results[k] = row
		return nil
	})
	return done, err
}

// ForgetResult implements store.Results.
func (s *Store) ForgetResult(ctx context.Context, execution event.ID, ref string) error {
	return s.do(ctx, "ForgetResult", func() error {
		k := resultKey{execution, ref}
		switch row, there := s.results[k]; {
		case !there || row.GoneAt.IsZero():
		case row.Pending:
			delete(s.results, k)
		default:
			row.Key, row.Frames, row.ExpiresAt, row.PinnedBy = "", nil, time.Time{}, nil
			s.results[k] = row
		}
		return nil
	})
}

// PinResult implements store.Results.
func (s *Store) PinResult(ctx context.Context, execution event.ID, ref string, holder event.ID) error {
	return s.do(ctx, "PinResult", func() error {
		k := resultKey{execution, ref}
		row, there := s.results[k]
		if err := readable(row, there); err != nil {
			return err
		}
		if !slices.Contains(row.PinnedBy, holder) {
			row.PinnedBy = append(slices.Clone(row.PinnedBy), holder)
			s.results[k] = row
		}
		return nil
	})
}

type partKey struct {
	execution event.ID
	key       string
	part      int
}

func (k partKey) compare(o partKey) int {
	return cmp.Or(cmp.Compare(k.execution, o.execution), strings.Compare(k.key, o.key), cmp.Compare(k.part, o.part))
}

// PutPart implements store.Results.
func (s *Store) PutPart(ctx context.Context, execution event.ID, key string, part int, data []byte) error {
	return s.doBeside(ctx, "PutPart", execution, func() { s.parts[partKey{execution, key, part}] = slices.Clone(data) })
}

// Part implements store.Results.
func (s *Store) Part(ctx context.Context, execution event.ID, key string, part int) (out []byte, err error) {
	err = s.do(ctx, "Part", func() error {
		data, there := s.parts[partKey{execution, key, part}]
		if !there {
			return store.ErrNotFound
		}
		out = slices.Clone(data)
		return nil
	})
	return out, err
}

// DeleteParts implements store.Results.
func (s *Store) DeleteParts(ctx context.Context, execution event.ID, key string, limit int) (int, error) {
	return s.count(ctx, "DeleteParts", func() int {
		var found []partKey
		for k := range s.parts {
			if k.execution == execution && k.key == key {
				found = append(found, k)
			}
		}
		slices.SortFunc(found, partKey.compare)
		found = page(found, 0, limit)
		for _, k := range found {
			delete(s.parts, k)
		}
		return len(found)
	})
}
