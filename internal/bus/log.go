package bus

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
)

// LogSubject begins the subject of every log chunk:
// noetl.logs.<execution>.<command event>.
const LogSubject = "noetl.logs"

// Logs carries the live output of commands to whoever watches. Chunks are kept
// for a while, within bounds; they may be lost, and nothing depends on them.
type Logs interface {
	// PublishLog sends a chunk. It does not wait for a broker that is away.
	PublishLog(ctx context.Context, c event.LogChunk) error
	// ReadLogs calls f with the chunks of an execution that are kept now and whose
	// Seq is above after, in order, and returns nil behind the last. It returns
	// f's error as it is.
	ReadLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error
	// TailLogs calls f with the chunks of an execution whose Seq is above after,
	// those that are kept first, then new ones as they come. It returns when ctx
	// ends or f returns an error, with that error.
	TailLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error
}
