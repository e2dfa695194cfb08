package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// admin is a connection beside the tool.
func (s *server) admin() *pgx.Conn {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func (s *server) exec(conn *pgx.Conn, sql string) {
	s.t.Helper()
	if _, err := conn.Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a call that says on its log when it is under way.
func (s *server) start(ctx context.Context, config fields) (<-chan struct{}, <-chan error) {
	signal, done := tooltest.NewSignal(), make(chan error, 1)
	call := s.call(config)
	call.Log = signal
	go func() {
		_, err := s.tool.Run(ctx, call)
		done <- err
	}()
	return signal.Written(), done
}

func TestServerErrorsHaveAKind(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	raise := func(code string) string {
		return fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '%s'; END $$", code)
	}
	for code, want := range map[string]struct {
		kind  string
		retry bool
		query string
	}{
		"40001": {tool.KindDBDeadlock, true, ""}, "40P01": {tool.KindDBDeadlock, true, ""},
		"23505": {tool.KindDBConstraint, false, ""}, "08006": {tool.KindDBConnection, true, ""},
		"57014": {tool.KindDBTimeout, true, "SET statement_timeout = 10; SELECT pg_sleep(60)"},
		"28000": {tool.KindAuth, false, ""}, "42501": {tool.KindAuth, false, ""}, "53300": {tool.KindDBConnection, true, ""},
		"42601": {tool.KindClientError, false, "SELEC 1"}, "42P01": {tool.KindSchema, false, "TABLE nothing"},
		"22012": {tool.KindSchema, false, "SELECT 1/0"}, "P0001": {tool.KindLogic, false, ""}, "XX000": {tool.KindUnknown, false, ""},
	} {
		query := want.query
		if query == "" {
			query = raise(code)
		}
		if e := s.fail(fields{"query": query}); e.Kind != want.kind || e.Retryable != want.retry || e.PGCode != code || e.Code != "PG_"+code {
			t.Errorf("%s is %+v, want kind %s", code, e, want.kind)
		}
	}
}

func TestConcurrentChangesAreWorthAnotherTry(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": "CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)"})
	other := s.admin()
	s.exec(other, "BEGIN; UPDATE t SET n = 1 WHERE a = 1")
	under, done := s.start(t.Context(), fields{"query": `BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM t;
		DO $$ BEGIN RAISE NOTICE 'now'; END $$; UPDATE t SET n = 2 WHERE a = 1; COMMIT`})
	<-under
	s.exec(other, "COMMIT")
	if e := asError(t, <-done); e.Kind != tool.KindDBDeadlock || e.PGCode != "40001" || !e.Retryable {
		t.Errorf("a serialization failure is %+v", e)
	}
	s.exec(other, "BEGIN; SET deadlock_timeout = '1h'; UPDATE t SET n = 1 WHERE a = 1")
	under, done = s.start(t.Context(), fields{"transaction": true, "query": `SET deadlock_timeout = '10ms'; UPDATE t SET n = 2 WHERE a = 2;
		DO $$ BEGIN RAISE NOTICE 'now'; END $$; UPDATE t SET n = 2 WHERE a = 1`})
	<-under
	s.exec(other, "UPDATE t SET n = 1 WHERE a = 2") // waits for the command, which waits for us
	if e := asError(t, <-done); e.Kind != tool.KindDBDeadlock || e.PGCode != "40P01" || !e.Retryable {
		t.Errorf("a deadlock is %+v", e)
	}
}

func TestPoolsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	pool := fields{"name": "small", "max_size": int64(1), "max_waiting": int64(1), "timeout": "200ms"}
	ctx, cancel := context.WithCancel(t.Context())
	under, done := s.start(ctx, fields{"pool": pool, "query": "DO $$ BEGIN RAISE NOTICE 'now'; PERFORM pg_sleep(600); END $$"})
	<-under
	codes := map[string]int{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			_, err := s.tool.Run(t.Context(), s.call(fields{"pool": pool, "query": "SELECT 1"}))
			e := asError(t, err)
			mu.Lock()
			defer mu.Unlock()
			codes[e.Code]++
			if e.Kind != tool.KindDBConnection || !e.Retryable {
				t.Errorf("error %+v", e)
			}
		})
	}
	group.Wait()
	if codes["POOL_TIMEOUT"] < 1 || codes["POOL_TIMEOUT"]+codes["POOL_FULL"] != 3 {
		t.Errorf("ends are %v", codes)
	}
	s.run(fields{"query": "SELECT 1"}) // another pool is not concerned
	cancel()
	if e := asError(t, <-done); e.Kind != tool.KindCancelled {
		t.Errorf("error %+v", e)
	}
	s.run(fields{"pool": pool, "query": "SELECT 1"})
}

