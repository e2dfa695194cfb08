package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestListsOfShardsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"host=a;port=5433;user=u;password=p w;database=d": {"dbname='d' host='a' password='p w' port='5433' user='u'"},
		" host=a ; user=u; database=d; ":                  {"dbname='d' host='a' user='u'"},
		`host=a;user=u;password=it's\;database=d`:         {`dbname='d' host='a' password='it\'s\\' user='u'`},
		"host=a;user=u;password=;database=d":              {"dbname='d' host='a' password='' user='u'"},
		"postgres://u:p%2C@a/d,HOST=b;user=u;dbname=d;sslmode=disable": {
			"postgres://u:p%2C@a/d", "dbname='d' host='b' sslmode='disable' user='u'",
		},
		"postgresql:///d?host=/run/pg": {"postgresql:///d?host=/run/pg"},
	} {
		got, err := postgres.ParseShards("NOETL_SHARDS", list)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", list, err, diff)
		}
	}
	const good, secret = "host=a;user=u;database=d", "hunter2"
	for list, want := range map[string]string{
		"":                           "entry 1 of NOETL_SHARDS is blank",
		good + ",":                   "entry 2 of NOETL_SHARDS is blank",
		good + ", ,postgres://u@b/d": "entry 2 of NOETL_SHARDS is blank",
		"host=a;user=u;password=" + secret + ";db=d":                              `entry 1 of NOETL_SHARDS has the unknown key "db"`,
		"host=a;user=u;password=x;" + secret + "=1;database=d":                    "entry 1 of NOETL_SHARDS has the unknown key",
		good + ";password=x;" + secret:                                            "entry 1 of NOETL_SHARDS has a",
		"host=a;host=b;user=u;database=d":                                         "entry 1 of NOETL_SHARDS has the key host twice",
		"host=;user=u;password=" + secret + ";database=d":                         "entry 1 of NOETL_SHARDS has a blank host",
		"user=u;database=d":                                                       "entry 1 of NOETL_SHARDS has no host",
		"host=a;user=u;password=" + secret:                                        "entry 1 of NOETL_SHARDS has no database",
		"host=a;database=d":                                                       "entry 1 of NOETL_SHARDS has no user",
		"host=a;port=0;user=u;password=" + secret + ";database=d":                 "entry 1 of NOETL_SHARDS has a port",
		"host=a;port=x;user=u;database=d":                                         "entry 1 of NOETL_SHARDS has a port",
		good + "," + good + ";password=" + secret:                                 "entry 2 of NOETL_SHARDS names the same database as entry 1",
		good + ",postgres://v:" + secret + "@A:5432/d":                            "entry 2 of NOETL_SHARDS names the same database as entry 1",
		"mysql://u:" + secret + "@a/d":                                            "entry 1 of NOETL_SHARDS does not begin with postgres://",
		"postgres://u:" + secret + "@a":                                           "entry 1 of NOETL_SHARDS has no database",
		"postgres://u:" + secret + "@/d":                                          "entry 1 of NOETL_SHARDS has no host",
		"postgres://u:" + secret + "%zz@a/d":                                      "entry 1 of NOETL_SHARDS is no URL",
		"postgres://u:" + secret + "@a:port/d":                                    "entry 1 of NOETL_SHARDS is no URL",
		"postgres://u:" + secret + "@a/d?sslmode=sometimes":                       "entry 1 of NOETL_SHARDS cannot be read",
		good + ";sslmode=sometimes;password=" + secret:                            "entry 1 of NOETL_SHARDS cannot be read",
		"postgres://u:" + secret + ",more@a/d":                                    "entry 1 of NOETL_SHARDS",
		good + ";connect_timeout=soon;password=" + secret:                         "entry 1 of NOETL_SHARDS cannot be read",
		strings.Repeat("host=a;user=u;database=d;", 2) + "password=" + secret:     "entry 1 of NOETL_SHARDS has the key host twice",
		"host=a;user=u;database=d;password=" + secret + ",b;c=" + secret + "tail": "entry 2 of NOETL_SHARDS has a word without =",
	} {
		_, err := postgres.ParseShards("NOETL_SHARDS", list)
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Code != event.Invalid || !strings.HasPrefix(e.Message, want) || e.Remedy == "" {
			t.Errorf("%q: %v, want %q with a remedy", list, err, want)
			continue
		}
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), secret) {
				t.Errorf("%q: the message shows a password: %v", list, cause)
			}
		}
	}
}

