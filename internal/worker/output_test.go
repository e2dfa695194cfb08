package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// watcher is a broker that remembers what it is sent.
type watcher struct {
	mu     sync.Mutex
	chunks []event.LogChunk
	gate   chan struct{} // when set, every chunk waits for it
	down   bool
}

func (w *watcher) PublishLog(ctx context.Context, c event.LogChunk) error {
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return errors.New("no broker")
	}
	w.chunks = append(w.chunks, c)
	return nil
}

func (w *watcher) ReadLogs(context.Context, event.ID, uint64, func(event.LogChunk) error) error {
	return nil
}

func (w *watcher) TailLogs(context.Context, event.ID, uint64, func(event.LogChunk) error) error {
	return nil
}

func (w *watcher) sent() []event.LogChunk {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chunks
}

func (w *watcher) text() string {
	var b strings.Builder
	for _, c := range w.sent() {
		b.WriteString(c.Text)
	}
	return b.String()
}

func withOutput(t *testing.T, w *watcher, f func(out worker.CommandOutput)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := worker.NewOutput(w, nil)
		defer o.Close()
		f(o.For(command(7)))
	})
}

func TestOutputIsSentInChunksAfterAMoment(t *testing.T) {
	w := &watcher{}
	withOutput(t, w, func(out worker.CommandOutput) {
		for _, s := range []string{"one\n", "two ", "\xc3"} { // the first half of ü
			out.Write([]byte(s))
		}
		synctest.Wait()
		if len(w.sent()) != 0 {
			t.Errorf("sent at once: %+v", w.sent())
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if got := w.text(); got != "one\ntwo " {
			t.Errorf("sent %q", got)
		}
		out.Write([]byte("\xbc!"))
		out.Finish(true)
		out.Write([]byte("too late"))
		if got := w.text(); got != "one\ntwo ü!" {
			t.Errorf("sent %q", got)
		}
		chunks := w.sent()
		last := chunks[len(chunks)-1]
		if !last.End || last.EventID != 7 || last.CommandID == "" {
			t.Errorf("the last chunk is %+v", last)
		}
	})
}

func TestALongOutputIsCutBehindLines(t *testing.T) {
	w := &watcher{}
	withOutput(t, w, func(out worker.CommandOutput) {
		line := strings.Repeat("ü", 500) + "\n"
		all := strings.Repeat(line, 20) + strings.Repeat("ü", 9000)
		for rest := []byte(all); len(rest) > 0; {
			n := min(len(rest), 777)
			out.Write(rest[:n])
			rest = rest[n:]
		}
		out.Finish(true)
		if w.text() != all {
			t.Errorf("%d bytes came of %d", len(w.text()), len(all))
		}
		for i, c := range w.sent() {
			if len(c.Text) > 8<<10 || !utf8.ValidString(c.Text) || c.Dropped != 0 {
				t.Errorf("chunk %d: %d bytes, dropped %d", i, len(c.Text), c.Dropped)
			}
		}
		if first := w.sent()[0].Text; !strings.HasSuffix(first, "\n") {
			t.Errorf("the first chunk ends in %q", first[len(first)-5:])
		}
	})
}

func TestACommandThatPrintsNothingSendsNothing(t *testing.T) {
	w := &watcher{}
	withOutput(t, w, func(out worker.CommandOutput) {
		out.Finish(true)
		if got := w.sent(); len(got) != 0 {
			t.Errorf("sent %+v", got)
		}
	})
}

func TestAParkedCommandHasNotEnded(t *testing.T) {
	w := &watcher{}
	withOutput(t, w, func(out worker.CommandOutput) {
		out.Write([]byte("x"))
		out.Finish(false)
		if got := w.sent(); len(got) != 1 || got[0].End {
			t.Errorf("sent %+v", got)
		}
	})
}

func TestABrokerThatHangsCostsOutputAndNoTime(t *testing.T) {
	w := &watcher{gate: make(chan struct{})}
	withOutput(t, w, func(out worker.CommandOutput) {
		const total = 64 << 20
		block := []byte(strings.Repeat("0123456789abcde\n", 4096))
		began := time.Now()
		for sent := 0; sent < total; sent += len(block) {
			out.Write(block)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("writing took %v", took)
		}
		close(w.gate)
		synctest.Wait()
		out.Write([]byte("the end\n"))
		out.Finish(true)
		kept, dropped := 0, int64(0)
		for _, c := range w.sent() {
			kept += len(c.Text)
			dropped += c.Dropped
		}
		if kept > 4<<20 || int64(kept)+dropped != total+8 {
			t.Errorf("%d bytes were kept and %d dropped, of %d", kept, dropped, total+8)
		}
	})
}

func TestABrokerThatIsAwayIsToldAfterwardsWhatItMissed(t *testing.T) {
	w := &watcher{down: true}
	withOutput(t, w, func(out worker.CommandOutput) {
		out.Write([]byte("lost\n"))
		time.Sleep(time.Second)
		synctest.Wait()
		w.mu.Lock()
		w.down = false
		w.mu.Unlock()
		out.Write([]byte("back\n"))
		out.Finish(true)
		if got := w.sent(); len(got) != 1 || got[0].Text != "back\n" || got[0].Dropped != 5 {
			t.Errorf("sent %+v", got)
		}
	})
}
