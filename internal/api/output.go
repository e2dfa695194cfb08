package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) logRoutes() []route {
	logs := entry(http.MethodGet, "/api/executions/{id}/logs", Viewer, s.output, "shows what the tools of an execution print; with follow=true or as server-sent events, as they print it",
		"?step&after&follow, or Last-Event-ID; Accept: application/json, text/plain or text/event-stream", `{execution_id, chunks: [{seq, time, step, command_id, attempt, text, dropped?, end?, archived?}], truncated, after}`).within(ByExecution)
	logs.stream = true
	return []route{logs}
}

const (
	// outputMost bounds what one answer holds; the rest is asked for with after.
	outputMost = 16 << 20
	// outputQueue bounds the chunks that wait for a client.
	outputQueue = 64
	// outputGrace is how long a stream looks for what was on its way when the
	// execution ended.
	outputGrace = 500 * time.Millisecond
)

// outputChunk is a chunk on the wire.
type outputChunk struct {
	Seq       uint64         `json:"seq"`
	Time      time.Time      `json:"time"`
	Step      string         `json:"step"`
	CommandID string         `json:"command_id"`
	EventID   event.StringID `json:"event_id"`
	Attempt   int            `json:"attempt,omitempty"`
	Text      string         `json:"text"`
	Dropped   int64          `json:"dropped,omitempty"`
	End       bool           `json:"end,omitempty"`
	Archived  bool           `json:"archived,omitempty"` // from what was kept with the end of the command
}

func live(c *event.LogChunk) outputChunk {
	return outputChunk{
		Seq: c.Seq, Time: c.Time, Step: c.Step, CommandID: c.CommandID, EventID: event.StringID(c.EventID), Attempt: c.Attempt,
		Text: c.Text, Dropped: c.Dropped, End: c.End,
	}
}

