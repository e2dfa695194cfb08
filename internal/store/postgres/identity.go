package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/noetl/noetl-go/internal/event"
)

// identity is which part of which installation a database is.
type identity struct {
	cluster string // "" = not known yet
	index   int    // in the list of shards; -1 = the cluster database beside them
	count   int
}

// place is the index of the cluster database among the shards.
func place(o Options) int {
	for i, dsn := range o.Shards {
		if sameDatabase(dsn, o.DSN) {
			return i
		}
	}
	return -1
}

const (
	noteShardSQL = `INSERT INTO noetl.shard (cluster, shard_index, shard_count)
	VALUES (coalesce(nullif($1, '')::uuid, gen_random_uuid()), $2, $3) ON CONFLICT DO NOTHING`
	shardSQL = `SELECT cluster::text, shard_index, shard_count FROM noetl.shard`
)

// identify writes down what a database is when it is first opened, and refuses
// it ever after in another place: executions would be looked for where they
// are not. It returns the name of the installation.
func identify(ctx context.Context, pool *pgxpool.Pool, want identity) (cluster string, err error) {
	if _, err := pool.Exec(ctx, noteShardSQL, want.cluster, want.index, want.count); err != nil {
		return "", coded("note the place of the database", err)
	}
	var is identity
	if err := pool.QueryRow(ctx, shardSQL).Scan(&is.cluster, &is.index, &is.count); err != nil {
		return "", coded("read the place of the database", err)
	}
	switch {
	case is.index != want.index || is.count != want.count:
		return "", &event.Error{
			Code: event.Conflict, Reason: "shard_moved",
			Message: fmt.Sprintf("the database is %s, but the settings make it %s", is, want),
			Remedy:  "list the same shards in the same order as at the first start; to use an empty database anew, delete the row of its table noetl.shard",
		}
	case want.cluster != "" && is.cluster != want.cluster:
		return "", &event.Error{
			Code: event.Conflict, Reason: "shard_of_another",
			Message: "the database belongs to another installation than the cluster database",
			Remedy:  "check NOETL_SHARDS and NOETL_CLUSTER_DSN: all must be the databases of one installation",
		}
	}
	return is.cluster, nil
}

func (i identity) String() string {
	switch {
	case i.count == 1 && i.index == 0:
		return "the only one of an installation without shards"
	case i.index < 0:
		return fmt.Sprintf("the cluster database beside %d shards", i.count)
	}
	return fmt.Sprintf("shard %d of %d", i.index+1, i.count)
}
