package control

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
)

// input is one wish addressed to an execution.
type input interface {
	// apply makes the wish part of a pass. It is called again after a conflict
	// and then starts from scratch. An error refuses this input alone; the
	// state must be as before.
	apply(ctx context.Context, ps *pass) error
	// settle builds the answer once the pass is durable.
	settle(ps *pass)
	// answer ends the caller's wait.
	answer(err error)
	// wait is where the answer arrives.
	wait() <-chan error
}

// ticket is the waiting side every input embeds.
type ticket struct{ done chan error }

func newTicket() ticket { return ticket{done: make(chan error, 1)} }

func (t ticket) answer(err error)   { t.done <- err }
func (t ticket) wait() <-chan error { return t.done }
func (t ticket) settle(*pass)       {}

// mailbox holds what waits for one execution while its goroutine runs.
type mailbox struct {
	id      event.ID
	waiting []input // guarded by Plane.mu
}

// ask puts in into the execution's mailbox and waits for the answer. The end
// of ctx ends the wait, not the work.
func (p *Plane) ask(ctx context.Context, id event.ID, in input) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	if err := p.enqueue(id, in); err != nil {
		return err
	}
	select {
	case err := <-in.wait():
		return err
	case <-ctx.Done():
		return gaveUp(ctx.Err())
	}
}

func gaveUp(err error) error {
	return &event.Error{
		Code: event.Unavailable, Message: "the request ended before the answer was ready",
		Remedy: "try again", Err: err,
	}
}

// enqueue adds an input and starts the mailbox's goroutine when none runs.
func (p *Plane) enqueue(id event.ID, in input) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return &event.Error{
			Code: event.Unavailable, Message: "the control plane is shutting down",
			Remedy: "try again", Reason: "shutdown",
		}
	}
	box, running := p.boxes[id]
	if !running {
		box = &mailbox{id: id}
		p.boxes[id] = box
		p.passes.Add(1)
		select {
		case p.free <- box:
		default:
			go p.serve(box)
		}
	}
	if len(box.waiting) >= p.o.MailboxLimit {
		return &event.Error{
			Code: event.Unavailable, Message: "too many requests wait for execution " + id.String(),
			Remedy: "try again", Reason: "mailbox_full",
		}
	}
	box.waiting = append(box.waiting, in)
	return nil
}

// stand serves one mailbox after the other. A goroutine that lives on has its
// stack grown already, which a new one per mailbox would pay for each time.
func (p *Plane) stand(stop <-chan struct{}) {
	for {
		select {
		case box := <-p.free:
			p.serve(box)
		case <-stop:
			return
		}
	}
}

// serve makes passes until nothing waits.
func (p *Plane) serve(box *mailbox) {
	defer p.passes.Done()
	for {
		p.mu.Lock()
		inputs := box.waiting
		box.waiting = nil
		if len(inputs) == 0 {
			delete(p.boxes, box.id)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.pass(box.id, inputs)
	}
}
