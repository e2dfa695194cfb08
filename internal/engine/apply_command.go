package engine

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
)

func (s *State) applyIssued(e *event.Event) Effect {
	d := metaOf[issueDetail](e)
	r := s.currentRun(e.NodeName, d.Gen)
	if r == nil || r.phase != running {
		return Effect{Ignored: IgnoredUnknown}
	}
	vars := d.vars
	if e.Detail == nil && len(e.Context) > 0 {
		var c issueContext
		_ = json.Unmarshal(e.Context, &c)
		vars = c.RenderContext
	}
	if d.Same {
		vars = r.vars
	}
	c := &Command{
		ID: e.CommandID, EventID: e.EventID, Step: e.NodeName, Kind: e.NodeType, Gen: d.Gen, Index: -1,
		Status: event.StatusPending, MaxAttempts: d.MaxAttempts, budget: d.MaxAttempts, place: d.Cursor, CreatedAt: e.CreatedAt, vars: vars, epoch: s.epoch,
	}
	s.touch(r).openCmd++
	if shareable(vars) && (r.loop != nil || r.cursor != nil) && (d.Cursor == nil || d.Cursor.Phase == cursorBody) {
		r.vars = vars
	}
	s.touchStep(s.steps[r.step]).kind = c.Kind
	switch {
	case r.loop != nil && d.Index != nil && *d.Index >= 0 && *d.Index < r.loop.total:
		c.Index = *d.Index
		s.setSlot(r.loop.slots, c.Index, slot{mark: wasIssued})
		r.next = max(r.next, c.Index+1)
	case r.cursor != nil && d.Cursor != nil:
		s.issueCursor(r, c)
	}
	put(s, s.open, c.EventID, c)
	put(s, s.commands, c.ID, c)
	if e.WorkerID != "" {
		c.Status, c.Worker, c.Attempt = event.StatusClaimed, e.WorkerID, max(1, d.Attempt)
		c.LeaseUntil, c.ClaimedAt = d.LeaseUntil, e.CreatedAt
	} else {
		s.enqueue(c)
	}
	return Effect{Command: c}
}

// applyCommand folds the events about a command that has been issued.
func (s *State) applyCommand(e *event.Event) Effect {
	t := e.Type.Canonical()
	switch t {
	case event.CommandClaimed, event.CommandStarted, event.CommandReleased, event.CommandParked, event.CallDone,
		event.CallError, event.CommandCompleted, event.CommandFailed, event.CommandCancelled:
	default:
		return Effect{Ignored: IgnoredForeign}
	}
	c, ok := s.commands[e.CommandID]
	if !ok {
		return Effect{Ignored: s.whyNoCommand(e)}
	}
	if c.wait != nil {
		return s.applyWake(c, e)
	}
	switch t {
	case event.CommandClaimed:
		return s.applyClaim(c, e)
	case event.CommandReleased:
		s.touchCommand(c)
		c.Status, c.Worker = event.StatusPending, ""
		s.enqueue(c)
		return Effect{Command: c}
	}
	if fenced(c, e) {
		return Effect{Ignored: IgnoredFenced}
	}
	if park, ok := parkOf(e); ok {
		return s.park(c, park, e)
	}
	switch t {
	case event.CommandStarted:
		if c.Status != event.StatusClaimed { // only a claim gives the right to run
			return Effect{Ignored: IgnoredForeign}
		}
		s.touchCommand(c).Status = event.StatusRunning
		return Effect{Command: c}
	case event.CallDone:
		if c.Attempt > 0 && c.Status == event.StatusPending { // nobody runs it now
			return Effect{Ignored: IgnoredLate}
		}
		d := callOf(e)
		s.touchCommand(c).data, c.ref, c.errRaw = d.Data, d.Ref, d.Error
		if e.WorkerID == "" && d.Attempt == 0 {
			call := *e
			c.called = &call
		}
		return Effect{}
	case event.CallError: // the end that follows says only that it failed
		if d := callOf(e); len(d.Error) > 0 {
			s.touchCommand(c).errRaw = d.Error
		}
		return Effect{}
	}
	s.end(c, e)
	return Effect{Command: c, Ended: true}
}

// whyNoCommand tells a repeated end from a late note and from nonsense.
func (s *State) whyNoCommand(e *event.Event) string {
	for _, entry := range s.ended {
		if entry.cmd.ID != e.CommandID {
			continue
		}
		if e.Type.IsCommandEnd() && !fenced(entry.cmd, e) {
			return IgnoredDuplicate
		}
		return IgnoredLate
	}
	return IgnoredUnknown
}

// fenced tells whether the event comes from somebody who does not hold the
// command any more: another worker took it over, it waits for one, or it is a
// later attempt's by now.
func fenced(c *Command, e *event.Event) bool {
	if c.Attempt == 0 || e.WorkerID == "" {
		return false
	}
	if e.WorkerID != c.Worker { // nobody holds it once it was given back or woken
		return true
	}
	attempt := callOf(e).Attempt
	return attempt != 0 && attempt != c.Attempt
}

