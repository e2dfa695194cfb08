package doctor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/doctor"
	"github.com/noetl/noetl-go/internal/event"
)

// want finds a finding of a level whose text has the words.
func want(t *testing.T, found []doctor.Finding, level doctor.Level, words string) {
	t.Helper()
	for _, f := range found {
		if f.Level == level && strings.Contains(f.What, words) {
			if level != doctor.OK && f.Remedy == "" {
				t.Errorf("%q says nothing of what to do", f.What)
			}
			return
		}
	}
	t.Errorf("no %s with %q in %+v", level, words, found)
}

type broken struct{}

func (broken) Name() string                          { return "broken" }
func (broken) Look(context.Context) []doctor.Finding { panic("oh") }

func TestAReportCountsAndSurvivesACheckThatBreaks(t *testing.T) {
	t.Parallel()
	r := doctor.Run(t.Context(), doctor.Files{Limit: func() (uint64, error) { return 1000, nil }}, broken{}, doctor.Files{Limit: func() (uint64, error) { return 1 << 20, nil }})
	if r.Healthy || r.Failures != 1 || r.Warnings != 1 || len(r.Findings) != 3 || r.Findings[1].Check != "broken" || r.Findings[0].Check != "limits" {
		t.Errorf("%+v", r)
	}
	if raw, err := json.Marshal(r); err != nil || !strings.Contains(string(raw), `"level":"warn"`) {
		t.Errorf("%s %v", raw, err)
	}
}

