package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/groupcommit"
)

// shard is one database of per-execution tables.
type shard struct {
	pool    *pgxpool.Pool // reads and rare writes
	writers *pgxpool.Pool // one connection per queue
	queues  []*groupcommit.Queue[*store.Batch]
	types   rowTypes
	pooled  bool // sessions last one transaction; nothing is prepared
	commits atomic.Int64
	// reclaimed counts outbox rows taken over from publishers that fell silent.
	reclaimed atomic.Int64
}

// openShard adds the writers to a connected, migrated database.
func openShard(ctx context.Context, dsn string, pool *pgxpool.Pool, o Options) (*shard, error) {
	sh := &shard{pool: pool, pooled: o.Pooled}
	t := &sh.types
	if err := pool.QueryRow(ctx, rowTypesSQL).Scan(&t.execution, &t.event, &t.command, &t.result, &t.outbox, &t.claim); err != nil {
		return nil, coded("look up row types", err)
	}
	ready := prepareWriter
	if o.Pooled {
		ready = nil
	}
	var err error
	if sh.writers, err = openPool(ctx, dsn, o.Writers, o, ready); err != nil {
		return nil, err
	}
	for range o.Writers {
		w := newWriter(sh, sh.types)
		sh.queues = append(sh.queues, groupcommit.New(groupcommit.Config[*store.Batch]{
			Commit: w.commit, Size: (*store.Batch).Size, MaxItems: 512, MaxBytes: 4 << 20,
		}))
	}
	return sh, nil
}

// queue is the writer of an execution: always the same, so that two writers of
// one process never wait for each other's rows.
func (sh *shard) queue(id event.ID) *groupcommit.Queue[*store.Batch] {
	return sh.queues[uint64(id)%uint64(len(sh.queues))]
}

func (sh *shard) close() {
	for _, q := range sh.queues {
		q.Close()
	}
	sh.writers.Close()
}

// shard is where everything about an execution lives.
func (s *Store) shard(id event.ID) *shard {
	if len(s.shards) == 1 {
		return s.shards[0]
	}
	return s.shards[store.ShardIndex(id, len(s.shards))]
}

// gather asks all shards at once and returns the answers one after the other.
func gather[T any](ctx context.Context, s *Store, ask func(context.Context, *shard) ([]T, error)) ([]T, error) {
	if len(s.shards) == 1 {
		return ask(ctx, s.shards[0])
	}
	answers := make([][]T, len(s.shards))
	g, ctx := errgroup.WithContext(ctx)
	for i, sh := range s.shards {
		g.Go(func() (err error) {
			answers[i], err = ask(ctx, sh)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []T
	for _, part := range answers {
		out = append(out, part...)
	}
	return out, nil
}

// merged is gather for ordered answers: each shard gives its first rows, and
// the whole is ordered and cut again.
func merged[T any](ctx context.Context, s *Store, offset, limit int, order func(a, b T) int, ask func(ctx context.Context, sh *shard, offset, limit int) ([]T, error)) ([]T, error) {
	if len(s.shards) == 1 {
		return ask(ctx, s.shards[0], offset, limit)
	}
	first := 0
	if limit > 0 {
		first = offset + limit
	}
	rows, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]T, error) { return ask(ctx, sh, 0, first) })
	if err != nil {
		return nil, err
	}
	return cut(rows, offset, limit, order), nil
}

// present is merged for sweeps: what the shards that answer have comes together
// with the error of those that do not, so that one that is away does not stop
// the work on the others.
func present[T any](ctx context.Context, s *Store, limit int, order func(a, b T) int, ask func(ctx context.Context, sh *shard, limit int) ([]T, error)) ([]T, error) {
	if len(s.shards) == 1 {
		return ask(ctx, s.shards[0], limit)
	}
	answers, errs := make([][]T, len(s.shards)), make([]error, len(s.shards))
	var all sync.WaitGroup
	for i, sh := range s.shards {
		all.Go(func() { answers[i], errs[i] = ask(ctx, sh, limit) })
	}
	all.Wait()
	return cut(slices.Concat(answers...), 0, limit, order), errors.Join(errs...)
}

// sum is gather for counts.
func (s *Store) sum(ctx context.Context, ask func(context.Context, *shard) (int64, error)) (int, error) {
	counts, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]int64, error) {
		n, err := ask(ctx, sh)
		return []int64{n}, err
	})
	total := 0
	for _, n := range counts {
		total += int(n)
	}
	return total, err
}

// purge removes old rows from one shard after the other until the limit is
// reached; a limit of 0 means all.
func (s *Store) purge(ctx context.Context, doing, text string, before time.Time, limit int, args ...any) (int, error) {
	total := 0
	for _, sh := range s.shards {
		if limit > 0 && total >= limit {
			break
		}
		left := 0
		if limit > 0 {
			left = limit - total
		}
		err := repeated(func() error {
			tag, err := sh.pool.Exec(ctx, text, append([]any{before, rowLimit(left)}, args...)...)
			total += int(tag.RowsAffected())
			return err
		})
		if err != nil {
			return total, coded(doing, err)
		}
	}
	return total, nil
}

// probeTime bounds the questions a probe leaves behind.
const probeTime = 10 * time.Second

// probe asks all shards at once for what only one of them has; the first to
// find it ends the search. A failure counts only when nobody found it. The
// other questions are left to end by themselves: to cut one off would cost its
// connection.
func probe[T any](ctx context.Context, s *Store, ask func(context.Context, *shard) (T, error)) (T, error) {
	if len(s.shards) == 1 {
		return ask(ctx, s.shards[0])
	}
	type answer struct {
		v   T
		err error
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	answers := make(chan answer, len(s.shards))
	var open sync.WaitGroup
	for _, sh := range s.shards {
		open.Go(func() {
			v, err := ask(asking, sh)
			answers <- answer{v, err}
		})
	}
	go func() { open.Wait(); cancel() }()
	var failure error = store.ErrNotFound
	for range s.shards {
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case a := <-answers:
			if a.err == nil {
				return a.v, nil
			}
			if !errors.Is(a.err, store.ErrNotFound) {
				failure = a.err
			}
		}
	}
	return none, failure
}
