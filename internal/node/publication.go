package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// Who publishes events.
const (
	PublishOff      = "off"      // nobody: no rows are written
	PublishExternal = "external" // whoever claims them through the API
	PublishInternal = "internal" // this process
)

// Publication says whether and by whom events are published.
type Publication struct {
	Publisher string        // "" = off
	Retention time.Duration // of the event stream; 0 = 24 h
	Dedup     time.Duration // its duplicate window; 0 = 5 min
}

// outbox prepares what the control plane needs to publish events.
func (n *Node) outbox(ctx context.Context, p Publication) (control.OutboxOptions, error) {
	switch p.Publisher {
	case "", PublishOff:
		return control.OutboxOptions{}, nil
	case PublishExternal:
		return control.OutboxOptions{On: true}, nil
	case PublishInternal:
	default:
		return control.OutboxOptions{}, event.Errorf(event.Invalid, "events cannot be published by %q: want off, internal or external", p.Publisher)
	}
	stream, ok := n.bus.(bus.EventStream)
	if !ok {
		return control.OutboxOptions{}, event.Errorf(event.Invalid, "this bus carries no events: leave their publication off or to others")
	}
	err := stream.OpenEvents(ctx, bus.EventOptions{MaxAge: cmp.Or(p.Retention, 24*time.Hour), Duplicates: cmp.Or(p.Dedup, 5*time.Minute)})
	if err != nil {
		return control.OutboxOptions{}, fmt.Errorf("open the stream of events: %w", err)
	}
	return control.OutboxOptions{On: true, Stream: stream}, nil
}
