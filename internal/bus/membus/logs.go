package membus

import (
	"context"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.Logs = (*Bus)(nil)

// logs is live output in memory: the newest within the bounds.
type logs struct {
	seq    uint64
	bytes  int
	byID   map[event.ID]*execLog
	order  []event.ID    // executions by their first chunk, oldest first
	change chan struct{} // closed when there is something new
}

// execLog is the output of one execution.
type execLog struct {
	chunks []event.LogChunk
	bytes  int
}

// chunkRoom is what a chunk takes beside its text.
const chunkRoom = 200

func sizeOf(c *event.LogChunk) int { return chunkRoom + len(c.Text) }

// PublishLog keeps a chunk; the oldest make room.
func (b *Bus) PublishLog(_ context.Context, c event.LogChunk) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed()
	}
	b.logs.add(c, b.options.MaxExecutionLog, b.options.MaxLogs)
	return nil
}

func (l *logs) add(c event.LogChunk, most, total int) {
	if l.byID == nil {
		l.byID = make(map[event.ID]*execLog)
	}
	x := l.byID[c.ExecutionID]
	if x == nil {
		x = &execLog{}
		l.byID[c.ExecutionID] = x
		l.order = append(l.order, c.ExecutionID)
	}
	l.seq++
	c.Seq = l.seq
	x.chunks = append(x.chunks, c)
	x.bytes += sizeOf(&c)
	l.bytes += sizeOf(&c)
	for x.bytes > most && len(x.chunks) > 1 {
		l.dropFirst(x)
	}
	for l.bytes > total && len(l.order) > 1 { // the execution that began first goes first
		old := l.byID[l.order[0]]
		l.bytes -= old.bytes
		delete(l.byID, l.order[0])
		l.order = l.order[1:]
	}
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

func (l *logs) dropFirst(x *execLog) {
	size := sizeOf(&x.chunks[0])
	x.bytes -= size
	l.bytes -= size
	x.chunks[0] = event.LogChunk{}
	x.chunks = x.chunks[1:]
}

// after is what is kept of an execution behind a position, and how to hear of more.
func (b *Bus) logsAfter(execution event.ID, after uint64) (chunks []event.LogChunk, change <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, errClosed()
	}
	l := &b.logs
	if after > l.seq { // of a bus before this one
		after = 0
	}
	if x := l.byID[execution]; x != nil {
		for i := range x.chunks {
			if x.chunks[i].Seq > after {
				chunks = append(chunks, x.chunks[i:]...)
				break
			}
		}
	}
	if l.change == nil {
		l.change = make(chan struct{})
	}
	return chunks, l.change, nil
}

// ReadLogs calls f with what is kept.
func (b *Bus) ReadLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error {
	chunks, _, err := b.logsAfter(execution, after)
	if err != nil {
		return err
	}
	for _, c := range chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// TailLogs calls f with what is kept and what comes.
func (b *Bus) TailLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error {
	for {
		chunks, change, err := b.logsAfter(execution, after)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(c); err != nil {
				return err
			}
			after = c.Seq
		}
		if len(chunks) > 0 {
			continue
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
