package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

// suspend has the command wait without a worker: for the outcome of the task
// in hand, or, when w is nil, for its next try. What the command has come to is
// noted down, unless all there is to do afterwards is to report the outcome.
func (s *run) suspend(ctx context.Context, p *event.Park, w *waiting) *tool.Error {
	t := s.plan.tasks[s.current]
	if w != nil && p.Delay <= 0 && p.Child == nil && p.Callback == "" && p.Signal == nil {
		return &tool.Error{
			Kind: tool.KindInternal, Code: "PARK",
			Message: fmt.Sprintf("the %s tool asked to wait and did not say for what", t.Kind),
		}
	}
	park := *p
	park.Resume = nil
	if park.Child != nil {
		child := *park.Child
		child.Payload = s.vault.hidden.JSON(child.Payload)
		park.Child = &child
	}
	if w == nil || !s.plan.single || t.lasting || len(w.Again) > 0 {
		note, err := s.note(w)
		if err != nil {
			return &tool.Error{
				Kind: tool.KindInternal, Code: "PARK", Message: "what the command has come to cannot be noted down: " + err.Error(),
			}
		}
		var failed *tool.Error
		if park.Resume, failed = s.keepNote(ctx, note); failed != nil {
			return failed
		}
	}
	s.park = &park
	return nil
}

// noteRef stands for a note that is too large for an event.
type noteRef struct {
	Ref string `json:"ref"`
}

// keepNote puts a large note where results are kept.
func (s *run) keepNote(ctx context.Context, note json.RawMessage) (json.RawMessage, *tool.Error) {
	if s.opt.Results == nil || len(note) <= s.opt.InlineLimit {
		return note, nil
	}
	at, failed := s.putAside(ctx, stepOf(s.cmd)+".parked", note)
	if failed != nil {
		return nil, failed
	}
	ref, _ := tool.Encode(noteRef{at.Ref}) // text always has a JSON form
	return ref, nil
}

// noteOf is the note itself.
func (s *run) noteOf(ctx context.Context, state json.RawMessage) (json.RawMessage, *tool.Error) {
	var ref noteRef
	if json.Unmarshal(state, &ref) != nil || ref.Ref == "" {
		return state, nil
	}
	return s.whole(ctx, ref.Ref)
}

// parked is the event of a command that waits without a worker.
func (s *run) parked() event.Incoming {
	park, err := tool.Encode(s.park)
	if err != nil {
		return s.failed(context.Background(), asToolError(err))
	}
	b := append(make([]byte, 0, 64+len(park)), `{"command_id":`...)
	b = appendString(b, s.cmd.Meta.CommandID)
	b = append(append(b, `,"park":`...), park...)
	return s.incoming(event.CommandParked, event.StatusWaiting, append(b, '}'))
}

// resume reads the note of a command that was parked before.
func (s *run) resume(ctx context.Context) *tool.Error {
	r := s.cmd.Meta.Resume
	if r == nil {
		return nil
	}
	note, missing := s.noteOf(ctx, r.State)
	if missing != nil {
		return missing
	}
	c, err := readCheckpoint(note, s.plan)
	if err == nil {
		err = s.results.restore(c.Results)
	}
	if err != nil {
		return checkpointError(err)
	}
	s.resumed, s.current, s.runs, s.attempts = c, c.Task, c.Runs, c.Attempts
	s.started = time.UnixMilli(c.Started)
	if n := len(s.results.labels); n > 0 {
		s.last = s.results.outcomes[s.results.labels[n-1]]
	}
	return nil
}

// first is the task to begin with. After a wait for an outcome that is the one
// which follows from it.
func (s *run) first(ctx context.Context) (int, *tool.Error) {
	c := s.resumed
	if c == nil {
		return 0, nil
	}
	wake := &s.cmd.Meta.Resume.Wake
	if c.Waiting == nil {
		if len(wake.Error) > 0 {
			return 0, wakeError(wake.Error)
		}
		return c.Task, nil
	}
	if len(c.Waiting.Again) > 0 && len(wake.Data) == 0 && len(wake.Error) == 0 {
		s.lookAgain = c.Waiting.Again
		return c.Task, nil
	}
	t := s.plan.tasks[c.Task]
	out := &outcome{attempt: s.attempts[c.Task] + 1, took: max(time.Since(time.UnixMilli(c.Waiting.Began)), 0)}
	if len(wake.Data) > 0 {
		out.result = &tool.Result{Data: wake.Data}
	}
	if len(wake.Error) > 0 {
		out.err = wakeError(wake.Error)
	}
	s.conclude(t, &view{
		names: s.names, run: s, task: t.Task, attempt: out.attempt, input: c.Waiting.Input, local: !s.plan.single,
	}, out)
	return s.after(ctx, c.Task, out)
}

// wakeError reads the error that ended a wait: an object as tools report it,
// or plain text.
func wakeError(raw json.RawMessage) *tool.Error {
	e, err := readError(raw)
	var text string
	switch {
	case err == nil && e.Message != "":
	case json.Unmarshal(raw, &text) == nil:
		e = &tool.Error{Message: text}
	default:
		e = &tool.Error{Message: string(raw)}
	}
	if e.Kind == "" {
		e.Kind = tool.KindLogic
	}
	return e
}

func checkpointError(err error) *tool.Error {
	return &tool.Error{
		Kind: tool.KindInternal, Code: "CHECKPOINT",
		Message: "the command was parked, and the note on where it was cannot be used: " + err.Error() + "; execute the playbook again",
	}
}

var errOtherTasks = errors.New("it is about other tasks than the command has")
