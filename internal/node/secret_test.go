package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
)

func TestAnEmbeddedServerMakesItsKeyOnceAndKeepsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log strings.Builder
	begin := func() *Node {
		t.Helper()
		n, err := Start(t.Context(), Options{DataDir: dir, InProcess: true, NoWorker: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := begin()
	if _, _, err := n.secrets.Put(t.Context(), secret.Registration{Name: "a", Type: "secret", Data: []byte(`{"v":1}`)}, secret.Use{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	n = begin()
	if _, data, err := n.secrets.Open(t.Context(), "a", secret.Use{}); err != nil || string(data) != `{"v":1}` {
		t.Errorf("after a restart: %s, %v", data, err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Count(log.String(), "keep a backup") != 1 {
		t.Errorf("the log: %s", log.String())
	}
	key := filepath.Join(dir, keyFile)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	for what, content := range map[string]string{"blank": "", "short": "YWJj\n"} {
		if err := os.WriteFile(key, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, err := Start(t.Context(), Options{DataDir: dir, InProcess: true, NoWorker: true}); event.CodeOf(err) != event.Invalid {
			t.Errorf("with a %s key file: %v, %v", what, n, err)
		}
	}
}

func TestAServerOnPostgreSQLNeedsAKey(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	o := Options{DatabaseURL: "postgres://nobody@127.0.0.1:1/none?connect_timeout=1", DataDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := Start(t.Context(), o); event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), "NOETL_ENCRYPTION_KEY") {
		t.Errorf("without a key: %v", err)
	}
	o.Secrets.AllowEphemeralKey = true
	if _, err := Start(t.Context(), o); event.CodeOf(err) != event.Unavailable || !strings.Contains(log.String(), "INSECURE") {
		t.Errorf("with an ephemeral key: %v\n%s", err, log.String())
	}
}
