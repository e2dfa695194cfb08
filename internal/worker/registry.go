package worker

import (
	"context"
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
	// pulse is how often a worker tells that it is alive.
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
		return
	}
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	r := &enrolment{w: w, registration: w.options.Registration}
	r.registration.Name, r.registration.Kind = w.options.ID, event.KindWorkerPool
	r.try(ctx)
	for {
		select {
		case <-ctx.Done():
			r.leave(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			r.try(ctx)
		}
	}
}

// enrolment is the worker's place in the registry. One goroutine owns it.
type enrolment struct {
	w            *Worker
	registration event.Registration
	known        bool
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
	r.known = true
	return nil
}

func (r *enrolment) leave(ctx context.Context) {
	if !r.known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	if _, err := r.w.options.Registry.Leave(ctx, r.registration.Kind, r.registration.Name); err != nil {
		r.w.log.Warn("worker stays in the registry until it is forgotten", "error", err)
	}
}
