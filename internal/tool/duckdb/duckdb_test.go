//go:build duckdb

package duckdb_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

func TestTheContractOfTools(t *testing.T) {
	dir := t.TempDir()
	config := func(query string) *tool.Call {
		return &tool.Call{Config: map[string]any{"query": query}, ExecutionID: "7", Log: io.Discard}
	}
	tooltest.Run(t, tooltest.Suite{
		Open: func(*testing.T) (tool.Tool, func()) {
			return duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: dir})), func() {}
		},
		Quick:  func() *tool.Call { return config("SELECT 1 AS one") },
		Broken: func() *tool.Call { return config("") },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			started := make(chan struct{})
			close(started)
			return config("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"), started
		},
	})
}

// run makes one call in a directory of its own.
func run(t *testing.T, config map[string]any) (map[string]any, error) {
	t.Helper()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
	return runWith(t, tl, &tool.Call{Config: config, ExecutionID: "42", Log: io.Discard})
}

func runWith(t *testing.T, tl tool.Tool, call *tool.Call) (map[string]any, error) {
	t.Helper()
	res, err := tl.Run(t.Context(), call)
	if err != nil {
		return nil, err
	}
	var data map[string]any
	dec := json.NewDecoder(strings.NewReader(string(res.Data)))
	dec.UseNumber()
	if err := dec.Decode(&data); err != nil {
		t.Fatalf("data %s: %v", res.Data, err)
	}
	return data, nil
}

