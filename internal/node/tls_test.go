package node_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit"
)

// authority issues certificates for tests.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	File string
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.File, _, a.cert, a.key = a.issue(name, 1, true)
	return a
}

// issue writes a certificate and its key.
func (a *authority) issue(name string, serial int64, ca bool) (certFile, keyFile string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: ca, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if !ca {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile, cert, key
}

// trusting is how a client checks the server and shows itself.
func (a *authority) trusting(t *testing.T, certFile, keyFile string) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

func TestAServerShowsAndAsksForCertificates(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	cert, key, _, _ := ours.issue("server", 2, false)
	n, err := node.Start(t.Context(), node.Options{
		DataDir: t.TempDir(), InProcess: true, NoWorker: true, Listen: "127.0.0.1:0",
		Edge: node.Edge{TLS: node.TLS{Cert: cert, Key: key, ClientCA: ours.File}},
		Auth: node.Authentication{Mode: "token", CertGrants: "CN=reader->viewer"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(n.URL, "https://") {
		t.Fatalf("address %s", n.URL)
	}
	ask := func(c *tls.Config) error {
		cl, err := client.New(n.URL, client.WithTLS(c))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		_, err = cl.Executions(t.Context(), client.ExecutionFilter{})
		return err
	}
	show := func(a *authority, name string) (certFile, keyFile string) {
		certFile, keyFile, _, _ = a.issue(name, 9, false)
		return certFile, keyFile
	}
	reader, readerKey := show(ours, "reader")
	if err := ask(ours.trusting(t, reader, readerKey)); err != nil {
		t.Errorf("a certificate that is worth something: %v", err)
	}
	stranger, strangerKey := show(ours, "stranger")
	if err := ask(ours.trusting(t, stranger, strangerKey)); err == nil {
		t.Error("a certificate that is worth nothing was enough")
	}
	if err := ask(ours.trusting(t, "", "")); err == nil {
		t.Error("no certificate was enough")
	}
	forged, forgedKey := show(theirs, "reader")
	if err := ask(ours.trusting(t, forged, forgedKey)); err == nil {
		t.Error("a certificate of another authority was enough")
	}
	if err := ask(theirs.trusting(t, reader, readerKey)); err == nil {
		t.Error("a server whose authority is unknown was trusted")
	}
	if resp, err := http.Get("http" + strings.TrimPrefix(n.URL, "https") + "/health"); err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("the server answers without TLS")
		}
	}
	ours.issue("server", 77, false) // renewed in place
	testkit.Eventually(t, func() bool {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(n.URL, "https://"), ours.trusting(t, "", ""))
		if err != nil {
			return false
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64() == 77
	}, 30*time.Second)
}

func TestHalfAnEdgeStopsTheStart(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "ours")
	cert, key, _, _ := a.issue("server", 2, false)
	for name, tc := range map[string]struct {
		edge node.Edge
		part string
	}{
		"nothing":                  {node.Edge{}, ""},
		"all of TLS":               {node.Edge{TLS: node.TLS{Cert: cert, Key: key, ClientCA: a.File}}, ""},
		"no key":                   {node.Edge{TLS: node.TLS{Cert: cert}}, "NOETL_TLS_KEY"},
		"no certificate":           {node.Edge{TLS: node.TLS{Key: key}}, "NOETL_TLS_CERT"},
		"only clients":             {node.Edge{TLS: node.TLS{ClientCA: a.File}}, "NOETL_TLS_CERT"},
		"another's key":            {node.Edge{TLS: node.TLS{Cert: a.File, Key: key}}, "NOETL_TLS_CERT"},
		"no authority in the file": {node.Edge{TLS: node.TLS{Cert: cert, Key: key, ClientCA: key}}, "NOETL_TLS_CLIENT_CA"},
		"every origin":             {node.Edge{CORSOrigins: []string{"*"}}, "NOETL_CORS_ORIGINS"},
		"an origin with a path":    {node.Edge{CORSOrigins: []string{"https://a.example/x"}}, "NOETL_CORS_ORIGINS"},
		"good origins and proxies": {node.Edge{CORSOrigins: []string{"https://a.example:8443"}, TrustedProxies: []string{"10.0.0.0/8", "::1"}, Console: "read"}, ""},
		"a proxy by name":          {node.Edge{TrustedProxies: []string{"proxy"}}, "NOETL_TRUSTED_PROXIES"},
		"a console of some kind":   {node.Edge{Console: "maybe"}, "NOETL_POSTGRES_EXECUTE"},
		"fewer than no connection": {node.Edge{MaxConnections: -1}, "NOETL_MAX_CONNECTIONS_PER_ADDRESS"},
	} {
		err := tc.edge.Check()
		if tc.part == "" && err != nil || tc.part != "" && (err == nil || !strings.Contains(err.Error(), tc.part)) {
			t.Errorf("%s: %v, want %q", name, err, tc.part)
		}
	}
}
