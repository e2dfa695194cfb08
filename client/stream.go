package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	// silence is how long a stream may be quiet: the server sends something
	// every 15 s, so after three of those it is gone.
	silence    = 45 * time.Second
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	maxLine    = 64 << 20
)

// Stream calls f for each event of an execution with a sequence above after,
// in order and exactly once, until the execution has ended; then it returns
// nil. A broken connection is opened again where it broke. Stream returns f's
// error as it is, NotFound for an unknown execution, and Unavailable when the
// server could not be reached at first or for too long.
func (c *Client) Stream(ctx context.Context, id ID, after int64, f func(Event) error) error {
	s := &stream{client: c, id: id, path: executionPath(id, "/stream"), after: after, f: f}
	s.frame = s.dispatch
	return s.follow(ctx)
}

// follow connects until the stream has ended.
func (s *stream) follow(ctx context.Context) error {
	pause := firstPause
	for {
		ended, err := s.connect(ctx)
		if ended || err != nil && !s.worthRetrying(ctx, err) {
			return err
		}
		if s.progress {
			pause = firstPause
		}
		if err := wait(ctx, pause/2+rand.N(pause)); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// Wait follows an execution to its end and returns its final status.
func (c *Client) Wait(ctx context.Context, id ID) (Status, error) {
	st, err := c.Status(ctx, id)
	if err != nil || st.Final() {
		return st, err
	}
	if err := c.Stream(ctx, id, st.LastSeq, func(Event) error { return nil }); err != nil {
		return st, err
	}
	return c.Status(ctx, id)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return unreachable(ctx.Err())
	}
}

// stream is one following of a log across connections.
type stream struct {
	client   *Client
	id       ID
	after    int64
	path     string
	f        func(Event) error
	frame    func(*frame) (ended bool, err error) // what becomes of a complete frame
	opened   func()                               // called with every connection; may be nil
	contact  time.Time                            // when the last connection broke
	progress bool                                 // whether the last connection got anything through
	own      error                                // what f returned
}

// worthRetrying tells a broken connection from an answer that will not change.
// One that worked is always followed by another try, whatever the patience.
func (s *stream) worthRetrying(ctx context.Context, err error) bool {
	if s.own != nil || ctx.Err() != nil || event.CodeOf(err) != event.Unavailable {
		return false
	}
	return s.progress || !s.contact.IsZero() && time.Since(s.contact) < s.client.patience
}

// connect follows the log over one connection. It returns true when the log
// has ended or f refused an event.
func (s *stream) connect(ctx context.Context) (ended bool, err error) {
	s.progress = false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	req, err := s.client.request(ctx, http.MethodGet, s.path, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(s.after, 10))
	resp, err := s.client.http.Do(req)
	if err != nil {
		return false, unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return false, refused(resp, body)
	}
	if s.opened != nil {
		s.opened()
	}
	// Patience starts to run out when the connection breaks, however long ago
	// the last word of a quiet server is.
	defer func() { s.contact = time.Now() }()
	return s.read(resp.Body, watchdog)
}

// frame is a server-sent event being collected.
type frame struct {
	id, name string
	data     []byte
}

func (s *stream) read(body io.Reader, watchdog *time.Timer) (ended bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var fr frame
	for lines.Scan() {
		watchdog.Reset(silence)
		s.progress = true
		if line := lines.Bytes(); len(line) > 0 {
			fr.add(line)
			continue
		}
		if ended, err := s.frame(&fr); ended || err != nil {
			return ended, err
		}
		fr = frame{data: fr.data[:0]}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return false, event.Errorf(event.Limit, "an event of execution %d is larger than %d bytes", s.id, maxLine)
	} else if err != nil {
		return false, unreachable(err)
	}
	return false, nil // the server closed the stream: come back
}

// add takes one line; comments and unknown fields are skipped.
func (fr *frame) add(line []byte) {
	name, v, _ := bytes.Cut(line, []byte(":"))
	v = bytes.TrimPrefix(v, []byte(" "))
	switch string(name) {
	case "id":
		fr.id = string(v)
	case "event":
		fr.name = string(v)
	case "data":
		if len(fr.data) > 0 {
			fr.data = append(fr.data, '\n')
		}
		fr.data = append(fr.data, v...)
	}
}

// dispatch handles a complete frame. Only frames with an id are events; the
// one named end is the server's word that there will be no more.
func (s *stream) dispatch(fr *frame) (ended bool, err error) {
	if fr.id == "" {
		return fr.name == "end", nil
	}
	var w wireEvent
	if err := json.Unmarshal(fr.data, &w); err != nil {
		return false, event.Errorf(event.Internal, "event %s of execution %d is not readable: %w", fr.id, s.id, err)
	}
	if w.Seq <= s.after {
		return false, nil
	}
	s.after = w.Seq
	if s.own = s.f(w.event()); s.own != nil {
		return true, s.own
	}
	return false, nil
}