func must(t *testing.T, data map[string]any, err error) map[string]any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func compact(t *testing.T, v any) string {
	t.Helper()
	b, err := tool.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryStatementIsReportedAndTheLastOneOnTop(t *testing.T) {
	t.Parallel()
	data, err := run(t, map[string]any{"commands": []any{
		"CREATE TABLE t (id INTEGER, name VARCHAR)",
		"INSERT INTO t VALUES (1, 'a;b'), (2, $$it's$$); -- two; rows",
		"INSERT INTO t VALUES (3, 'c') RETURNING id",
		"UPDATE t SET name = 'z' WHERE id > 1; SELECT * FROM t ORDER BY id",
	}})
	data = must(t, data, err)
	for field, want := range map[string]string{
		"columns":           `["id","name"]`,
		"rows":              `[{"id":1,"name":"a;b"},{"id":2,"name":"z"},{"id":3,"name":"z"}]`,
		"row_count":         `3`,
		"command_0":         `{"affected_rows":0,"columns":[],"row_count":0,"rows":[]}`,
		"command_1":         `{"affected_rows":2,"columns":[],"row_count":0,"rows":[]}`,
		"command_2":         `{"affected_rows":1,"columns":["id"],"row_count":1,"rows":[{"id":3}]}`,
		"command_3":         `{"affected_rows":2,"columns":[],"row_count":0,"rows":[]}`,
		"executed_commands": `5`,
	} {
		if got := compact(t, data[field]); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	if path := data["database_path"].(string); filepath.Base(path) != "duckdb_42.duckdb" {
		t.Errorf("database_path is %s", path)
	}
}

func TestValuesKeepTheirTypes(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"9223372036854775807":                     `9223372036854775807`,
		"18446744073709551615::UBIGINT":           `"18446744073709551615"`,
		"170141183460469231731687303715884105727": `"170141183460469231731687303715884105727"`,
		"42::HUGEINT":                             `42`,
		"-7::TINYINT":                             `-7`,
		"12.50::DECIMAL(10,2)":                    `12.5`,
		"0.00::DECIMAL(10,2)":                     `0`,
		"12345678901234567.89::DECIMAL(19,2)":     `"12345678901234567.89"`,
		"0.1::FLOAT":                              `0.1`,
		"2.0::DOUBLE":                             `2.0`,
		"'NaN'::DOUBLE":                           `"NaN"`,
		"'-inf'::DOUBLE":                          `"-Infinity"`,
		"NULL":                                    `null`,
		"true":                                    `true`,
		"DATE '2026-02-28'":                       `"2026-02-28"`,
		"'infinity'::DATE":                        `"infinity"`,
		"TIME '12:30:01.5'":                       `"12:30:01.5"`,
		"TIMESTAMP '2026-02-28 12:30:01.123456'":  `"2026-02-28T12:30:01.123456"`,
		"'2026-02-28 12:30:01.123456789'::TIMESTAMP_NS": `"2026-02-28T12:30:01.123456789"`,
		"'infinity'::TIMESTAMP":                         `"infinity"`,
		"TIMESTAMPTZ '2026-02-28 12:30:01+02'":          `"2026-02-28T10:30:01Z"`,
		"'12:30:01+02'::TIMETZ":                         `"12:30:01+02:00"`,
		"INTERVAL '1 month 2 days 3.5 seconds'":         `"P1M2DT3.5S"`,
		"INTERVAL '-1 second'":                          `"PT-1S"`,
		"'ab'::BLOB":                                    `"YWI="`,
		"'10101'::BIT":                                  `"10101"`,
		"'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID":  `"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"`,
		"'b'::ENUM('a','b')":                            `"b"`,
		"[1, NULL, 3]":                                  `[1,null,3]`,
		"[DATE '2026-01-02']":                           `["2026-01-02"]`,
		"{'b': 1, 'a': [TIME '01:02:03'], 'u': 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID}": `{"b":1,"a":["01:02:03"],"u":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}`,
		"MAP {'x': DATE '2026-01-02', 'a': NULL}":                                             `{"x":"2026-01-02","a":null}`,
		"MAP {1: 'x'}":        `{"1":"x"}`,
		"union_value(n := 5)": `{"n":5}`,
		"array_value(1, 2)":   `[1,2]`,
		`'{"z":1,"a":9007199254740993,"n":null}'::JSON`: `{"z":1,"a":9007199254740993,"n":null}`,
		"'a\"b\\c\n\t<é>'":                              `"a\"b\\c\n\t<é>"`,
	} {
		tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
		res, err := tl.Run(t.Context(), &tool.Call{Config: map[string]any{"query": "SELECT " + expr + " AS v", "database": ":memory:", "as_objects": false}, Log: io.Discard})
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if !strings.HasPrefix(string(res.Data), `{"columns":["v"],"rows":[[`+want+`]],`) {
			t.Errorf("%s is %s, want %s", expr, res.Data, want)
		}
	}
}

func TestParametersAreBoundByNumberNameAndMark(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query  string
		params any
		want   string
	}{
		"numbers": {"SELECT $2 AS b, $1 AS a, $2 AS c", []any{"it's", int64(9)}, `[{"a":"it's","b":9,"c":9}]`},
		"names":   {"SELECT :name AS n, 1::INT AS i", map[string]any{"name": "x; DROP TABLE y"}, `[{"i":1,"n":"x; DROP TABLE y"}]`},
		"marks":   {"SELECT ? AS a, ? AS b", []any{true, nil}, `[{"a":true,"b":null}]`},
		"lists":   {"SELECT unnest($1::INTEGER[]) AS n", []any{[]any{int64(1), int64(2)}}, `[{"n":1},{"n":2}]`},
		"objects": {"SELECT $1::JSON AS j", []any{map[string]any{"a": int64(1)}}, `[{"j":{"a":1}}]`},
		"floats":  {"SELECT $1 + 0.5 AS x", []any{1.25}, `[{"x":1.75}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := run(t, map[string]any{"query": c.query, "params": c.params})
			if got := compact(t, must(t, data, err)["rows"]); got != c.want {
				t.Errorf("rows are %s, want %s", got, c.want)
			}
		})
	}
	if _, err := run(t, map[string]any{"query": "SELECT $3", "params": []any{int64(1)}}); kindOf(err) != tool.KindConfig {
		t.Errorf("a number without a value ends with %v", err)
	}
}

func kindOf(err error) string {
	var e *tool.Error
	if !errors.As(err, &e) {
		return fmt.Sprint(err)
	}
	return e.Kind
}

func TestTwoStepsOfAnExecutionShareTheFileAndOthersDoNot(t *testing.T) {
	t.Parallel()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
	call := func(execution, query string) error {
		_, err := runWith(t, tl, &tool.Call{Config: map[string]any{"command": query}, ExecutionID: execution, Log: io.Discard})
		return err
	}
	if err := call("1", "CREATE TABLE t AS SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if err := call("1", "SELECT * FROM t"); err != nil {
		t.Errorf("the second step does not see the table: %v", err)
	}
	if err := call("2", "SELECT * FROM t"); err == nil {
		t.Error("another execution sees the table")
	}
}

func TestCallsAtTheSameTimeOnOneFileLoseNothing(t *testing.T) {
	t.Parallel()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
	call := func(query string) (map[string]any, error) {
		return runWith(t, tl, &tool.Call{Config: map[string]any{"query": query}, ExecutionID: "1", Log: io.Discard})
	}
	data, err := call("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0)")
	must(t, data, err)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := call("UPDATE t SET n = n + 1; SET threads = 1"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	data, err = call("SELECT n FROM t")
	if got := compact(t, must(t, data, err)["rows"]); got != `[{"n":8}]` {
		t.Errorf("rows are %s", got)
	}
}

func TestFailuresAreClassified(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query, kind, code, says string
	}{
		"constraint": {"CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1)", tool.KindDBConstraint, "DUCKDB_CONSTRAINT", "statement 3 of 3, line 2"},
		"syntax":     {"SELEC 1", tool.KindUnknown, "DUCKDB_PARSER", "syntax error"},
		"catalog":    {"SELECT * FROM nowhere", tool.KindUnknown, "DUCKDB_CATALOG", "nowhere"},
		"no file":    {"SELECT * FROM read_csv('/nonexistent/x.csv')", tool.KindNotFound, "DUCKDB_IO", "/nonexistent/x.csv"},
		"conversion": {"SELECT 'x'::INTEGER", tool.KindUnknown, "DUCKDB_CONVERSION", "'x'"},
		"extension":  {"LOAD httpfs", tool.KindConfig, "EXTENSION_MISSING", `"httpfs"`},
		"autoload":   {"SELECT * FROM 's3://bucket/x.parquet'", tool.KindConfig, "EXTENSION_MISSING", `"httpfs"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, map[string]any{"query": c.query})
			var e *tool.Error
			if !errors.As(err, &e) {
				t.Fatalf("error is %v", err)
			}
			if e.Kind != c.kind || e.Code != c.code || !strings.Contains(e.Message, c.says) {
				t.Errorf("error is %s %s %q, want %s %s with %q", e.Kind, e.Code, e.Message, c.kind, c.code, c.says)
			}
		})
	}
}

