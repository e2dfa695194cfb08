package bus

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// EventStream carries events to whoever follows them from outside. Unlike
// notifications they must arrive, so the caller keeps each until it was
// acknowledged and sends it again otherwise.
type EventStream interface {
	// OpenEvents makes the stream when it is missing and lets it keep messages as
	// long as o asks. A Conflict with the differences when it has other settings
	// than can be used or changed. It comes before the first PublishEvents.
	OpenEvents(ctx context.Context, o EventOptions) error
	// PublishEvents sends messages in the order given and awaits their
	// acknowledgement. It returns nil when all came, else one error per message,
	// nil for those that are stored. A Limit error is about the message itself;
	// any other about the broker. Once a message of an execution has failed, those
	// of the same execution that were not sent yet are not sent.
	PublishEvents(ctx context.Context, messages []EventMessage) []error
	// MaxEvent is how many bytes a message may hold.
	MaxEvent() int
	// Connected tells whether the broker is reachable now.
	Connected() bool
}

// EventOptions say how long the stream keeps what.
type EventOptions struct {
	MaxAge     time.Duration // of messages
	Duplicates time.Duration // for how long a message with a known id is dropped
}

// EventMessage is one event on its way out.
type EventMessage struct {
	EventID     event.ID // the id of the message, too
	ExecutionID event.ID
	Subject     string // below EventSubject
	Payload     []byte
}

// EventSubject begins the subject of every event message.
const EventSubject = "noetl.events"
