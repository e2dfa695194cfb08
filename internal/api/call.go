package api

import (
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// shownEvent is an event as the detail of an execution shows it.
type shownEvent struct {
	event.Event
	derived bool // the log does not hold it
	bare    bool // its data stands in the row before it
}

// calls is which commands, by the worker that ran them, have reported their
// data in an event of its own.
type calls map[callKey]bool

type callKey struct{ command, worker string }

func keyOf(e *event.Event) callKey { return callKey{e.CommandID, e.WorkerID} }

// derived makes the call.done of a command whose worker reported data and end
// in one event: those who wait for another execution look for its data in
// call.done rows alone.
func (c calls) derived(e *event.Event) (shownEvent, bool) {
	switch e.Type.Canonical() {
	case event.CallDone:
		c[keyOf(e)] = true
		return shownEvent{}, false
	case event.CommandCompleted:
	default:
		return shownEvent{}, false
	}
	if c[keyOf(e)] {
		delete(c, keyOf(e))
		return shownEvent{}, false
	}
	result, ok := callResult(e)
	if !ok {
		return shownEvent{}, false
	}
	call := shownEvent{Event: *e, derived: true}
	call.Type, call.Status, call.Result = event.CallDone, event.StatusCompleted, result
	return call, true
}

// callResult is the result of a call.done with the data that e carries.
func callResult(e *event.Event) (json.RawMessage, bool) {
	var stored struct {
		Context json.RawMessage `json:"context"`
	}
	if len(e.Result) == 0 || json.Unmarshal(e.Result, &stored) != nil || len(stored.Context) == 0 {
		return nil, false
	}
	data, ref := engine.CallData(stored.Context)
	if len(data) == 0 && ref == nil {
		return nil, false
	}
	b := append(make([]byte, 0, len(data)+256), `{"status":"COMPLETED","context":{"command_id":`...)
	b = appendString(b, e.CommandID)
	b = append(b, `,"call_index":0,"result":{"status":`...)
	b = appendString(b, e.Status)
	b = append(b, `,"context":{"data":`...)
	if ref == nil {
		b = append(b, data...)
		return append(b, `}}}}`...), true
	}
	b = append(b, `{"_ref":`...)
	b = appendString(b, ref.Ref)
	b = append(b, `}},"reference":{"kind":"result_ref","ref":`...)
	b = appendString(b, ref.Ref)
	b = append(b, `,"store":`...)
	b = appendString(b, ref.Store)
	b = append(b, `,"meta":`...)
	meta, _ := json.Marshal(map[string]int64{"bytes": ref.Bytes}) // a number always has a JSON form
	b = append(b, meta...)
	b = append(b, `,"extracted":`...)
	b = appendRaw(b, data)
	return append(b, `}}}}`...), true
}

// showEvents puts derived calls before the events they are derived from, and
// the data in the place of references to it, the newest first. Only the calls
// are wanted of a log that was asked for calls.
func (s *Server) showEvents(ctx context.Context, events []event.Event, wanted event.Type) ([]shownEvent, error) {
	rows := make([]shownEvent, 0, len(events)+len(events)/4)
	reported := calls{}
	for i := range events {
		call, derived := reported.derived(&events[i])
		if derived {
			rows = append(rows, call)
		}
		if !derived || wanted != event.CallDone {
			rows = append(rows, shownEvent{Event: events[i], bare: derived})
		}
	}
	h := newHydration(s.visibleResult)
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].bare {
			continue
		}
		var err error
		if rows[i].Result, err = h.hydrate(ctx, rows[i].Result); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (f idForm) appendShown(b []byte, rows []shownEvent) []byte {
	b = append(b, '[')
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.appendEvent(b, &rows[i].Event)
		if rows[i].derived {
			b = append(b[:len(b)-1], `,"derived":true}`...)
		}
	}
	return append(b, ']')
}
