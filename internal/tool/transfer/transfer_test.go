package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
	"github.com/noetl/noetl-go/internal/tool/transfer"
)

type object = map[string]any

// bench is a database and a tool.
type bench struct {
	t    *testing.T
	dsn  string
	conn *pgx.Conn
	tool *transfer.Tool
	dir  string
	kept *shelf
	log  bytes.Buffer
}

func setup(t *testing.T, statements ...string) *bench {
	t.Helper()
	b := &bench{t: t, dsn: testkit.Postgres(t), dir: t.TempDir(), kept: &shelf{}}
	b.tool = transfer.New(transfer.Options{DuckDB: duckdb.NewFiles(duckdb.Options{Dir: b.dir}), Scratch: b.dir})
	var err error
	if b.conn, err = pgx.Connect(t.Context(), b.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.conn.Close(context.Background())
		if err := b.tool.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, sql := range statements {
		b.sql(sql)
	}
	return b
}

func (b *bench) sql(text string) {
	b.t.Helper()
	if _, err := b.conn.Exec(b.t.Context(), text); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
}

// rows is what a query gives, one line for each row.
func (b *bench) rows(query string) string {
	b.t.Helper()
	rows, err := b.conn.Query(b.t.Context(), "SELECT q::text FROM ("+query+") q")
	if err != nil {
		b.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func (b *bench) call(config object) *tool.Call {
	return &tool.Call{
		Config: config, ExecutionID: "9", Log: &b.log, Blobs: b.kept,
		Credentials: func(_ context.Context, aliases ...string) (map[string]*tool.Credential, error) {
			return map[string]*tool.Credential{aliases[0]: {Alias: aliases[0], Type: "postgres", Data: object{"connection_string": b.dsn}}}, nil
		},
	}
}

func (b *bench) run(config object) (object, error) {
	b.t.Helper()
	res, err := b.tool.Run(b.t.Context(), b.call(config))
	if err != nil {
		return nil, err
	}
	var data object
	if err := json.Unmarshal(res.Data, &data); err != nil {
		b.t.Fatalf("%s: %v", res.Data, err)
	}
	return data, nil
}

func (b *bench) must(config object) object {
	b.t.Helper()
	data, err := b.run(config)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

func (b *bench) pg(more object) object {
	out := object{"type": "postgres", "auth": "pg"}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func (b *bench) file(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func failed(t *testing.T, err error, kind, says string) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Message, says) {
		t.Errorf("error is %v, want kind %s with %q", err, kind, says)
	}
}

// shelf keeps stored values.
type shelf struct {
	mu    sync.Mutex
	texts []string
}

func (s *shelf) Put(_ context.Context, _ tool.Blob, r io.Reader) (*tool.Stored, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, string(text))
	return &tool.Stored{StoredResult: event.StoredResult{Ref: fmt.Sprint("ref-", len(s.texts)-1)}}, nil
}

func (s *shelf) Open(_ context.Context, ref string, _, _ int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var i int
	if _, err := fmt.Sscanf(ref, "ref-%d", &i); err != nil || i >= len(s.texts) {
		return nil, &tool.Error{Kind: tool.KindMissingRef, Message: "no such reference"}
	}
	return io.NopCloser(strings.NewReader(s.texts[i])), nil
}

func TestTheContractOfTools(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(path, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := testkit.Postgres(t)
	call := func(source object) *tool.Call {
		return &tool.Call{Config: object{"source": source, "target": object{"type": "ndjson", "path": filepath.Join(dir, "out.ndjson")}}, Log: io.Discard}
	}
	tooltest.Run(t, tooltest.Suite{
		Open: func(t *testing.T) (tool.Tool, func()) {
			tl := transfer.New(transfer.Options{Scratch: dir})
			return tl, func() {
				if err := tl.Close(); err != nil {
					t.Error(err)
				}
			}
		},
		Quick:  func() *tool.Call { return call(object{"type": "csv", "path": path}) },
		Broken: func() *tool.Call { return call(object{"type": "carrier pigeon"}) },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			started := make(chan struct{})
			close(started)
			return call(object{"type": "postgres", "connection": dsn, "query": "SELECT pg_sleep(60)"}), started
		},
	})
}

const everyType = `CREATE TABLE %s (id bigint PRIMARY KEY, i2 smallint, f float8, f4 real, n numeric, n2 numeric(10,2), b boolean, t text, v varchar(9), bt bytea,
 j jsonb, d date, tm time, ts timestamp, tz timestamptz, u uuid, a int[], ta text[], iv interval, ip inet)`

const someRows = `INSERT INTO %s VALUES
 (1, -3, 0.1, 0.1, 12345678901234567890.123456789, 1.50, true, E'tab\tnew\nline\\ "q" ''s'' é', '', '\x00ff', '{"b": [1, null], "a": 9007199254740993}',
  '2026-02-28', '23:59:59.5', '2026-02-28 12:00:00.123456', '2026-02-28 12:00:00+02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{1,NULL,3}', '{"a,b","c\"d"}', '1 mon 2 days', '10.0.0.1'),
 (2, NULL, 'NaN', 'Infinity', 'NaN', NULL, false, '', NULL, '', 'null', '0044-03-15 BC', '24:00', '-infinity', 'infinity', NULL, '{}', '{}', '-1 hour', NULL),
 (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`

func TestRowsOfEveryTypeArriveUnchanged(t *testing.T) {
	t.Parallel()
	b := setup(t, fmt.Sprintf(everyType, "src"), fmt.Sprintf(someRows, "src"), fmt.Sprintf(everyType, "dst"))
	data := b.must(object{"source": b.pg(object{"query": "SELECT * FROM src ORDER BY id"}), "target": b.pg(object{"table": "public.dst"})})
	if diff := cmp.Diff(b.rows("SELECT * FROM src ORDER BY id"), b.rows("SELECT * FROM dst ORDER BY id")); diff != "" {
		t.Errorf("rows differ (-source +target):\n%s", diff)
	}
	delete(data, "columns")
	want := object{
		"direction": "postgres_to_postgres", "source_type": "postgres", "target_type": "postgres", "mode": "append",
		"rows_transferred": 3.0, "chunks_processed": 1.0, "target_table": "public.dst",
	}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if !strings.Contains(b.log.String(), "3 rows into public.dst") {
		t.Errorf("log is %q", b.log.String())
	}
}

func TestFilesInBetweenLoseNothing(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "ndjson", "parquet", "result"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			b := setup(t, fmt.Sprintf(everyType, "src"), fmt.Sprintf(someRows, "src"), fmt.Sprintf(everyType, "dst"))
			query := "SELECT * FROM src ORDER BY id"
			if format == "parquet" { // which has neither years before 1 nor infinity
				query = "SELECT * FROM src WHERE id <> 2 ORDER BY id"
			}
			place := object{"type": format, "path": filepath.Join(b.dir, "rows."+format)}
			data := b.must(object{"source": b.pg(object{"query": query}), "target": place})
			if format == "result" {
				place = object{"type": "result", "ref": data["ref"]}
			}
			b.must(object{"source": place, "target": b.pg(object{"table": "dst"})})
			want, got := b.rows(query), b.rows("SELECT * FROM dst ORDER BY id")
			if format == "ndjson" || format == "result" { // where null and a JSON null are one
				want = strings.Replace(want, `"\\x",null,`, `"\\x",,`, 1)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows differ (-source +target):\n%s", diff)
			}
		})
	}
}

