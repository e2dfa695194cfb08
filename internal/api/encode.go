package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/event"
)

// The encoders below write events and commands without reflection, since every
// stream, log page and claim consists of them. Payload columns hold JSON
// already and are copied as they are.

func (f idForm) appendEvent(b []byte, e *event.Event) []byte {
	b = append(b, `{"event_id":`...)
	b = f.append(b, e.EventID)
	b = append(b, `,"execution_id":`...)
	b = f.append(b, e.ExecutionID)
	b = append(b, `,"catalog_id":`...)
	b = f.appendOptional(b, e.CatalogID)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"event_type":`...)
	b = appendString(b, string(e.Type))
	b = append(b, `,"node_id":`...)
	b = appendString(b, e.NodeID())
	b = append(b, `,"node_name":`...)
	b = appendString(b, e.NodeName)
	b = append(b, `,"node_type":`...)
	b = appendText(b, e.NodeType)
	b = append(b, `,"status":`...)
	b = appendText(b, e.Status)
	b = append(b, `,"context":`...)
	b = appendRaw(b, e.Context)
	b = append(b, `,"result":`...)
	b = appendRaw(b, e.Result)
	b = append(b, `,"meta":`...)
	b = appendMeta(b, e.Meta, e.CommandID)
	b = append(b, `,"error":`...)
	b = appendText(b, e.Error)
	b = append(b, `,"worker_id":`...)
	b = appendText(b, e.WorkerID)
	b = append(b, `,"parent_event_id":`...)
	b = f.appendOptional(b, e.ParentEventID)
	b = append(b, `,"parent_execution_id":`...)
	b = f.appendOptional(b, e.ParentExecutionID)
	b = append(b, `,"duration":`...)
	b = strconv.AppendFloat(b, seconds(e.Duration), 'f', -1, 64)
	b = append(b, `,"created_at":`...)
	at := len(b)
	b = appendTime(b, e.CreatedAt)
	end := len(b)
	b = append(b, `,"timestamp":`...)
	b = append(b, b[at:end]...)
	return append(b, '}')
}

func (f idForm) appendEvents(b []byte, events []event.Event) []byte {
	b = append(b, '[')
	for i := range events {
		if i > 0 {
			b = append(b, ',')
		}
		b = f.appendEvent(b, &events[i])
	}
	return append(b, ']')
}

func appendCommand(b []byte, c *event.Command) []byte {
	b = append(b, '{')
	if c.Status != "" {
		b = append(b, `"status":`...)
		b = appendString(b, c.Status)
		b = append(b, ',')
	}
	b = append(b, `"event_id":`...)
	b = strconv.AppendInt(b, int64(c.EventID), 10)
	b = append(b, `,"execution_id":`...)
	b = strconv.AppendInt(b, int64(c.ExecutionID), 10)
	b = append(b, `,"node_id":`...)
	b = appendString(b, c.NodeID)
	b = append(b, `,"node_name":`...)
	b = appendString(b, c.NodeName)
	b = append(b, `,"action":`...)
	b = appendString(b, c.Action)
	b = append(b, `,"context":{"tool_config":`...)
	b = appendRaw(b, c.Context.ToolConfig)
	b = append(b, `,"args":`...)
	b = appendRaw(b, c.Context.Args)
	b = append(b, `,"render_context":`...)
	b = appendRaw(b, c.Context.RenderContext)
	b = append(b, `},"meta":`...)
	b = appendCommandMeta(b, &c.Meta)
	if !c.LeaseUntil.IsZero() {
		b = append(b, `,"lease_until":`...)
		b = appendTime(b, c.LeaseUntil)
	}
	return append(b, '}')
}

// appendCommandMeta leaves the small part of a command to encoding/json.
func appendCommandMeta(b []byte, m *event.CommandMeta) []byte {
	small, err := json.Marshal(m)
	if err != nil { // only a trace that is not JSON can get here
		plain := *m
		plain.Trace = nil
		small, _ = json.Marshal(plain)
	}
	return append(b, small...)
}

func appendCommands(b []byte, list []*event.Command) []byte {
	b = append(b, '[')
	for i, c := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendCommand(b, c)
	}
	return append(b, ']')
}

// appendMeta writes an event's meta with the command id in it: clients look
// for it there, the log keeps it in a column of its own.
func appendMeta(b []byte, meta json.RawMessage, commandID string) []byte {
	meta = bytes.TrimSpace(meta)
	isObject := len(meta) > 1 && meta[0] == '{'
	if commandID == "" || (len(meta) > 0 && !isObject && string(meta) != "null") || hasCommandID(meta) {
		return appendRaw(b, meta)
	}
	b = append(b, `{"command_id":`...)
	b = appendString(b, commandID)
	if isObject {
		if rest := bytes.TrimSpace(meta[1:]); rest[0] != '}' {
			b = append(b, ',')
			return append(b, rest...)
		}
	}
	return append(b, '}')
}

// hasCommandID looks for the key at the top level. The exact check is needed
// only when the word occurs at all.
func hasCommandID(meta []byte) bool {
	if !bytes.Contains(meta, []byte(`"command_id"`)) {
		return false
	}
	var top struct {
		CommandID json.RawMessage `json:"command_id"`
	}
	return json.Unmarshal(meta, &top) == nil && len(top.CommandID) > 0
}

// appendText writes an optional string: null when empty.
func appendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return append(b, "null"...)
	}
	return append(b, raw...)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendString writes s as a JSON string. Bytes that are not UTF-8 become the
// replacement character, as encoding/json does.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// seconds is the nearest number to d, which prints as it is read: the sum that
// Duration.Seconds makes of 1.985s prints as 1.9849999999999999.
func seconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
