package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// Report stores what a worker or client observed, decides what follows, and
// hands over further commands when the worker asked for them. It returns when
// all of it is durable. Reporting the same events again is harmless.
func (p *Plane) Report(ctx context.Context, r event.Report) (event.ReportAnswer, error) {
	began := p.o.Clock()
	a, err := p.report(ctx, r)
	p.ingested(r.Events, began, err)
	return a, err
}

func (p *Plane) report(ctx context.Context, r event.Report) (event.ReportAnswer, error) {
	if len(r.Events) == 0 && r.Eager == 0 {
		return event.ReportAnswer{Status: "ok", EventIDs: []event.ID{}}, nil
	}
	if r.ExecutionID == 0 {
		return event.ReportAnswer{}, event.Errorf(event.Invalid, "execution_id is required to report events")
	}
	in := &reportInput{ticket: newTicket(), execution: r.ExecutionID, worker: r.WorkerID, eager: min(r.Eager, maxEager), not: r.EagerNot}
	in.incoming = slices.Clone(r.Events)
	in.minted = make([]bool, len(in.incoming))
	in.ans = event.ReportAnswer{Status: "ok", EventIDs: make([]event.ID, len(in.incoming))}
	for i := range in.incoming {
		// Ids are made here, once: a pass that is repeated must not change them.
		if in.incoming[i].EventID == 0 {
			in.incoming[i].EventID, in.minted[i] = p.o.IDs(), true
		}
		in.ans.EventIDs[i] = in.incoming[i].EventID
	}
	if err := p.beatsOf(ctx, in); err != nil {
		return event.ReportAnswer{}, err
	}
	if len(in.beats) == len(in.incoming) && in.eager == 0 {
		return in.ans, nil
	}
	ask := p.ask
	if p.local != nil && r.WorkerID == p.local.ID() {
		ask = p.askHere
	}
	began := p.tracing()
	err := ask(ctx, r.ExecutionID, in)
	if p.o.Tracer != nil {
		p.answered(ctx, "event.ingest", &in.served, began, err, obs.Number("events", len(in.incoming)), obs.Text("worker", r.WorkerID))
	}
	if err != nil {
		return event.ReportAnswer{}, err
	}
	return in.ans, nil
}

type reportInput struct {
	ticket
	execution event.ID
	worker    string
	incoming  []event.Incoming
	minted    []bool                      // the id of incoming[i] is ours, so it cannot be in the log
	complete  func(i int, e *event.Event) // adds what a report cannot say; nil for most
	eager     int
	not       []string // kinds the worker has no slot for

	beats []int // heartbeats, which renew a lease and are not stored
	held  []int // claims and callbacks reported again, which are not stored: their id is 0

	served  served
	earlier map[int]event.ID // ends of commands that had ended, and by which event
	handed  []*engine.Command
	ans     event.ReportAnswer
}

func (in *reportInput) apply(ctx context.Context, ps *pass) error {
	in.handed, in.held, in.earlier = nil, nil, nil
	events, err := in.ingest(ctx, ps)
	if err != nil {
		return err
	}
	in.served.note(ps, commandOf(events))
	over, err := ps.endedLongAgo(ctx, events)
	if err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if slices.Contains(in.held, i) || slices.Contains(in.beats, i) {
			continue
		}
		if by, ended := ps.endedBy(e, over); ended {
			in.answerEarlier(i, by)
			continue // a command ends once; the answer is the same
		}
		if !in.minted[i] && !ps.unseen(e.EventID) {
			if !ps.clashes(e) {
				continue
			}
			in.stamp(i, ps.p.o.IDs())
			e.EventID = in.incoming[i].EventID
		}
		ps.add(*e)
	}
	ps.decide = true
	if in.worker != "" {
		for range in.eager {
			ps.takers = append(ps.takers, taker{worker: in.worker, report: in})
		}
	}
	return nil
}

