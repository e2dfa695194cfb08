package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// answering is a server of the test's own.
func answering(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// authority is a certificate authority made for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue writes NAME.crt and NAME.key.
func (a *authority) issue(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(a.file(file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// TestAContextKeepsWhatTLSNeeds talks to a server whose certificate only the
// context vouches for, and is known by a certificate of its own.
func TestAContextKeepsWhatTLSNeeds(t *testing.T) {
	a := newAuthority(t)
	a.issue("server", &x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.issue("me", &x509.Certificate{Subject: pkix.Name{CommonName: "me"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	n, err := node.Start(t.Context(), node.Options{
		DataDir: t.TempDir(), InProcess: true, Relaxed: true, NoWorker: true, Listen: "127.0.0.1:0",
		Edge: node.Edge{TLS: node.TLS{Cert: a.file("server.crt"), Key: a.file("server.key"), ClientCA: a.file("ca.crt")}},
		Auth: node.Authentication{Mode: "token", CertGrants: "CN=me->viewer"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	ownConfig(t)
	t.Chdir(a.dir) // the context holds whole paths, wherever it was made
	for _, s := range []struct {
		line string
		code int
		want string
	}{
		{"list --server-url " + n.URL, ExitFailed, "certificate"},
		{"list --server-url " + strings.Replace(n.URL, "https", "http", 1), ExitInvalid, "400"},
		{"context add half --server-url " + n.URL + " --tls-cert me.crt", ExitInvalid, "needs its key"},
		{"context add ca --server-url " + n.URL + " --tls-ca me.key", ExitInvalid, "no certificate in PEM"},
		{"context add ca --server-url " + n.URL + " --tls-ca ca.crt", ExitOK, "added context ca"},
		{"list", ExitFailed, ""}, // trusted, but not known
		{"context add me --server-url " + n.URL + " --tls-ca ca.crt --tls-cert me.crt --tls-key me.key --set-current", ExitOK, "me is the current context"},
		{"list", ExitOK, "EXECUTION"},
		{"auth whoami", ExitOK, "me at " + n.URL},
		{"--context ca list", ExitFailed, ""},
		{"register " + a.file("ca.crt"), ExitFailed, "needs the role operator"},
	} {
		if code, out := noetl(t, strings.Fields(s.line)...); code != s.code || !strings.Contains(out, s.want) {
			t.Errorf("%s: code %d, want %d and %q in\n%s", s.line, code, s.code, s.want, out)
		}
	}
}

// TestAGatewayServesTheAPIElsewhere has one that forwards /noetl to a server and
// knows callers by their session.
func TestAGatewayServesTheAPIElsewhere(t *testing.T) {
	t.Parallel()
	behind, err := url.Parse(served(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.URL.Path = strings.Replace(r.In.URL.Path, "/noetl/", "/api/", 1)
		r.Out.Header.Del("X-Session-Token")
	}}
	gateway := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/noetl/") || r.Header.Get("X-Session-Token") != "abc" || r.Header.Get("Authorization") != "" {
			http.Error(w, "not here", http.StatusNotFound)
			return
		}
		proxy.ServeHTTP(w, r)
	})
	registered(t, strings.Replace(header, "name: t", "name: t, path: gateway/p", 1)+"  - {step: start, tool: {kind: noop}}\n")
	for _, s := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list", "--server-url", gateway, "--session-token", "abc"}, ExitInvalid, "404"},
		{[]string{"list", "--server-url", gateway, "--gateway"}, ExitInvalid, "404"},
		{[]string{"execute", "gateway/p", "--wait", "--server-url", gateway, "--gateway", "--session-token", "abc"}, ExitOK, "COMPLETED"},
		{[]string{"list", "--path", "gateway/", "--server-url", gateway, "--gateway", "--session-token", "abc"}, ExitOK, "gateway/p"},
	} {
		if code, out := noetl(t, s.args...); code != s.code || !strings.Contains(out, s.want) {
			t.Errorf("%v: code %d, want %d and %q in\n%s", s.args, code, s.code, s.want, out)
		}
	}
}

// TestAServerIsAskedWithSQL goes from the command line to a real PostgreSQL.
func TestAServerIsAskedWithSQL(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), InProcess: true, Relaxed: true, NoWorker: true, Listen: "127.0.0.1:0", Edge: node.Edge{Console: "write"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop() })
	dir := t.TempDir()
	fields, err := json.Marshal(map[string]string{"dsn": dsn})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"fields.json": string(fields), "q.sql": "select n, t, j\nfrom kept order by n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	query := func(args ...string) []string { return append([]string{"query", "-c", "pg"}, args...) }
	file := "@" + filepath.Join(dir, "q.sql")
	for _, s := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"credential", "put", "pg", "--type", "postgres", "--data-file", filepath.Join(dir, "fields.json")}, ExitOK, "registered"},
		{[]string{"query", "select 1"}, ExitInvalid, "--credential is missing"},
		{query(" "), ExitInvalid, "give a SQL statement"},
		{query("create table kept (n int, t text, j jsonb)"), ExitOK, "CREATE TABLE\n"},
		{query(`insert into kept values (1, E'a\nb', '{"k": [1]}'), (12, null, null)`), ExitOK, "INSERT 0 2\n"},
		{query(file), ExitOK, "n   t    j\n1   a b  {\"k\":[1]}\n12  -    -\n"},
		{query(file, "--no-headers"), ExitOK, "1   a b  {\"k\":[1]}\n12  -    -\n"},
		{query(file, "-o", "json"), ExitOK, `[{"n":1,"t":"a\nb","j":{"k":[1]}},{"n":12,"t":null,"j":null}]`},
		{query(file, "-f", "json"), ExitOK, `"n":12`},
		{query(file, "-o", "name"), ExitOK, "1\n12\n"},
		{query("select n from kept where n > 99"), ExitOK, "SELECT 0\n"},
		{query("select nothing from kept"), ExitFailed, `"nothing" does not exist`},
		{query("select 1 from pg_class a, pg_class b limit 1001"), ExitOK, "there are more rows"},
		{query("select table_name from tables limit 1", "-s", "information_schema"), ExitOK, "table_name"},
	} {
		code, out := noetl(t, append(s.args, "--server-url", n.URL)...)
		if code != s.code || !strings.Contains(out, s.want) {
			t.Errorf("%v: code %d, want %d and %q in\n%.400s", s.args, code, s.code, s.want, out)
		}
	}
	if code, out := noetl(t, "query", "-c", "pg", "select 1", "--server-url", served(t)); code == ExitOK {
		t.Errorf("a server that does not allow it: %s", out)
	}
}
