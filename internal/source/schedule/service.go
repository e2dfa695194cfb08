// Package schedule starts executions when their time has come. Every replica
// runs it; what becomes of a tick is decided by one compare-and-set of the
// schedule's row, and the start of its execution takes a claim of the tick, so
// that a tick that was decided is started once, whoever dies in between. It
// must not know how executions are started and stored, nor who asks.
package schedule

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
	_ "time/tzdata" // time zones must not depend on what a machine has installed

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// Start asks for the execution of a tick.
type Start struct {
	Schedule event.ID
	Key      string // of the tick; the same key starts one execution
	Window   time.Duration
	Path     string
	Version  int
	Pool     string
	Payload  []byte
	By       *event.Actor // who made the schedule what it is; nil where nobody is known
}

type starterKey struct{}

// By says in whose name schedules are made and changed: what they start may do
// no more than that.
func By(ctx context.Context, who *event.Actor) context.Context {
	return context.WithValue(ctx, starterKey{}, who)
}

func starter(ctx context.Context) *event.Actor {
	who, _ := ctx.Value(starterKey{}).(*event.Actor)
	return who
}

// Executions is what a scheduler needs of the control plane.
type Executions interface {
	// Start starts the execution of a tick, once: started is false when it was
	// started before. Unavailable when whether it was is not known.
	Start(ctx context.Context, s Start) (id event.ID, started bool, err error)
	// Status is how an execution stands, and when it ended. NotFound when it is
	// not kept any more.
	Status(ctx context.Context, id event.ID) (status string, ended time.Time, err error)
	// Cancel ends an execution and what it started; one that ended is none of its business.
	Cancel(ctx context.Context, id event.ID, reason string) error
}

// Options make a Service. Store, Executions and IDs are required.
type Options struct {
	Store      store.Schedules
	Executions Executions
	IDs        func() event.ID
	Clock      func() time.Time // time.Now when nil
	Logger     *slog.Logger     // nil discards
	Metrics    *obs.Schedules   // nil counts nothing
}

const (
	poll       = 2 * time.Second // how often others' changes are looked for
	batch      = 64              // schedules looked at in one round
	lookers    = 8               // schedules looked at at once
	lookTime   = time.Minute     // one look
	backoff    = time.Second     // after a round that failed
	history    = 30 * 24 * time.Hour
	purgeEvery = 10 * time.Minute
	purgeMost  = 5000
	casTries   = 20 // changes tried against others that are first
)

// Service keeps schedules and fires them. Make one with New.
type Service struct {
	o      Options
	wake   chan struct{}
	purged time.Time // only the loop writes it
}

// New makes a service; Run fires.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = obs.NewSchedules(&obs.Registry{})
	}
	return &Service{o: o, wake: make(chan struct{}, 1)}
}

func (s *Service) now() time.Time { return s.o.Clock().UTC().Truncate(time.Microsecond) }

// Wake has the service look at once.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run fires schedules until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.wake:
		}
		timer.Reset(s.round(ctx))
	}
}

// round looks at what is due and returns how long nothing will be.
func (s *Service) round(ctx context.Context) time.Duration {
	now := s.now()
	s.purge(ctx, now)
	asking, cancel := context.WithTimeout(ctx, lookTime)
	rows, err := s.o.Store.DueSchedules(asking, now.Add(poll), batch)
	cancel()
	if err != nil {
		s.complain(ctx, "schedules cannot be read", 0, err)
		return backoff + rand.N(backoff)
	}
	due, wait := rows, poll-rand.N(poll/8)
	for i := range rows {
		if rows[i].WakeAt.After(now) {
			due, wait = rows[:i], min(wait, rows[i].WakeAt.Sub(now))
			break
		}
	}
	if len(due) == 0 {
		return wait
	}
	if s.lookAll(ctx, due) {
		return 0 // what they wait for next is in the store
	}
	return backoff
}

// lookAll looks at schedules, a few at once, and tells whether that went well.
func (s *Service) lookAll(ctx context.Context, due []store.Schedule) bool {
	var (
		mu sync.Mutex
		ok = true
	)
	var all errgroup.Group
	all.SetLimit(lookers)
	for i := range due {
		all.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			if err := s.look(ctx, due[i]); err != nil {
				s.complain(ctx, "schedule was not looked at", due[i].ScheduleID, err)
				mu.Lock()
				ok = false
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // each told of its own failure
	return ok
}

func (s *Service) complain(ctx context.Context, message string, id event.ID, err error) {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return
	}
	if id != 0 {
		s.o.Logger.Warn(message, "schedule", id, "error", err)
		return
	}
	s.o.Logger.Warn(message, "error", err)
}

// purge forgets runs that ended long ago, and counts the schedules while it is at it.
func (s *Service) purge(ctx context.Context, now time.Time) {
	if now.Sub(s.purged) < purgeEvery {
		return
	}
	s.purged = now
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	if _, err := s.o.Store.PurgeScheduleRuns(ctx, now.Add(-history), purgeMost); err != nil {
		s.complain(ctx, "old runs of schedules were not removed", 0, err)
	}
}

// Count tells how many schedules there are in each state, for the gauge.
func (s *Service) Count(ctx context.Context) error {
	counts, err := s.o.Store.CountSchedules(ctx)
	if err != nil {
		return err
	}
	for _, state := range obs.ScheduleStates {
		s.o.Metrics.Kept.Set(float64(counts[state]), state)
	}
	return nil
}
