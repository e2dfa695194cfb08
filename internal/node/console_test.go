package node_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// console is a server that lets admins run SQL.
func console(t *testing.T, mode, dsn string) func(body string) (int, string) {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{
		DataDir: t.TempDir(), InProcess: true, NoWorker: true, Listen: "127.0.0.1:0", Edge: node.Edge{Console: mode},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	ask := func(path, body string) (int, string) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, n.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	data, err := json.Marshal(map[string]any{
		"name": "pg", "type": "postgres",
		"data": map[string]any{"dsn": dsn},
	})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ask("/api/credentials", string(data)); status != http.StatusOK {
		t.Fatalf("store the credential: %d %s", status, body)
	}
	return func(body string) (int, string) { return ask("/api/postgres/execute", body) }
}

func TestSQLFromOutsideReadsUnlessItMayWrite(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	read, write := console(t, "read", dsn), console(t, "write", dsn)
	for _, tc := range []struct {
		run    func(string) (int, string)
		body   string
		status int
		part   string
	}{
		{write, `{"credential": "pg", "query": "create table kept (n int, t text, j jsonb, at timestamptz)"}`, 200, `"status":"ok"`},
		{write, `{"credential": "pg", "query": "insert into kept values ($1, $2, $3, '2026-01-02 03:04:05+00')", "parameters": [7, "it's", {"a": [1]}]}`, 200, `INSERT 0 1`},
		{read, `{"credential": "pg", "query": "select n, t, j, n > 3 as big, null as nothing, 1.5::numeric as num from kept where n = $1", "parameters": [7]}`, 200, `{"n":7,"t":"it's","j":{"a":[1]},"big":true,"nothing":null,"num":1.5}`},
		{read, `{"credential": "pg", "query_base64": "c2VsZWN0IDEgYXMgb25l"}`, 200, `{"one":1}`},
		{read, `{"credential": "pg", "query": "delete from kept"}`, 200, `read-only`},
		{read, `{"credential": "pg", "query": "select 1; delete from kept"}`, 200, `"status":"error"`},
		{read, `{"credential": "pg", "query": "commit; delete from kept"}`, 200, `"status":"error"`},
		{read, `{"credential": "pg", "query": "set transaction read write"}`, 200, `"status":`},
		{read, `{"credential": "pg", "query": "select * from generate_series(1, 5000)"}`, 200, `"truncated":true`},
		{read, `{"credential": "pg", "query": "selekt"}`, 200, `42601`},
		{read, `{"credential": "pg", "query": "select current_schemas(false)", "schema": "pg_catalog\"; drop table kept; --"}`, 200, `"status":"ok"`},
		{read, `{"query": "select 1"}`, 422, `credential`},
		{read, `{"credential": "none", "query": "select 1"}`, 404, `none`},
		{read, `{"credential": "pg", "query": "select 1", "connection_string": "postgres://x"}`, 422, `connection_string`},
		{read, `{"credential": "pg", "query": "select count(*) as rows from kept"}`, 200, `{"rows":1}`},
	} {
		if status, body := tc.run(tc.body); status != tc.status || !strings.Contains(body, tc.part) {
			t.Errorf("%s: %d %s, want %d with %s", tc.body, status, body[:min(len(body), 300)], tc.status, tc.part)
		}
	}
}
