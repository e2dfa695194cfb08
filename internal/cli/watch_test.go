package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/noetl/noetl-go/internal/testkit"
)

// terminal is a pseudo-terminal with somebody at it.
type terminal struct {
	master, tty *os.File
	screen      vt10x.Terminal
	mu          sync.Mutex
	raw         strings.Builder
	gone        chan struct{}
}

func newTerminal(t *testing.T, cols, rows int) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, tty: tty, screen: vt10x.New(vt10x.WithSize(cols, rows)), gone: make(chan struct{})}
	term.resize(t, cols, rows)
	go func() {
		defer close(term.gone)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			term.mu.Lock()
			term.raw.Write(buf[:n])
			term.mu.Unlock()
			_, _ = term.screen.Write(buf[:n])
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = master.Close()
		<-term.gone
	})
	return term
}

func (x *terminal) resize(t *testing.T, cols, rows int) {
	t.Helper()
	if err := pty.Setsize(x.master, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	x.screen.Resize(cols, rows)
}

func (x *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := io.WriteString(x.master, keys); err != nil {
		t.Fatal(err)
	}
}

// shows waits until all texts are on the screen.
func (x *terminal) shows(t *testing.T, texts ...string) {
	t.Helper()
	testkit.Eventually(t, func() error {
		for _, want := range texts {
			if !strings.Contains(x.screen.String(), want) {
				return fmt.Errorf("no %q on\n%s", want, x.screen.String())
			}
		}
		return nil
	}, 30*time.Second)
}

func (x *terminal) output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// watching runs noetl watch at the terminal.
func (x *terminal) watching(ctx context.Context, t *testing.T, id string) <-chan int {
	t.Helper()
	code := make(chan int, 1)
	go func() {
		code <- Main(ctx, []string{"watch", id, "--server-url", served(t)}, &Env{Stdin: x.tty, Stdout: x.tty, Stderr: x.tty, Terminal: true, Width: 80})
	}()
	return code
}

// restored tells whether the terminal was given back.
func (x *terminal) restored(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() error {
		out := x.output()
		if !strings.Contains(out, "\x1b[?1049l") || !strings.Contains(out, "\x1b[?25h") || strings.LastIndex(out, "\x1b[?1049h") > strings.LastIndex(out, "\x1b[?1049l") {
			return fmt.Errorf("the terminal is not given back: %q", out)
		}
		return nil
	}, 10*time.Second)
}

// slow is a playbook whose second step runs until a file is there.
func slow(t *testing.T, path string) (release string) {
	t.Helper()
	release = filepath.Join(t.TempDir(), "go")
	registered(t, fmt.Sprintf(`apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: slow, path: %s}
workflow:
  - step: begin
    tool: {kind: noop}
    next: {arcs: [{step: hold}]}
  - step: hold
    tool: {kind: shell, command: "echo printed by the tool; until test -e %s; do sleep 0.05; done"}
`, path, release))
	return release
}

func TestWatchShowsAnExecutionLive(t *testing.T) {
	t.Parallel()
	release := slow(t, "watch/live")
	id := begun(t, "watch/live")
	x := newTerminal(t, 100, 30)
	code := x.watching(t.Context(), t, id)
	x.shows(t, "watch/live version 1  execution "+id, "RUNNING", "✓ begin", "… hold", "command.issued", "hold | printed by the tool", "q quit  c cancel")
	x.press(t, "e")
	x.shows(t, "── events", "playbook_started")
	testkit.Eventually(t, func() bool { return !strings.Contains(x.screen.String(), "── output") }, 30*time.Second)
	x.resize(t, 60, 12)
	x.shows(t, "q quit  c cancel")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.shows(t, "COMPLETED", "✓ hold")
	x.press(t, "q")
	if got := <-code; got != ExitOK {
		t.Errorf("exit code %d", got)
	}
	x.restored(t)
	testkit.Eventually(t, func() bool { return strings.Contains(x.output(), "COMPLETED in ") }, 10*time.Second)
}

func TestWatchCancelsOnlyWhenSure(t *testing.T) {
	t.Parallel()
	slow(t, "watch/cancel")
	id := begun(t, "watch/cancel")
	x := newTerminal(t, 100, 24)
	code := x.watching(t.Context(), t, id)
	x.shows(t, "… hold")
	x.press(t, "c")
	x.shows(t, "Cancel this execution? y/n")
	x.press(t, "n")
	x.shows(t, "q quit", "RUNNING")
	x.press(t, "c")
	x.shows(t, "Cancel this execution? y/n")
	x.press(t, "y")
	x.shows(t, "CANCELLED")
	x.press(t, "q")
	<-code
	x.restored(t)
}

// However it is left, the terminal is as before, and an open execution goes on.
func TestWatchIsLeftInAnyWay(t *testing.T) {
	t.Parallel()
	release := slow(t, "watch/leave")
	id := begun(t, "watch/leave")
	for name, leave := range map[string]func(*terminal, context.CancelFunc){
		"ctrl-c":  func(x *terminal, _ context.CancelFunc) { x.press(t, "\x03") },
		"sigterm": func(_ *terminal, stop context.CancelFunc) { stop() },
	} {
		ctx, stop := context.WithCancel(t.Context())
		x := newTerminal(t, 80, 24)
		code := x.watching(ctx, t, id)
		x.shows(t, "… hold")
		leave(x, stop)
		if got := <-code; got != ExitInterrupted {
			t.Errorf("%s: exit code %d, want %d", name, got, ExitInterrupted)
		}
		x.restored(t)
		testkit.Eventually(t, func() bool { return strings.Contains(x.output(), "goes on; watch it again with: noetl watch "+id) }, 10*time.Second)
		stop()
	}
	if _, out := noetl(t, "status", id, "--server-url", served(t)); !strings.Contains(out, "RUNNING") {
		t.Errorf("the execution was touched: %s", out)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := noetl(t, "watch", id, "--server-url", served(t)) // no terminal: plain lines
	if code != ExitOK || strings.Contains(out, "\x1b") || !strings.Contains(out, "✓ hold") || !strings.Contains(out, "COMPLETED in") {
		t.Errorf("without a terminal: %d\n%s", code, out)
	}
}

func TestKeysAreDecoded(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]key{
		"q": {'q'}, "\x1b[A\x1b[B": {keyUp, keyDown}, "\x03": {keyInterrupt}, "\x1b": {keyEscape}, "\x1b[5~c": {keyPageUp, 'c'}, "\x1b[1;5C": nil, "\xff": {0xfffd},
	} {
		if got := decodeKeys([]byte(in)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}
