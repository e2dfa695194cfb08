package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// monthsAhead is how far partitions are made in advance. Half a year survives
// any process that forgets to call EnsurePartitions for a while.
const monthsAhead = 6

// idEpoch is where the time part of an id starts, in Unix milliseconds; the
// part sits above 22 bits of machine and counter.
const (
	idEpoch    = 1704067200000 // 2024-01-01
	idTimeBits = 22
)

// EnsurePartitions makes the partitions of noetl.event for the month of now and
// those that follow. Call it every day or so; it is cheap when there is nothing
// to do, and any number of replicas may call it.
func (s *Store) EnsurePartitions(ctx context.Context, now time.Time) error {
	for i, sh := range s.shards {
		if err := ensurePartitions(ctx, sh.pool, now); err != nil {
			return fmt.Errorf("shard %d of %d: %w", i+1, len(s.shards), err)
		}
	}
	return nil
}

// partition is a range of ids of the log.
type partition struct {
	name     string
	from, to int64
}

func month(now time.Time, ahead int) partition {
	now = now.UTC()
	start := time.Date(now.Year(), now.Month()+time.Month(ahead), 1, 0, 0, 0, 0, time.UTC)
	return partition{
		name: fmt.Sprintf("event_%d_%02d", start.Year(), start.Month()),
		from: (start.UnixMilli() - idEpoch) << idTimeBits,
		to:   (start.AddDate(0, 1, 0).UnixMilli() - idEpoch) << idTimeBits,
	}
}

func ensurePartitions(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	present, err := partitions(ctx, pool)
	if err != nil {
		return coded("look for partitions", err)
	}
	for ahead := range monthsAhead + 1 {
		p := month(now, ahead)
		if p.from < 0 || p.within(present) {
			continue
		}
		err := underSchemaLock(ctx, pool, func(tx pgx.Tx) error { return p.create(ctx, tx) })
		if err != nil {
			return coded("create partition "+p.name, err)
		}
	}
	return nil
}