// output answers with what tools printed: at once, or as they print it.
func (s *Server) output(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	after, err := resumeAt(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	o := &outputRead{server: s, id: x.ExecutionID, step: q.Get("step"), after: uint64(after), final: event.IsFinal(x.Status)}
	accept := r.Header.Get("Accept")
	follow, _ := strconv.ParseBool(q.Get("follow"))
	switch {
	case follow || strings.Contains(accept, "text/event-stream"):
		return s.followOutput(w, r, o)
	case strings.Contains(accept, "text/plain"):
		return o.answerText(w, r)
	}
	return o.answerList(w, r)
}

// outputRead is one reading of an execution's output.
type outputRead struct {
	server *Server
	id     event.ID
	step   string // "" = all
	after  uint64
	final  bool
}

func (o *outputRead) wants(step string) bool { return o.step == "" || o.step == step }

// errEnough ends a reading that has all it may hold.
var errEnough = errors.New("enough")

// each calls f with everything that is kept behind the position: first the
// texts of commands whose chunks are gone, then the chunks.
func (o *outputRead) each(ctx context.Context, f func(outputChunk) error) error {
	if o.after == 0 {
		if err := o.archived(ctx, f); err != nil {
			return err
		}
	}
	if o.server.opt.Logs == nil {
		return nil
	}
	return o.server.opt.Logs.ReadLogs(ctx, o.id, o.after, func(c event.LogChunk) error {
		o.after = c.Seq
		if !o.wants(c.Step) {
			return nil
		}
		return f(live(&c))
	})
}

func (o *outputRead) answerList(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), o.server.opt.Timeout)
	defer cancel()
	answer := struct {
		ExecutionID event.StringID `json:"execution_id"`
		Chunks      []outputChunk  `json:"chunks"`
		Truncated   bool           `json:"truncated"`
		After       uint64         `json:"after"` // ask for what follows with this
	}{ExecutionID: event.StringID(o.id), Chunks: []outputChunk{}}
	size := 0
	err := o.each(ctx, func(c outputChunk) error {
		answer.Chunks = append(answer.Chunks, c)
		if size += len(c.Text); size >= outputMost {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	answer.Truncated, answer.After = err != nil, o.after
	return respond(w, answer)
}

// answerText sends the text alone as it is read.
func (o *outputRead) answerText(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method == http.MethodHead {
		return nil
	}
	began := false
	err := o.each(r.Context(), func(c outputChunk) error {
		began = true
		if err := rc.SetWriteDeadline(time.Now().Add(writeWait)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		_, err := io.WriteString(w, plain(&c))
		return err
	})
	if began { // it is too late for another status
		return nil
	}
	return err
}

// plain is a chunk as text.
func plain(c *outputChunk) string {
	if c.Dropped == 0 {
		return c.Text
	}
	return "… " + strconv.FormatInt(c.Dropped, 10) + " bytes dropped …\n" + c.Text
}

// followOutput streams chunks until the execution has ended and everything was
// sent, the client leaves or the server stops.
func (s *Server) followOutput(w http.ResponseWriter, r *http.Request, o *outputRead) error {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		return event.Errorf(event.Unavailable, "too many streams are open")
	}
	wake, stop := s.opt.Plane.Watch(o.id)
	defer stop()
	t := &outputTail{outputRead: o, tail: tail{server: s, id: o.id, w: w, rc: http.NewResponseController(w)}}
	if !t.open(r.Method) {
		return nil
	}
	if err := t.follow(r.Context(), wake); err != nil && r.Context().Err() == nil {
		s.opt.Logger.Debug("output stream dropped", "execution_id", o.id, "seq", o.after, "error", err)
	}
	return nil
}

// outputTail is one open stream of output. It shares how frames are written with
// the stream of events.
type outputTail struct {
	*outputRead
	tail tail
}

func (t *outputTail) open(method string) bool { return t.tail.open(method) }

// follow sends what is kept, then what comes.
func (t *outputTail) follow(ctx context.Context, wake <-chan struct{}) error {
	if err := t.each(ctx, t.send); err != nil {
		return err
	}
	if err := t.tail.flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks := t.subscribe(ctx)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for !t.final {
		select {
		case c, open := <-chunks:
			if !open { // nothing comes this way; the end is found by looking
				chunks = nil
				continue
			}
			if err := t.sendNow(c); err != nil {
				return err
			}
		case <-wake:
			if err := t.look(ctx); err != nil {
				return err
			}
		case <-poll.C:
			if err := t.look(ctx); err != nil {
				return err
			}
		case <-beat.C:
			t.tail.buf = append(t.tail.buf, ": heartbeat\n\n"...)
			if err := t.tail.flush(); err != nil {
				return err
			}
		case <-t.server.stopping:
			t.tail.buf = append(t.tail.buf, ": the server stops; come back\n\n"...)
			return t.tail.flush()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return t.finish(ctx, chunks)
}

// subscribe reads new chunks for as long as ctx lasts.
func (t *outputTail) subscribe(ctx context.Context) <-chan event.LogChunk {
	logs := t.server.opt.Logs
	if logs == nil || t.final {
		return nil
	}
	out := make(chan event.LogChunk, outputQueue)
	after := t.after
	go func() {
		defer close(out)
		_ = logs.TailLogs(ctx, t.id, after, func(c event.LogChunk) error {
			select {
			case out <- c:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	return out
}

// look finds out whether the execution has ended.
func (t *outputTail) look(ctx context.Context) error {
	x, err := t.server.opt.Plane.Execution(ctx, t.id)
	t.final = err == nil && event.IsFinal(x.Status)
	return err
}

// finish sends what was on its way when the execution ended: until nothing new
// has come for a moment.
func (t *outputTail) finish(ctx context.Context, chunks <-chan event.LogChunk) error {
	quiet := time.NewTimer(outputGrace)
	defer quiet.Stop()
	for chunks != nil {
		select {
		case c, open := <-chunks:
			if !open {
				chunks = nil
				continue
			}
			if err := t.sendNow(c); err != nil {
				return err
			}
			quiet.Reset(outputGrace)
		case <-quiet.C:
			chunks = nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if logs := t.server.opt.Logs; logs != nil {
		err := logs.ReadLogs(ctx, t.id, t.after, func(c event.LogChunk) error { return t.sendNow(c) })
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	return t.tail.end(ctx)
}

func (t *outputTail) sendNow(c event.LogChunk) error {
	if c.Seq <= t.after {
		return nil
	}
	t.after = c.Seq
	if !t.wants(c.Step) {
		return nil
	}
	if err := t.send(live(&c)); err != nil {
		return err
	}
	return t.tail.flush()
}

// send adds a chunk as a server-sent event. What comes from an archive has no
// position.
func (t *outputTail) send(c outputChunk) error {
	data, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	b := t.tail.buf
	if c.Seq > 0 {
		b = append(b, "id: "...)
		b = strconv.AppendUint(b, c.Seq, 10)
		b = append(b, '\n')
	}
	b = append(b, "event: log\ndata: "...)
	b = append(b, data...)
	t.tail.buf = append(b, "\n\n"...)
	if len(t.tail.buf) >= frameBytes {
		return t.tail.flush()
	}
	return nil
}
