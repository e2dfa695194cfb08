package pipeline

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/tool"
)

// completed is the event of a command that reached its end.
func (s *run) completed(ctx context.Context) event.Incoming {
	elsewhere, failure := s.put(ctx)
	if failure != nil {
		return s.lost(failure)
	}
	b := s.open(512 + s.inlineSize(elsewhere))
	b = append(b, `,"status":"success","result":{"status":"success","context":{"status":"success"`...)
	b = s.appendContext(ctx, b, elsewhere)
	b, err := s.appendUpdates(append(b, '}'))
	if err != nil {
		return s.failed(ctx, err)
	}
	return s.incoming(event.CommandCompleted, event.ToolSuccess, append(b, '}'))
}

// failed is the event of a command that a failure ended. What the tasks before
// it produced travels along; should that be too large and impossible to store,
// the error says so.
func (s *run) failed(ctx context.Context, err *tool.Error) event.Incoming {
	elsewhere, failure := s.put(ctx)
	if failure != nil {
		both := *err
		both.Message += " (and the data there is cannot be kept: " + failure.Message + ")"
		return s.lost(&both)
	}
	b := s.openFailed(err, 1024+s.inlineSize(elsewhere))
	b = s.appendContext(ctx, b, elsewhere)
	b = append(b, '}')
	if updated, updateErr := s.appendUpdates(b); updateErr == nil {
		b = updated
	}
	return s.incoming(event.CommandFailed, event.StatusFailed, append(b, '}'))
}

// lost is the event of a command whose data neither fits into an event nor can
// be kept elsewhere.
func (s *run) lost(err *tool.Error) event.Incoming {
	b := s.openFailed(err, 1024)
	return s.incoming(event.CommandFailed, event.StatusFailed, append(b, `,"data":null}}}`...))
}

// openFailed begins the payload of a failure up to the data.
func (s *run) openFailed(err *tool.Error, size int) []byte {
	b := s.appendError(s.open(size), err)
	b = append(b, `,"result":{"status":"error","context":{"status":"error"`...)
	if label := s.taskLabel(); label != "" {
		b = appendString(append(b, `,"failed_task":`...), label)
	}
	return b
}

// cancelled is the event of a command that was told to stop.
func (s *run) cancelled(err *tool.Error) event.Incoming {
	b := s.appendError(s.open(512), err)
	return s.incoming(event.CommandCancelled, event.StatusCancelled, append(b, '}'))
}

func (s *run) incoming(t event.Type, status string, payload json.RawMessage) event.Incoming {
	meta := make([]byte, 0, 96)
	meta = append(meta, `{"command_id":`...)
	meta = appendString(meta, s.cmd.Meta.CommandID)
	meta = append(meta, `,"attempt":`...)
	meta = strconv.AppendInt(meta, int64(s.cmd.Meta.Attempt), 10)
	return event.Incoming{
		Step:    stepOf(s.cmd),
		Type:    t,
		Status:  status,
		Payload: payload,
		Meta:    append(meta, '}'),
	}
}

// open begins the payload every ending shares.
func (s *run) open(size int) []byte {
	b := append(make([]byte, 0, size), `{"command_id":`...)
	b = appendString(b, s.cmd.Meta.CommandID)
	return append(b, `,"call_index":0`...)
}

// appendContext writes the data, or where it is kept, and what the last task
// printed, and closes the result's context.
func (s *run) appendContext(ctx context.Context, b []byte, elsewhere *stored) []byte {
	logs := s.logged(ctx)
	b = append(b, `,"data":`...)
	if elsewhere != nil {
		b = append(appendString(append(b, `{"_ref":`...), elsewhere.at.Ref), '}')
	} else {
		b = s.appendData(b)
	}
	if s.last != nil && s.last.result != nil {
		res := s.last.result
		if res.Stdout != "" {
			b = appendString(append(b, `,"stdout":`...), shown(res.Stdout, logs))
		}
		if res.Stderr != "" {
			b = appendString(append(b, `,"stderr":`...), shown(res.Stderr, logs))
		}
		if res.ExitCode != nil {
			b = strconv.AppendInt(append(b, `,"exit_code":`...), int64(*res.ExitCode), 10)
		}
	}
	if logs != nil {
		about, _ := tool.Encode(logs) // words and numbers always have a JSON form
		b = append(append(b, `,"logs":`...), about...)
	}
	b = strconv.AppendInt(append(b, `,"duration_ms":`...), max(time.Since(s.started).Milliseconds(), 0), 10)
	b = append(b, '}')
	if elsewhere != nil {
		b = elsewhere.appendReference(b)
	}
	return b
}

// inlineSize is about what the data takes in the event.
func (s *run) inlineSize(elsewhere *stored) int {
	if elsewhere != nil {
		return len(elsewhere.extracted)
	}
	return s.dataSize()
}

// appendData writes the tool's data for a single tool and {label: data, …} in
// execution order for a list.
func (s *run) appendData(b []byte) []byte {
	if s.plan.single {
		if s.last == nil {
			return append(b, "null"...)
		}
		return append(b, s.last.data...)
	}
	b = append(b, '{')
	for i, label := range s.results.labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, label), ':')
		b = append(b, s.results.outcomes[label].data...)
	}
	return append(b, '}')
}

func (s *run) dataSize() int {
	size := 0
	if s.last != nil {
		size = len(s.last.data)
		if s.last.result != nil {
			size += len(s.last.result.Stdout) + len(s.last.result.Stderr)
		}
	}
	for _, o := range s.results.outcomes {
		size += len(o.data)
	}
	return size
}

// appendUpdates writes what `set` wants the execution to remember.
func (s *run) appendUpdates(b []byte) ([]byte, *tool.Error) {
	if s.names == nil || s.names.ctxSet.Len() == 0 {
		return b, nil
	}
	updates, err := jinja.ToJSON(s.names.ctxSet)
	if err != nil {
		return nil, templateError(err, "set")
	}
	return append(append(b, `,"context_updates":`...), s.vault.hidden.JSON(updates)...), nil
}

// appendError writes the error with a message that says where it happened.
func (s *run) appendError(b []byte, e *tool.Error) []byte {
	placed := *e
	placed.Message = "step " + stepOf(s.cmd)
	if label := s.taskLabel(); label != "" {
		placed.Message += ", task " + label
	}
	placed.Message += ": " + e.Message
	out, err := tool.Encode(&placed)
	if err != nil {
		placed.Details = nil // all that can keep it from being written
		out, _ = tool.Encode(&placed)
	}
	return append(append(b, `,"error":`...), out...)
}

// taskLabel names the task in hand; single tools have no name of their own.
func (s *run) taskLabel() string {
	if s.plan.single || s.names == nil {
		return ""
	}
	return s.plan.tasks[s.current].Label
}

func appendString(b []byte, s string) []byte {
	b, _ = jinja.AppendJSON(b, s) // a string always has a JSON form
	return b
}
