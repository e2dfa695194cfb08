package tool

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// OutputLimit is how much of one output stream a result keeps: half from its
// beginning and half from its end.
const OutputLimit = 1 << 20

// Capture keeps the head and the tail of a stream within a bound, so that a
// chatty action costs bounded memory and still shows how it began and ended.
// It is safe for concurrent use.
type Capture struct {
	limit int

	mu    sync.Mutex
	head  []byte
	tail  []byte // ring once full; next is its oldest byte
	next  int
	total int64
}

// NewCapture keeps at most limit bytes.
func NewCapture(limit int) *Capture { return &Capture{limit: limit} }

// Write never fails.
func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	room := min(c.limit/2-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	c.keepTail(p[room:])
	return n, nil
}

func (c *Capture) keepTail(p []byte) {
	size := c.limit - c.limit/2
	if len(p) > size {
		p = p[len(p)-size:]
		c.tail, c.next = c.tail[:0], 0
	}
	grow := min(size-len(c.tail), len(p))
	if grow > 0 {
		// The ring still grows, so its oldest byte is the first one.
		c.tail = append(c.tail, p[:grow]...)
		p = p[grow:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % len(c.tail)
		p = p[k:]
	}
}

// String is what was kept, as valid UTF-8, with a marker where bytes were
// left out.
func (c *Capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	b.Write(c.head)
	if left := c.total - int64(len(c.head)+len(c.tail)); left > 0 {
		fmt.Fprintf(&b, "\n... %d bytes left out ...\n", left)
	}
	b.Write(c.tail[c.next:])
	b.Write(c.tail[:c.next])
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// LiveLog makes one writer for several streams of an action: writes do not
// interleave, and a failing log never disturbs the action.
func LiveLog(w io.Writer) io.Writer { return &liveLog{w: w} }

type liveLog struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *liveLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(p)
	return len(p), nil
}