func TestAMappingTakesFieldsFromBelowAndConvertsThem(t *testing.T) {
	t.Parallel()
	b := setup(t, `CREATE TABLE people ("Id" serial, name text NOT NULL, age int, tags text[], raw jsonb, active boolean, score numeric, at timestamptz)`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("X-Test") != "yes" || r.URL.Query().Get("page") != "1" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"meta": {"n": [1,{"x":2}]}, "data": {"items": [
			{"who": {"name": "Ann"}, "years": 41.0, "labels": ["a", "b\"c", null], "extra": "text", "on": true, "score": 0.30000000000000004, "at": "2026-01-02T03:04:05+01:00"},
			{"who": {"name": "Bob"}, "years": null, "on": false, "score": 12345678901234567890.5}
		]}, "after": 1}`)
	}))
	t.Cleanup(server.Close)
	data := b.must(object{
		"source": object{"type": "http", "url": server.URL + "/x", "params": object{"page": int64(1)}, "method": "post", "headers": object{"X-Test": "yes"}, "json": object{}, "data_path": "data.items"},
		"target": b.pg(object{"table": "people", "mapping": object{"name": "who.name", "AGE": "years", "tags": "labels", "raw": "extra", "active": "on", "score": "score", "at": "at"}}),
	})
	want := `(1,Ann,41,"{a,""b\\""c"",NULL}","""text""",t,0.30000000000000004,"2026-01-02 02:04:05+00")` + "\n" +
		`(2,Bob,,,,f,12345678901234567890.5,)`
	b.sql("SET timezone = 'UTC'")
	if diff := cmp.Diff(want, b.rows(`SELECT * FROM people ORDER BY "Id"`)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if data["direction"] != "http_to_postgres" {
		t.Errorf("direction is %v", data["direction"])
	}
}

func TestReplaceAndUpsert(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int PRIMARY KEY, name text, n int DEFAULT 7)", "INSERT INTO t VALUES (1, 'old', 1), (9, 'old', 9)")
	file := b.file("x.csv", "id,name\n1,one\n2,first\n2,\"two, \"\"really\"\"\"\n3,\n4,\"\"\n")
	b.must(object{"source": object{"type": "csv", "path": file}, "target": b.pg(object{"table": "t"}), "mode": "upsert", "key": "id"})
	want := "(1,one,1)\n(2,\"two, \"\"really\"\"\",7)\n(3,,7)\n(4,\"\",7)\n(9,old,9)"
	if diff := cmp.Diff(want, b.rows("SELECT * FROM t ORDER BY id")); diff != "" {
		t.Errorf("after upsert (-want +got):\n%s", diff)
	}
	unique := b.file("y.csv", "id,name\n5,five\n")
	b.must(object{"source": object{"type": "csv", "path": unique}, "target": b.pg(object{"table": "t"}), "mode": "replace"})
	if got := b.rows("SELECT * FROM t"); got != "(5,five,7)" {
		t.Errorf("after replace: %s", got)
	}
	if _, err := b.run(object{"source": object{"type": "csv", "path": file}, "target": b.pg(object{"table": "t"}), "mode": "upsert"}); err == nil {
		t.Error("upsert without a key runs")
	}
}

func TestAFailureLeavesTheTargetAsItWas(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int PRIMARY KEY, name text)", "INSERT INTO t VALUES (1, 'old')")
	var lines strings.Builder
	lines.WriteString("id,name\n")
	for i := range 50_000 {
		fmt.Fprintf(&lines, "%d,x\n", i+2)
	}
	broken := b.file("broken.csv", lines.String()+"oops,x\n")
	for _, mode := range []string{"append", "replace", "upsert"} {
		_, err := b.run(object{"source": object{"type": "csv", "path": broken}, "target": b.pg(object{"table": "t"}), "mode": mode, "key": "id"})
		failed(t, err, tool.KindSchema, "oops")
		if got := b.rows("SELECT * FROM t"); got != "(1,old)" {
			t.Errorf("after a failed %s: %.200s", mode, got)
		}
	}
	short := b.file("short.csv", "id,name\n2,x\n3\n")
	_, err := b.run(object{"source": object{"type": "csv", "path": short}, "target": b.pg(object{"table": "t"}), "mode": "replace"})
	failed(t, err, tool.KindParse, "line 3")
	if got := b.rows("SELECT * FROM t"); got != "(1,old)" {
		t.Errorf("after a failed source: %s", got)
	}
	out := b.file("out.csv", "id,name\n0,kept\n")
	_, err = b.run(object{"source": object{"type": "csv", "path": short}, "target": object{"type": "csv", "path": out}, "mode": "replace"})
	failed(t, err, tool.KindParse, "line 3")
	if got := b.read(out); got != "id,name\n0,kept\n" {
		t.Errorf("the file is %q", got)
	}
	if left, err := filepath.Glob(filepath.Join(b.dir, ".*part")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestChunksThatAreCommittedStay(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (100)")
	file := b.file("x.csv", "id\n1\n2\n3\n4\noops\n")
	config := object{"source": object{"type": "csv", "path": file}, "target": b.pg(object{"table": "t"}), "mode": "replace", "chunk_size": int64(2), "checkpoint": true}
	_, err := b.run(config)
	failed(t, err, tool.KindSchema, "4 rows of earlier chunks are in the target")
	if got := b.rows("SELECT count(*), min(id), max(id) FROM t"); got != "(4,1,4)" {
		t.Errorf("rows are %s", got)
	}
}

func TestFilesGrowAndAreReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.file("in.ndjson", `{"a": 1, "b": "x"}`+"\n"+`{"a": 2.5, "c": {"d": [1]}}`+"\n")
	for _, c := range []struct{ format, once, twice string }{
		{"csv", "a,b,c\n1,x,\n2.5,,\"{\"\"d\"\": [1]}\"\n", "a,b,c\n1,x,\n2.5,,\"{\"\"d\"\": [1]}\"\n1,x,\n2.5,,\"{\"\"d\"\": [1]}\"\n"},
		{"ndjson", `{"a":1,"b":"x","c":null}` + "\n" + `{"a":2.5,"b":null,"c":{"d": [1]}}` + "\n", ""},
	} {
		path := filepath.Join(b.dir, "deep", "out."+c.format)
		config := object{"source": object{"type": "ndjson", "path": rows}, "target": object{"type": c.format, "path": path}}
		b.must(config)
		if diff := cmp.Diff(c.once, b.read(path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.format, diff)
		}
		b.must(config)
		if twice := b.read(path); c.twice != "" && twice != c.twice || len(twice) <= len(c.once) {
			t.Errorf("%s after the second time: %q", c.format, twice)
		}
		config["mode"] = "replace"
		b.must(config)
		if got := b.read(path); got != c.once {
			t.Errorf("%s after replace: %q", c.format, got)
		}
	}
}

func TestARowWithAFieldThatNobodyExpectsIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rows := b.file("in.ndjson", `{"a":1}`+"\n"+`{"a":2,"late":3}`+"\n")
	config := object{"source": object{"type": "ndjson", "path": rows}, "target": object{"type": "csv", "path": filepath.Join(b.dir, "out.csv")}, "chunk_size": int64(1)}
	_, err := b.run(config)
	failed(t, err, tool.KindConfig, `"late"`)
	config["mapping"] = object{"a": "a", "x": "late"}
	b.must(config)
	if got := b.read(filepath.Join(b.dir, "out.csv")); got != "a,x\n1,\n2,3\n" {
		t.Errorf("the file is %q", got)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int)")
	csv := object{"type": "csv", "path": b.file("x.csv", "id,nope\n1,2\n")}
	list := b.file("list.json", `[{"id": 1}, 5]`)
	cut := b.file("cut.json", `[{"id": 1}, {"id"`)
	for name, c := range map[string]struct {
		config     object
		kind, says string
	}{
		"no source":       {object{"target": csv}, tool.KindConfig, "source is missing"},
		"no type":         {object{"source": object{}, "target": csv}, tool.KindConfig, "source.type"},
		"unknown":         {object{"source": object{"kind": "fax"}, "target": csv}, tool.KindConfig, "parquet, postgres, result"},
		"snowflake":       {object{"source": object{"type": "snowflake"}, "target": csv}, tool.KindConfig, "not available in this build"},
		"mode":            {object{"source": csv, "target": csv, "mode": "merge"}, tool.KindConfig, "append, replace or upsert"},
		"chunk size":      {object{"source": csv, "target": csv, "chunk_size": int64(0)}, tool.KindConfig, "chunk_size"},
		"no table":        {object{"source": csv, "target": b.pg(object{"table": "absent"})}, tool.KindNotFound, "create it first"},
		"no such column":  {object{"source": csv, "target": b.pg(object{"table": "t"})}, tool.KindConfig, `no column "nope"`},
		"no such field":   {object{"source": csv, "target": b.pg(object{"table": "t"}), "mapping": object{"id": "x"}}, tool.KindConfig, `no column "x"`},
		"no file":         {object{"source": object{"type": "csv", "path": "/nonexistent.csv"}, "target": csv}, tool.KindNotFound, "/nonexistent.csv"},
		"bad query":       {object{"source": b.pg(object{"query": "SELEC"}), "target": csv}, tool.KindClientError, "syntax"},
		"no rows":         {object{"source": b.pg(object{"query": "CREATE TEMP TABLE x ()"}), "target": csv}, tool.KindConfig, "SELECT"},
		"not an object":   {object{"source": object{"type": "json", "path": list}, "target": b.pg(object{"table": "t"})}, tool.KindParse, "row 2"},
		"cut off":         {object{"source": object{"type": "json", "path": cut}, "target": b.pg(object{"table": "t"})}, tool.KindParse, "unexpected EOF"},
		"no path to data": {object{"source": object{"type": "json", "path": list, "data_path": "a.b"}, "target": csv}, tool.KindConfig, "a.b"},
		"no reference":    {object{"source": object{"type": "result", "ref": "gone"}, "target": csv}, tool.KindMissingRef, "no such reference"},
		"not parquet":     {object{"source": object{"type": "parquet", "path": list}, "target": csv}, tool.KindParse, "no parquet file"},
	} {
		_, err := b.run(c.config)
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: error is %v, want kind %s with %q", name, err, c.kind, c.says)
		}
	}
	if got := b.rows("SELECT * FROM t"); got != "" {
		t.Errorf("rows are there: %s", got)
	}
}

func TestAServiceThatFailsMidwayLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int)")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/500" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Length", "1000000")
		fmt.Fprint(w, "id\n1\n2\n")
	}))
	t.Cleanup(server.Close)
	_, err := b.run(object{"source": object{"type": "http", "url": server.URL}, "target": b.pg(object{"table": "t"})})
	failed(t, err, tool.KindConnection, "")
	_, err = b.run(object{"source": object{"type": "http", "url": server.URL + "/500"}, "target": b.pg(object{"table": "t"})})
	failed(t, err, tool.KindServerError, "500")
	if got := b.rows("SELECT * FROM t"); got != "" {
		t.Errorf("rows are there: %s", got)
	}
}

func TestStoredRowsOfADatabaseToolAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int, j jsonb)")
	stored, err := b.kept.Put(t.Context(), tool.Blob{}, strings.NewReader(`{"columns":["id","j"],"rows":[{"id":1,"j":{"k":null}},{"id":2,"j":"s"}],"row_count":2,"command_0":{"rows":[{"id":1}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	b.must(object{"source": object{"type": "result", "ref": stored.Ref}, "target": b.pg(object{"table": "t"})})
	if got, want := b.rows("SELECT * FROM t"), "(1,\"{\"\"k\"\": null}\")\n(2,\"\"\"s\"\"\")"; got != want {
		t.Errorf("rows are %s, want %s", got, want)
	}
}

func TestNothingToCopyIsNoError(t *testing.T) {
	t.Parallel()
	b := setup(t, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
	empty := b.file("empty.json", "[]")
	data := b.must(object{"source": object{"type": "json", "path": empty}, "target": b.pg(object{"table": "t"}), "mode": "replace"})
	if data["rows_transferred"] != 0.0 || b.rows("SELECT * FROM t") != "" {
		t.Errorf("data %v, rows %s", data, b.rows("SELECT * FROM t"))
	}
	b.must(object{"source": b.pg(object{"query": "SELECT 1 AS id WHERE false"}), "target": object{"type": "csv", "path": filepath.Join(b.dir, "none.csv")}})
	if got := b.read(filepath.Join(b.dir, "none.csv")); got != "id\n" {
		t.Errorf("the file is %q", got)
	}
}
