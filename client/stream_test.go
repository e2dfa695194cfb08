package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func running(id event.ID, events int) *apitest.Plane {
	p := &apitest.Plane{}
	p.Put(store.Execution{ExecutionID: id, Status: event.StatusRunning, StartedAt: apitest.Epoch}, `{}`)
	p.Append(id, make([]event.Event, events)...)
	return p
}

// breaking cuts every connection after a few frames.
func breaking(next http.Handler, writes int, connections *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Add(1)
		next.ServeHTTP(&cutter{ResponseWriter: w, left: writes}, r)
	})
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(b)
}

func TestStreamResumesAfterBrokenConnections(t *testing.T) {
	t.Parallel()
	p := running(5, 600) // more than one write of the server
	p.Append(5, event.Event{Type: event.PlaybookCompleted})
	var connections atomic.Int64
	c := dial(t, breaking(handler(p), 3, &connections))
	var seqs []int64
	err := c.Stream(t.Context(), 5, 2, func(e client.Event) error {
		seqs = append(seqs, e.Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range seqs {
		if s != int64(i)+3 {
			t.Fatalf("event %d has sequence %d", i, s)
		}
	}
	if len(seqs) != 599 || connections.Load() < 2 {
		t.Errorf("%d events over %d connections", len(seqs), connections.Load())
	}
}

func TestStreamGivesUpWhenTheServerStaysAway(t *testing.T) {
	t.Parallel()
	p := running(5, 1)
	var calls atomic.Int64
	h := handler(p)
	c := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			http.Error(w, "gone", http.StatusBadGateway)
			return
		}
		h.ServeHTTP(&cutter{ResponseWriter: w, left: 1}, r)
	}), client.WithPatience(50*time.Millisecond))
	err := c.Stream(t.Context(), 5, 0, func(client.Event) error { return nil })
	if !errors.Is(err, &client.Error{Code: client.Unavailable}) || calls.Load() < 2 {
		t.Errorf("after %d calls: %v", calls.Load(), err)
	}
}

func TestStreamReturnsTheErrorsOfOthers(t *testing.T) {
	t.Parallel()
	c := dial(t, handler(running(5, 3)))
	enough := errors.New("enough")
	var seen int
	err := c.Stream(t.Context(), 5, 0, func(client.Event) error {
		seen++
		if seen == 2 {
			return enough
		}
		return nil
	})
	if err != enough || seen != 2 {
		t.Errorf("own error: %v after %d events", err, seen)
	}
	if err := c.Stream(t.Context(), 404, 0, nil); client.CodeOf(err) != client.NotFound {
		t.Errorf("unknown execution: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Stream(ctx, 5, 0, func(e client.Event) error {
		if e.Seq == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled stream: %v", err)
	}
}

func TestWaitReturnsTheFinalStatus(t *testing.T) {
	t.Parallel()
	p := running(5, 3)
	c := dial(t, handler(p))
	done := make(chan client.Status, 1)
	go func() {
		st, err := c.Wait(t.Context(), 5)
		if err != nil {
			t.Error(err)
		}
		done <- st
	}()
	p.Append(5, event.Event{Type: event.PlaybookFailed})
	if st := <-done; st.Status != client.Failed || !st.Final() {
		t.Errorf("%+v", st)
	}
	if st, err := c.Wait(t.Context(), 5); err != nil || st.Status != client.Failed {
		t.Errorf("waiting for what has ended: %+v, %v", st, err)
	}
	if _, err := c.Wait(t.Context(), 6); client.CodeOf(err) != client.NotFound {
		t.Errorf("unknown execution: %v", err)
	}
}

func TestCancelNamesWhatItStopped(t *testing.T) {
	t.Parallel()
	c := dial(t, handler(running(5, 1)))
	a, err := c.Cancel(t.Context(), 5, client.CancelRequest{Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, client.CancelAnswer{ExecutionID: 5, Status: "cancelled", Message: "Execution cancelled", Cancelled: []client.ID{5}}, a)
	if _, err := c.Cancel(t.Context(), 5, client.CancelRequest{}); client.CodeOf(err) != client.Invalid {
		t.Errorf("second cancel: %v", err)
	}
}
