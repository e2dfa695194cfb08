package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// pollEvery finds events other replicas append; local ones wake the stream.
	pollEvery = 500 * time.Millisecond
	// beatEvery keeps proxies from closing a quiet stream.
	beatEvery = 15 * time.Second
	// writeWait is how long a client may take to accept a write before it is dropped.
	writeWait   = 10 * time.Second
	streamChunk = 256
	frameBytes  = 64 << 10 // sent as soon as this much is collected
)

// stream sends the log of an execution from a position on and ends behind its
// terminal event. Each client has its own goroutine, cursor and write deadline,
// so a slow one delays nobody and is dropped.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	after, err := resumeAt(r)
	if err != nil {
		return err
	}
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return event.Errorf(event.Unavailable, "too many event streams are open")
	}
	wake, stop := s.opt.Plane.Watch(x.ExecutionID)
	defer stop()
	t := &tail{server: s, id: x.ExecutionID, after: after, final: event.IsFinal(x.Status), w: w, rc: http.NewResponseController(w)}
	if !t.open(r.Method) {
		return nil
	}
	if err := t.run(r.Context(), wake); err != nil && r.Context().Err() == nil {
		s.opt.Logger.Debug("event stream dropped", "execution_id", x.ExecutionID, "seq", t.after, "error", err)
	}
	return nil
}

// resumeAt is the sequence the client has already seen. The header, which
// browsers send when they reconnect, is newer than the address.
func resumeAt(r *http.Request) (int64, error) {
	if h := r.Header.Get("Last-Event-ID"); h != "" {
		n, err := strconv.ParseInt(h, 10, 64)
		if err != nil || n < 0 {
			return 0, event.Errorf(event.Invalid, "Last-Event-ID: want a sequence number, got %q", h)
		}
		return n, nil
	}
	q := queryOf(r)
	return q.number("after", 0, 0, 1<<62), q.err
}

// tail is one open stream.
type tail struct {
	server *Server
	id     event.ID
	after  int64 // sequence of the last event sent
	final  bool  // the log holds its terminal event
	w      io.Writer
	rc     *http.ResponseController
	buf    []byte
}

// open sends the header; it is false when there is nothing to stream to.
func (t *tail) open(method string) bool {
	h := t.w.(http.ResponseWriter).Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	// The server's read timeout would otherwise end every stream.
	_ = t.rc.SetReadDeadline(time.Time{})
	if method == http.MethodHead {
		return false
	}
	t.buf = append(t.buf, "retry: 1000\n\n"...)
	return t.flush() == nil
}

// run copies the log until it ends, the client leaves or the server stops.
func (t *tail) run(ctx context.Context, wake <-chan struct{}) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		if err := t.copy(ctx); err != nil {
			return err
		}
		if t.final {
			return t.end(ctx)
		}
		select {
		case <-wake:
		case <-poll.C:
		case <-beat.C:
			t.buf = append(t.buf, ": heartbeat\n\n"...)
			if err := t.flush(); err != nil {
				return err
			}
		case <-t.server.stopping:
			t.buf = append(t.buf, ": the server stops; come back\n\n"...)
			return t.flush()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// copy sends everything that stands behind the cursor now.
func (t *tail) copy(ctx context.Context) error {
	for {
		events, err := t.server.opt.Plane.Events(ctx, t.id, t.after, streamChunk)
		if err != nil {
			return err
		}
		for i := range events {
			t.buf = appendFrame(t.buf, &events[i], t.server.ids)
			t.after = events[i].Seq
			t.final = t.final || events[i].Type.IsTerminal()
			if len(t.buf) >= frameBytes {
				if err := t.flush(); err != nil {
					return err
				}
			}
		}
		if err := t.flush(); err != nil || len(events) < streamChunk {
			return err
		}
	}
}

// appendFrame writes one event as a server-sent event. A line break would end
// the frame's data, and in JSON it can only stand between tokens, so it may
// become a blank.
func appendFrame(b []byte, e *event.Event, ids idForm) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, "\nevent: "...)
	b = append(b, oneLine.Replace(string(e.Type))...)
	b = append(b, "\ndata: "...)
	at := len(b)
	b = ids.appendEvent(b, e)
	for i := at; i < len(b); i++ {
		if b[i] == '\n' || b[i] == '\r' {
			b[i] = ' '
		}
	}
	return append(b, "\n\n"...)
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// end tells the client that nothing more will come. The frame has no id: it is
// not part of the log.
func (t *tail) end(ctx context.Context) error {
	x, err := t.server.opt.Plane.Execution(ctx, t.id)
	if err != nil {
		return err
	}
	t.buf = appendEnd(t.buf, x, t.server.ids)
	return t.flush()
}

func appendEnd(b []byte, x store.Execution, ids idForm) []byte {
	b = append(b, "event: end\ndata: {\"execution_id\":"...)
	b = ids.append(b, x.ExecutionID)
	b = append(b, `,"status":`...)
	b = appendString(b, x.Status)
	b = append(b, `,"error":`...)
	b = appendText(b, x.Error)
	return append(b, "}\n\n"...)
}

// flush sends what was collected, within the time a client is given.
func (t *tail) flush() error {
	if len(t.buf) == 0 {
		return nil
	}
	err := t.rc.SetWriteDeadline(time.Now().Add(writeWait))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = t.w.Write(t.buf)
	t.buf = t.buf[:0]
	if cap(t.buf) > 4*frameBytes {
		t.buf = nil
	}
	if err != nil {
		return err
	}
	return t.rc.Flush()
}