// within tells whether ids of p have a place already: a partition may hold a
// quarter, or everything before a date.
func (p partition) within(others []partition) bool {
	return slices.ContainsFunc(others, func(o partition) bool { return p.from < o.to && o.from < p.to })
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

var partitionBounds = regexp.MustCompile(`FROM \((?:'?(-?\d+)'?|MINVALUE)\) TO \((?:'?(-?\d+)'?|MAXVALUE)\)`)

// partitions are the ranges the log is cut into, in order, without the default.
func partitions(ctx context.Context, q querier) ([]partition, error) {
	// The catalog itself is asked: names looked up otherwise may come from a
	// cache that is older than the lock.
	rows, err := q.Query(ctx, `SELECT c.relname::text, pg_get_expr(c.relpartbound, c.oid)
	FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class l ON l.oid = i.inhparent JOIN pg_namespace n ON n.oid = l.relnamespace
	WHERE n.nspname = 'noetl' AND l.relname = 'event' AND NOT i.inhdetachpending`)
	if err != nil {
		return nil, err
	}
	var out []partition
	var name, bounds string
	_, err = pgx.ForEachRow(rows, []any{&name, &bounds}, func() error {
		found := partitionBounds.FindStringSubmatch(bounds)
		if found == nil {
			return nil // the default
		}
		p := partition{name: name, from: math.MinInt64, to: math.MaxInt64}
		if n, err := strconv.ParseInt(found[1], 10, 64); err == nil {
			p.from = n
		}
		if n, err := strconv.ParseInt(found[2], 10, 64); err == nil {
			p.to = n
		}
		out = append(out, p)
		return nil
	})
	slices.SortFunc(out, func(a, b partition) int { return cmp.Compare(a.to, b.to) })
	return out, err
}

// create attaches a table made beside the log, so that appends to other
// partitions go on meanwhile. Rows that fell into the default partition for
// want of a better one move over; they would block the new one otherwise.
func (p partition) create(ctx context.Context, tx pgx.Tx) error {
	present, err := partitions(ctx, tx)
	if err != nil || p.within(present) {
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
	return strings.NewReplacer("{name}", pgx.Identifier{p.name}.Sanitize(), "{from}", strconv.FormatInt(p.from, 10), "{to}", strconv.FormatInt(p.to, 10)).Replace(text)
}

// strayLook is how many events of the default partition are looked at.
const strayLook = 5000

// LogState implements store.Retention.
func (s *Store) LogState(ctx context.Context) (store.LogState, error) {
	var state store.LogState
	for i, sh := range s.shards {
		parts, err := partitions(ctx, sh.pool)
		if err != nil {
			return state, coded("look for partitions", err)
		}
		for _, p := range parts {
			state.Parts = append(state.Parts, store.LogPart{Shard: i, Name: p.name, From: event.ID(p.from), To: event.ID(p.to)})
		}
		strays, err := one(ctx, sh.pool, "look into the default partition", func(row scanner, n *int64) error { return row.Scan(n) },
			"SELECT count(DISTINCT execution_id) FROM (SELECT execution_id FROM noetl.event_default LIMIT $1) AS looked", strayLook)
		if err != nil {
			return state, err
		}
		state.Strays += strays
	}
	return state, nil
}

// errRangeKept undoes a removal because something speaks against it.
var errRangeKept = errors.New("the range is kept")

const (
	dropTries   = 4
	lockTimeout = "500ms" // everybody who wants the log waits behind the lock
	lockBusy    = "55P03"
)

// removeRangeIn removes all executions of a partition, and the partition.
func removeRangeIn(ctx context.Context, tx pgx.Tx, r store.RangeRemoval, around *surroundings) (map[string]int, error) {
	present, err := partitions(ctx, tx)
	if err != nil {
		return nil, err
	}
	p := partition{name: r.Part.Name, from: int64(r.Part.From), to: int64(r.Part.To)}
	if !slices.Contains(present, p) {
		return nil, errRangeKept
	}
	// Nothing can be added to the part from now on; it is of a time long over.
	if _, err := tx.Exec(ctx, p.fill("SET LOCAL lock_timeout = '"+lockTimeout+"'; LOCK TABLE noetl.{name} IN SHARE ROW EXCLUSIVE MODE; SET LOCAL lock_timeout = 0")); err != nil {
		return nil, err
	}
	kept, err := keptOf(ctx, tx, r.Members, around, r.RemovalOptions)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(kept, func(why string) bool { return why != "" }) {
		return nil, errRangeKept
	}
	// Members are locked. Whatever else is in the range, or in the log without a
	// row, keeps all of it.
	var others bool
	if err := tx.QueryRow(ctx, p.fill(`SELECT (SELECT count(*) FROM noetl.execution WHERE execution_id >= {from} AND execution_id < {to}) <> $1
		OR EXISTS (SELECT FROM noetl.{name} e WHERE NOT EXISTS (SELECT FROM noetl.execution x WHERE x.execution_id = e.execution_id))`),
		len(r.Members)).Scan(&others); err != nil {
		return nil, err
	}
	if others {
		return nil, errRangeKept
	}
	return dropRange(ctx, tx, p, r.Now)
}

func dropRange(ctx context.Context, tx pgx.Tx, p partition, now time.Time) (map[string]int, error) {
	const within = ` WHERE execution_id >= {from} AND execution_id < {to}`
	rows := map[string]int{}
	var events int
	if err := tx.QueryRow(ctx, p.fill("SELECT count(*) FROM noetl.{name}")).Scan(&events); err != nil {
		return nil, err
	}
	rows["event"] = events
	_, err := tx.Exec(ctx, p.fill(`INSERT INTO noetl.execution_removed (execution_id, removed_at)
		SELECT execution_id, $1 FROM noetl.execution`+within+` ON CONFLICT (execution_id) DO UPDATE SET removed_at = excluded.removed_at`), now)
	if err != nil {
		return nil, err
	}
	for _, table := range ownedTables[1:] {
		tag, err := tx.Exec(ctx, p.fill("DELETE FROM noetl."+table+within))
		if err != nil {
			return nil, err
		}
		if n := int(tag.RowsAffected()); n > 0 && table != "execution_hold" {
			rows[table] = n
		}
	}
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, p.fill("SET LOCAL lock_timeout = '"+lockTimeout+"'; ALTER TABLE noetl.event DETACH PARTITION noetl.{name}; DROP TABLE noetl.{name}"))
			return err
		})
		if sqlState(err) != lockBusy || try == dropTries {
			return rows, err
		}
	}
}
