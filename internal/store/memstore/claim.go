package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type claimKey struct {
	scope event.ID
	key   string
}

// claim is one start that is remembered.
type claim struct {
	execution     event.ID
	seen, expires time.Time
}

// holder is the execution that holds a claim, if one does.
func (s *Store) holder(c store.StartClaim) (event.ID, bool) {
	held, there := s.claims[claimKey{c.Scope, c.Key}]
	return held.execution, there && held.seen.After(normalTime(c.At.Add(-c.Window)))
}

func (s *Store) takeClaim(c store.StartClaim, execution event.ID) {
	s.claims[claimKey{c.Scope, c.Key}] = claim{execution, normalTime(c.At), normalTime(c.At.Add(c.Window))}
}

// ClaimHolder implements store.StartClaims.
func (s *Store) ClaimHolder(ctx context.Context, c store.StartClaim) (event.ID, error) {
	var out event.ID
	err := s.do(ctx, "ClaimHolder", func() error {
		holder, held := s.holder(c)
		if !held {
			return store.ErrNotFound
		}
		out = holder
		return nil
	})
	return out, err
}

// Colocated implements store.StartClaims: all is in one place.
func (s *Store) Colocated(event.ID, store.StartClaim) bool { return true }

// PurgeClaims implements store.StartClaims.
func (s *Store) PurgeClaims(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.count(ctx, "PurgeClaims", func() int {
		var over []claimKey
		for k, c := range s.claims {
			if c.expires.Before(normalTime(before)) {
				over = append(over, k)
			}
		}
		slices.SortFunc(over, func(a, b claimKey) int {
			return cmp.Or(s.claims[a].expires.Compare(s.claims[b].expires), cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key))
		})
		over = page(over, 0, limit)
		for _, k := range over {
			delete(s.claims, k)
		}
		return len(over)
	})
}
