package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

// audit is one execution as the log has it, beside its rows.
type audit struct {
	id       event.ID
	state    *engine.State
	replayed *replay.Fold    // the same log as clients replay it
	disputed map[string]bool // commands a replay cannot judge
	events   int64
	ids      []event.ID
	commands map[event.ID]*auditedCommand // by the event that issued them
	order    []event.ID                   // of issuing
	refs     []foundRef
	broken   []Difference // what is wrong with the log itself: nothing can be compared with such a one
	terminal int64        // sequence of the event that ended it

	row     *store.Execution // nil when absent
	present []store.Command
	purged  int64
}

type auditedCommand struct {
	row  store.Command
	held *engine.Command
	seq  int64 // of the event that changed it last
}

// readAudit reads the log and the rows of an execution. settled tells that
// nobody wrote in between, so that both can be compared.
func readAudit(ctx context.Context, db store.Store, id event.ID) (a *audit, settled bool, err error) {
	before, err := rowOf(ctx, db, id)
	if err != nil {
		return nil, false, err
	}
	a = &audit{
		id: id, state: engine.NewState(id), replayed: replay.NewFold(replay.Options{ExecutionID: id}),
		commands: make(map[event.ID]*auditedCommand), disputed: make(map[string]bool),
	}
	if err := a.fold(ctx, db); err != nil {
		return nil, false, err
	}
	if a.present, err = db.CommandsOf(ctx, id); err != nil {
		return nil, false, storeError("read commands", err)
	}
	if a.row, err = rowOf(ctx, db, id); err != nil {
		return nil, false, err
	}
	more, err := db.Events(ctx, id, a.events, 1)
	if err != nil {
		return nil, false, storeError("read events", err)
	}
	same := before == nil && a.row == nil || before != nil && a.row != nil && before.LastSeq == a.row.LastSeq
	return a, same && (len(more) == 0 || len(a.broken) > 0), nil
}

func rowOf(ctx context.Context, db store.Store, id event.ID) (*store.Execution, error) {
	row, err := db.Execution(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("read execution", err)
	}
	return &row, nil
}

// fold reads the log a page at a time. It stops at the first gap: what comes
// after it means nothing.
func (a *audit) fold(ctx context.Context, db store.Store) error {
	for {
		page, err := db.Events(ctx, a.id, a.events, foldPage)
		if err != nil {
			return storeError("read events", err)
		}
		for i := range page {
			if !a.apply(&page[i]) {
				return nil
			}
		}
		if len(page) < foldPage {
			a.checkIDs()
			return nil
		}
	}
}

func (a *audit) apply(e *event.Event) bool {
	if e.Seq != a.events+1 {
		a.damage(a.events+1, DifferentGap, "", "event "+strconv.FormatInt(a.events+1, 10), "event "+strconv.FormatInt(e.Seq, 10))
		return false
	}
	a.events = e.Seq
	a.ids = append(a.ids, e.EventID)
	a.checkEvent(e)
	a.refs = append(a.refs, referencesOf(e)...)
	a.replayed.ApplyEvent(e)
	eff := a.state.Apply(e)
	if eff.Command != nil {
		a.note(eff.Command, e.Seq)
	}
	// A replay takes every event at its word; the engine knows which came late
	// or from somebody who had lost the command, and that a command can wait.
	if e.CommandID != "" && (eff.Ignored != "" || e.Type.Canonical() == event.CommandParked || eff.Ended != e.Type.IsCommandEnd()) {
		a.disputed[e.CommandID] = true
	}
	e.Detail = nil
	return true
}

// checkEvent checks what can be said of an event by its place in the log.
func (a *audit) checkEvent(e *event.Event) {
	start := e.Type.Canonical() == event.PlaybookStarted
	if where, ok := unreadable(e); ok {
		a.damage(e.Seq, DifferentContent, where, "what was written", "something that cannot be read")
	}
	switch {
	case e.ExecutionID != a.id:
		a.damage(e.Seq, DifferentForeign, "", "execution "+a.id.String(), "execution "+e.ExecutionID.String())
	case start != (e.Seq == 1):
		want := "the start, as the first event"
		if start {
			want = "one start"
		}
		a.damage(e.Seq, DifferentStart, "", want, string(e.Type))
	case e.Type.IsTerminal() && a.terminal != 0:
		a.damage(e.Seq, DifferentTerminal, "", "one end, which is event "+strconv.FormatInt(a.terminal, 10), string(e.Type))
	case e.Type.IsTerminal():
		a.terminal = e.Seq
	}
}

// unreadable finds the part of an event that no event is written with. The fold
// passes over such a part, so rows made from it would lose what they know.
func unreadable(e *event.Event) (where string, ok bool) {
	if e.Type == "" {
		return "event_type", true
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"context", e.Context}, {"result", e.Result}, {"meta", e.Meta}} {
		if len(part.raw) > 0 && !json.Valid(part.raw) {
			return part.name, true
		}
	}
	return "", false
}

// checkIDs finds event ids that occur twice.
func (a *audit) checkIDs() {
	slices.Sort(a.ids)
	for i := 1; i < len(a.ids); i++ {
		if a.ids[i] == a.ids[i-1] {
			a.damage(0, DifferentEventID, "event "+a.ids[i].String(), "one event of this id", "several")
			break
		}
	}
	a.ids = nil
}

func (a *audit) note(c *engine.Command, seq int64) {
	known := a.commands[c.EventID]
	if known == nil {
		known = &auditedCommand{}
		a.commands[c.EventID] = known
		a.order = append(a.order, c.EventID)
	}
	known.row = foldedCommand(c, a.id, a.state.Summary().CatalogID, a.state.Pool())
	known.seq, known.held = seq, nil
	if held(c.Status) {
		known.held = c
	}
}

func (a *audit) damage(seq int64, what, where, want, got string) {
	a.broken = append(a.broken, Difference{
		ExecutionID: event.StringID(a.id), Seq: seq, What: what, Where: where, Want: want, Got: got,
	})
}

func (a *audit) status() string {
	if len(a.broken) > 0 {
		return "BROKEN"
	}
	return a.state.Summary().Status
}