func TestADatabaseIsRefusedInAnotherPlace(t *testing.T) {
	t.Parallel()
	db := make([]string, 5)
	for i := range db {
		db[i] = testkit.Postgres(t)
	}
	try := func(cluster string, shards ...string) error {
		s, err := postgres.Open(t.Context(), postgres.Options{DSN: cluster, Shards: shards, Writers: 1, MaxConns: 2})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	if err := try(db[0], db[1], db[2]); err != nil {
		t.Fatalf("the first start: %v", err)
	}
	if err := try(db[0], db[1], db[2]); err != nil {
		t.Errorf("the second start: %v", err)
	}
	if err := try(db[3]); err != nil {
		t.Errorf("a start without shards: %v", err)
	}
	for name, err := range map[string]error{
		"another order":                       try(db[0], db[2], db[1]),
		"fewer":                               try(db[0], db[1]),
		"more":                                try(db[0], db[1], db[2], db[4]),
		"a shard alone":                       try(db[1]),
		"the cluster database alone":          try(db[0]),
		"the cluster database as a shard":     try(db[0], db[0], db[2]),
		"a database that had all as a shard":  try(db[0], db[1], db[3]),
		"a database that had all beside them": try(db[3], db[1], db[2]),
		"the database of another":             try(db[4], db[1], db[2]),
	} {
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Code != event.Conflict || e.Remedy == "" {
			t.Errorf("%s: %v, want a conflict with a remedy", name, err)
		}
	}
	if err := try(db[0], db[1], db[2]); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

// The shards are counted from one, as the list of them is in other messages.
func TestAShardThatCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	db := testkit.Postgres(t)
	_, err := postgres.Open(t.Context(), postgres.Options{DSN: db, Shards: []string{db, "postgres://x:hunter2@127.0.0.1:1/x?connect_timeout=2"}, Writers: 1, MaxConns: 2})
	if event.CodeOf(err) != event.Unavailable || !strings.Contains(err.Error(), "shard 2 of 2: connect to 127.0.0.1 port 1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

func TestTheClusterDatabaseMayBeAShard(t *testing.T) {
	t.Parallel()
	a, b := testkit.Postgres(t), testkit.Postgres(t)
	for range 2 {
		s := open(t, postgres.Options{DSN: a + "&application_name=x", Shards: []string{a, b}, Writers: 1, MaxConns: 2})
		if s.Shards() != 2 || s.PoolState().Max != 2*2+2*1 {
			t.Errorf("%d shards, pools %+v: want one pool for the cluster and its shard", s.Shards(), s.PoolState())
		}
	}
}

func TestOutboxRowsOfAllShardsShareALimitFairly(t *testing.T) {
	t.Parallel()
	shards := []string{testkit.Postgres(t), testkit.Postgres(t), testkit.Postgres(t)}
	s := open(t, postgres.Options{DSN: shards[0], Shards: shards, Writers: 1, MaxConns: 2})
	byShard := make([]int, 3)
	for id := event.ID(1000); slices.Min(byShard) < 4; id += 10 {
		b := start(id)
		b.Publish = true
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		byShard[store.ShardIndex(id, 3)]++
	}
	seen := map[int64]bool{}
	now := time.Now()
	for round := range 3 {
		rows, err := s.ClaimOutbox(t.Context(), store.OutboxClaim{Token: fmt.Sprint(round), Now: now, Lease: time.Hour, Limit: 3})
		if err != nil || len(rows) != 3 {
			t.Fatalf("ClaimOutbox = %d rows, %v", len(rows), err)
		}
		var from []int
		for _, r := range rows {
			if int(r.ID%3) != store.ShardIndex(r.Event.ExecutionID, 3) || seen[r.ID] {
				t.Errorf("row %d of execution %d does not tell its shard, or came twice", r.ID, r.Event.ExecutionID)
			}
			seen[r.ID] = true
			from = append(from, int(r.ID%3))
		}
		slices.Sort(from)
		if !slices.Equal(from, []int{0, 1, 2}) {
			t.Errorf("rows come from the shards %v, want one of each", from)
		}
	}
	total := byShard[0] + byShard[1] + byShard[2] - 9
	rows, err := s.ClaimOutbox(t.Context(), store.OutboxClaim{Token: "all", Now: now, Lease: time.Hour, Limit: 1000})
	if err != nil || len(rows) != total {
		t.Errorf("ClaimOutbox = %d rows, %v, want the other %d", len(rows), err, total)
	}
}

func TestEntriesAreAddedAndRemovedAtOnce(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	stores := []*postgres.Store{open(t, postgres.Options{DSN: dsn, MaxConns: 2}), open(t, postgres.Options{DSN: dsn, MaxConns: 2})}
	var wg sync.WaitGroup
	const adders, each = 4, 15
	for i := range adders {
		s := stores[i%2]
		wg.Go(func() {
			for j := range each {
				id := event.ID(1 + i*each + j)
				e, err := s.AddEntry(t.Context(), store.Entry{CatalogID: id, Path: "p", Kind: "playbook", Content: "x"})
				if err != nil {
					t.Errorf("AddEntry = %v", err)
					return
				}
				if j%3 == 0 {
					b := start(10_000 * id)
					b.Execution.CatalogID = e.CatalogID
					if err := s.Append(t.Context(), b); err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			for range each {
				if _, err := s.RemoveEntries(t.Context(), "p", 0, time.Now()); err != nil {
					t.Errorf("RemoveEntries = %v", err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := stores[0].RemoveEntries(t.Context(), "p", 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	left, err := stores[1].ListEntries(t.Context(), store.EntryFilter{Path: "p", Archived: true})
	if err != nil {
		t.Fatal(err)
	}
	versions := map[int]bool{}
	for _, e := range left {
		if e.ArchivedAt.IsZero() || versions[e.Version] {
			t.Errorf("entry %d is left as version %d, archived %s", e.CatalogID, e.Version, e.ArchivedAt)
		}
		versions[e.Version] = true
	}
}

// Behind a pooler in transaction mode no session lasts: whatever one kept is
// gone before the next statement.
func TestAStoreBehindAPoolerKeepsNothingInItsSessions(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	s := open(t, postgres.Options{DSN: testkit.Postgres(t), Pooled: true, Writers: 1, MaxConns: 2})
	forget := func() {
		t.Helper()
		if prepared, err := s.Discard(ctx); err != nil || prepared != 0 {
			t.Fatalf("%d statements were prepared, %v", prepared, err)
		}
	}
	claim := store.StartClaim{Scope: 1, Key: "k", Window: time.Hour, At: now}
	b := start(10)
	b.Publish, b.Claim = true, &claim
	b.Results = []store.Result{{ExecutionID: 10, Ref: "r", Name: "n", Data: []byte(`1`), SHA256: "s"}}
	if err := s.Append(ctx, b); err != nil {
		t.Fatalf("Append: %v", err)
	}
	forget()
	other := start(20)
	other.Claim = &claim
	if claimed, ok := errors.AsType[*store.ClaimedError](s.Append(ctx, other)); !ok || claimed.ExecutionID != 10 {
		t.Errorf("Append of a second start = %v", claimed)
	}
	forget()
	if err := s.Append(ctx, start(10)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append of the same start = %v", err)
	}
	forget()
	for range 2 {
		if x, err := s.ListExecutions(ctx, store.ExecutionFilter{Status: event.StatusRunning}); err != nil || len(x) != 1 {
			t.Errorf("ListExecutions = %v, %v", x, err)
		}
		forget()
	}
	rows, err := s.ClaimOutbox(ctx, store.OutboxClaim{Token: "t", Now: now, Lease: time.Minute, Limit: 5})
	if err != nil || len(rows) != 1 {
		t.Fatalf("ClaimOutbox = %v, %v", rows, err)
	}
	forget()
	if n, err := s.MarkPublished(ctx, "t", []int64{rows[0].ID}, now); err != nil || n != 1 {
		t.Errorf("MarkPublished = %d, %v", n, err)
	}
	if _, err := s.AddEntry(ctx, store.Entry{CatalogID: 1, Path: "p", Kind: "playbook", Content: "x"}); err != nil {
		t.Errorf("AddEntry = %v", err)
	}
	if err := s.Reproject(ctx, b.Execution, nil); err != nil {
		t.Errorf("Reproject = %v", err)
	}
	forget()
	first, release, err := s.LeaseMachine(ctx, 5)
	if err != nil || first != 5 {
		t.Fatalf("LeaseMachine = %d, %v", first, err)
	}
	defer release()
	forget()
	if second, again, err := s.LeaseMachine(ctx, 5); err != nil || second == 5 {
		t.Errorf("a second LeaseMachine = %d, %v", second, err)
	} else {
		again()
	}
	if err := s.Migrate(ctx); err != nil {
		t.Errorf("Migrate = %v", err)
	}
}