func TestAFailedTransactionIsRolledBack(t *testing.T) {
	t.Parallel()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
	call := func(query string) (map[string]any, error) {
		return runWith(t, tl, &tool.Call{Config: map[string]any{"query": query}, ExecutionID: "1", Log: io.Discard})
	}
	data, err := call("CREATE TABLE t (id INTEGER)")
	must(t, data, err)
	if _, err := call("BEGIN; INSERT INTO t VALUES (1); SELECT * FROM nowhere; COMMIT"); err == nil {
		t.Fatal("no error")
	}
	data, err = call("SELECT count(*) AS n FROM t")
	if got := compact(t, must(t, data, err)["rows"]); got != `[{"n":0}]` {
		t.Errorf("rows are %s", got)
	}
}

func TestFilesAreWrittenAndReadByDuckDBItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, format := range []string{"csv", "parquet", "json"} {
		file := filepath.Join(dir, "x."+format)
		data, err := run(t, map[string]any{"commands": []any{
			"COPY (SELECT range AS n, 'x' || range AS name FROM range(3)) TO '" + file + "'",
			"SELECT sum(n)::BIGINT AS total, max(name) AS last FROM '" + file + "'",
		}})
		data = must(t, data, err)
		if got := compact(t, data["rows"]); got != `[{"last":"x2","total":3}]` {
			t.Errorf("%s: rows are %s", format, got)
		}
		if got := compact(t, data["command_0"].(map[string]any)["affected_rows"]); got != "3" {
			t.Errorf("%s: affected_rows is %s", format, got)
		}
	}
}

