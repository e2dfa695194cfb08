package cli

import (
	"os"
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

// publicationFlags say whether and by whom events are published.
type publicationFlags struct {
	OutboxPublisher          string `help:"Publish events to the NATS stream noetl_events: off, internal (this server does it), or external (others claim them from /api/internal/outbox)." enum:"off,internal,external" default:"off" env:"NOETL_OUTBOX_PUBLISHER" placeholder:"WHO"`
	EventStreamRetentionSecs int64  `help:"Seconds the event stream keeps messages." default:"86400" env:"NOETL_EVENT_STREAM_RETENTION_SECS" placeholder:"N"`
	EventStreamDedupSecs     int64  `help:"Seconds within which the event stream drops a message it has." default:"300" env:"NOETL_EVENT_STREAM_DEDUP_SECS" placeholder:"N"`
}

// publicationSettings are those a deployment must not set to nothing.
var publicationSettings = []string{
	"NOETL_INTERNAL_API_TOKEN", "NOETL_OUTBOX_PUBLISHER", "NOETL_EVENT_STREAM_RETENTION_SECS", "NOETL_EVENT_STREAM_DEDUP_SECS",
}

func (f *publicationFlags) options() (node.Publication, error) {
	// A publisher that died is noticed after a minute; what it had sent and not
	// marked is sent again then, and must still be recognised.
	const leastDedup, most = 120, 10 * 365 * 24 * 60 * 60
	switch {
	case f.EventStreamDedupSecs < leastDedup || f.EventStreamDedupSecs > most:
		return node.Publication{}, invalidf("--event-stream-dedup-secs %d: want %d to %d", f.EventStreamDedupSecs, leastDedup, most)
	case f.EventStreamRetentionSecs < f.EventStreamDedupSecs || f.EventStreamRetentionSecs > most:
		return node.Publication{}, invalidf("--event-stream-retention-secs %d: want %d (the dedup window) to %d",
			f.EventStreamRetentionSecs, f.EventStreamDedupSecs, most)
	case f.OutboxPublisher == node.PublishExternal && internalToken() == "":
		return node.Publication{}, invalidf("--outbox-publisher external: set NOETL_INTERNAL_API_TOKEN too, or nobody could take the events that are kept for them")
	}
	return node.Publication{
		Publisher: f.OutboxPublisher, Retention: time.Duration(f.EventStreamRetentionSecs) * time.Second,
		Dedup: time.Duration(f.EventStreamDedupSecs) * time.Second,
	}, nil
}

// internalToken is what callers of internal routes must present; it is a secret
// and therefore no flag.
func internalToken() string { return os.Getenv("NOETL_INTERNAL_API_TOKEN") }
