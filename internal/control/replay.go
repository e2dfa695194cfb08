package control

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	replayLimit    = 10_000  // events folded when a request names no limit
	maxReplayLimit = 100_000 // events folded at most
	replayPage     = 1000    // events in memory at a time
)

// ReplayRequest asks what the log of an execution folds into. At most one of
// the three cutoffs may be set; all are inclusive.
type ReplayRequest struct {
	ExecutionID     event.ID
	TenantID        string // "default" when empty; echoed
	OrganizationID  string // "default" when empty; echoed
	AsOfEventID     *event.ID
	AsOfPosition    *event.ID // another name of AsOfEventID
	AsOfTime        *time.Time
	Projection      string // "" = all
	Limit           int    // 0 = 10000; cut to 1…100000
	Only            bool   // leave out the maps the projection does not ask for
	ResolvePayloads bool   // look up what the references refer to
	Snapshot        bool   // name the snapshot that was used, which changes the checksum
}

// ReplayAnswer is a state and, beside it and outside its checksum, what became
// of the request.
type ReplayAnswer struct {
	*replay.State
	Truncated        bool                      `json:"truncated,omitempty"`          // the limit kept events out
	NextAfterEventID event.ID                  `json:"next_after_event_id,omitzero"` // the last event folded, when truncated
	Resolutions      []replay.Resolution       `json:"payload_resolution,omitzero"`
	Resolved         *replay.ResolutionSummary `json:"payload_resolution_summary,omitempty"`
}

// Replay folds the log of an execution, or as much of it as the request's
// cutoff and limit let in. An execution without events has an empty state.
// BadRequest when the projection is unknown or there are several cutoffs.
//
// The answer does not depend on whether a snapshot spared some of the folding:
// one is used where it cannot make a difference, and named only on request.
func (p *Plane) Replay(ctx context.Context, r ReplayRequest) (ReplayAnswer, error) {
	o, err := r.options()
	if err != nil {
		return ReplayAnswer{}, err
	}
	cut, err := p.cutoffOf(ctx, &r)
	if err != nil {
		return ReplayAnswer{}, err
	}
	run, err := p.replayRun(ctx, o, cut, r.limit(), r.Snapshot)
	if err != nil {
		return ReplayAnswer{}, err
	}
	a := ReplayAnswer{State: run.fold.State(), Truncated: run.truncated}
	if run.truncated {
		a.NextAfterEventID = run.fold.Last()
	}
	if r.ResolvePayloads {
		rows, sum := a.Resolve(p.finder(ctx))
		a.Resolutions, a.Resolved = rows, &sum
	}
	if r.Only {
		a.State = a.Only(o.Projection)
	}
	return a, ctx.Err()
}

func (r *ReplayRequest) options() (replay.Options, error) {
	projection, err := replay.ParseProjection(r.Projection)
	if err != nil {
		return replay.Options{}, err
	}
	o := replay.Options{
		TenantID: r.TenantID, OrganizationID: r.OrganizationID, ExecutionID: r.ExecutionID, Projection: projection,
	}
	if o.TenantID == "" {
		o.TenantID = "default"
	}
	if o.OrganizationID == "" {
		o.OrganizationID = "default"
	}
	return o, nil
}

func (r *ReplayRequest) limit() int64 {
	if r.Limit == 0 {
		return replayLimit
	}
	return int64(min(max(r.Limit, 1), maxReplayLimit))
}

// cutoff is how much of a log counts. The zero value lets everything in.
type cutoff struct {
	none bool       // nothing at all
	seq  int64      // events up to this place; 0 = no bound
	id   *event.ID  // events with ids up to this one
	at   *time.Time // events created up to then
}

func (p *Plane) cutoffOf(ctx context.Context, r *ReplayRequest) (cutoff, error) {
	set := 0
	for _, given := range []bool{r.AsOfEventID != nil, r.AsOfPosition != nil, r.AsOfTime != nil} {
		if given {
			set++
		}
	}
	if set > 1 {
		return cutoff{}, event.Errorf(event.BadRequest, "only one of as_of_event_id, as_of_position and as_of_time may be used")
	}
	if r.AsOfTime != nil {
		at := r.AsOfTime.UTC()
		return cutoff{at: &at}, nil
	}
	id := r.AsOfEventID
	if id == nil {
		id = r.AsOfPosition
	}
	if id == nil {
		return cutoff{}, nil
	}
	// An event of this log stands for its place in it: ids of several writers do
	// not always rise with the log. Any other number is only compared with.
	e, err := p.store.Event(ctx, r.ExecutionID, *id)
	switch {
	case err == nil:
		return cutoff{seq: e.Seq}, nil
	case errors.Is(err, store.ErrNotFound):
		return cutoff{id: id, none: *id <= 0}, nil
	}
	return cutoff{}, storeError("read event", err)
}

func (c *cutoff) admits(e *event.Event) bool {
	return (c.id == nil || e.EventID <= *c.id) && (c.at == nil || !e.CreatedAt.After(*c.at))
}

// replaying is one fold of a log under way.
type replaying struct {
	p         *Plane
	fold      *replay.Fold
	cut       cutoff
	limit     int64 // events in the state, those of a snapshot included; 0 = no limit
	truncated bool
	camera    *camera // nil = takes no snapshot
}

// replayRun folds a log page by page.
func (p *Plane) replayRun(ctx context.Context, o replay.Options, cut cutoff, limit int64, named bool) (*replaying, error) {
	began := p.o.Clock()
	defer func() { p.metrics.ReplayTime.Observe(p.o.Clock().Sub(began).Seconds()) }()
	run := &replaying{p: p, cut: cut, limit: limit}
	base := p.thaw(ctx, &o, cut, limit, named)
	run.fold = replay.NewFold(o)
	run.camera = newCamera(o.ExecutionID, base, p.now())
	if cut.none {
		return run, nil
	}
	if err := run.read(ctx, o.ExecutionID, base.Seq); err != nil {
		return nil, err
	}
	if s := run.camera.take(run.fold); s != nil {
		if err := p.store.PutSnapshot(ctx, *s); err != nil {
			p.log.Warn("replay snapshot not stored", "execution_id", o.ExecutionID, "error", err)
		}
	}
	return run, nil
}

func (run *replaying) read(ctx context.Context, execution event.ID, after int64) error {
	for {
		page, err := run.p.store.Events(ctx, execution, after, replayPage)
		if err != nil {
			return storeError("read events", err)
		}
		for i := range page {
			if !run.apply(&page[i]) {
				return nil
			}
		}
		if len(page) < replayPage {
			return nil
		}
		after = page[len(page)-1].Seq
	}
}

// apply folds an event and tells whether to go on.
func (run *replaying) apply(e *event.Event) bool {
	if run.cut.seq > 0 && e.Seq > run.cut.seq {
		return false
	}
	if !run.cut.admits(e) {
		run.camera.skip(run.fold)
		return true
	}
	if run.limit > 0 && run.fold.Count() >= run.limit {
		run.truncated = true
		return false
	}
	run.camera.before(run.fold, e)
	run.fold.ApplyEvent(e)
	return true
}
