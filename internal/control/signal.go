package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/form"
)

const (
	// keptSignals bounds how many signals an execution keeps that nobody waits
	// for yet.
	keptSignals = 100
	// signalBytes bounds what may be sent with one; larger things are sent by
	// reference.
	signalBytes   = 256 << 10
	signalNameLen = 200
)

// SignalRequest is something that is sent to an execution.
type SignalRequest struct {
	event.SentSignal
	EventID event.ID     // made by the sender; what has the same id is sent once. 0 = any
	Actor   *event.Actor // nil where nobody is known
}

// SignalAnswer tells what became of a signal.
type SignalAnswer struct {
	Status  string // delivered, buffered, or duplicate when it had been sent before
	Woken   int    // commands that waited for it
	EventID event.ID
}

// Signal sends something to an execution. All commands that wait for it are
// woken; without one it is kept for the first that will. Invalid with the
// misfits when it does not fit the form of one that waits, NotFound when the
// execution is unknown, Conflict when it is over.
func (p *Plane) Signal(ctx context.Context, id event.ID, r SignalRequest) (SignalAnswer, error) {
	if err := checkSignal(&r); err != nil {
		return SignalAnswer{}, err
	}
	in := &signalInput{ticket: newTicket(), r: r, id: r.EventID}
	if in.id == 0 {
		in.id = p.o.IDs()
	}
	if err := p.ask(ctx, id, in); err != nil {
		return SignalAnswer{}, err
	}
	return in.ans, nil
}

func checkSignal(r *SignalRequest) error {
	r.Name = strings.TrimSpace(r.Name)
	switch {
	case r.Name == "":
		return event.Errorf(event.Invalid, "the name of the signal is missing")
	case len(r.Name) > signalNameLen:
		return event.Errorf(event.Invalid, "the name of the signal has %d bytes, at most %d are possible", len(r.Name), signalNameLen)
	case len(r.Data) > signalBytes:
		return &event.Error{
			Code: event.Limit, Message: fmt.Sprintf("the data of the signal has %d bytes, at most %d are possible", len(r.Data), signalBytes),
			Remedy: "store it as a result and send the reference",
		}
	case len(r.Key) > signalNameLen:
		return event.Errorf(event.Invalid, "Idempotency-Key: %d bytes are too many, at most %d are possible", len(r.Key), signalNameLen)
	case r.Index != nil && *r.Index < 0:
		return event.Errorf(event.Invalid, "index: want 0 or more, got %d", *r.Index)
	case len(r.Data) == 0:
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, r.Data); err != nil {
		return event.Errorf(event.Invalid, "the data of the signal is not JSON: %v", err)
	}
	r.Data = b.Bytes()
	return nil
}

// signalInput appends a signal and what follows from it.
type signalInput struct {
	ticket
	r   SignalRequest
	id  event.ID
	ans SignalAnswer
}

func (in *signalInput) apply(ctx context.Context, ps *pass) error {
	if !ps.fresh {
		return errStale
	}
	before, err := in.sentBefore(ctx, ps)
	if err != nil {
		return err
	}
	if before != 0 {
		in.ans = SignalAnswer{Status: "duplicate", EventID: before}
		return nil
	}
	if ps.state.Final() {
		return &event.Error{
			Code: event.Conflict, Reason: "already_ended",
			Message: "Execution " + ps.id.String() + " is over: " + ps.state.Summary().Status,
		}
	}
	waiting := ps.state.Awaiting(in.r.SentSignal)
	if err := fits(waiting, in.r.Data); err != nil {
		return err
	}
	if len(waiting) == 0 && ps.state.KeptSignals() >= keptSignals {
		return &event.Error{
			Code: event.Conflict, Reason: "too_many_signals",
			Message: fmt.Sprintf("%d signals are kept that nobody waits for; more are not", keptSignals),
			Remedy:  "check the name, or send it when a step waits for it",
		}
	}
	ps.add(actedBy(engine.Received(ps.state, in.r.SentSignal, in.id, ps.env), in.r.Actor))
	ps.decide = true
	in.ans = SignalAnswer{Status: "buffered", Woken: len(waiting), EventID: in.id}
	if len(waiting) > 0 {
		in.ans.Status = "delivered"
	}
	return nil
}

// sentBefore finds the event of the same signal, sent before under the same id
// or key; 0 when there is none.
func (in *signalInput) sentBefore(ctx context.Context, ps *pass) (event.ID, error) {
	if in.r.EventID == 0 && in.r.Key == "" {
		return 0, nil
	}
	for after := int64(0); ; {
		events, err := ps.p.store.Events(ctx, ps.id, after, foldPage)
		if err != nil {
			return 0, storeError("read events", err)
		}
		if len(events) > 0 {
			after = events[len(events)-1].Seq
		}
		last := len(events) < foldPage
		if last {
			events = append(events, ps.events...) // those of this very pass
		}
		for i := range events {
			if in.is(&events[i]) {
				return events[i].EventID, nil
			}
		}
		if last {
			return 0, nil
		}
	}
}

func (in *signalInput) is(e *event.Event) bool {
	if e.Type.Canonical() != event.SignalReceived {
		return false
	}
	if in.r.EventID != 0 && e.EventID == in.r.EventID {
		return true
	}
	var d struct {
		Context event.SentSignal `json:"context"`
	}
	return in.r.Key != "" && json.Unmarshal(e.Result, &d) == nil && d.Context.Key == in.r.Key && d.Context.Name == in.r.Name
}

// fits checks what is sent against the forms of all that wait for it: one
// signal is for all of them or for none.
func fits(waiting []event.SignalWait, data json.RawMessage) error {
	for _, w := range waiting {
		if len(w.Form) == 0 {
			continue
		}
		err := form.Fit(w.Form, data)
		if misfits, ok := errors.AsType[form.Misfits](err); ok {
			return &event.Error{
				Code: event.Invalid, Reason: "form", Err: misfits,
				Message: fmt.Sprintf("what was sent does not fit the form of step %s: %s", w.Step, misfits.Error()),
				Remedy:  "see what is asked for with: noetl waits " + executionOf(w.CommandID),
			}
		}
		if err != nil {
			return event.Errorf(event.Invalid, "the form of step %s cannot be used: %w", w.Step, err)
		}
	}
	return nil
}

// executionOf is the execution in a command id.
func executionOf(commandID string) string {
	id, _, _ := strings.Cut(commandID, ":")
	return id
}

// fitsForm is what the engine asks about signals that came before their wait.
func fitsForm(schema, data json.RawMessage) error { return form.Fit(schema, data) }

// Waits lists what an execution waits for that comes from outside, or with
// time. NotFound when it is unknown.
func (p *Plane) Waits(ctx context.Context, id event.ID) ([]event.SignalWait, error) {
	in := &waitsInput{ticket: newTicket()}
	if err := p.ask(ctx, id, in); err != nil {
		return nil, err
	}
	return in.found, nil
}

// waitsInput looks at a state and changes nothing.
type waitsInput struct {
	ticket
	found []event.SignalWait
}

func (in *waitsInput) apply(_ context.Context, ps *pass) error {
	if !ps.fresh {
		return errStale
	}
	in.found = ps.state.OutsideWaits()
	return nil
}
