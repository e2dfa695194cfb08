package worker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	// chunkBytes and chunkEvery bound how much and how long output is collected
	// before it is sent.
	chunkBytes = 8 << 10
	chunkEvery = 200 * time.Millisecond
	// chunkQueue bounds the chunks that wait for the broker, of all commands.
	chunkQueue = 256
	// lastWait is how long the end of a command waits until its output is sent.
	lastWait = 250 * time.Millisecond
	// closeWait is how long Close waits for a sender that the broker holds up.
	closeWait = 5 * time.Second
)

// CommandOutput takes what a command prints. Write never waits.
type CommandOutput interface {
	io.Writer
	// Finish tells that the run is over; ended, that the command is, too, and
	// does not go on later.
	Finish(ended bool)
}

// Output sends what commands print to whoever watches. A broker that is slow or
// away costs output, never time: what cannot be sent is counted and left out.
type Output struct {
	logs  bus.Logs
	log   *slog.Logger
	clock func() time.Time
	queue chan queuedChunk
	ctx   context.Context // ends with Close
	stop  context.CancelFunc
	done  chan struct{}
}

// queuedChunk is a chunk on its way.
type queuedChunk struct {
	event.LogChunk
	from *commandOutput
	sent chan struct{} // closed when it is done with; nil when nobody waits for that
}

// NewOutput starts to send. Close ends it.
func NewOutput(logs bus.Logs, log *slog.Logger) *Output {
	o := &Output{logs: logs, log: log, clock: time.Now, queue: make(chan queuedChunk, chunkQueue), done: make(chan struct{})}
	if log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	o.ctx, o.stop = context.WithCancel(context.Background())
	go o.run()
	return o
}

// run is the one sender, so that chunks keep their order.
func (o *Output) run() {
	defer close(o.done)
	failing := false
	for {
		var c queuedChunk
		select {
		case c = <-o.queue:
		case <-o.ctx.Done():
			return
		}
		err := o.logs.PublishLog(o.ctx, c.LogChunk)
		if err != nil {
			c.from.lost.Add(c.Dropped + int64(len(c.Text)))
		}
		if failing != (err != nil) {
			failing = err != nil
			o.log.Log(o.ctx, levelOf(failing), "live output", "sent", !failing, "error", err)
		}
		if c.sent != nil {
			close(c.sent)
		}
	}
}

func levelOf(failing bool) slog.Level {
	if failing {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Close ends the sending; what is still queued is left out. A broker that holds
// the sender up is not waited for.
func (o *Output) Close() error {
	o.stop()
	wait := time.NewTimer(closeWait)
	defer wait.Stop()
	select {
	case <-o.done:
	case <-wait.C:
	}
	return nil
}

// For is where a command's output goes.
func (o *Output) For(cmd *event.Command) CommandOutput {
	return &commandOutput{to: o, head: event.LogChunk{
		ExecutionID: cmd.ExecutionID, EventID: cmd.EventID, CommandID: cmd.Meta.CommandID, Step: cmd.NodeName, Attempt: cmd.Meta.Attempt,
	}}
}

// commandOutput cuts what one command prints into chunks.
type commandOutput struct {
	to   *Output
	head event.LogChunk
	lost atomic.Int64 // bytes that were not sent, since the last chunk

	mu    sync.Mutex // guards what follows
	buf   []byte
	timer *time.Timer // runs while buf holds something
	sent  bool
	over  bool
}

// Write takes output; it never fails and never waits.
func (c *commandOutput) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return len(p), nil
	}
	for rest := p; len(rest) > 0; {
		n := min(len(rest), chunkBytes-len(c.buf))
		c.buf = append(c.buf, rest[:n]...)
		rest = rest[n:]
		if len(c.buf) >= chunkBytes {
			c.cut(chunkEnd(c.buf))
		}
	}
	if len(c.buf) > 0 && c.timer == nil {
		c.timer = time.AfterFunc(chunkEvery, c.tick)
	}
	return len(p), nil
}

// tick sends what has waited long enough.
func (c *commandOutput) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer = nil
	if c.over {
		return
	}
	if n := wholeRunes(c.buf); n > 0 {
		c.cut(n)
	}
	if len(c.buf) > 0 { // the rest of a character is still to come
		c.timer = time.AfterFunc(chunkEvery, c.tick)
	}
}

// cut sends the first n bytes.
func (c *commandOutput) cut(n int) {
	c.send(string(c.buf[:n]), false, nil)
	c.buf = append(c.buf[:0], c.buf[n:]...)
}

// send queues a chunk, or counts it as lost.
func (c *commandOutput) send(text string, end bool, sent chan struct{}) bool {
	chunk := c.head
	chunk.Time, chunk.Text, chunk.End = c.to.clock().UTC(), strings.ToValidUTF8(text, "\uFFFD"), end
	chunk.Dropped = c.lost.Swap(0)
	select {
	case c.to.queue <- queuedChunk{chunk, c, sent}:
		c.sent = true
		return true
	default:
		c.lost.Add(chunk.Dropped + int64(len(text)))
		return false
	}
}

// Finish sends the rest and, when the command has ended, says so. It waits a
// moment for the broker, so that whoever hears of the end finds the output.
func (c *commandOutput) Finish(ended bool) {
	sent := make(chan struct{})
	if !c.finish(ended, sent) {
		return
	}
	wait := time.NewTimer(lastWait)
	defer wait.Stop()
	select {
	case <-sent:
	case <-c.to.done:
	case <-wait.C:
	}
}

func (c *commandOutput) finish(ended bool, sent chan struct{}) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
	text := string(c.buf)
	c.buf = nil
	if text == "" && !c.sent && c.lost.Load() == 0 { // it printed nothing
		return false
	}
	return c.send(text, ended, sent)
}

// chunkEnd is where a full buffer is best cut: behind a line, else behind a
// character.
func chunkEnd(b []byte) int {
	if i := bytes.LastIndexByte(b, '\n'); i >= len(b)/2 {
		return i + 1
	}
	if n := wholeRunes(b); n > 0 {
		return n
	}
	return len(b)
}

// wholeRunes is how many bytes of b are whole characters; bytes that are none
// count as such.
func wholeRunes(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if at := len(b) - n; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}
