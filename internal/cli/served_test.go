package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/node"
)

// sharing runs the tests and ends the server they share.
type sharing struct{ m *testing.M }

func (s sharing) Run() int {
	code := s.m.Run()
	if shared.stop != nil {
		shared.stop()
	}
	return code
}

// shared is one server for all tests that only add to it.
var shared struct {
	once sync.Once
	url  string
	err  error
	stop func()
}

// served is the address of the shared server. Tests use paths of their own on it.
func served(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "noetl-cli-test-")
		if err != nil {
			shared.err = err
			return
		}
		n, err := node.Start(context.Background(), node.Options{DataDir: dir, InProcess: true, Relaxed: true, Listen: "127.0.0.1:0", Slots: 4})
		if err != nil {
			shared.err = err
			return
		}
		shared.url = n.URL
		shared.stop = func() { _ = n.Stop(); _ = os.RemoveAll(dir) }
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.url
}

// registered stores a playbook at the shared server.
func registered(t *testing.T, doc string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := noetl(t, "register", file, "--server-url", served(t)); code != ExitOK {
		t.Fatalf("register: %d\n%s", code, out)
	}
}

// begun starts an execution at the shared server and returns its id.
func begun(t *testing.T, args ...string) string {
	t.Helper()
	code, out := noetl(t, append([]string{"execute", "-o", "name", "--server-url", served(t)}, args...)...)
	if code != ExitOK {
		t.Fatalf("execute: %d\n%s", code, out)
	}
	return strings.TrimSpace(regexp.MustCompile(`(?m)^\d+$`).FindString(out))
}
