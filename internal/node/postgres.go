package node

import (
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store/postgres"
)

// Postgres is what can be said of PostgreSQL besides one address.
type Postgres struct {
	Shards     string            // addresses separated by commas; "" = all in one database
	ClusterDSN string            // database of what is not of one execution; "" = Options.DatabaseURL, or the first shard
	Words      map[string]string // host, port, user, password and dbname of Options.DatabaseURL when that is ""; nil = none
	MaxConns   int               // to each database, those that append included; 0 = default
	// StatementCache is how many statements a connection keeps prepared. 0
	// suits poolers that give every transaction another session; nil = default.
	StatementCache *int
}

// appenders is the number of connections to a database that append.
const appenders = 2

// usesPostgres tells whether the options choose PostgreSQL at all.
func (o Options) usesPostgres() bool {
	return o.DatabaseURL != "" || o.Postgres.Shards != "" || o.Postgres.ClusterDSN != "" || len(o.Postgres.Words) > 0
}

// postgresOptions joins the settings, or says which of them is wrong. No
// message repeats an address: it holds a password.
func (o Options) postgresOptions() (opts postgres.Options, err error) {
	p := o.Postgres
	main := o.DatabaseURL
	if main == "" && len(p.Words) > 0 {
		main = postgres.Words(p.Words)
	}
	if p.Shards != "" {
		if opts.Shards, err = postgres.ParseShards("NOETL_SHARDS", p.Shards); err != nil {
			return opts, err
		}
	}
	switch {
	case p.ClusterDSN != "":
		if opts.DSN, err = postgres.ParseDSN("NOETL_CLUSTER_DSN", p.ClusterDSN); err != nil {
			return opts, err
		}
		if len(opts.Shards) == 0 && main != "" {
			opts.Shards = []string{main}
		}
	case main != "":
		opts.DSN = main
	default:
		opts.DSN = opts.Shards[0]
	}
	if p.MaxConns != 0 {
		if p.MaxConns <= appenders {
			return opts, event.Errorf(event.Invalid, "POSTGRES_MAX_CONNECTIONS %d is too few: %d connections append and at least one reads", p.MaxConns, appenders)
		}
		opts.Writers, opts.MaxConns = appenders, p.MaxConns-appenders
	}
	if p.StatementCache != nil {
		opts.StatementCache, opts.Pooled = *p.StatementCache, *p.StatementCache == 0
	}
	return opts, nil
}
