// Package postgres is the store in PostgreSQL: per-execution tables on one or
// more shard databases, the catalog on the cluster database, group commit by a
// few writer connections per shard. It must not know what events mean, nor
// anything of other drivers.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/groupcommit"
)

// Options say where and how to connect.
type Options struct {
	// DSN is the cluster database, as a URL or as key=value words.
	DSN string
	// Shards are the databases of the per-execution tables, in an order that
	// must never change; empty means all in the cluster database.
	Shards []string
	// Writers is the number of connections per shard that append; 0 = 2.
	Writers int
	// MaxConns bounds the other connections to each database; 0 = 8.
	MaxConns int
	// Pooled says that a pooler stands before the databases that may give every
	// transaction another session, as pgbouncer does in transaction mode:
	// nothing is prepared or set for longer than a transaction.
	Pooled bool
	// StatementCache is how many statements a connection keeps prepared; 0 = 512.
	StatementCache int
}

func (o Options) withDefaults() Options {
	if len(o.Shards) == 0 {
		o.Shards = []string{o.DSN}
	}
	if o.Writers <= 0 {
		o.Writers = 2
	}
	if o.MaxConns <= 0 {
		o.MaxConns = 8
	}
	return o
}

// Store implements store.Store over PostgreSQL. Make one with Open.
//
// When the connection is lost during a write, callers get a coded
// event.Unavailable error and cannot know whether the write took place: the
// acknowledgement may be all that was lost. Reading the sequence tells.
type Store struct {
	cluster *pgxpool.Pool
	shards  []*shard
	pooled  bool
	turn    atomic.Uint32 // of the shard that is asked first for outbox rows
	leases  atomic.Int32  // of machine numbers that are held
}

var _ store.Store = (*Store)(nil)

// Open connects to all databases and brings their schemas and partitions up to
// date, one process at a time.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{pooled: o.Pooled}
	if err := s.open(ctx, o); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	var err error
	if s.cluster, err = openPool(ctx, o.DSN, o.MaxConns, o, nil); err != nil {
		return fmt.Errorf("cluster database: %w", err)
	}
	if err := migrate(ctx, s.cluster); err != nil {
		return fmt.Errorf("cluster database: %w", err)
	}
	cluster, err := identify(ctx, s.cluster, identity{index: place(o), count: len(o.Shards)})
	if err != nil {
		return fmt.Errorf("cluster database: %w", err)
	}
	for i, dsn := range o.Shards {
		pool := s.cluster
		if !sameDatabase(dsn, o.DSN) {
			if pool, err = openPool(ctx, dsn, o.MaxConns, o, nil); err == nil {
				err = migrate(ctx, pool)
			}
			if err == nil {
				_, err = identify(ctx, pool, identity{cluster: cluster, index: i, count: len(o.Shards)})
			}
		}
		if err == nil {
			var sh *shard
			if sh, err = openShard(ctx, dsn, pool, o); err == nil {
				s.shards = append(s.shards, sh)
				continue
			}
		}
		if pool != nil && pool != s.cluster {
			pool.Close()
		}
		return fmt.Errorf("shard %d of %d: %w", i+1, len(o.Shards), err)
	}
	return s.EnsurePartitions(ctx, time.Now())
}

// openPool connects and checks that the server answers.
func openPool(ctx context.Context, dsn string, conns int, o Options, ready func(context.Context, *pgx.Conn) error) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, &event.Error{Code: event.Invalid, Message: "the database address cannot be read", Remedy: "use postgres://user:password@host:port/database", Err: err}
	}
	cfg.MaxConns = int32(conns)
	cfg.AfterConnect = ready
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if o.StatementCache > 0 {
		cfg.ConnConfig.StatementCacheCapacity = o.StatementCache
	}
	if o.Pooled {
		// What is known of a statement is kept here, and the statement sent
		// whole every time.
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		cfg.ConnConfig.StatementCacheCapacity = 0
	}
	connect := fmt.Sprintf("connect to %s port %d", cfg.ConnConfig.Host, cfg.ConnConfig.Port)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, coded(connect, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, coded(connect, err)
	}
	return pool, nil
}

// Ping asks every database.
func (s *Store) Ping(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return coded("ping cluster database", s.cluster.Ping(ctx)) })
	for i, sh := range s.shards {
		if sh.pool != s.cluster {
			g.Go(func() error { return coded(fmt.Sprintf("ping shard %d", i), sh.pool.Ping(ctx)) })
		}
	}
	return g.Wait()
}

// Close commits what waits, and disconnects.
func (s *Store) Close() error {
	for _, sh := range s.shards {
		sh.close()
		if sh.pool != s.cluster {
			sh.pool.Close()
		}
	}
	if s.cluster != nil {
		s.cluster.Close()
	}
	return nil
}

// Commits counts the append transactions so far; several appends share one.
func (s *Store) Commits() int64 {
	var n int64
	for _, sh := range s.shards {
		n += sh.commits.Load()
	}
	return n
}

// SQLSTATE codes the driver acts on.
const (
	uniqueViolation      = "23505"
	checkViolation       = "23514"
	undefinedTable       = "42P01"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// coded wraps a failure with what was attempted. Whatever speaks of the
// connection or the server rather than of the statement is Unavailable.
func coded(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	case err.Error() == "closed pool":
		return fmt.Errorf("%s: %w", doing, groupcommit.ErrClosed)
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return &event.Error{Code: event.Unavailable, Message: doing + ": no connection to PostgreSQL", Remedy: "check that the server runs and the address is right", Err: err}
	}
	switch pg.Code[:2] {
	case "08", "53", "57", "58", "40": // connection, resources, shutdown, system, rollback
		return &event.Error{Code: event.Unavailable, Message: doing + ": " + pg.Message, Err: err}
	case "28", "3D": // authorisation, no such database
		return &event.Error{Code: event.Unavailable, Message: doing + ": " + pg.Message, Remedy: "check user, password and database of the address", Err: err}
	case "22", "54": // data that PostgreSQL cannot hold, or not index
		return &event.Error{Code: event.Invalid, Message: doing + ": " + pg.Message, Err: err}
	}
	if pg.Code == checkViolation {
		return &event.Error{Code: event.Invalid, Message: doing + ": " + pg.Message, Err: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// sqlState is the SQLSTATE of err, or empty.
func sqlState(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}
