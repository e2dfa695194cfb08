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
	if err := p.tell(id, in); err != nil {
		return err
	}
	return await(ctx, in)
}

// askHere is ask for a caller that has nothing else to do, such as a slot of
// the local worker: when the mailbox is at rest it makes the pass itself, which
// spares two changes of goroutine.
func (p *Plane) askHere(ctx context.Context, id event.ID, in input) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	box, atRest, err := p.enqueue(id, in)
	if err != nil {
		return err
	}
	if atRest && p.step(box) {
		p.handOn(box)
	}
	return await(ctx, in)
}

func await(ctx context.Context, in input) error {
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

// reasonShutdown tells that the plane takes no more work.
const reasonShutdown = "shutdown"

// tell puts in into the execution's mailbox and leaves.
func (p *Plane) tell(id event.ID, in input) error {
	box, atRest, err := p.enqueue(id, in)
	if err == nil && atRest {
		p.handOn(box)
	}
	return err
}

// enqueue adds an input. When the mailbox was at rest the caller must see to
// it that it is served.
func (p *Plane) enqueue(id event.ID, in input) (box *mailbox, atRest bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, &event.Error{
			Code: event.Unavailable, Message: "the control plane is shutting down",
			Remedy: "try again", Reason: reasonShutdown,
		}
	}
	box, running := p.boxes[id]
	if !running {
		box = &mailbox{id: id}
		p.boxes[id] = box
		p.passes.Add(1)
	}
	if len(box.waiting) >= p.o.MailboxLimit {
		return nil, false, &event.Error{
			Code: event.Unavailable, Message: "too many requests wait for execution " + id.String(),
			Remedy: "try again", Reason: "mailbox_full",
		}
	}
	box.waiting = append(box.waiting, in)
	return box, !running, nil
}

// handOn has a mailbox served by one of the standing goroutines, or by one of
// its own when all are busy.
func (p *Plane) handOn(box *mailbox) {
	select {
	case p.free <- box:
	default:
		go p.serve(box)
	}
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
	for p.step(box) {
	}
}

// step makes one pass with everything that waits, and tells whether more came
// meanwhile. When not, the mailbox is at rest.
func (p *Plane) step(box *mailbox) (more bool) {
	p.mu.Lock()
	inputs := box.waiting
	box.waiting = nil
	p.mu.Unlock()
	p.pass(box.id, inputs)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(box.waiting) > 0 {
		return true
	}
	delete(p.boxes, box.id)
	p.passes.Done()
	return false
}
