package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// LogChunk is a piece of what the tools of an execution print.
type LogChunk struct {
	Seq       uint64    `json:"seq"` // 0 when it comes from an archive
	Time      time.Time `json:"time"`
	Step      string    `json:"step"`
	CommandID string    `json:"command_id"`
	EventID   ID        `json:"event_id"`
	Attempt   int       `json:"attempt,omitempty"`
	Text      string    `json:"text"`
	Dropped   int64     `json:"dropped,omitempty"` // bytes left out before Text
	End       bool      `json:"end,omitempty"`     // the command has ended
	Archived  bool      `json:"archived,omitempty"`
}

// Logs calls f with what the tools of an execution have printed, of one step or
// of all when step is empty. It returns f's error as it is.
func (c *Client) Logs(ctx context.Context, id ID, step string, f func(LogChunk) error) error {
	for after := uint64(0); ; {
		var a struct {
			Chunks    []LogChunk `json:"chunks"`
			Truncated bool       `json:"truncated"`
			After     uint64     `json:"after"`
		}
		if err := c.get(ctx, logPath(id, step, after, false), &a); err != nil {
			return err
		}
		for _, chunk := range a.Chunks {
			if err := f(chunk); err != nil {
				return err
			}
		}
		if !a.Truncated || a.After <= after {
			return nil
		}
		after = a.After
	}
}

func logPath(id ID, step string, after uint64, follow bool) string {
	q := url.Values{}
	if step != "" {
		q.Set("step", step)
	}
	if after > 0 {
		q.Set("after", strconv.FormatUint(after, 10))
	}
	if follow {
		q.Set("follow", "true")
	}
	return executionPath(id, "/logs?"+q.Encode())
}

// FollowLogs calls f with what the tools of an execution print, from the
// beginning, until the execution has ended; then it returns nil. A broken
// connection is opened again where it broke, so that nothing that is kept is
// missed or comes twice.
func (c *Client) FollowLogs(ctx context.Context, id ID, step string, f func(LogChunk) error) error {
	s := &stream{client: c, id: id, path: logPath(id, step, 0, true)}
	had, passed := 0, 0 // archived pieces that f got, and that this connection brought
	s.opened = func() { passed = 0 }
	s.frame = func(fr *frame) (bool, error) {
		switch fr.name {
		case "end":
			return true, nil
		case "log":
		default:
			return false, nil
		}
		var chunk LogChunk
		if err := json.Unmarshal(fr.data, &chunk); err != nil {
			return false, event.Errorf(event.Internal, "output %s of execution %d is not readable: %w", fr.id, id, err)
		}
		if chunk.Seq == 0 {
			if passed++; passed <= had { // it came over an earlier connection
				return false, nil
			}
			had = passed
		} else {
			if int64(chunk.Seq) <= s.after {
				return false, nil
			}
			s.after = int64(chunk.Seq)
		}
		s.own = f(chunk)
		return s.own != nil, s.own
	}
	return s.follow(ctx)
}
