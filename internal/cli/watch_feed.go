package cli

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// feed brings a view what happens. Its channels are short: who cannot draw fast
// enough makes the server wait.
type feed struct {
	w      *watch
	events chan event.Event
	logs   chan client.LogChunk
	link   chan string
	notes  chan string
	group  sync.WaitGroup
}

// follow starts to listen for events and output until the context ends.
func (w *watch) follow(ctx context.Context) *feed {
	f := &feed{w: w, events: make(chan event.Event, 64), logs: make(chan client.LogChunk, 64), link: make(chan string, 1), notes: make(chan string, 1)}
	f.group.Go(func() { f.stream(ctx) })
	f.group.Go(func() { f.listen(ctx) })
	return f
}

func (f *feed) wait() { f.group.Wait() }

// stream follows the log. The client comes back by itself after a short break;
// after a long one it is asked again, and the view says so.
func (f *feed) stream(ctx context.Context) {
	var after int64
	for {
		err := f.w.client.Stream(ctx, f.w.id, after, func(e client.Event) error {
			after = e.Seq
			select {
			case f.events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err == nil || ctx.Err() != nil {
			f.say(ctx, f.link, "")
			return
		}
		f.say(ctx, f.link, "no connection, trying again: "+oneLine(err.Error(), 120))
		if !pause(ctx, 2*time.Second) {
			return
		}
	}
}

// listen follows what the tools print. An execution without output is none to
// complain about.
func (f *feed) listen(ctx context.Context) {
	for {
		err := f.w.client.FollowLogs(ctx, f.w.id, "", func(k client.LogChunk) error {
			select {
			case f.logs <- k:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err == nil || isEnd(err) || event.CodeOf(err) != event.Unavailable || !pause(ctx, 2*time.Second) {
			return
		}
	}
}

// cancel asks the server to cancel the execution.
func (f *feed) cancel(ctx context.Context) {
	f.group.Go(func() {
		a, err := f.w.client.Cancel(ctx, f.w.id, client.CancelRequest{Reason: "cancelled from noetl watch"})
		if err != nil {
			f.say(ctx, f.notes, "not cancelled: "+err.Error())
			return
		}
		f.say(ctx, f.notes, a.Message)
	})
}

func (f *feed) say(ctx context.Context, to chan string, text string) {
	select {
	case to <- text:
	case <-ctx.Done():
	}
}

// pause waits and tells whether to go on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempts notes the tries of a step's commands.
func (w *watch) attempts(e event.Event) {
	var m struct {
		Attempt int `json:"attempt"`
	}
	_ = json.Unmarshal(e.Meta, &m) // events without one are the first
	if e.NodeName != "" && m.Attempt > max(1, w.tries[e.NodeName]) {
		w.tries[e.NodeName] = m.Attempt
	}
}

// tail keeps the last lines of a text.
type tail struct {
	lines []string
	open  string
}

// keptLines is how many lines a pane can show at most.
const keptLines = 500

func newTail() *tail { return &tail{} }

func (t *tail) add(line string) {
	t.lines = append(t.lines, printable(line))
	if len(t.lines) > 2*keptLines {
		t.lines = append(t.lines[:0], t.lines[len(t.lines)-keptLines:]...)
	}
}

// Write takes whole lines.
func (t *tail) Write(p []byte) (int, error) {
	t.open += string(p)
	for {
		line, rest, ok := cutLine(t.open)
		if !ok {
			return len(p), nil
		}
		t.add(line)
		t.open = rest
	}
}

func cutLine(s string) (line, rest string, ok bool) {
	for i := range len(s) {
		if s[i] == '\n' {
			return s[:i], s[i+1:], true
		}
	}
	return "", s, false
}

// last are the last n lines.
func (t *tail) last(n int) []string {
	return t.lines[max(0, len(t.lines)-max(n, 0)):]
}