func TestColumnsOfOneNameAreAllThere(t *testing.T) {
	t.Parallel()
	data, err := run(t, map[string]any{"query": "SELECT 1 AS id, 2 AS id, 3 AS id_2"})
	data = must(t, data, err)
	if n := len(data["rows"].([]any)[0].(map[string]any)); n != 3 {
		t.Errorf("row %v has lost a column", data["rows"])
	}
}

// shelf keeps what is stored.
type shelf struct{ text []byte }

func (s *shelf) Put(_ context.Context, _ tool.Blob, r io.Reader) (*tool.Stored, error) {
	var err error
	s.text, err = io.ReadAll(r)
	return &tool.Stored{}, err
}

func (*shelf) Open(context.Context, string, int64, int64) (io.ReadCloser, error) { return nil, nil }

func TestManyRowsAreStoredAsTheSameObject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: dir}))
	kept := &shelf{}
	call := &tool.Call{
		Config: map[string]any{"query": "SELECT range AS n, repeat('x', 400) AS t FROM range(30000)"},
		Blobs:  kept, ExecutionID: "1", Log: io.Discard,
	}
	res, err := tl.Run(t.Context(), call)
	if err != nil || res.Stored == nil || res.Data != nil {
		t.Fatalf("result %+v, %v", res, err)
	}
	var data struct {
		Rows     []struct{ N int }
		RowCount int `json:"row_count"`
		Command  struct {
			Rows []json.RawMessage
		} `json:"command_0"`
	}
	if err := json.Unmarshal(kept.text, &data); err != nil {
		t.Fatal(err)
	}
	if len(data.Rows) != 30000 || data.RowCount != 30000 || data.Rows[29999].N != 29999 || len(data.Command.Rows) != 30000 {
		t.Errorf("stored %d rows, row_count %d", len(data.Rows), data.RowCount)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tmp", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	call.Blobs = nil
	if _, err := tl.Run(t.Context(), call); kindOf(err) != tool.KindResourceLimit {
		t.Errorf("without a place for it: %v", err)
	}
}

func TestSQLComesInBase64AndAsAList(t *testing.T) {
	t.Parallel()
	data, err := run(t, map[string]any{"command_b64": base64.StdEncoding.EncodeToString([]byte("SELECT 'é' AS v"))})
	if got := compact(t, must(t, data, err)["rows"]); got != `[{"v":"é"}]` {
		t.Errorf("rows are %s", got)
	}
	for _, config := range []map[string]any{
		{"command_b64": "???"},
		{"commands": []any{int64(5)}},
		{"query": "  -- nothing\n"},
		{"query": "SELECT 1", "affinity": "worker"},
		{"query": "SELECT 1", "database": "../x.duckdb"},
		{"query": "SELECT 1", "database": "/tmp/x?y.duckdb"},
		{"query": "SELECT 1", "require_cloud_output": true},
	} {
		if _, err := run(t, config); kindOf(err) != tool.KindConfig {
			t.Errorf("%v ends with %v", config, err)
		}
	}
}

