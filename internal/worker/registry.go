package worker

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Registry is where workers make themselves known, so that people can see
// them. Work goes on without it.
type Registry interface {
	Enlist(ctx context.Context, r event.Registration) (event.Registered, error)
	// Beat is NotFound when the worker must enlist again.
	Beat(ctx context.Context, b event.Pulse) (event.PulseAnswer, error)
	Leave(ctx context.Context, kind, name string) (known bool, err error)
}

const (
	// pulse is how often a worker tells that it is alive unless told.
	pulse = 15 * time.Second
	// registryTime bounds one call of the registry, and leaveTime the last one:
	// a worker does not stay because nobody takes note of its leaving.
	registryTime = 10 * time.Second
	leaveTime    = 3 * time.Second
)

// enlisted keeps the worker in the registry until ctx ends, and then takes it
// out. What fails is tried again with the next pulse.
func (w *Worker) enlisted(ctx context.Context) {
	if w.options.Registry == nil {
		w.condition.registered(true)
		close(w.introduced)
		return
	}
	tick := time.NewTicker(w.options.Pulse)
	defer tick.Stop()
	r := &enrolment{w: w, registration: w.options.Registration}
	r.registration.Name, r.registration.Kind = w.options.ID, event.KindWorkerPool
	r.try(ctx)
	close(w.introduced)
	if !r.known { // it works from now on, so not all that has its name is its predecessor's
		r.registration.Runtime = withMember(r.registration.Runtime, "resumed", true)
	}
	leaving := w.leaving
	for {
		select {
		case <-ctx.Done():
			r.leave(context.WithoutCancel(ctx))
			return
		case <-leaving:
			leaving = nil
			if w.InFlight() == 0 {
				continue // it is gone in a moment
			}
			r.registration.Status = draining
			r.known = false // to be told as a whole
			r.try(ctx)
		case <-tick.C:
			r.try(ctx)
		}
	}
}

// draining is the status of a worker that takes no more commands.
const draining = "draining"

// withMember adds a member to an object; what is none stays as it is.
func withMember(raw json.RawMessage, name string, value any) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &members) != nil || members == nil {
		return raw
	}
	members[name] = encode(value)
	return encode(members)
}

// enrolment is the worker's place in the registry. One goroutine owns it.
type enrolment struct {
	w            *Worker
	registration event.Registration
	known        bool
	enlisted     bool // it was known once, so there is something to take out
	failing      bool
}

func (r *enrolment) try(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, registryTime)
	defer cancel()
	err := r.beat(call)
	switch {
	case ctx.Err() != nil:
	case err != nil && !r.failing:
		r.w.log.Warn("worker is not in the registry; commands are run all the same", "error", err)
	case err == nil && r.failing:
		r.w.log.Info("worker is in the registry again")
	}
	r.failing = err != nil
	r.w.condition.registered(r.known)
}

// beat enlists when the registry does not know the worker.
func (r *enrolment) beat(ctx context.Context) error {
	registry := r.w.options.Registry
	if r.known {
		// The commands beat for themselves, see beatUntil; an empty list says that
		// this pulse speaks for none of them.
		_, err := registry.Beat(ctx, event.Pulse{
			Name: r.registration.Name, Kind: r.registration.Kind, Commands: []event.Heartbeat{}, Registration: &r.registration,
		})
		if err == nil || event.CodeOf(err) != event.NotFound {
			return err
		}
		r.known = false
	}
	if _, err := registry.Enlist(ctx, r.registration); err != nil {
		return err
	}
	r.known, r.enlisted = true, true
	return nil
}

func (r *enrolment) leave(ctx context.Context) {
	if !r.enlisted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if _, err := r.w.options.Registry.Leave(ctx, r.registration.Kind, r.registration.Name); err != nil {
		r.w.log.Warn("worker stays in the registry until it is forgotten", "error", err)
	}
}
