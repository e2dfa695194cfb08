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

// Command implements store.Commands.
func (s *Store) Command(ctx context.Context, execution, eventID event.ID) (store.Command, error) {
	var out store.Command
	err := s.do(ctx, "Command", func() error {
		c := s.command(execution, eventID)
		if c == nil {
			return store.ErrNotFound
		}
		out = *c
		return nil
	})
	return out, err
}

func (s *Store) command(execution, eventID event.ID) *store.Command {
	if execution != 0 {
		if x := s.executions[execution]; x != nil {
			return x.commands[eventID]
		}
		return nil
	}
	for _, x := range s.executions {
		if c := x.commands[eventID]; c != nil {
			return c
		}
	}
	return nil
}

// PendingCommands implements store.Commands.
func (s *Store) PendingCommands(ctx context.Context, before time.Time, limit int) ([]store.Command, error) {
	var out []store.Command
	err := s.do(ctx, "PendingCommands", func() error {
		out = s.selectCommands(limit,
			func(c *store.Command) bool {
				return c.Status == event.StatusPending && !c.CreatedAt.IsZero() && c.CreatedAt.Before(before)
			},
			func(c *store.Command) time.Time { return c.CreatedAt })
		return nil
	})
	return out, err
}

// CountPending implements store.Commands.
func (s *Store) CountPending(ctx context.Context, limit int) (map[string]int64, error) {
	out := map[string]int64{}
	err := s.do(ctx, "CountPending", func() error {
		pending := s.selectCommands(limit, func(c *store.Command) bool { return c.Status == event.StatusPending },
			func(c *store.Command) time.Time { return c.CreatedAt })
		for i := range pending {
			out[pending[i].Pool]++
		}
		return nil
	})
	return out, err
}

// ExpiredCommands implements store.Commands.
func (s *Store) ExpiredCommands(ctx context.Context, now time.Time, limit int) ([]store.Command, error) {
	var out []store.Command
	err := s.do(ctx, "ExpiredCommands", func() error {
		out = s.selectCommands(limit,
			func(c *store.Command) bool { return held(c) && !c.LeaseUntil.IsZero() && c.LeaseUntil.Before(now) },
			func(c *store.Command) time.Time { return c.LeaseUntil })
		return nil
	})
	return out, err
}

// selectCommands returns the chosen commands by age, then by event id.
func (s *Store) selectCommands(limit int, want func(*store.Command) bool, age func(*store.Command) time.Time) []store.Command {
	var out []store.Command
	for _, x := range s.executions {
		for _, c := range x.commands {
			if want(c) {
				out = append(out, *c)
			}
		}
	}
	slices.SortFunc(out, func(a, b store.Command) int {
		return cmp.Or(age(&a).Compare(age(&b)), cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.ExecutionID, b.ExecutionID))
	})
	return page(out, 0, limit)
}

func held(c *store.Command) bool {
	return c.Status == event.StatusClaimed || c.Status == event.StatusRunning
}

// RenewLeases implements store.Commands.
func (s *Store) RenewLeases(ctx context.Context, beats []event.Heartbeat, until time.Time) ([]bool, error) {
	out := make([]bool, len(beats))
	err := s.do(ctx, "RenewLeases", func() error {
		for i, beat := range beats {
			c := s.command(beat.ExecutionID, beat.EventID)
			if c != nil && held(c) && c.WorkerID == beat.WorkerID && c.Attempt == beat.Attempt {
				c.LeaseUntil, out[i] = normalTime(until), true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ExpireLeases implements store.Commands.
func (s *Store) ExpireLeases(ctx context.Context, workerPrefix string, now time.Time) (int, error) {
	return s.count(ctx, "ExpireLeases", func() (n int) {
		now := normalTime(now)
		for _, x := range s.executions {
			for _, c := range x.commands {
				if held(c) && strings.HasPrefix(c.WorkerID, workerPrefix) && (c.LeaseUntil.IsZero() || !c.LeaseUntil.Before(now)) {
					c.LeaseUntil = now.Add(-time.Microsecond)
					n++
				}
			}
		}
		return n
	})
}

// RenewWorker implements store.Commands.
func (s *Store) RenewWorker(ctx context.Context, worker string, claimedAfter, until time.Time) (int, error) {
	return s.count(ctx, "RenewWorker", func() (n int) {
		for _, x := range s.executions {
			for _, c := range x.commands {
				if held(c) && c.WorkerID == worker && c.ClaimedAt.After(normalTime(claimedAfter)) {
					c.LeaseUntil = normalTime(until)
					n++
				}
			}
		}
		return n
	})
}