func TestPort(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	taken := doctor.Port{Address: ln.Addr().String(), Proc: "/proc"}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // nobody answers there
	defer cancel()
	found := taken.Look(ctx)
	want(t, found, doctor.Fail, "in use by")
	if _, err := os.Stat("/proc/net/tcp"); err == nil {
		want(t, found, doctor.Fail, "doctor.test (process ")
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, taken.Look(t.Context()), doctor.OK, "free")
	ours := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"ok"}`)) }))
	defer ours.Close()
	want(t, doctor.Port{Address: ours.Listener.Addr().String(), Proc: "/proc"}.Look(t.Context()), doctor.OK, "NoETL server")
	want(t, doctor.PublicURL{URL: ours.URL}.Look(t.Context()), doctor.OK, "answers")
	want(t, doctor.PublicURL{URL: "http://" + taken.Address}.Look(t.Context()), doctor.Warn, "nothing answers")
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	disk := func(free uint64) func(string) (uint64, uint64, error) {
		return func(string) (uint64, uint64, error) { return free, 1 << 40, nil }
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Directory{Path: dir, Disk: doctor.Disk, Database: true}.Look(t.Context()), doctor.OK, "can be written")
	want(t, doctor.Directory{Path: filepath.Join(dir, "a", "b"), Disk: disk(1 << 40)}.Look(t.Context()), doctor.OK, "does not exist yet")
	want(t, doctor.Directory{Path: dir, Disk: disk(1 << 20)}.Look(t.Context()), doctor.Fail, "only 1.0 MiB are free")
	want(t, doctor.Directory{Path: dir, Disk: disk(1 << 30)}.Look(t.Context()), doctor.Warn, "only 1.0 GiB are free")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Directory{Path: file, Disk: disk(1 << 40)}.Look(t.Context()), doctor.Fail, "not a directory")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Directory{Path: dir, Disk: disk(1 << 40), Database: true}.Look(t.Context()), doctor.Warn, "can read")
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		want(t, doctor.Directory{Path: dir, Disk: disk(1 << 40)}.Look(t.Context()), doctor.Fail, "cannot be written")
	}
}

func TestPython(t *testing.T) {
	t.Parallel()
	want(t, doctor.Python{Path: "no-such-python"}.Look(t.Context()), doctor.Warn, "no Python")
	old := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho 2.7.18 False\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Python{Path: old}.Look(t.Context()), doctor.Warn, "too old")
	if err := os.WriteFile(old, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, doctor.Python{Path: old}.Look(t.Context()), doctor.Warn, "does not start")
}

func TestExposure(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		check doctor.Exposure
		level doctor.Level
		words string
	}{
		{doctor.Exposure{Listen: "127.0.0.1:8082"}, doctor.OK, "only this machine"},
		{doctor.Exposure{Listen: "0.0.0.0:8082"}, doctor.Fail, "refuse to start"},
		{doctor.Exposure{Listen: ":8082"}, doctor.Fail, "refuse to start"},
		{doctor.Exposure{Listen: "0.0.0.0:8082", Insecure: true}, doctor.Warn, "whoever"},
		{doctor.Exposure{Listen: "0.0.0.0:8082", Auth: true}, doctor.Warn, "clear text"},
		{doctor.Exposure{Listen: "0.0.0.0:8082", Auth: true, TLS: true}, doctor.OK, "who they are"},
		{doctor.Exposure{Listen: "nonsense"}, doctor.Fail, "cannot be read"},
	} {
		want(t, x.check.Look(t.Context()), x.level, x.words)
	}
}

// certificate writes one that ends at a time, and its key.
func certificate(t *testing.T, ends time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: ends.Add(-time.Hour), NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(10 * 24 * time.Hour)
	cert, key := certificate(t, ends)
	_, other := certificate(t, ends)
	at := func(d time.Duration) func() time.Time { return func() time.Time { return ends.Add(d) } }
	want(t, doctor.TLS{Now: time.Now}.Look(t.Context()), doctor.OK, "off")
	want(t, doctor.TLS{Cert: cert, Key: key, Now: at(-30 * time.Minute)}.Look(t.Context()), doctor.Warn, "ends in 0 days")
	want(t, doctor.TLS{Cert: cert, Key: key, Now: at(time.Second)}.Look(t.Context()), doctor.Fail, "ended at")
	want(t, doctor.TLS{Cert: cert, Key: key, Now: at(-48 * time.Hour)}.Look(t.Context()), doctor.Fail, "begins at")
	want(t, doctor.TLS{Cert: cert, Key: other, Now: at(0)}.Look(t.Context()), doctor.Fail, "cannot be used")
	want(t, doctor.TLS{Cert: cert, Key: key, ClientCA: key, Now: at(-30 * time.Minute)}.Look(t.Context()), doctor.Fail, "issuers")
	want(t, doctor.TLS{ClientCA: cert, Now: at(0)}.Look(t.Context()), doctor.Fail, "has none itself")
}

func TestSkew(t *testing.T) {
	t.Parallel()
	asked := time.Now()
	answered := asked.Add(time.Second)
	for _, x := range []struct {
		theirs time.Time
		level  doctor.Level
	}{
		{asked.Add(time.Second / 2), doctor.OK},
		{asked.Add(-time.Second), doctor.OK},
		{asked.Add(-5 * time.Second), doctor.Warn},
		{answered.Add(5 * time.Second), doctor.Warn},
		{answered.Add(time.Minute), doctor.Fail},
	} {
		want(t, []doctor.Finding{doctor.Skew("database", "x", x.theirs, asked, answered)}, x.level, "clock of the database")
	}
}

type remote struct {
	health  client.Health
	workers []client.WorkerRow
	err     error
}

func (r remote) Health(context.Context) (client.Health, error) { return r.health, r.err }
func (r remote) Workers(context.Context, client.WorkerFilter) ([]client.WorkerRow, error) {
	return r.workers, nil
}

func TestARunningServer(t *testing.T) {
	t.Parallel()
	row := func(status, pools, version string) client.WorkerRow {
		return client.WorkerRow{Status: status, Labels: json.RawMessage(`{"pools":` + pools + `}`), Runtime: json.RawMessage(`{"version":"` + version + `"}`)}
	}
	server := doctor.Server{URL: "http://x", Version: "2", Pools: []string{"shared", "gpu"}, Remote: remote{
		health:  client.Health{Version: "1", Database: "down", NATS: "ok"},
		workers: []client.WorkerRow{row("ready", `["shared"]`, "1"), row("ready", `["shared"]`, "2"), row("offline", `["gpu"]`, "3")},
	}}
	found := server.Look(t.Context())
	want(t, found, doctor.Warn, "the server is version 1, this program is 2")
	want(t, found, doctor.Fail, "of its database: down")
	want(t, found, doctor.Warn, "no worker serves pool gpu")
	want(t, found, doctor.OK, "2 workers in pool shared")
	want(t, found, doctor.Warn, "different versions: 1, 2")
	server.Remote = remote{err: errors.New("connection refused")}
	want(t, server.Look(t.Context()), doctor.Fail, "connection refused")
}

type opener struct{}

func (opener) Open(aad, text string) ([]byte, error) {
	if text != aad {
		return nil, errors.New("no")
	}
	return []byte(text), nil
}

func TestKeysThatDoNotOpenWhatIsStored(t *testing.T) {
	t.Parallel()
	k := doctor.Keys{Load: func() (doctor.Opener, error) { return opener{}, nil }, Row: func(name string) string { return "row|" + name }}
	want(t, k.Look(t.Context()), doctor.OK, "valid")
	want(t, []doctor.Finding{k.Opens(map[string]string{"a": "row|a"})}, doctor.OK, "1 stored credential opened")
	want(t, []doctor.Finding{k.Opens(map[string]string{"a": "row|a", "b": "other"})}, doctor.Fail, "1 of 2 stored credentials cannot be opened with this key: b")
	k.Load = func() (doctor.Opener, error) { return nil, &event.Error{Message: "bad key", Remedy: "make a good one"} }
	want(t, k.Look(t.Context()), doctor.Fail, "bad key")
	k.Absent = func() bool { return true }
	want(t, []doctor.Finding{k.Opens(map[string]string{"a": "x"})}, doctor.Fail, "the key is gone")
}
