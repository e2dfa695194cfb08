package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

type fields = map[string]any

// server is a database and the tool that talks to it.
type server struct {
	t    *testing.T
	tool *postgres.Tool
	dsn  string
}

func newServer(t *testing.T, opts postgres.Options) *server {
	t.Helper()
	s := &server{t: t, dsn: testkit.Postgres(t), tool: postgres.New(opts)}
	t.Cleanup(func() { s.tool.Close() })
	return s
}

// call is a call with the connection filled in.
func (s *server) call(config fields) *tool.Call {
	full := fields{"connection": s.dsn}
	for k, v := range config {
		full[k] = v
	}
	return &tool.Call{Config: full, ExecutionID: "42", Step: "load", Log: io.Discard}
}

// run gives the data of a call that works.
func (s *server) run(config fields) fields {
	s.t.Helper()
	res, err := s.tool.Run(s.t.Context(), s.call(config))
	if err != nil {
		s.t.Fatalf("%v: %v", config["query"], err)
	}
	return decode(s.t, res.Data)
}

// fail gives the error of a call that does not.
func (s *server) fail(config fields) *tool.Error {
	s.t.Helper()
	_, err := s.tool.Run(s.t.Context(), s.call(config))
	return asError(s.t, err)
}

func asError(t *testing.T, err error) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T (%v), want *tool.Error", err, err)
	}
	return e
}

// decode keeps numbers as they were written.
func decode(t *testing.T, data []byte) fields {
	t.Helper()
	var out fields
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("data %.200s: %v", data, err)
	}
	return out
}

func num(s string) json.Number { return json.Number(s) }

