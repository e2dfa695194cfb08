package nats_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
)

func TestEventConformance(t *testing.T) {
	t.Parallel()
	bustest.RunEvents(t, func(t *testing.T) (bus.EventStream, bustest.EventReader) {
		b, js := listening(t)
		return b, func(t *testing.T, n int) []bus.EventMessage { return storedEvents(t, js, n) }
	})
}

// storedEvents reads the stream from its beginning until it has seen at least n
// messages and all there are.
func storedEvents(t *testing.T, js jetstream.JetStream, n int) []bus.EventMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := js.Stream(ctx, "noetl_events")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if int(info.State.Msgs) < n {
		t.Fatalf("%d messages are stored, want %d", info.State.Msgs, n)
	}
	var got []bus.EventMessage
	for seq := info.State.FirstSeq; seq != 0 && seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		id, err := event.ParseID(m.Header.Get("Nats-Msg-Id"))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, bus.EventMessage{EventID: id, Subject: m.Subject, Payload: m.Data})
	}
	return got
}

var day = bus.EventOptions{MaxAge: 24 * time.Hour, Duplicates: 5 * time.Minute}

func TestTheStreamOfEventsIsMadeAsAsked(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if err := b.OpenEvents(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), nats.EventStreamName)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage || c.MaxAge != day.MaxAge ||
		c.Duplicates != day.Duplicates || len(c.Subjects) != 1 || c.Subjects[0] != "noetl.events.>" {
		t.Errorf("the stream is %+v", c)
	}
}

func TestAnExistingStreamOfEventsIsWidenedButNeverNarrowed(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: nats.EventStreamName, Subjects: []string{"noetl.events.*", "others.x"}, MaxAge: 48 * time.Hour, Duplicates: time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.OpenEvents(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), nats.EventStreamName)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.MaxAge != 48*time.Hour || c.Duplicates != day.Duplicates || strings.Join(c.Subjects, " ") != "others.x noetl.events.>" {
		t.Errorf("the stream is %+v", c)
	}
}

func TestAStreamOfEventsThatCannotBeUsedIsRefusedWithTheDifferences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config jetstream.StreamConfig
		want   []string
	}{
		"work queue in memory": {
			jetstream.StreamConfig{Name: nats.EventStreamName, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage},
			[]string{"retention is WorkQueue, must be Limits", "storage is Memory, must be File", "nats stream edit noetl_events"},
		},
		"another stream has the subjects": {
			jetstream.StreamConfig{Name: "NOETL_EVENTS"},
			[]string{"another NATS stream than noetl_events", "nats stream ls"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, js := listening(t)
			c.config.Subjects = []string{"noetl.events.>"}
			if _, err := js.CreateStream(t.Context(), c.config); err != nil {
				t.Fatal(err)
			}
			err := b.OpenEvents(t.Context(), day)
			if event.CodeOf(err) != event.Conflict {
				t.Fatalf("error %v, want a conflict", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestALostStreamOfEventsIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if err := b.OpenEvents(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), nats.EventStreamName); err != nil {
		t.Fatal(err)
	}
	m := bus.EventMessage{EventID: 5, ExecutionID: 1, Subject: "noetl.events.step.exit", Payload: []byte(`{}`)}
	if errs := b.PublishEvents(t.Context(), []bus.EventMessage{m}); errs != nil {
		t.Fatal(errs)
	}
	if got := storedEvents(t, js, 1); len(got) != 1 || got[0].EventID != 5 {
		t.Errorf("stored %+v", got)
	}
}
