package pipeline

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	logInMemory = 64 << 10 // bytes of output held in memory; more goes to a file
	logKept     = 10 << 20 // bytes of output kept; the rest is only counted
	logTail     = 2 << 10  // bytes of output an event shows
	streamShown = 16 << 10 // bytes of stdout and of stderr an event shows when all of it is kept elsewhere
)

// cleanLog is where tools write; secrets are taken out. It is safe for
// concurrent use.
type cleanLog struct {
	mu     sync.Mutex
	filter io.WriteCloser
}

func (c *cleanLog) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.filter.Write(p)
}

// Close passes on what was held back; more may be written afterwards.
func (c *cleanLog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.filter.Close()
}

// keptLog passes the output of a command on and keeps it for later. It is safe
// for concurrent use and never fails: output is no reason to fail a command.
type keptLog struct {
	live io.Writer

	mu    sync.Mutex
	head  bytes.Buffer
	file  *os.File // the rest of it, nil while head is enough
	kept  int64
	total int64
	lines int64
	tail  *tool.Capture
}

func newKeptLog(live io.Writer) *keptLog {
	return &keptLog{live: live, tail: tool.NewCapture(2 * logTail)}
}

func (k *keptLog) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, _ = k.live.Write(p)
	k.total += int64(len(p))
	k.lines += int64(bytes.Count(p, []byte{'\n'}))
	_, _ = k.tail.Write(p)
	k.keep(p[:min(int64(len(p)), logKept-k.kept)])
	return len(p), nil
}

func (k *keptLog) keep(p []byte) {
	if len(p) == 0 {
		return
	}
	if k.file == nil && k.head.Len()+len(p) <= logInMemory {
		k.head.Write(p)
		k.kept += int64(len(p))
		return
	}
	if k.file == nil {
		f, err := os.CreateTemp("", "noetl-log-*")
		if err != nil {
			return
		}
		_ = os.Remove(f.Name()) // it lives as long as it is open
		k.file = f
	}
	if n, err := k.file.Write(p); err == nil {
		k.kept += int64(n)
	}
}

// reader is all that was kept.
func (k *keptLog) reader() io.Reader {
	readers := []io.Reader{bytes.NewReader(k.head.Bytes())}
	if k.file != nil {
		readers = append(readers, io.NewSectionReader(k.file, 0, logKept))
	}
	return io.MultiReader(readers...)
}

func (k *keptLog) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		_ = k.file.Close()
		k.file = nil
	}
}

// logged says what the event tells of the output. It is nil when there was none,
// or when the event shows all of it as stdout and stderr anyway.
func (s *run) logged(ctx context.Context) *event.LogSummary {
	_ = s.log.Close()
	k := s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.total == 0 || k.total <= streamShown && s.showsAll() {
		return nil
	}
	out := &event.LogSummary{Bytes: k.total, Lines: k.lines, Tail: lastOf(k.tail.String(), logTail)}
	if k.total <= logTail || s.opt.Results == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	at, err := s.opt.Results.PutBlob(ctx, s.cmd.ExecutionID, event.ResultOptions{
		Name: stepOf(s.cmd) + ".log", SourceStep: stepOf(s.cmd), MediaType: "text/plain; charset=utf-8",
	}, k.reader())
	if err == nil {
		out.Ref = at.Ref
	}
	return out
}

// showsAll tells that what was printed is in the event by the last task's
// streams.
func (s *run) showsAll() bool {
	if s.last == nil || s.last.result == nil {
		return false
	}
	text := strings.ToValidUTF8(s.kept.head.String(), "\uFFFD")
	res := s.last.result
	return len(res.Stdout)+len(res.Stderr) >= len(strings.TrimSpace(text)) &&
		(strings.Contains(res.Stdout, strings.TrimSpace(text)) || strings.Contains(res.Stderr, strings.TrimSpace(text)))
}

func lastOf(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-n:], "")
}

// shown is a stream as an event shows it when all of it is kept elsewhere.
func shown(text string, logs *event.LogSummary) string {
	if logs == nil || logs.Ref == "" || len(text) <= streamShown {
		return text
	}
	c := tool.NewCapture(streamShown)
	_, _ = io.WriteString(c, text)
	return c.String()
}
