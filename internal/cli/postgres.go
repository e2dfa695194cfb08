package cli

import (
	"os"
	"strconv"

	"github.com/noetl/noetl-go/internal/node"
)

// shardFlags say how executions are spread over databases.
type shardFlags struct {
	Shards     string `help:"Databases executions are spread over, each host=…;port=…;user=…;password=…;database=… or a URL, in an order that never changes." env:"NOETL_SHARDS" placeholder:"DSN,…"`
	ClusterDSN string `name:"cluster-dsn" help:"Database of catalog, credentials and runtimes. Default: --database-url, else the first shard." env:"NOETL_CLUSTER_DSN" placeholder:"DSN"`
}

// postgresSettings are the names of what postgres reads.
var postgresSettings = []string{
	"NOETL_SHARDS", "NOETL_CLUSTER_DSN", "POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_USER", "POSTGRES_DATABASE",
	"POSTGRES_MAX_CONNECTIONS", "NOETL_PG_STATEMENT_CACHE_CAPACITY",
}

// postgres joins flags and environment.
func (f shardFlags) postgres() (node.Postgres, error) {
	p := node.Postgres{Shards: f.Shards, ClusterDSN: f.ClusterDSN}
	if err := refuseBlank(postgresSettings...); err != nil {
		return p, err
	}
	var err error
	host, ok := os.LookupEnv("POSTGRES_HOST")
	if !ok {
		for _, name := range []string{"POSTGRES_PORT", "POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DATABASE"} {
			if _, set := os.LookupEnv(name); set {
				return p, invalidf("%s is set, but POSTGRES_HOST is not: set it too, or unset %s and name the database with --database-url", name, name)
			}
		}
	}
	if ok {
		port := orEnv("POSTGRES_PORT", "5432")
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return p, invalidf("POSTGRES_PORT %q: want a number from 1 to 65535", port)
		}
		p.Words = map[string]string{
			"host": host, "port": port, "user": orEnv("POSTGRES_USER", "noetl"), "dbname": orEnv("POSTGRES_DATABASE", "noetl"),
		}
		if password := os.Getenv("POSTGRES_PASSWORD"); password != "" {
			p.Words["password"] = password
		}
	}
	if p.MaxConns, err = wholeNumber("POSTGRES_MAX_CONNECTIONS", 1); err != nil {
		return p, err
	}
	if _, ok := os.LookupEnv("NOETL_PG_STATEMENT_CACHE_CAPACITY"); ok {
		n, err := wholeNumber("NOETL_PG_STATEMENT_CACHE_CAPACITY", 0)
		if err != nil {
			return p, err
		}
		p.StatementCache = &n
	}
	return p, nil
}

// wholeNumber reads a setting that is a number; 0 when it is not set.
func wholeNumber(name string, least int) (int, error) {
	text, ok := os.LookupEnv(name)
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 100_000 {
		return 0, invalidf("%s %q: want a whole number from %d to 100000", name, text, least)
	}
	return n, nil
}