func (s *State) applyClaim(c *Command, e *event.Event) Effect {
	d := metaOf[claimDetail](e)
	s.touchCommand(c)
	c.Status, c.Worker, c.Attempt = event.StatusClaimed, e.WorkerID, max(d.Attempt, c.Attempt+1)
	c.LeaseUntil, c.ClaimedAt = d.LeaseUntil, e.CreatedAt
	s.trimPending()
	return Effect{Command: c}
}

// end closes a command and settles its iteration or its run.
func (s *State) end(c *Command, e *event.Event) {
	d := callOf(e)
	s.touchCommand(c)
	data, ref := d.Data, d.Ref
	if data == nil {
		data, ref = c.data, c.ref
	}
	t := e.Type.Canonical()
	ok := (t == event.CommandCompleted || t == event.CallDone) && !isToolFailure(d.Status, e.Status)
	errRaw := d.Error
	if len(errRaw) == 0 {
		errRaw = c.errRaw
	}
	s.unpark(c)
	c.EndedBy = e.EventID
	c.EndedAt, c.vars, c.data, c.ref, c.errRaw, c.resume = e.CreatedAt, nil, nil, nil, nil, nil
	switch {
	case ok:
		c.Status = event.StatusCompleted
	case t == event.CommandCancelled:
		c.Status, c.Error = event.StatusCancelled, "cancelled"
		errRaw = encode(c.Error)
	default:
		c.Status = event.StatusFailed
		if len(errRaw) == 0 {
			errRaw = encode(firstOf(e.Error, "tool reported status "+firstOf(d.Status, "error")))
		}
		c.Error = errorText(errRaw)
	}
	s.forget(c)
	r := s.currentRun(c.Step, c.Gen)
	if r == nil || r.phase != running {
		return
	}
	s.touch(r).openCmd--
	if r.cursor != nil {
		s.settleCursor(r, c, ok, data, ref, d.Updates)
		return
	}
	if c.Index >= 0 {
		s.settle(r, c, ok, data, ref, d.Updates)
		return
	}
	r.updates = d.Updates
	seq := c.Kind == "task_sequence"
	if len(data) > 0 {
		data, r.updates = splitUpdates(data, r.updates)
	}
	if len(data) > 0 || ok {
		r.value = scope.Step(nonNil(data), scope.Info{Sequence: seq, Ref: ref})
	}
	if ok {
		s.finish(r, completed, e)
		return
	}
	r.errText, r.errRaw = c.Error, errRaw
	if c.Status == event.StatusCancelled {
		r.reason = reasonCancelled
	}
	s.finish(r, failed, e)
}

// settle records the end of one iteration.
func (s *State) settle(r *run, c *Command, ok bool, data json.RawMessage, ref *scope.Reference, updates json.RawMessage) {
	if len(data) > 0 {
		data, updates = splitUpdates(data, updates)
	}
	if ref != nil {
		whole := *ref
		whole.Sequence = c.Kind == "task_sequence"
		put(s, r.loop.refs, c.Index, whole)
	}
	if c.Kind == "task_sequence" && len(data) > 0 {
		data = scope.Step(data, scope.Info{Sequence: true}).JSON()
	}
	if len(updates) > 0 {
		put(s, r.loop.updates, c.Index, updates)
	}
	if ok {
		s.setSlot(r.loop.slots, c.Index, slot{hasSucceeded, nonNil(data)})
		r.succeeded++
		return
	}
	s.setSlot(r.loop.slots, c.Index, slot{mark: hasFailed})
	put(s, r.loop.errors, c.Index, c.Error)
	r.faulted++
}

// forget moves a command from the open ones to the ring of recent ends.
func (s *State) forget(c *Command) {
	drop(s, s.open, c.EventID)
	drop(s, s.commands, c.ID)
	put(s, s.ended, c.EventID, endedEntry{cmd: c})
	s.endRing = append(s.endRing, c.EventID)
	if len(s.endRing) > endedKept {
		drop(s, s.ended, s.endRing[0])
		s.endRing = s.endRing[1:]
	}
	s.trimPending()
}

// isToolFailure tells whether a completed command's tool reported failure, in
// the payload or in the event's own status word.
func isToolFailure(words ...string) bool {
	for _, w := range words {
		for _, failure := range []string{"error", "timeout", "failed"} {
			if strings.EqualFold(w, failure) {
				return true
			}
		}
	}
	return false
}

// splitUpdates takes the context updates that other workers put into the data
// of a task sequence out of it.
func splitUpdates(data, updates json.RawMessage) (json.RawMessage, json.RawMessage) {
	if len(updates) > 0 || !bytes.Contains(data, []byte(`"_context_updates"`)) {
		return data, updates
	}
	return cutKey(data, "_context_updates")
}

func nonNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// callOf is the payload of a worker's event, decoded once.
func callOf(e *event.Event) *callDetail {
	if d, ok := e.Detail.(*callDetail); ok {
		return d
	}
	d := &callDetail{}
	if json.Valid(e.Result) { // the fold is total
		members(e.Result, func(key string, v json.RawMessage) {
			if key == "context" {
				d = readCall(v)
			}
		})
	}
	var m incomingMeta
	if len(e.Meta) > 0 {
		_ = json.Unmarshal(e.Meta, &m)
	}
	d.Attempt, d.Pending = m.Attempt, d.Pending || m.Pending
	e.Detail = d
	return d
}
