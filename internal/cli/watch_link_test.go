package cli

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// looking is a view of an execution over a connection that may break.
func looking(t *testing.T, x *terminal, id, at string) *watch {
	t.Helper()
	cl, err := client.New(at, client.WithPatience(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	detail, err := cl.Execution(t.Context(), event.ID(n))
	if err != nil {
		t.Fatal(err)
	}
	return newWatch(&Env{Stdin: x.tty, Stdout: x.tty, Stderr: x.tty, Terminal: true, Width: 80}, cl, detail)
}

func TestWatchSaysThatTheConnectionIsGoneAndComesBack(t *testing.T) {
	t.Parallel()
	release := slow(t, "watch/link")
	id := begun(t, "watch/link")
	behind, err := url.Parse(served(t))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	proxy.ErrorLog = nil
	var gone atomic.Bool
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.Error(w, "{}", http.StatusServiceUnavailable)
			return
		}
		defer func() { _ = recover() }() // a stream that breaks is what is tested
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		between.CloseClientConnections()
		between.Close()
	})
	x := newTerminal(t, 100, 30)
	w := looking(t, x, id, between.URL)
	ended := make(chan error, 1)
	go func() { ended <- w.run(t.Context(), x.tty, x.tty) }()
	x.shows(t, "… hold")
	gone.Store(true)
	between.CloseClientConnections()
	x.shows(t, "no connection, trying again")
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone.Store(false)
	x.shows(t, "COMPLETED", "✓ hold")
	testkit.Eventually(t, func() bool { return !strings.Contains(x.screen.String(), "no connection") }, processTime)
	x.press(t, "q")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	x.restored(t)
}

func TestWatchGivesTheTerminalBackWhenItPanics(t *testing.T) {
	t.Parallel()
	release := slow(t, "watch/panic")
	id := begun(t, "watch/panic")
	t.Cleanup(func() { _ = os.WriteFile(release, nil, 0o600) })
	x := newTerminal(t, 80, 24)
	before, err := term.GetState(int(x.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	w := looking(t, x, id, served(t))
	w.progress = nil // a mistake in the view
	panicked := make(chan any, 1)
	go func() {
		defer func() { panicked <- recover() }()
		_ = w.run(t.Context(), x.tty, x.tty)
	}()
	if p := <-panicked; p == nil {
		t.Fatal("it does not panic: the test tests nothing")
	}
	x.restored(t)
	after, err := term.GetState(int(x.tty.Fd()))
	if err != nil || *before != *after {
		t.Errorf("the terminal is in another mode: %v", err)
	}
	w.env.debts.mu.Lock()
	defer w.env.debts.mu.Unlock()
	if len(w.env.debts.owed) != 0 {
		t.Error("the terminal would be given back twice")
	}
}
