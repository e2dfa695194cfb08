package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	projectMost    = 1000 // events one call may bring
	projectWorkers = 8    // executions looked at side by side
)

// Taken tells what became of events that came from outside.
type Taken struct {
	Stored     int // new in the log
	Duplicates int // there before, or without news
	Rejected   []Rejection
}

// Rejection tells why one event was not taken.
type Rejection struct {
	Index int    `json:"index"`
	Error string `json:"error"`
}

// foreign is one event from outside.
type foreign struct {
	index     int
	execution event.ID
	worker    string
	incoming  event.Incoming
	original  *event.Event // what a report cannot say; nil when there is no more
}

// Project takes events as the stream carries them into the logs of their
// executions. Those already there are left alone, so that a batch can be
// delivered any number of times; one that cannot be taken does not hinder the
// others. An error means that nothing is certain and all may be sent again.
func (p *Plane) Project(ctx context.Context, events []event.Event) (Taken, error) {
	items := make([]foreign, len(events))
	for i := range events {
		e := &events[i]
		items[i] = foreign{
			index: i, execution: e.ExecutionID, worker: e.WorkerID, original: e,
			incoming: event.Incoming{
				EventID: e.EventID, Step: e.NodeName, Type: e.Type, Status: e.Status, Payload: payloadOf(e), Meta: metaWithCommand(e), CreatedAt: e.CreatedAt,
			},
		}
	}
	return p.counted(p.take(ctx, items, true))
}

// Materialize takes events as workers report them, of any executions.
func (p *Plane) Materialize(ctx context.Context, reports []event.Report) (Taken, error) {
	var items []foreign
	for i, r := range reports {
		for _, in := range r.Events {
			items = append(items, foreign{index: i, execution: r.ExecutionID, worker: r.WorkerID, incoming: in})
		}
	}
	return p.counted(p.take(ctx, items, false))
}

// counted counts what became of events from outside.
func (p *Plane) counted(t Taken, err error) (Taken, error) {
	p.metrics.Projected.Add(float64(t.Stored))
	p.metrics.ProjectedTwice.Add(float64(t.Duplicates))
	return t, err
}

// metaWithCommand is the meta by which a report names its command: who may end
// it is decided by that.
func metaWithCommand(e *event.Event) json.RawMessage {
	if e.CommandID == "" {
		return e.Meta
	}
	named := *e
	if !isObject(named.Meta) {
		named.Meta = nil
	}
	return metaOf(&named)
}

