package testkit

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

// NATSProcess is the URL of a NATS server with JetStream that runs in a
// process of its own until the test ends.
func NATSProcess(t testing.TB) (url string) {
	t.Helper()
	return StartNATS(t, 0, t.TempDir()).URL
}

// NATS is a NATS server in a process of its own.
type NATS struct {
	*Process
	URL   string
	stdin io.Closer
}

// StartNATS starts a server on a port (0: any) of loopback with its streams in
// store. A server that is started again with the same port and store takes the
// place of one that was killed.
func StartNATS(t testing.TB, port int, store string) *NATS {
	t.Helper()
	args := []string{"-port", strconv.Itoa(port), "-store", store}
	p, stdin := startWithInput(t, Command{Path: built(t, buildNATS), Args: args})
	url := strings.TrimSpace(p.WaitOutput("url:", 20*time.Second))
	return &NATS{Process: p, URL: url, stdin: stdin}
}

// Stop ends the server in good order and waits for that.
func (n *NATS) Stop() {
	n.t.Helper()
	n.stdin.Close()
	if err := n.Wait(20 * time.Second); err != nil {
		n.t.Errorf("stop NATS: %v", err)
	}
}
