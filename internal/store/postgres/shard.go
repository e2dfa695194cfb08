package postgres

import (
	"context"
	"sync/atomic"

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
	commits atomic.Int64
}

// openShard adds the writers to a connected, migrated database.
func openShard(ctx context.Context, dsn string, pool *pgxpool.Pool, writers int) (*shard, error) {
	sh := &shard{pool: pool}
	var err error
	if sh.writers, err = openPool(ctx, dsn, writers, prepareWriter); err != nil {
		return nil, err
	}
	var types rowTypes
	if err := pool.QueryRow(ctx, rowTypesSQL).Scan(&types.execution, &types.event, &types.command, &types.result); err != nil {
		sh.writers.Close()
		return nil, coded("look up row types", err)
	}
	for range writers {
		w := newWriter(sh, types)
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