func TestConnectionsAreBoundedOverAllPools(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{MaxConnections: 2, Pool: postgres.Pool{Idle: time.Hour}})
	count := s.admin()
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			if _, err := s.tool.Run(t.Context(), s.call(fields{"pool": fields{"name": fmt.Sprint(i % 4)}, "query": "SELECT 1"})); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var open int
	if err := count.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'noetl'").Scan(&open); err != nil || open > 2 {
		t.Errorf("%d connections are open (%v), want at most 2", open, err)
	}
}

func TestConnectionsThatRestAreClosed(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{Pool: postgres.Pool{Idle: 50 * time.Millisecond}})
	s.run(fields{"query": "SELECT 1"})
	watch := s.admin()
	for deadline := time.After(20 * time.Second); ; {
		var open int
		if err := watch.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'noetl'").Scan(&open); err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d connections are still open", open)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestALostConnectionIsReported(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{Pool: postgres.Pool{Max: 1}})
	kill := func() {
		s.exec(s.admin(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'noetl%'")
	}
	under, done := s.start(t.Context(), fields{"query": "DO $$ BEGIN RAISE NOTICE 'now'; PERFORM pg_sleep(600); END $$"})
	<-under
	kill()
	if e := asError(t, <-done); e.Kind != tool.KindDBConnection || !e.Retryable {
		t.Errorf("error %+v", e)
	}
	s.run(fields{"query": "SELECT 1"})
	kill() // while it rests
	s.run(fields{"query": "SELECT 1"})
}

func TestNobodyAtTheOtherEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var served sync.WaitGroup
	defer served.Wait()
	defer listener.Close()
	served.Go(func() { // a server that declines TLS, and then everything
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 8))
			_, _ = c.Write([]byte("N"))
			c.Close()
		}
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	pg := postgres.New(postgres.Options{Attempts: 1})
	defer pg.Close()
	for name, c := range map[string]struct {
		addr, mode, code string
		retry            bool
	}{
		"refused":  {closed.Addr().String(), "prefer", "CONN_REFUSED", true},
		"no TLS":   {listener.Addr().String(), "require", "TLS_ERROR", false},
		"cut":      {listener.Addr().String(), "prefer", "CONN_ERROR", true},
		"not here": {"/nowhere", "prefer", "CONN_REFUSED", true},
	} {
		host, port, _ := net.SplitHostPort(c.addr)
		if host == "" {
			host, port = c.addr, "5432"
		}
		_, err := pg.Run(t.Context(), &tool.Call{Log: io.Discard, Config: fields{
			"connection": "host=" + host + " port=" + port + " user=u password=secret-canary", "sslmode": c.mode, "query": "SELECT 'secret-canary'",
		}})
		e := asError(t, err)
		if e.Kind != tool.KindDBConnection || e.Code != c.code || e.Retryable != c.retry || strings.Contains(e.Message, "canary") {
			t.Errorf("%s: error %+v", name, e)
		}
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	var hidden []string
	for _, config := range []fields{
		{"query": "SELECT 'secret-canary' FROM nothing"},
		{"database": "nothing", "query": "SELECT 1"},
		{"query": "INSERT INTO nothing VALUES ($1)", "params": []any{"secret-canary"}},
		{"user": "nobody", "query": "SELECT 1"},
	} {
		config["password"] = "secret-canary"
		call := s.call(config)
		call.Hide = func(values ...string) { hidden = append(hidden, values...) }
		_, err := s.tool.Run(t.Context(), call)
		if e := asError(t, err); strings.Contains(fmt.Sprint(e.Message, e.Details), "canary") {
			t.Errorf("error %+v tells a secret", e)
		}
	}
	if len(hidden) == 0 || hidden[0] != "secret-canary" {
		t.Errorf("hidden values are %v", hidden)
	}
}