func TestOldFilesOfExecutionsAreRemovedAndOthersStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	var mu sync.Mutex
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: dir, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}))
	for id, database := range map[string]string{"1": "", "2": "", "3": "own.duckdb"} {
		if _, err := runWith(t, tl, &tool.Call{Config: map[string]any{"query": "CREATE TABLE t AS SELECT 1", "database": database}, ExecutionID: id, Log: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	now = now.Add(23 * time.Hour)
	mu.Unlock()
	data, err := runWith(t, tl, &tool.Call{Config: map[string]any{"query": "SELECT * FROM t"}, ExecutionID: "2", Log: io.Discard})
	must(t, data, err)
	mu.Lock()
	now = now.Add(2 * time.Hour)
	mu.Unlock()
	data, err = runWith(t, tl, &tool.Call{Config: map[string]any{"query": "SELECT 1", "database": ":memory:"}, Log: io.Discard})
	must(t, data, err)
	left, err := filepath.Glob(filepath.Join(dir, "*.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if diff := cmp.Diff([]string{"duckdb_2.duckdb", "own.duckdb"}, left); diff != "" {
		t.Errorf("files (-want +left):\n%s", diff)
	}
}

func TestACredentialThatNeedsAMissingExtensionIsNamedWithoutItsSecret(t *testing.T) {
	t.Parallel()
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()}))
	found := map[string]*tool.Credential{
		"bucket": {Alias: "bucket", Type: "gcs_hmac", Data: map[string]any{"key_id": "GOOG1", "secret_key": "hunter2'"}},
		"pg":     {Alias: "pg", Type: "postgres", Data: map[string]any{"db_host": "db", "db_password": "hunter2"}},
		"mail":   {Alias: "mail", Type: "smtp", Data: map[string]any{"password": "hunter2"}},
		"empty":  {Alias: "empty", Type: "aws", Data: map[string]any{"region": "eu"}},
	}
	call := func(auth any, more map[string]any) error {
		config := map[string]any{"query": "SELECT 1", "auth": auth}
		for k, v := range more {
			config[k] = v
		}
		_, err := tl.Run(t.Context(), &tool.Call{
			Config: config, ExecutionID: "1", Log: io.Discard,
			Credentials: func(_ context.Context, aliases ...string) (map[string]*tool.Credential, error) {
				return map[string]*tool.Credential{aliases[0]: found[aliases[0]]}, nil
			},
		})
		return err
	}
	for name, c := range map[string]struct {
		auth any
		says string
	}{
		"an alias":      {"bucket", `"httpfs"`},
		"a map":         {map[string]any{"gcs_secret": map[string]any{"source": "credential", "tool": "hmac", "key": "bucket", "scope": "gs://b"}}, `"gcs_secret" needs DuckDB's extension "httpfs"`},
		"a server":      {map[string]any{"pg_db": "pg"}, `"postgres"`},
		"another type":  {"mail", `type "smtp"`},
		"without a key": {"empty", "key_id"},
	} {
		err := call(c.auth, nil)
		if kindOf(err) != tool.KindConfig || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if err := call("bucket", map[string]any{"auto_secrets": false}); err != nil {
		t.Errorf("without auto_secrets: %v", err)
	}
	if err := call("", map[string]any{"auth": nil, "gcs_credential": "bucket"}); !strings.Contains(fmt.Sprint(err), "httpfs") {
		t.Errorf("gcs_credential: %v", err)
	}
}

func TestAFileInUseByAnotherProcessIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.duckdb")
	release := holdInChild(t, file)
	tl := duckdb.New(duckdb.NewFiles(duckdb.Options{Dir: dir}))
	config := map[string]any{"query": "SELECT 1", "database": file}
	_, err := runWith(t, tl, &tool.Call{Config: config, Log: io.Discard})
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != tool.KindDBConnection || !e.Retryable {
		t.Errorf("error is %v", err)
	}
	release()
	data, err := runWith(t, tl, &tool.Call{Config: config, Log: io.Discard})
	must(t, data, err)
}
