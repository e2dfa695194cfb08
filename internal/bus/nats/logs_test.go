package nats_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
)

func TestLogConformance(t *testing.T) {
	t.Parallel()
	bustest.RunLogs(t, func(t *testing.T) bus.Logs { return embedded(t, nats.EmbeddedOptions{}) })
}

func TestTheStreamOfOutputHasBounds(t *testing.T) {
	t.Parallel()
	_, js := listening(t)
	stream, err := js.Stream(t.Context(), nats.LogStreamName)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.MaxAge != 24*time.Hour || c.MaxBytes <= 0 || c.MaxMsgsPerSubject <= 0 || c.Discard != jetstream.DiscardOld || c.Storage != jetstream.FileStorage {
		t.Errorf("settings %+v", c)
	}
}

func TestATailOutlastsTheStream(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := make(chan string, 8)
	done := make(chan error, 1)
	go func() {
		done <- b.TailLogs(ctx, 7, 0, func(c event.LogChunk) error { got <- c.Text; return nil })
	}()
	send := func(text string) {
		if err := b.PublishLog(ctx, event.LogChunk{ExecutionID: 7, EventID: 1, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	if text := <-got; text != "before" {
		t.Fatalf("got %q", text)
	}
	if err := js.DeleteStream(ctx, nats.LogStreamName); err != nil {
		t.Fatal(err)
	}
	for again := time.NewTicker(100 * time.Millisecond); ; { // until the tail has made the stream again
		send("after")
		select {
		case text := <-got:
			if text != "after" {
				t.Fatalf("got %q", text)
			}
			again.Stop()
			cancel()
			<-done
			return
		case <-again.C:
		case <-ctx.Done():
			t.Fatal("nothing came after the stream was lost")
		}
	}
}
