package pipeline

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/tool"
)

// completed is the event of a command that reached its end.
func (s *run) completed() event.Incoming {
	b := s.open(512 + s.dataSize())
	b = append(b, `,"status":"success","result":{"status":"success","context":{"status":"success"`...)
	b = s.appendContext(b)
	b = append(b, "}}"...)
	b, err := s.appendUpdates(b)
	if err != nil {
		return s.failed(err)
	}
	return s.incoming(event.CommandCompleted, event.ToolSuccess, append(b, '}'))
}

// failed is the event of a command that a failure ended. What the tasks before
// it produced travels along.
func (s *run) failed(err *tool.Error) event.Incoming {
	b := s.open(1024 + s.dataSize())
	b = s.appendError(b, err)
	b = append(b, `,"result":{"status":"error","context":{"status":"error"`...)
	if label := s.taskLabel(); label != "" {
		b = appendString(append(b, `,"failed_task":`...), label)
	}
	b = s.appendContext(b)
	b = append(b, "}}"...)
	if updated, updateErr := s.appendUpdates(b); updateErr == nil {
		b = updated
	}
	return s.incoming(event.CommandFailed, event.StatusFailed, append(b, '}'))
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

// appendContext writes the data and what the last task printed.
func (s *run) appendContext(b []byte) []byte {
	b = append(b, `,"data":`...)
	b = s.appendData(b)
	if s.last != nil && s.last.result != nil {
		res := s.last.result
		if res.Stdout != "" {
			b = appendString(append(b, `,"stdout":`...), res.Stdout)
		}
		if res.Stderr != "" {
			b = appendString(append(b, `,"stderr":`...), res.Stderr)
		}
		if res.ExitCode != nil {
			b = strconv.AppendInt(append(b, `,"exit_code":`...), int64(*res.ExitCode), 10)
		}
	}
	return strconv.AppendInt(append(b, `,"duration_ms":`...), time.Since(s.started).Milliseconds(), 10)
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
	b, err := jinja.AppendJSON(append(b, `,"context_updates":`...), s.names.ctxSet)
	if err != nil {
		return nil, templateError(err, "set")
	}
	return b, nil
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
