package store

import "github.com/noetl/noetl-go/internal/event"

// Check refuses a batch that would break the log: wrong or gapped sequence
// numbers, rows of another execution, or a start without events. Every driver
// calls it first, so that a bug above is an error here and not a hole on disk.
func (b *Batch) Check() error {
	id := b.Execution.ExecutionID
	if b.Expected < 0 || b.Execution.LastSeq != b.Expected+int64(len(b.Events)) {
		return event.Errorf(event.Internal, "append to execution %d: last_seq is %d, want %d + %d events",
			id, b.Execution.LastSeq, b.Expected, len(b.Events))
	}
	if b.Expected == 0 && len(b.Events) == 0 {
		return event.Errorf(event.Internal, "append to execution %d: an execution starts with an event", id)
	}
	if b.Expected != 0 && b.Claim != nil {
		return event.Errorf(event.Internal, "append to execution %d: only a start takes a claim", id)
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.ExecutionID != id || e.Seq != b.Expected+int64(i)+1 {
			return event.Errorf(event.Internal, "append to execution %d: event %d of execution %d has seq %d, want %d",
				id, e.EventID, e.ExecutionID, e.Seq, b.Expected+int64(i)+1)
		}
	}
	for i := range b.Commands {
		c := &b.Commands[i]
		if c.ExecutionID != id {
			return event.Errorf(event.Internal, "append to execution %d: command %d belongs to execution %d",
				id, c.EventID, c.ExecutionID)
		}
		// Batches hold a handful of commands, or many of one fan-out in
		// ascending order: the inner loop is almost never entered.
		if i > 0 && c.EventID <= b.Commands[i-1].EventID && repeats(b.Commands[:i], c.EventID) {
			return event.Errorf(event.Internal, "append to execution %d: command %d appears twice", id, c.EventID)
		}
	}
	for i := range b.Results {
		if r := &b.Results[i]; r.ExecutionID != id {
			return event.Errorf(event.Internal, "append to execution %d: result %s belongs to execution %d", id, r.Ref, r.ExecutionID)
		}
	}
	return nil
}

// CheckProjection refuses rows that are not all of one execution, or a command
// that appears twice.
func CheckProjection(x *Execution, commands []Command) error {
	seen := make(map[event.ID]bool, len(commands))
	for i := range commands {
		c := &commands[i]
		if c.ExecutionID != x.ExecutionID {
			return event.Errorf(event.Internal, "project execution %d: command %d belongs to execution %d", x.ExecutionID, c.EventID, c.ExecutionID)
		}
		if seen[c.EventID] {
			return event.Errorf(event.Internal, "project execution %d: command %d appears twice", x.ExecutionID, c.EventID)
		}
		seen[c.EventID] = true
	}
	return nil
}

func repeats(commands []Command, id event.ID) bool {
	for i := range commands {
		if commands[i].EventID == id {
			return true
		}
	}
	return false
}

// Size estimates the stored bytes of the batch, for bounding groups.
func (b *Batch) Size() int {
	const row = 256
	n := row * (1 + len(b.Events) + len(b.Commands) + len(b.Results))
	for i := range b.Events {
		e := &b.Events[i]
		n += len(e.Context) + len(e.Result) + len(e.Meta) + len(e.Error)
	}
	for i := range b.Results {
		n += len(b.Results[i].Data)
	}
	if b.Publish {
		n += row / 2 * len(b.Events)
	}
	return n
}
