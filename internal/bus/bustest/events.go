package bustest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

// EventReader waits for the first n messages of a stream of events and returns
// them with all that came beside, in the order they are stored.
type EventReader func(t *testing.T, n int) []bus.EventMessage

// RunEvents checks the stream of events of a driver. open makes an empty one
// that is not opened yet, and a way to read it; the execution of a message read
// may be left out.
func RunEvents(t *testing.T, open func(t *testing.T) (bus.EventStream, EventReader)) {
	for _, c := range []struct {
		name string
		test func(*testing.T, bus.EventStream, EventReader)
	}{
		{"events arrive as they were published and in order", eventsArrive},
		{"an event published again is stored once", eventsOnce},
		{"an event that is too large is refused and holds back its execution", eventsTooLarge},
		{"an event under a foreign subject is refused", eventsElsewhere},
		{"nothing is sent once the context has ended", eventsGiveUp},
		{"an event of the largest size arrives", eventsLargest},
		{"opening a stream again changes nothing", eventsOpenTwice},
		{"nothing to publish is published", eventsNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, read := open(t)
			openEvents(t, s)
			c.test(t, s, read)
		})
	}
	t.Run("a stream that is not open takes nothing", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		wantCodes(t, s.PublishEvents(t.Context(), []bus.EventMessage{eventMessage(1)}), event.Unavailable)
	})
}

func openEvents(t *testing.T, s bus.EventStream) {
	t.Helper()
	if err := s.OpenEvents(t.Context(), bus.EventOptions{MaxAge: 24 * time.Hour, Duplicates: 5 * time.Minute}); err != nil {
		t.Fatalf("open the stream: %v", err)
	}
}

func eventMessage(n int) bus.EventMessage {
	return bus.EventMessage{
		EventID: event.ID(2000 + n), ExecutionID: event.ID(7 + n%3), Subject: bus.EventSubject + ".step.exit",
		Payload: fmt.Appendf(nil, `{"n":%d}`, n),
	}
}

func publishEvents(t *testing.T, s bus.EventStream, messages ...bus.EventMessage) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if errs := s.PublishEvents(ctx, messages); errs != nil {
		t.Fatalf("publish: %v", errs)
	}
}

// wantCodes checks one code per message; "" stands for none.
func wantCodes(t *testing.T, errs []error, want ...event.Code) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("%d errors for %d messages: %v", len(errs), len(want), errs)
	}
	for i, err := range errs {
		if want[i] == "" && err != nil || want[i] != "" && event.CodeOf(err) != want[i] {
			t.Errorf("message %d: error %v, want code %q", i, err, want[i])
		}
	}
}

func wantEvents(t *testing.T, got []bus.EventMessage, want ...bus.EventMessage) {
	t.Helper()
	text := func(list []bus.EventMessage) []string {
		var lines []string
		for _, m := range list {
			lines = append(lines, fmt.Sprintf("%s %s %s", m.EventID, m.Subject, m.Payload))
		}
		return lines
	}
	if diff := cmp.Diff(text(want), text(got)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func eventsArrive(t *testing.T, s bus.EventStream, read EventReader) {
	many := make([]bus.EventMessage, 700) // more than may be under way at a time
	for i := range many {
		many[i] = eventMessage(i)
	}
	publishEvents(t, s, many[:600]...)
	publishEvents(t, s, many[600:]...)
	wantEvents(t, read(t, len(many)), many...)
}

func eventsOnce(t *testing.T, s bus.EventStream, read EventReader) {
	publishEvents(t, s, eventMessage(1), eventMessage(2), eventMessage(1))
	publishEvents(t, s, eventMessage(2), eventMessage(3))
	wantEvents(t, read(t, 3), eventMessage(1), eventMessage(2), eventMessage(3))
}

func eventsTooLarge(t *testing.T, s bus.EventStream, read EventReader) {
	big := eventMessage(1)
	big.Payload = []byte(strings.Repeat("x", s.MaxEvent()+64<<10))
	behind := eventMessage(4) // same execution
	wantCodes(t, s.PublishEvents(t.Context(), []bus.EventMessage{eventMessage(0), big, eventMessage(2), behind}),
		"", event.Limit, "", event.Unavailable)
	publishEvents(t, s, behind)
	wantEvents(t, read(t, 3), eventMessage(0), eventMessage(2), behind)
}

func eventsElsewhere(t *testing.T, s bus.EventStream, read EventReader) {
	bad := eventMessage(1)
	bad.Subject = "elsewhere"
	errs := s.PublishEvents(t.Context(), []bus.EventMessage{bad})
	if len(errs) != 1 || errs[0] == nil {
		t.Errorf("errors %v, want one", errs)
	}
	publishEvents(t, s, eventMessage(2))
	wantEvents(t, read(t, 1), eventMessage(2))
}

func eventsGiveUp(t *testing.T, s bus.EventStream, read EventReader) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCodes(t, s.PublishEvents(ctx, []bus.EventMessage{eventMessage(1)}), event.Unavailable)
	publishEvents(t, s, eventMessage(1)) // whether it got out or not, now it is stored once
	wantEvents(t, read(t, 1), eventMessage(1))
}

func eventsLargest(t *testing.T, s bus.EventStream, read EventReader) {
	big := eventMessage(1)
	big.Payload = []byte(strings.Repeat("x", s.MaxEvent()))
	publishEvents(t, s, big)
	wantEvents(t, read(t, 1), big)
}

func eventsOpenTwice(t *testing.T, s bus.EventStream, read EventReader) {
	publishEvents(t, s, eventMessage(1))
	openEvents(t, s)
	publishEvents(t, s, eventMessage(1), eventMessage(2))
	wantEvents(t, read(t, 2), eventMessage(1), eventMessage(2))
}

func eventsNone(t *testing.T, s bus.EventStream, read EventReader) {
	publishEvents(t, s)
	wantEvents(t, read(t, 0))
}
