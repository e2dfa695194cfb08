package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// quartersAhead is how far partitions are made in advance. A year survives any
// process that forgets to call EnsurePartitions for a while.
const quartersAhead = 4

// idEpoch is where the time part of an id starts, in Unix milliseconds; the
// part sits above 22 bits of machine and counter.
const (
	idEpoch    = 1704067200000 // 2024-01-01
	idTimeBits = 22
)

// EnsurePartitions makes the partitions of noetl.event for the quarter of now
// and the next four. Call it every day or so; it is cheap when there is
// nothing to do, and any number of replicas may call it.
func (s *Store) EnsurePartitions(ctx context.Context, now time.Time) error {
	for i, sh := range s.shards {
		if err := ensurePartitions(ctx, sh.pool, now); err != nil {
			return fmt.Errorf("shard %d of %d: %w", i+1, len(s.shards), err)
		}
	}
	return nil
}

// partition is the range of ids of one quarter.
type partition struct {
	name     string
	from, to int64
}

func quarter(now time.Time, ahead int) partition {
	now = now.UTC()
	first := time.Month((int(now.Month())-1)/3*3 + 1)
	start := time.Date(now.Year(), first+time.Month(3*ahead), 1, 0, 0, 0, 0, time.UTC)
	return partition{
		name: fmt.Sprintf("event_%d_q%d", start.Year(), (int(start.Month())-1)/3+1),
		from: (start.UnixMilli() - idEpoch) << idTimeBits,
		to:   (start.AddDate(0, 3, 0).UnixMilli() - idEpoch) << idTimeBits,
	}
}

func ensurePartitions(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	var missing []partition
	for ahead := range quartersAhead + 1 {
		p := quarter(now, ahead)
		exists, err := partitionExists(ctx, pool, p.name)
		if err != nil {
			return coded("look for partition "+p.name, err)
		}
		// Before 2026 one partition holds everything.
		if !exists && p.from >= quarter(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0).from {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	for _, p := range missing {
		err := underSchemaLock(ctx, pool, func(tx pgx.Tx) error { return p.create(ctx, tx) })
		if err != nil {
			return coded("create partition "+p.name, err)
		}
	}
	return nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func partitionExists(ctx context.Context, q querier, name string) (exists bool, err error) {
	// The catalog itself is asked: names looked up otherwise may come from a
	// cache that is older than the lock.
	err = q.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'noetl' AND c.relname = $1)`, name).Scan(&exists)
	return exists, err
}

// create attaches a table made beside the log, so that appends to other
// partitions go on meanwhile. Rows that fell into the default partition for
// want of a better one move over; they would block the new one otherwise.
func (p partition) create(ctx context.Context, tx pgx.Tx) error {
	if exists, err := partitionExists(ctx, tx, p.name); err != nil || exists {
		return err
	}
	for _, text := range []string{
		"CREATE TABLE noetl.{name} (LIKE noetl.event INCLUDING ALL)",
		"LOCK TABLE noetl.event_default IN ACCESS EXCLUSIVE MODE",
		`WITH moved AS (DELETE FROM noetl.event_default WHERE execution_id >= {from} AND execution_id < {to} RETURNING *)
			INSERT INTO noetl.{name} SELECT * FROM moved`,
		"ALTER TABLE noetl.event ATTACH PARTITION noetl.{name} FOR VALUES FROM ({from}) TO ({to})",
	} {
		if _, err := tx.Exec(ctx, p.fill(text)); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the partition into a statement; DDL takes no parameters.
func (p partition) fill(text string) string {
	return strings.NewReplacer("{name}", p.name, "{from}", strconv.FormatInt(p.from, 10), "{to}", strconv.FormatInt(p.to, 10)).Replace(text)
}
