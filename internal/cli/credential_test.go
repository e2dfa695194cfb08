package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/node"
)

// TestCredentialsFromTheCommandLine goes the way of an operator: register,
// look, check, rotate, audit, delete. It sets the environment, so it is alone.
func TestCredentialsFromTheCommandLine(t *testing.T) {
	const token = "internal-token-of-the-test"
	n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), InProcess: true, NoWorker: true, Listen: "127.0.0.1:0", InternalToken: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pg := write("pg.yaml", "name: pg_demo\ntype: postgres\ndescription: the demo database\ntags: [demo, sql]\ndata:\n  db_host: localhost\n  db_port: 5432\n  db_password: hunter2\n")
	write("api.json", `{"name": "api", "type": "bearer", "data": {"token": "hunter2"}}`)
	fields := write("fields.txt", `{"api_key": "hunter2"}`)
	t.Setenv("NOETL_SERVER_URL", n.URL)
	for _, s := range []struct {
		token string
		line  string
		code  int
		want  []string
	}{
		{"", "register credential -f " + pg, ExitOK, []string{"registered credential pg_demo of type postgres"}},
		{"", "register credential -d " + dir, ExitOK, []string{"pg_demo", "registered credential api of type bearer"}},
		{"", "credential put mail --type api_key --data-file " + fields, ExitOK, []string{"registered credential mail"}},
		{"", "credential list", ExitOK, []string{"pg_demo", "postgres", "demo,sql", "the demo database", "mail"}},
		{"", "credential list --type bearer --json", ExitOK, []string{`"name":"api"`}},
		{"", "credential get pg_demo", ExitOK, []string{`"type":"postgres"`}},
		{"", "get credential pg_demo", ExitOK, []string{`"name":"pg_demo"`}},
		{"", "get credential nobody", ExitInvalid, []string{`there is no credential "nobody"`}},
		{"", "get credential pg_demo --include-data", ExitFailed, []string{"not shown"}},
		{"wrong", "get credential pg_demo --include-data", ExitFailed, []string{"not shown"}},
		{"", "secrets check pg_demo api", ExitOK, []string{"pg_demo: ok, type postgres, key v1, fields db_host, db_password, db_port", "api: ok"}},
		{"", "secrets check pg_demo nobody", ExitInvalid, []string{"pg_demo: ok", "nobody: there is no credential"}},
		{"", "secrets rotate", ExitFailed, []string{"internal token"}},
		{token, "secrets rotate", ExitOK, []string{"credentials: 0 brought under key v1, 3 were already, 0 failed"}},
		{token, "secrets status", ExitOK, []string{"v1 (current)", "3"}},
		{token, "secrets audit --credential pg_demo", ExitOK, []string{"create", "update", "get_credential", "denied", "api from 127.0.0.1"}},
		{token, "secrets audit --json --limit 1", ExitOK, []string{`"operation":"rotate"`, `"actor":"internal token"`}},
		{"", "credential delete api", ExitOK, []string{"deleted credential api"}},
		{"", "credential delete api", ExitInvalid, []string{`there is no credential "api"`}},
	} {
		t.Setenv("NOETL_INTERNAL_API_TOKEN", s.token)
		code, out := noetl(t, strings.Fields(s.line)...)
		if code != s.code {
			t.Errorf("%s: exit code %d, want %d\n%s", s.line, code, s.code, out)
		}
		for _, want := range s.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", s.line, want, out)
			}
		}
		if strings.Contains(out, "hunter2") {
			t.Errorf("%s shows the secret:\n%s", s.line, out)
		}
	}
	t.Setenv("NOETL_INTERNAL_API_TOKEN", token)
	if code, out := noetl(t, "get", "credential", "pg_demo", "--include-data"); code != ExitOK || !strings.Contains(out, "hunter2") {
		t.Errorf("with the token: %d\n%s", code, out)
	}
}
