package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/testkit"
)

// processTime bounds what a process of a test may take.
const processTime = time.Minute

// launched starts the program itself in a directory of its own.
func launched(t *testing.T, dir string, args ...string) *testkit.Process {
	t.Helper()
	path, err := exec.LookPath("noetl") // which the scripts run too
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Start(t, testkit.Command{Path: path, Args: args, Dir: dir, Env: []string{"XDG_CACHE_HOME=" + dir, "NOETL_ENCRYPTION_KEY=" + testkit.EncryptionKey}})
}

// typed runs a command line in the same directory to its end.
func typed(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	p := launched(t, dir, args...)
	err := p.Wait(processTime)
	return codeOf(t, err), p.Output()
}

func codeOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return ExitOK
	}
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return ended.ExitCode()
}

// serving starts a server and waits until it serves.
func serving(t *testing.T, dir string, more ...string) (p *testkit.Process, url string) {
	t.Helper()
	p = launched(t, dir, append([]string{"server", "start", "--listen", "127.0.0.1:0"}, more...)...)
	line := p.WaitOutput("noetl dev: ", processTime)
	url, _, _ = strings.Cut(line, " ")
	return p, url
}

func TestServersAndWorkersAreStoppedByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nats := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	server, url := serving(t, dir, "--no-worker", "--nats-listen", nats)
	worker := func(id string) *testkit.Process {
		p := launched(t, dir, "worker", "start", "--id", id, "--nats-url", "nats://"+nats, "--server-url", url, "--spool-dir", "off")
		p.WaitOutput("noetl worker "+id, processTime)
		testkit.Eventually(t, func() error { _, err := os.Stat(filepath.Join(dir, "noetl", "run", "worker-"+id+".pid")); return err }, processTime)
		return p
	}
	one, two := worker("one"), worker("two.x")
	for _, s := range []struct {
		line string
		code int
		want string
		ends *testkit.Process
		how  int
	}{
		{"worker stop", ExitInvalid, "several workers run here", nil, 0},
		{"worker stop -n nobody", ExitInvalid, "no worker nobody runs here", nil, 0},
		{"worker stop -n one", ExitOK, "stopped worker one (process ", one, ExitOK},
		{"worker stop --force", ExitOK, "stopped worker two.x (process ", two, -1},
		{"worker stop", ExitInvalid, "no worker of this user runs here", nil, 0},
		{"server stop --data-dir elsewhere", ExitInvalid, "no server runs here", nil, 0},
		{"server stop", ExitOK, "stopped server (process ", server, ExitOK},
		{"server stop", ExitInvalid, "no server runs here", nil, 0},
	} {
		code, out := typed(t, dir, strings.Fields(s.line)...)
		if code != s.code || !strings.Contains(out, s.want) {
			t.Fatalf("%s: code %d, want %d and %q in\n%s", s.line, code, s.code, s.want, out)
		}
		if s.ends == nil {
			continue
		}
		if got := codeOf(t, s.ends.Wait(processTime)); got != s.how {
			t.Errorf("%s: the process ended with %d, want %d", s.line, got, s.how)
		}
	}
}

// held has a server run a command until the test ends; release lets it go.
func held(t *testing.T, dir, url string) {
	t.Helper()
	release, begun := filepath.Join(dir, "release"), filepath.Join(dir, "begun")
	t.Cleanup(func() { _ = os.WriteFile(release, nil, 0o600) })
	doc := fmt.Sprintf(header+"  - {step: start, tool: {kind: shell, command: \"touch %s; until test -e %s; do sleep 0.05; done\"}}\n", begun, release)
	file := filepath.Join(dir, "held.yaml")
	if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := noetl(t, "register", file, "--server-url", url); code != ExitOK {
		t.Fatalf("register: %d\n%s", code, out)
	}
	if code, out := noetl(t, "execute", "t", "--server-url", url); code != ExitOK {
		t.Fatalf("execute: %d\n%s", code, out)
	}
	testkit.Eventually(t, func() error { _, err := os.Stat(begun); return err }, processTime)
}

// TestASecondInterruptionEndsAServerAtOnce has one that would wait for a command
// that does not end. Its database and process id are good for the next one.
func TestASecondInterruptionEndsAServerAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, url := serving(t, dir)
	held(t, dir, url)
	interrupt := func() { _ = syscall.Kill(server.PID(), syscall.SIGINT) }
	interrupt()
	server.WaitOutput("stopping: ", processTime)
	testkit.Eventually(t, func() bool {
		select {
		case <-server.Done():
			return true
		default:
			interrupt() // one that comes too soon counts as the same
			return false
		}
	}, processTime)
	if code := codeOf(t, server.Wait(processTime)); code != ExitInterrupted {
		t.Errorf("exit code %d, want %d", code, ExitInterrupted)
	}
	again, _ := serving(t, dir, "--no-worker")
	if code, out := typed(t, dir, "server", "stop", "-f"); code != ExitOK {
		t.Errorf("stop: %d\n%s", code, out)
	}
	if code := codeOf(t, again.Wait(processTime)); code != -1 {
		t.Errorf("a server that is killed: exit code %d", code)
	}
}

func TestAnInterruptedRequestEndsWithItsOwnCode(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 8)
	url := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-asked
		interrupt()
	}()
	var out strings.Builder
	if code := Main(ctx, []string{"status", "5", "--server-url", url}, &Env{Stdout: &out, Stderr: &out}); code != ExitInterrupted || out.String() != "" {
		t.Errorf("code %d, want %d and nothing but\n%s", code, ExitInterrupted, out.String())
	}
}

func TestWhatIsOwedIsDoneLatestFirst(t *testing.T) {
	t.Parallel()
	env, done := &Env{}, ""
	owe := func(name string) func() {
		return env.owe(func() error { done += name; return errors.New("not heard") })
	}
	owe("a")
	paid := owe("b")
	owe("c")
	paid()
	env.settle()
	if done != "ca" {
		t.Errorf("done: %q", done)
	}
	if env.hurried() {
		t.Error("it hurries with nothing to hurry")
	}
	env.onHurry(func() { done = "hurry" })
	if !env.hurried() || done != "hurry" || env.hurried() {
		t.Errorf("hurried: %q", done)
	}
}
