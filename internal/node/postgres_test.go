package node

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func TestSettingsOfPostgreSQLAreJoined(t *testing.T) {
	t.Parallel()
	const a, b, main = "host=a;user=u;database=d", "host=b;user=u;database=d", "postgres://m/main"
	wordsA, wordsB := "dbname='d' host='a' user='u'", "dbname='d' host='b' user='u'"
	words := map[string]string{"host": "h", "user": "u", "dbname": "d", "password": `a'b`}
	for name, c := range map[string]struct {
		options Options
		dsn     string
		shards  []string
	}{
		"one address":                    {Options{DatabaseURL: main}, main, nil},
		"single words":                   {Options{Postgres: Postgres{Words: words}}, `dbname='d' host='h' password='a\'b' user='u'`, nil},
		"an address beats single words":  {Options{DatabaseURL: main, Postgres: Postgres{Words: words}}, main, nil},
		"shards alone":                   {Options{Postgres: Postgres{Shards: a + "," + b}}, wordsA, []string{wordsA, wordsB}},
		"shards beside an address":       {Options{DatabaseURL: main, Postgres: Postgres{Shards: a + "," + b}}, main, []string{wordsA, wordsB}},
		"a cluster database":             {Options{DatabaseURL: main, Postgres: Postgres{Shards: a, ClusterDSN: b}}, wordsB, []string{wordsA}},
		"a cluster database and one":     {Options{DatabaseURL: main, Postgres: Postgres{ClusterDSN: b}}, wordsB, []string{main}},
		"a cluster database and no more": {Options{Postgres: Postgres{ClusterDSN: b}}, wordsB, nil},
	} {
		got, err := c.options.postgresOptions()
		if err != nil || got.DSN != c.dsn || !slices.Equal(got.Shards, c.shards) || !c.options.usesPostgres() {
			t.Errorf("%s: %q and %q, %v; want %q and %q", name, got.DSN, got.Shards, err, c.dsn, c.shards)
		}
	}
	if (Options{DataDir: "d"}).usesPostgres() {
		t.Error("PostgreSQL is used without being named")
	}
}

func TestSettingsOfPostgreSQLThatAreWrongStopTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		postgres Postgres
		want     string
	}{
		"a broken shard":       {Postgres{Shards: "host=a;user=u;database=d,host=b;pass=hunter2"}, "entry 2 of NOETL_SHARDS"},
		"a blank shard":        {Postgres{Shards: ","}, "entry 1 of NOETL_SHARDS"},
		"a broken cluster":     {Postgres{ClusterDSN: "hunter2"}, "NOETL_CLUSTER_DSN"},
		"too few connections":  {Postgres{ClusterDSN: "postgres://a/b", MaxConns: 2}, "POSTGRES_MAX_CONNECTIONS"},
		"a cluster that is no": {Postgres{ClusterDSN: "mysql://u:hunter2@a/b"}, "NOETL_CLUSTER_DSN"},
	} {
		_, err := Start(t.Context(), Options{DataDir: t.TempDir(), Postgres: c.postgres})
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Code != event.Invalid || !strings.Contains(e.Message, c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an invalid %s without the password", name, err, c.want)
		}
	}
}

func TestConnectionsAndStatementsAreBounded(t *testing.T) {
	t.Parallel()
	none, few := 0, 7
	o := Options{DatabaseURL: "postgres://a/b", Postgres: Postgres{MaxConns: 10, StatementCache: &none}}
	got, err := o.postgresOptions()
	if err != nil || got.Writers+got.MaxConns != 10 || !got.Pooled {
		t.Errorf("%+v, %v: want ten connections and no prepared statements", got, err)
	}
	o.Postgres.StatementCache = &few
	if got, err := o.postgresOptions(); err != nil || got.Pooled || got.StatementCache != 7 {
		t.Errorf("%+v, %v: want seven statements", got, err)
	}
}