func TestEveryStatementReportsItsRows(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	res, err := s.tool.Run(t.Context(), s.call(fields{"query": `
		-- it's a comment; with an apostrophe
		CREATE TABLE item (id serial PRIMARY KEY, name text);
		INSERT INTO item (name) VALUES ('a'), ('b;c') RETURNING id, name;
		DO $$ BEGIN PERFORM 1; UPDATE item SET name = name; END $$;
		UPDATE item SET name = upper(name);
		SELECT name FROM item ORDER BY id`}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"columns":["name"],"rows":[{"name":"A"},{"name":"B;C"}],"row_count":2,"affected_rows":0` +
		`,"command_0":{"columns":[],"rows":[],"row_count":0,"affected_rows":0}` +
		`,"command_1":{"columns":["id","name"],"rows":[{"id":1,"name":"a"},{"id":2,"name":"b;c"}],"row_count":2,"affected_rows":2}` +
		`,"command_2":{"columns":[],"rows":[],"row_count":0,"affected_rows":0}` +
		`,"command_3":{"columns":[],"rows":[],"row_count":2,"affected_rows":2}` +
		`,"command_4":{"columns":["name"],"rows":[{"name":"A"},{"name":"B;C"}],"row_count":2,"affected_rows":0}}`
	if diff := cmp.Diff(want, string(res.Data)); diff != "" {
		t.Error(diff)
	}
}

func TestRowsComeFromEveryKindOfStatement(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": `CREATE TABLE t (a int); INSERT INTO t VALUES (1);
		CREATE PROCEDURE p(INOUT x int) LANGUAGE plpgsql AS $$ BEGIN x := x + 1; COMMIT; END $$`})
	for query, rows := range map[string]int{
		"SHOW server_version":                  1,
		"EXPLAIN SELECT 1":                     1,
		"VALUES (1), (2)":                      2,
		"CALL p(1)":                            1,
		"WITH x AS (SELECT 1) SELECT * FROM x": 1,
		"WITH x AS (UPDATE t SET a = 2 RETURNING a) TABLE x": 1,
		"/* first */ SELECT 1":                               1,
		"(SELECT 1) UNION ALL (SELECT 2)":                    2,
		"UPDATE t SET a = 1 RETURNING *":                     1,
		"DELETE FROM t WHERE false RETURNING a":              0,
		"SELECT WHERE false":                                 0,
	} {
		if got, _ := s.run(fields{"query": query})["rows"].([]any); len(got) != rows {
			t.Errorf("%s gives %v, want %d rows", query, got, rows)
		}
	}
	for _, alone := range []string{"CREATE DATABASE noetl_tool_x", "DROP DATABASE noetl_tool_x", "VACUUM t", "CREATE INDEX CONCURRENTLY ON t (a)", "LISTEN x", "SET work_mem = '8MB'"} {
		s.run(fields{"query": alone + "; SELECT 1"})
	}
}

func TestSQLHasManyNames(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	for name, config := range map[string]fields{
		"query":        {"query": "SELECT 1 AS x"},
		"queries":      {"queries": []any{"SELECT 0 AS x", "SELECT 1 AS x"}},
		"command":      {"command": "SELECT 0; SELECT 1 AS x;"},
		"commands":     {"commands": []any{"SELECT 0;", "SELECT 1 AS x;"}},
		"cmd":          {"cmd": "SELECT 1 AS x"},
		"cmds":         {"cmds": []any{"SELECT 1 AS x"}},
		"query_b64":    {"query_b64": "U0VMRUNUIDEgQVMgeA=="},
		"command_b64":  {"command_b64": "U0VMRUNUIDEgQVMgeA=="},
		"commands_b64": {"commands_b64": "U0VMRUNUIDEg\nQVMgeA=="},
		"script":       {"script": fields{"source": fields{"type": "inline", "content": "SELECT 1 AS x"}}, "query": "SELECT 2 AS x"},
	} {
		if diff := cmp.Diff([]any{fields{"x": num("1")}}, s.run(config)["rows"]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestShapesOfRows(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	got := s.run(fields{"query": "SELECT 1 AS id, 2 AS id, 3 AS id_2, 4", "as_objects": false})
	want := fields{"columns": []any{"id", "id_3", "id_2", "?column?"}, "rows": []any{[]any{num("1"), num("2"), num("3"), num("4")}}}
	if diff := cmp.Diff(want, fields{"columns": got["columns"], "rows": got["rows"]}); diff != "" {
		t.Error(diff)
	}
	got = s.run(fields{"query": "SELECT i FROM generate_series(1, 5) i", "max_rows": int64(2)})
	if got["truncated"] != true || got["row_count"] != num("2") {
		t.Errorf("max_rows 2 gives %v", got)
	}
	cut := fields{"reason": "max_rows", "max_rows": num("2"), "max_bytes": num("8388608"), "returned_bytes": num("15"), "total_rows": num("5")}
	if diff := cmp.Diff(cut, got["truncation"]); diff != "" {
		t.Error(diff)
	}
	got = s.run(fields{"query": "SELECT i FROM generate_series(1, 5) i", "max_bytes": "20"})
	if got["truncated"] != true || got["row_count"] != num("2") {
		t.Errorf("max_bytes 20 gives %v", got)
	}
}

func TestStatementsStopAtTheFirstError(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": "CREATE TABLE t (a int PRIMARY KEY)"})
	text := "INSERT INTO t VALUES (1);\n\nINSERT INTO t\nVALUES (1);\nINSERT INTO t VALUES (2)"
	e := s.fail(fields{"query": text})
	if e.Kind != tool.KindDBConstraint || e.PGCode != "23505" || e.Code != "PG_23505" || e.Retryable {
		t.Errorf("error %+v", e)
	}
	for _, part := range []string{"statement 2 of 3, line 3", "SQLSTATE 23505", "DETAIL: Key (a)=(1) already exists"} {
		if !strings.Contains(e.Message, part) {
			t.Errorf("message %q does not say %q", e.Message, part)
		}
	}
	if got := s.run(fields{"query": "SELECT a FROM t"})["row_count"]; got != num("1") {
		t.Errorf("%v rows are left, want the first only", got)
	}
	s.fail(fields{"query": "DELETE FROM t; " + text, "transaction": true})
	if got := s.run(fields{"query": "SELECT a FROM t"})["row_count"]; got != num("1") {
		t.Errorf("%v rows are left of a failed transaction, want 1", got)
	}
	e = s.fail(fields{"query": "SELECT 1;\nSELECT 1,\n  nothing FROM t"})
	if !strings.Contains(e.Message, "line 3") || e.Kind != tool.KindSchema {
		t.Errorf("error %+v, want one of kind schema on line 3", e)
	}
}

func TestTransactionsAreWholeOrRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	s.run(fields{"query": "CREATE TABLE t (a int)"})
	e := s.fail(fields{"query": "BEGIN; INSERT INTO t VALUES (1)"})
	if e.Code != "OPEN_TRANSACTION" {
		t.Errorf("error %+v", e)
	}
	s.run(fields{"query": "BEGIN; INSERT INTO t VALUES (2); COMMIT"})
	s.run(fields{"query": "INSERT INTO t VALUES (3); SAVEPOINT x; INSERT INTO t VALUES (4); ROLLBACK TO x", "transaction": true})
	if diff := cmp.Diff([]any{[]any{num("2")}, []any{num("3")}}, s.run(fields{"query": "SELECT a FROM t ORDER BY a", "as_objects": false})["rows"]); diff != "" {
		t.Error(diff)
	}
	if e := s.fail(fields{"query": "INSERT INTO t VALUES (5); COMMIT", "transaction": true}); e.Kind != tool.KindConfig {
		t.Errorf("error %+v", e)
	}
	for _, query := range []string{"DELETE FROM t", "SET TRANSACTION READ WRITE; DELETE FROM t", "SELECT set_config('transaction_read_only', 'off', true); DELETE FROM t", "SET default_transaction_read_only = off; DELETE FROM t", "COMMIT; DELETE FROM t"} {
		s.fail(fields{"query": query, "readonly": true})
	}
	if got := s.run(fields{"query": "SELECT a FROM t", "readonly": true})["row_count"]; got != num("2") {
		t.Errorf("%v rows are left after readonly commands, want 2", got)
	}
}

func TestNothingOfACommandStaysOnItsConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{Pool: postgres.Pool{Max: 1}})
	s.run(fields{"query": "CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 7 AS a"})
	pid := s.run(fields{"query": "SELECT pg_backend_pid() AS pid"})["rows"]
	got := s.run(fields{"schema": "other", "query": `SET work_mem = '9MB'; CREATE TEMP TABLE mine (a int); SELECT pg_advisory_lock(1);
		SELECT a, current_setting('application_name') AS app FROM t`})
	if diff := cmp.Diff([]any{fields{"a": num("7"), "app": "noetl/42/load"}}, got["rows"]); diff != "" {
		t.Error(diff)
	}
	got = s.run(fields{"query": `SELECT current_setting('search_path') AS path, current_setting('work_mem') = '9MB' AS mem, to_regclass('mine') AS temp,
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks`})
	want := []any{fields{"path": `"$user", public`, "mem": false, "temp": nil, "locks": num("0")}}
	if diff := cmp.Diff(want, got["rows"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(pid, s.run(fields{"query": "SELECT pg_backend_pid() AS pid"})["rows"]); diff != "" {
		t.Errorf("the connection was not kept: %s", diff)
	}
	if cmp.Equal(pid, s.run(fields{"query": "SELECT pg_backend_pid() AS pid", "pool": false})["rows"]) {
		t.Error("pool: false uses the shared connection")
	}
}

func TestWrongConfigIsRefused(t *testing.T) {
	t.Parallel()
	pg := postgres.New(postgres.Options{})
	defer pg.Close()
	for want, config := range map[string]fields{
		"no connection: set auth":                 {"query": "SELECT 1"},
		"no SQL: set query":                       {"host": "h"},
		"holds no statement":                      {"host": "h", "query": " -- nothing\n;"},
		"use the transfer tool":                   {"host": "h", "query": "COPY t FROM STDIN"},
		"query_b64 is not base64":                 {"host": "h", "query_b64": "%"},
		"must be SQL, or a list of it":            {"host": "h", "query": fields{}},
		"params must be a list":                   {"host": "h", "query": "SELECT $1", "params": "x"},
		"uses none beyond $1":                     {"host": "h", "query": "SELECT $1", "params": []any{int64(1), int64(2)}},
		"$2 has no value":                         {"host": "h", "query": "SELECT $2", "params": []any{int64(1)}},
		":b has no value":                         {"host": "h", "query": "SELECT :b", "params": fields{"a": int64(1)}},
		"numeric must be number or string":        {"host": "h", "query": "SELECT 1", "numeric": "float"},
		"max_rows must be a whole number":         {"host": "h", "query": "SELECT 1", "max_rows": int64(-1)},
		"pool.max_size must be":                   {"host": "h", "query": "SELECT 1", "pool": fields{"max_size": int64(0)}},
		"pool.min_size 5 is above max_size 2":     {"host": "h", "query": "SELECT 1", "pool": fields{"min_size": int64(5), "max_size": int64(2)}},
		"is no connection string":                 {"query": "SELECT 1", "connection": "secret-canary"},
		"passfile is not allowed":                 {"query": "SELECT 1", "connection": "host=h passfile=/etc/secret-canary"},
		`sslmode "secure" is unknown`:             {"query": "SELECT 1", "host": "h", "sslmode": "secure"},
		"port must be a number from 1 to 65535":   {"query": "SELECT 1", "host": "h", "port": "secret-canary"},
		"COMMIT has no place here, because trans": {"query": "COMMIT", "host": "h", "transaction": true},
	} {
		_, err := pg.Run(t.Context(), &tool.Call{Config: config, Log: io.Discard})
		if e := asError(t, err); e.Kind != tool.KindConfig || !strings.Contains(e.Message, want) || strings.Contains(e.Message, "canary") {
			t.Errorf("%v: error %q %q, want one of kind config with %q", config, e.Kind, e.Message, want)
		}
	}
}

func TestCredentialsFillWhatTheStepLeavesOut(t *testing.T) {
	t.Parallel()
	s := newServer(t, postgres.Options{})
	u, err := url.Parse(s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	database := strings.TrimPrefix(u.Path, "/")
	s.run(fields{"query": "CREATE SCHEMA mine; CREATE TABLE mine.t AS SELECT 1 AS a"})
	call := &tool.Call{
		Log:    io.Discard,
		Config: fields{"auth": "pg_local", "database": database, "query": "SELECT a, current_user AS u FROM t"},
		Credentials: func(_ context.Context, aliases ...string) (map[string]*tool.Credential, error) {
			return map[string]*tool.Credential{"pg_local": {Alias: "pg_local", Type: "postgres", Data: fields{
				"db_host": u.Query().Get("host"), "db_port": "5432", "db_user": "postgres", "db_password": "x", "db_name": "elsewhere", "db_schema": "mine",
			}}}, nil
		},
	}
	res, err := s.tool.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{fields{"a": num("1"), "u": "postgres"}}, decode(t, res.Data)["rows"]); diff != "" {
		t.Error(diff)
	}
}

// blobs keeps what is put into it.
type blobs struct {
	mu   sync.Mutex
	size int64
	head []byte
}

func (b *blobs) Put(_ context.Context, _ tool.Blob, r io.Reader) (*tool.Stored, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.head = make([]byte, 200)
	n, err := io.ReadFull(r, b.head)
	if err != nil {
		return nil, err
	}
	rest, err := io.Copy(io.Discard, r)
	b.size = int64(n) + rest
	return &tool.Stored{StoredResult: event.StoredResult{Ref: "noetl://x", Bytes: b.size}}, err
}

func (b *blobs) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, errors.New("not here")
}

func TestContract(t *testing.T) {
	dsn := testkit.Postgres(t)
	call := func(query string) *tool.Call {
		return &tool.Call{Config: fields{"connection": dsn, "query": query}, Log: io.Discard}
	}
	tooltest.Run(t, tooltest.Suite{
		Open: func(*testing.T) (tool.Tool, func()) {
			pg := postgres.New(postgres.Options{})
			return pg, func() { pg.Close() }
		},
		Quick: func() *tool.Call { return call("SELECT 1 AS x") },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			signal := tooltest.NewSignal()
			c := call("DO $$ BEGIN RAISE NOTICE 'under way'; PERFORM pg_sleep(600); END $$")
			c.Log = signal
			return c, signal.Written()
		},
		Broken: func() *tool.Call { return call(" ; ") },
	})
}