func TestEnvironmentOfTheProcessDoesNotCount(t *testing.T) {
	t.Setenv("PGHOST", "nowhere.invalid")
	t.Setenv("PGPASSWORD", "secret")
	t.Setenv("PGSSLMODE", "verify-full")
	t.Setenv("PGOPTIONS", "-c work_mem=7MB")
	s := newServer(t, postgres.Options{})
	got := s.run(fields{"query": "SELECT current_setting('work_mem') <> '7MB' AS ok"})
	if !got["rows"].([]any)[0].(fields)["ok"].(bool) {
		t.Error("PGOPTIONS of the worker reach the server")
	}
}

func TestManyRowsAreStoredAndNotHeld(t *testing.T) {
	s := newServer(t, postgres.Options{SpillDir: t.TempDir()})
	store := &blobs{}
	rows, width := 1_000_000, 50
	if underRace { // which slows encoding down and has a heap of its own
		rows = 50_000
	}
	call := s.call(fields{"query": fmt.Sprintf("SELECT i, repeat('x', %d) AS filler FROM generate_series(1, %d) i", width, rows)})
	call.Blobs = store
	runtime.GC()
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&during)
				most = max(most, during.HeapAlloc)
			}
		}
	}()
	res, err := s.tool.Run(t.Context(), call)
	close(stop)
	if most := <-peak; most > before.HeapAlloc+64<<20 && !underRace {
		t.Errorf("the heap grew from %d to %d MiB", before.HeapAlloc>>20, most>>20)
	}
	if err != nil || res.Stored == nil || res.Data != nil {
		t.Fatalf("result %+v, %v", res, err)
	}
	if store.size < int64(2*70*rows) || !bytes.HasPrefix(store.head, []byte(`{"columns":["i","filler"],"rows":[{"i":1,"filler":"xxx`)) {
		t.Errorf("%d bytes were stored, beginning %s", store.size, store.head)
	}
}

func TestWhatIsLargeDependsOnBytesAndRows(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{MaxRows: 100, MaxBytes: 10_000, SpillDir: t.TempDir()})
	for name, c := range map[string]struct {
		query  string
		inline int
		stored bool
	}{
		"little":            {"SELECT i FROM generate_series(1, 100) i", 0, false},
		"too many rows":     {"SELECT i FROM generate_series(1, 101) i", 0, true},
		"too many bytes":    {"SELECT repeat('x', 6000) AS x", 0, true}, // told twice
		"the caller's word": {"SELECT repeat('x', 600) AS x", 1000, true},
	} {
		call := s.call(fields{"query": c.query})
		store := &blobs{}
		call.Blobs, call.InlineLimit = store, c.inline
		res, err := s.tool.Run(t.Context(), call)
		if err != nil || (res.Stored != nil) != c.stored {
			t.Errorf("%s: result %+v, %v; want stored %v", name, res, err, c.stored)
		}
	}
	got := s.run(fields{"query": "SELECT i FROM generate_series(1, 101) i"}) // nowhere to store it
	if got["truncated"] != true || got["row_count"] != num("100") {
		t.Errorf("without a store: %v", got["truncation"])
	}
}

func TestCancelInTheMiddleKeepsThePoolGoing(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{Pool: postgres.Pool{Max: 1}})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		under, done := s.start(ctx, fields{"query": "DO $$ BEGIN RAISE NOTICE 'now'; END $$; SELECT repeat('x', 1000) FROM generate_series(1, 100000000)", "max_rows": int64(1)})
		<-under
		cancel()
		if e := asError(t, <-done); e.Kind != tool.KindCancelled {
			t.Errorf("error %+v", e)
		}
		s.run(fields{"query": "SELECT 1"})
	}
}
