// Package testkit gives tests real surroundings: a throw-away PostgreSQL, a
// NATS server in a process of its own, the built noetl binary. Everything it
// starts ends with the test process, however that ends. It must not know the
// product's packages, and no product code may import it.
package testkit

import (
	"errors"
	"net"
	"testing"
	"time"
)

// pollInterval is how often Eventually asks.
const pollInterval = 5 * time.Millisecond

// Eventually waits until cond holds, and fails the test when it still does not
// after timeout. It is for conditions that signal nobody, such as the state of
// another process; inside one process wait on a channel instead.
func Eventually[F func() error | func() bool](t testing.TB, cond F, timeout time.Duration) {
	t.Helper()
	if err := poll(check(cond), timeout); err != nil {
		t.Fatalf("still not so after %v: %v", timeout, err)
	}
}

func check[F func() error | func() bool](cond F) func() error {
	switch f := any(cond).(type) {
	case func() error:
		return f
	case func() bool:
		return func() error {
			if f() {
				return nil
			}
			return errors.New("the condition is false")
		}
	}
	panic("testkit: unreachable")
}

// poll calls cond until it returns nil or timeout has passed; then it returns
// the last error.
func poll(cond func() error, timeout time.Duration) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := cond()
		if err == nil {
			return nil
		}
		select {
		case <-deadline.C:
			return err
		case <-tick.C:
		}
	}
}

// FreePort is a TCP port on loopback that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
