// Package tooltest is the conformance suite of tools: what the contract asks of
// every kind, whatever it does. It must not know any particular tool.
package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/tool"
)

// Suite describes one tool to the conformance suite.
type Suite struct {
	// Open makes the tool and a function that closes it.
	Open func(t *testing.T) (tool.Tool, func())
	// Quick is a call that succeeds soon.
	Quick func() *tool.Call
	// Slow is a call that runs until it is stopped, and a channel that is
	// closed once it is under way. nil for tools that cannot wait.
	Slow func(t *testing.T) (*tool.Call, <-chan struct{})
	// Broken is a call with a config its author got wrong; nil if none is.
	Broken func() *tool.Call
}

// stopWithin is how soon a call must end after its context: the grace period
// of process groups and a margin for a busy machine.
const stopWithin = 10 * time.Second

// Run checks the tool. It must not run in parallel with other tests of the
// package: it counts goroutines and processes.
func Run(t *testing.T, s Suite) {
	t.Run("a quick call gives valid JSON", s.with(s.quick))
	t.Run("calls can run at the same time", s.with(s.concurrent))
	t.Run("a call does not change what it is given", s.with(s.unchanged))
	t.Run("an ended context is refused", s.with(s.endedBefore))
	if s.Broken != nil {
		t.Run("a wrong config is a config error", s.with(s.broken))
	}
	if s.Slow != nil {
		t.Run("a cancelled call ends with kind cancelled", s.with(s.cancelled))
		t.Run("a call out of time ends with kind timeout", s.with(s.timedOut))
	}
}

// with opens the tool around a check and looks for what was left behind.
func (s Suite) with(check func(t *testing.T, tl tool.Tool)) func(*testing.T) {
	return func(t *testing.T) {
		others := goleak.IgnoreCurrent()
		before := descendants(t)
		tl, closeTool := s.Open(t)
		check(t, tl)
		closeTool()
		goleak.VerifyNone(t, others)
		expectGone(t, before)
	}
}

func (s Suite) quick(t *testing.T, tl tool.Tool) {
	if tl.Kind() == "" {
		t.Error("Kind() is empty")
	}
	s.checkQuick(t, tl)
}

func (s Suite) checkQuick(t *testing.T, tl tool.Tool) {
	t.Helper()
	res, err := tl.Run(t.Context(), s.Quick())
	if err != nil {
		t.Errorf("quick call: %v", err)
		return
	}
	if res == nil || res.Data != nil && !json.Valid(res.Data) {
		t.Errorf("quick call: result %+v is not valid JSON", res)
	}
}

func (s Suite) concurrent(t *testing.T, tl tool.Tool) {
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() { s.checkQuick(t, tl) })
	}
	group.Wait()
}

func (s Suite) unchanged(t *testing.T, tl tool.Tool) {
	call := s.Quick()
	before := snapshot(t, call)
	if _, err := tl.Run(t.Context(), call); err != nil {
		t.Fatalf("quick call: %v", err)
	}
	if after := snapshot(t, call); after != before {
		t.Errorf("call changed:\nbefore %s\nafter  %s", before, after)
	}
}

func snapshot(t *testing.T, call *tool.Call) string {
	t.Helper()
	b, err := json.Marshal([]any{call.Config, call.Args, call.Variables})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (s Suite) endedBefore(t *testing.T, tl tool.Tool) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tl.Run(ctx, s.Quick())
	expectKind(t, err, tool.KindCancelled)
}

func (s Suite) broken(t *testing.T, tl tool.Tool) {
	_, err := tl.Run(t.Context(), s.Broken())
	if e := expectKind(t, err, tool.KindConfig); e != nil && e.Retryable {
		t.Error("a config error is retryable")
	}
}

func (s Suite) cancelled(t *testing.T, tl tool.Tool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	call, started := s.Slow(t)
	stopped := make(chan time.Time, 1)
	go func() {
		<-started
		stopped <- time.Now()
		cancel()
	}()
	_, err := tl.Run(ctx, call)
	expectKind(t, err, tool.KindCancelled)
	if took := time.Since(<-stopped); took > stopWithin {
		t.Errorf("took %s to end after cancel", took)
	}
}

func (s Suite) timedOut(t *testing.T, tl tool.Tool) {
	call, _ := s.Slow(t)
	call.Timeout = 300 * time.Millisecond
	start := time.Now()
	_, err := tl.Run(t.Context(), call)
	e := expectKind(t, err, tool.KindTimeout)
	if e != nil && !e.Retryable {
		t.Error("a timeout is not retryable")
	}
	if took := time.Since(start); took > stopWithin {
		t.Errorf("took %s to end after a timeout of %s", took, call.Timeout)
	}
}

func expectKind(t *testing.T, err error, kind string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Errorf("error is %T (%v), want *tool.Error of kind %s", err, err, kind)
		return nil
	}
	if e.Kind != kind || e.Message == "" {
		t.Errorf("error is kind %q %q, want kind %q with a message", e.Kind, e.Message, kind)
	}
	return e
}

// Signal is a log that tells when something is first written to it: the way a
// slow call says that it is under way.
type Signal struct {
	once    sync.Once
	written chan struct{}
}

// NewSignal makes one.
func NewSignal() *Signal { return &Signal{written: make(chan struct{})} }

// Written is closed at the first write.
func (s *Signal) Written() <-chan struct{} { return s.written }

func (s *Signal) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.written) })
	return len(p), nil
}

var _ io.Writer = (*Signal)(nil)
