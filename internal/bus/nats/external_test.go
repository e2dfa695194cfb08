package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

func connect(t *testing.T, url string) *nats.Bus {
	t.Helper()
	b, err := nats.Connect(t.Context(), nats.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestConformanceWithAnExternalServer(t *testing.T) {
	t.Parallel()
	url := testkit.NATSProcess(t)
	n := make(chan int, 1)
	n <- 0
	bustest.Run(t, func(t *testing.T) bus.Bus {
		i := <-n
		n <- i + 1
		// One server for all, so each test has a stream of its own.
		b, err := nats.Connect(t.Context(), nats.Options{
			URL: url, Stream: fmt.Sprintf("S%d", i), Subject: fmt.Sprintf("s%d.commands", i),
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
}

func TestServersAndWorkersShareOneNATS(t *testing.T) {
	t.Parallel()
	url := testkit.NATSProcess(t)
	servers := []*nats.Bus{connect(t, url), connect(t, url)}
	workers := []bus.Subscription{
		subscribe(t, connect(t, url), 1, "shared"),
		subscribe(t, connect(t, url), 1, "shared"),
	}
	for id := range event.ID(20) {
		if err := servers[id%2].Publish(t.Context(), note(id+1)); err != nil {
			t.Fatal(err)
		}
		// The other server publishes the same command: the broker drops it.
		if err := servers[(id+1)%2].Publish(t.Context(), note(id+1)); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan event.ID, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, w := range workers {
		go func() {
			for {
				d, err := w.Next(ctx)
				if err != nil {
					return
				}
				d.Ack()
				got <- d.Notification().EventID
			}
		}()
	}
	seen := map[event.ID]int{}
	for len(seen) < 20 {
		select {
		case id := <-got:
			if seen[id]++; seen[id] > 1 {
				t.Fatalf("command %d was delivered twice", id)
			}
		case <-time.After(patience):
			t.Fatalf("only %d of 20 commands arrived", len(seen))
		}
	}
}

func TestAKilledServerIsSurvived(t *testing.T) {
	t.Parallel()
	port, store := testkit.FreePort(t), t.TempDir()
	broker := testkit.StartNATS(t, port, store)
	b := connect(t, broker.URL)
	s := subscribe(t, b, 4, "shared")
	broker.Kill()
	testkit.Eventually(t, func() bool { return !b.Connected() }, patience)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := b.Publish(ctx, note(1)); !errors.Is(err, &event.Error{Code: event.Unavailable}) {
		t.Errorf("publishing without a broker gave %v, want unavailable", err)
	}
	if err := b.PublishCancel(ctx, 7); err == nil {
		t.Error("a cancellation without a broker succeeded")
	}
	if ctx.Err() != nil {
		t.Error("publishing without a broker outlived its context")
	}

	// A new broker with an empty store: even the stream is gone.
	testkit.StartNATS(t, port, t.TempDir())
	testkit.Eventually(t, b.Connected, patience)
	testkit.Eventually(t, func() error { return b.Publish(t.Context(), note(2)) }, patience)
	if got := next(t, s).Notification().EventID; got != 2 {
		t.Errorf("received %d, want 2", got)
	}
}

func TestErrorsDoNotShowCredentials(t *testing.T) {
	t.Parallel()
	port := testkit.FreePort(t)
	for _, o := range []nats.Options{
		{URL: fmt.Sprintf("nats://user:hunter2@127.0.0.1:%d", port)},
		{URL: fmt.Sprintf("nats://hunter2@127.0.0.1:%d", port)},
		{URL: fmt.Sprintf("nats://127.0.0.1:%d,nats://u:hunter2@127.0.0.1:%d", port, port)},
		{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), User: "u", Password: "hunter2"},
		{URL: "nats://user:hunter2%zz@127.0.0.1"},
		{URL: "nats://user:hunter2@"},
		{URL: "://user:hunter2@host"},
	} {
		b, err := nats.Connect(t.Context(), o)
		if err == nil {
			b.Close()
			t.Errorf("connecting to %q succeeded", o.URL)
			continue
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, errors.Unwrap(err), err), "hunter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}

func TestARefusedPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	b := embedded(t, nats.EmbeddedOptions{Listen: "127.0.0.1:0", Token: "right"})
	_, err := nats.Connect(t.Context(), nats.Options{URL: strings.Replace(b.URL(), "://", "://hunter2@", 1)})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error is %v", err)
	}
}