// payloadOf is what a worker reported to cause the event.
func payloadOf(e *event.Event) json.RawMessage {
	var r struct {
		Context json.RawMessage `json:"context"`
	}
	if err := json.Unmarshal(e.Result, &r); err == nil && isObject(r.Context) {
		return r.Context
	}
	if isObject(e.Context) {
		return e.Context
	}
	return nil
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// take groups events by execution and has each group appended at once.
func (p *Plane) take(ctx context.Context, items []foreign, needID bool) (Taken, error) {
	if len(items) == 0 {
		return Taken{}, event.Errorf(event.BadRequest, "there are no events in the request")
	}
	if len(items) > projectMost {
		return Taken{}, event.Errorf(event.Limit, "%d events in one request: at most %d are accepted", len(items), projectMost)
	}
	var total Taken
	groups := map[event.ID][]foreign{}
	for _, it := range items {
		switch {
		case needID && it.incoming.EventID == 0:
			total.reject(it, "event_id is missing")
		case it.execution == 0:
			total.reject(it, "execution_id is missing")
		case it.incoming.Type == "":
			total.reject(it, "event_type is missing")
		default:
			groups[it.execution] = append(groups[it.execution], it)
		}
	}
	ids := slices.Sorted(maps.Keys(groups))
	parts := make([]Taken, len(ids))
	side, ctx := errgroup.WithContext(ctx)
	side.SetLimit(projectWorkers)
	for i, id := range ids {
		side.Go(func() (err error) {
			parts[i], err = p.takeGroup(ctx, id, groups[id])
			return err
		})
	}
	if err := side.Wait(); err != nil {
		return Taken{}, err
	}
	for _, part := range parts {
		total.Stored += part.Stored
		total.Duplicates += part.Duplicates
		total.Rejected = append(total.Rejected, part.Rejected...)
	}
	slices.SortStableFunc(total.Rejected, func(a, b Rejection) int { return cmp.Compare(a.Index, b.Index) })
	return total, nil
}

func (t *Taken) reject(it foreign, why string) {
	t.Rejected = append(t.Rejected, Rejection{Index: it.index, Error: why})
}

// takeGroup takes the events of one execution.
func (p *Plane) takeGroup(ctx context.Context, id event.ID, items []foreign) (Taken, error) {
	var t Taken
	if _, err := p.Execution(ctx, id); event.CodeOf(err) == event.NotFound && err != nil {
		for _, it := range items {
			t.reject(it, err.Error())
		}
		return t, nil
	} else if err != nil {
		return t, storeError("find execution", err)
	}
	fresh, err := p.unstored(ctx, id, items)
	if err != nil {
		return t, err
	}
	t.Duplicates = len(items) - len(fresh)
	var asked []event.ID
	for run := range runs(fresh) {
		ids, err := p.takeRun(ctx, id, run, &t)
		if err != nil {
			return t, err
		}
		asked = append(asked, ids...)
	}
	if len(asked) == 0 {
		return t, nil
	}
	// What a report says twice, or about a command that has ended, is not stored.
	stored, err := p.store.EventIDs(ctx, id, asked)
	if err != nil {
		return t, storeError("look up events", err)
	}
	t.Stored += len(stored)
	t.Duplicates += len(asked) - len(stored)
	return t, nil
}

// unstored leaves out what the log holds and what comes twice.
func (p *Plane) unstored(ctx context.Context, id event.ID, items []foreign) ([]foreign, error) {
	var ids []event.ID
	for _, it := range items {
		if it.incoming.EventID != 0 {
			ids = append(ids, it.incoming.EventID)
		}
	}
	stored, err := p.store.EventIDs(ctx, id, ids)
	if err != nil {
		return nil, storeError("look up events", err)
	}
	known := make(map[event.ID]bool, len(items))
	for _, s := range stored {
		known[s] = true
	}
	var fresh []foreign
	for _, it := range items {
		if e := it.incoming.EventID; e != 0 && known[e] {
			continue
		}
		known[it.incoming.EventID] = true
		fresh = append(fresh, it)
	}
	return fresh, nil
}

// runs are the stretches of events that one worker sent.
func runs(items []foreign) func(yield func([]foreign) bool) {
	return func(yield func([]foreign) bool) {
		for len(items) > 0 {
			n := 1
			for n < len(items) && items[n].worker == items[0].worker {
				n++
			}
			if !yield(items[:n]) {
				return
			}
			items = items[n:]
		}
	}
}

// takeRun reports events of one worker as a whole, or one by one when the whole
// is refused. It returns the ids of those that were accepted.
func (p *Plane) takeRun(ctx context.Context, id event.ID, run []foreign, t *Taken) ([]event.ID, error) {
	in := p.foreignReport(id, run)
	err := p.ask(ctx, id, in)
	switch {
	case err == nil:
		ids := make([]event.ID, len(in.incoming)) // the answer may name others, which say the same
		for i := range in.incoming {
			ids[i] = in.incoming[i].EventID
		}
		return ids, nil
	case unknownOutcome(err):
		return nil, err
	case len(run) == 1:
		t.reject(run[0], err.Error())
		return nil, nil
	}
	var ids []event.ID
	for i := range run {
		one, err := p.takeRun(ctx, id, run[i:i+1], t)
		if err != nil {
			return nil, err
		}
		ids = append(ids, one...)
	}
	return ids, nil
}

func (p *Plane) foreignReport(id event.ID, run []foreign) *reportInput {
	in := &reportInput{
		ticket: newTicket(), execution: id, worker: run[0].worker,
		incoming: make([]event.Incoming, len(run)), minted: make([]bool, len(run)),
		ans: event.ReportAnswer{Status: "ok", EventIDs: make([]event.ID, len(run))},
	}
	for i := range run {
		in.incoming[i] = run[i].incoming
		if in.incoming[i].EventID == 0 {
			in.incoming[i].EventID, in.minted[i] = p.o.IDs(), true
		}
		in.ans.EventIDs[i] = in.incoming[i].EventID
		if in.incoming[i].Type == event.CommandHeartbeat {
			in.beats = append(in.beats, i) // too old to tell that somebody lives
		}
	}
	in.complete = func(i int, e *event.Event) {
		if from := run[i].original; from != nil {
			fill(e, from)
		}
	}
	return in
}

// fill adds to a reported event what its envelope knows beyond a report.
func fill(e, from *event.Event) {
	e.ParentEventID = cmp.Or(e.ParentEventID, from.ParentEventID)
	e.ParentExecutionID = cmp.Or(e.ParentExecutionID, from.ParentExecutionID)
	e.NodeType = cmp.Or(e.NodeType, from.NodeType)
	e.Error = cmp.Or(e.Error, from.Error)
	e.CommandID = cmp.Or(e.CommandID, from.CommandID)
	e.Duration = max(from.Duration, 0)
	if given(from.Context) {
		e.Context = from.Context
	}
	if given(from.Result) {
		e.Result = resultOf(from.Result, e.Status)
	}
	e.Detail = nil // the fold sees what a reader of the log will see
}

func given(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}

// resultOf brings a result into the shape all results have: a status, and a
// reference or a context. Whatever else it is becomes the context.
func resultOf(raw json.RawMessage, status string) json.RawMessage {
	var fields map[string]json.RawMessage
	proper := json.Unmarshal(raw, &fields) == nil
	for key, v := range fields {
		switch key {
		case "status":
			var word string
			proper = proper && json.Unmarshal(v, &word) == nil && given(v)
		case "reference", "context":
			proper = proper && isObject(v)
		default:
			proper = false
		}
	}
	if proper && given(fields["status"]) {
		return raw
	}
	if !proper {
		if !isObject(raw) {
			raw, _ = marshal(map[string]json.RawMessage{"value": raw})
		}
		fields = map[string]json.RawMessage{"context": raw}
	}
	fields["status"], _ = marshal(status)
	whole, err := marshal(fields)
	if err != nil { // all of it was read from JSON
		return nil
	}
	return whole
}

// Advanced is an execution that was looked at again.
type Advanced struct {
	ExecutionID event.ID `json:"execution_id"`
	Version     int64    `json:"version"` // sequence of its last event
	Events      int64    `json:"events"`  // how many the look added
}

// NotAdvanced is one that could not be.
type NotAdvanced struct {
	ExecutionID event.ID `json:"execution_id"`
	Error       string   `json:"error"`
}

// Advance decides again on executions, as recovery does by itself after a while.
func (p *Plane) Advance(ctx context.Context, ids []event.ID) ([]Advanced, []NotAdvanced, error) {
	if len(ids) == 0 {
		return nil, nil, event.Errorf(event.BadRequest, "execution_ids is empty: name the executions to look at")
	}
	if len(ids) > projectMost {
		return nil, nil, event.Errorf(event.Limit, "%d executions in one request: at most %d are accepted", len(ids), projectMost)
	}
	advanced, failed := make([]Advanced, 0, len(ids)), []NotAdvanced{}
	for _, id := range ids {
		a, err := p.advance(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil, nil, gaveUp(ctx.Err())
		case err != nil:
			failed = append(failed, NotAdvanced{id, err.Error()})
		default:
			advanced = append(advanced, a)
			p.metrics.ProjectionAdvanced.Inc()
		}
	}
	return advanced, failed, nil
}

func (p *Plane) advance(ctx context.Context, id event.ID) (Advanced, error) {
	before, err := p.Execution(ctx, id)
	if err != nil {
		return Advanced{}, err
	}
	after := before
	if !event.IsFinal(before.Status) {
		if err := p.ask(ctx, id, &nudgeInput{ticket: newTicket()}); err != nil {
			return Advanced{}, err
		}
		if after, err = p.Execution(ctx, id); err != nil {
			return Advanced{}, err
		}
	}
	return Advanced{ExecutionID: id, Version: after.LastSeq, Events: after.LastSeq - before.LastSeq}, nil
}