// beatsOf takes the heartbeats out of a report: some workers renew their leases
// by events. They are no facts about the workflow and leave no trace in the log.
func (p *Plane) beatsOf(ctx context.Context, in *reportInput) error {
	var beats []event.Heartbeat
	for i, e := range in.incoming {
		if e.Type != event.CommandHeartbeat {
			continue
		}
		in.beats = append(in.beats, i)
		var d struct {
			CommandID string `json:"command_id"`
		}
		for _, raw := range []json.RawMessage{e.Meta, e.Payload} {
			if d.CommandID == "" && len(raw) > 0 {
				_ = json.Unmarshal(raw, &d) // a note nobody can place renews nothing
			}
		}
		if id := issuedBy(d.CommandID); id != 0 {
			beats = append(beats, event.Heartbeat{EventID: id, ExecutionID: in.execution, WorkerID: in.worker})
		}
	}
	_, err := p.Heartbeat(ctx, beats)
	return err
}

// restamp gives the input's events new ids where the log holds a different
// event under theirs.
func (in *reportInput) restamp(stored *event.Event, newID func() event.ID) {
	for i := range in.incoming {
		e := &in.incoming[i]
		sender := in.worker == stored.WorkerID || in.worker == "" && stored.WorkerID == engine.Anonymous
		same := e.Type == stored.Type && sender && !in.minted[i]
		if e.EventID != stored.EventID || same {
			continue
		}
		in.stamp(i, newID())
	}
}

// stamp gives an event of the input another id.
func (in *reportInput) stamp(i int, id event.ID) {
	in.incoming[i].EventID, in.minted[i] = id, true
	in.ans.EventIDs[i] = id
}

// answerEarlier notes that event i was not needed because another had said so.
func (in *reportInput) answerEarlier(i int, by event.ID) {
	if by == 0 {
		return
	}
	if in.earlier == nil {
		in.earlier = make(map[int]event.ID, 1)
	}
	in.earlier[i] = by
}

// ingest brings all events into their stored form before any is applied, so
// that a refused report leaves no trace.
func (in *reportInput) ingest(ctx context.Context, ps *pass) ([]event.Event, error) {
	events := make([]event.Event, len(in.incoming))
	for i := range in.incoming {
		e, err := engine.Ingest(ps.state, in.incoming[i], in.worker, ps.env)
		if err == nil && e.Type.Canonical() == event.CommandClaimed {
			e, err = in.claimed(ctx, ps, i, e)
		}
		if err != nil {
			return nil, err
		}
		if in.complete != nil {
			in.complete(i, &e)
		}
		if e.Type.Canonical() == event.CallDone && e.CommandID == "" {
			in.held = append(in.held, i) // nobody waits to be called back, or not any more
		}
		events[i] = e
	}
	return events, nil
}

// claimed makes a proper claim of a command.claimed event: some workers write
// it themselves. A claim this worker holds already is left out.
func (in *reportInput) claimed(ctx context.Context, ps *pass, i int, e event.Event) (event.Event, error) {
	c := ps.state.CommandByEvent(issuedBy(e.CommandID))
	if c == nil || in.worker == "" || c.Worker == in.worker && event.IsFinal(c.Status) {
		in.held = append(in.held, i)
		return e, nil
	}
	expired, _, err := ps.leaseLost(ctx, c)
	if err != nil {
		return e, err
	}
	claim, err := ps.claim(c, in.worker, expired, ps.p.quietLease(ctx, in.worker))
	if errors.Is(err, engine.ErrHeld) {
		in.held = append(in.held, i)
		return e, nil
	}
	claim.EventID = e.EventID
	return claim, err
}

