package api

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// archiveTime bounds the reading of one kept text.
const archiveTime = 30 * time.Second

// archived calls f with the output of ended commands of which no chunk is kept,
// as their last events tell it.
func (o *outputRead) archived(ctx context.Context, f func(outputChunk) error) error {
	ends, err := o.ends(ctx)
	if err != nil || len(ends) == 0 {
		return err
	}
	if logs := o.server.opt.Logs; logs != nil {
		err := logs.ReadLogs(ctx, o.id, 0, func(c event.LogChunk) error { delete(ends, c.EventID); return nil })
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	for after := int64(0); len(ends) > 0; { // in the order of the log
		events, err := o.server.opt.Plane.Events(ctx, o.id, after, streamChunk)
		if err != nil {
			return err
		}
		for i := range events {
			e := &events[i]
			after = e.Seq
			if end := ends[e.ParentEventID]; end != e.EventID || end == 0 {
				continue
			}
			if err := o.unpack(ctx, e, f); err != nil {
				return err
			}
		}
		if len(events) < streamChunk {
			return nil
		}
	}
	return nil
}

// ends finds the last events of commands that tell of output, by command.
func (o *outputRead) ends(ctx context.Context) (map[event.ID]event.ID, error) {
	found := map[event.ID]event.ID{}
	for after := int64(0); ; {
		events, err := o.server.opt.Plane.Events(ctx, o.id, after, streamChunk)
		if err != nil {
			return nil, err
		}
		for i := range events {
			e := &events[i]
			after = e.Seq
			if e.Type.IsCommandEnd() && o.wants(e.NodeName) && printed(e) != nil {
				found[e.ParentEventID] = e.EventID
			}
		}
		if len(events) < streamChunk {
			return found, nil
		}
	}
}

// printed is what an event says of its command's output; nil when it printed
// nothing. Little output is shown as the streams of the result alone.
func printed(e *event.Event) *event.LogSummary {
	type streams struct {
		Logs   *event.LogSummary `json:"logs"`
		Stdout string            `json:"stdout"`
		Stderr string            `json:"stderr"`
	}
	var r struct {
		Context struct {
			streams
			Result struct {
				streams
				Context streams `json:"context"`
			} `json:"result"`
		} `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &r) // what cannot be read tells of nothing
	places := []streams{r.Context.Result.Context, r.Context.Result.streams, r.Context.streams}
	for _, p := range places {
		if p.Logs != nil {
			return p.Logs
		}
	}
	for _, p := range places {
		if text := p.Stdout + p.Stderr; text != "" {
			return &event.LogSummary{Bytes: int64(len(text)), Tail: text}
		}
	}
	return nil
}

// blobs is a plane that keeps texts.
type blobs interface {
	OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error)
}

// unpack gives the output of one ended command: the text that was kept, in
// pieces, or the end of it when that is all there is.
func (o *outputRead) unpack(ctx context.Context, e *event.Event, f func(outputChunk) error) error {
	logs := printed(e)
	c := outputChunk{
		Time: e.CreatedAt, Step: e.NodeName, CommandID: e.CommandID, EventID: event.StringID(e.ParentEventID), Archived: true,
	}
	if logs.Ref != "" {
		ctx, cancel := context.WithTimeout(ctx, archiveTime)
		defer cancel()
		whole, err := o.pieces(ctx, logs.Ref, c, f)
		if whole || err != nil {
			return err
		}
	}
	c.Text, c.Dropped, c.End = logs.Tail, max(logs.Bytes-int64(len(logs.Tail)), 0), true
	return f(c)
}

// pieces reads a kept text. It is false when the text is not there any more.
func (o *outputRead) pieces(ctx context.Context, ref string, c outputChunk, f func(outputChunk) error) (bool, error) {
	from, ok := o.server.opt.Plane.(blobs)
	if !ok {
		return false, nil
	}
	body, _, err := from.OpenBlob(ctx, ref, 0, 0)
	if err != nil {
		return false, nil // its tail is in the event
	}
	defer body.Close()
	buf, kept := make([]byte, 32<<10), 0
	for {
		n, err := io.ReadFull(body, buf[kept:])
		n += kept
		last := err != nil
		cut := n
		if !last {
			cut = wholeText(buf[:n])
		}
		c.Text, c.End = strings.ToValidUTF8(string(buf[:cut]), "\uFFFD"), last
		if err := f(c); err != nil {
			return true, err
		}
		if last {
			return true, nil
		}
		kept = copy(buf, buf[cut:n])
	}
}

// wholeText is how much of b ends with a line, or with a character.
func wholeText(b []byte) int {
	for i := len(b) - 1; i >= len(b)/2; i-- {
		if b[i] == '\n' {
			return i + 1
		}
	}
	for n := 1; n < 4 && n < len(b); n++ {
		if b[len(b)-n] < 0x80 {
			break
		}
		if b[len(b)-n] >= 0xC0 {
			return len(b) - n
		}
	}
	return len(b)
}