// endedBy tells whether e ends a command that has ended, and which event ended
// it; 0 when that is not known any more. over is what rows know of commands the
// fold has forgotten.
func (ps *pass) endedBy(e *event.Event, over map[string]event.ID) (by event.ID, ended bool) {
	if !e.Type.IsCommandEnd() {
		return 0, false
	}
	if by, ended = over[e.CommandID]; ended {
		return by, true
	}
	c := ps.state.CommandByEvent(issuedBy(e.CommandID))
	if c == nil || !event.IsFinal(c.Status) {
		return 0, false
	}
	return c.EndedBy, true
}

// clashes tells whether another event of this very pass has the id of e. One
// that says the same is no other.
func (ps *pass) clashes(e *event.Event) bool {
	for i := range ps.events {
		if o := &ps.events[i]; o.EventID == e.EventID {
			return o.Type != e.Type || o.WorkerID != e.WorkerID || o.CommandID != e.CommandID || o.NodeName != e.NodeName
		}
	}
	return false
}

// endedLongAgo finds the reported ends whose command the fold has forgotten
// because it ended long ago; its row still knows.
func (ps *pass) endedLongAgo(ctx context.Context, events []event.Event) (map[string]event.ID, error) {
	var over map[string]event.ID
	for i := range events {
		e := &events[i]
		id := issuedBy(e.CommandID)
		if !e.Type.IsCommandEnd() || id == 0 || ps.state.CommandByEvent(id) != nil {
			continue
		}
		row, err := ps.p.store.Command(ctx, ps.id, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, storeError("find command", err)
		case event.IsFinal(row.Status):
			if over == nil {
				over = make(map[string]event.ID)
			}
			if over[e.CommandID], err = ps.endOf(ctx, e.CommandID); err != nil {
				return nil, err
			}
		}
	}
	return over, nil
}

// endPages bounds how far back the end of a command is looked for; it only
// makes an answer more precise.
const endPages = 8

// endOf finds the event that ended a command in the newer part of the log.
func (ps *pass) endOf(ctx context.Context, commandID string) (event.ID, error) {
	end := ps.state.Seq()
	for range endPages {
		start := max(0, end-foldPage)
		events, err := ps.p.store.Events(ctx, ps.id, start, int(end-start))
		if err != nil {
			return 0, storeError("read events", err)
		}
		for _, e := range slices.Backward(events) {
			if e.CommandID == commandID && e.Type.IsCommandEnd() {
				return e.EventID, nil
			}
		}
		if end = start; end == 0 {
			break
		}
	}
	return 0, nil
}

// issuedBy is the id of the command.issued event in a command id of the form
// <execution>:<step>:<event>[:i<index>]; 0 when there is none.
func issuedBy(commandID string) event.ID {
	rest := commandID
	if i := strings.LastIndex(rest, ":i"); i > 0 && strings.Count(rest[:i], ":") >= 2 {
		rest = rest[:i]
	}
	id, err := event.ParseID(rest[strings.LastIndexByte(rest, ':')+1:])
	if err != nil {
		return 0
	}
	return id
}

// unseen tells whether an id made by a client is neither in the log, as far as
// the pass has learned, nor in this attempt.
func (ps *pass) unseen(id event.ID) bool {
	if _, stored := ps.known[id]; stored {
		return false
	}
	if _, twice := ps.seen[id]; twice {
		return false
	}
	if ps.seen == nil {
		ps.seen = make(map[event.ID]struct{}, 8)
	}
	ps.seen[id] = struct{}{}
	return true
}

func (in *reportInput) settle(ps *pass) {
	_ = failpoint.Hit(failpoint.ReportDurable)
	if !ps.reported {
		ps.reported = true
		in.ans.CommandsGenerated = ps.issued
	}
	for _, i := range in.held {
		in.ans.EventIDs[i] = 0
	}
	for i, id := range in.earlier {
		in.ans.EventIDs[i] = id
	}
	for _, c := range in.handed {
		w, err := ps.wire(c)
		if err != nil {
			ps.undelivered(c, err)
			continue
		}
		in.ans.Commands = append(in.ans.Commands, w)
	}
}
