package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// snapshotEvery is how many events a replay has to fold for the next one to
	// be spared them.
	snapshotEvery = 2000
	// snapshotAge is how old the events in a snapshot are at least. Clocks of
	// replicas differ by less.
	snapshotAge = 30 * time.Second
	// maxSnapshot bounds what is stored to save time.
	maxSnapshot = 8 << 20
)

// snapshotMeta tells which cutoffs let in everything a snapshot holds.
type snapshotMeta struct {
	HighestEventID event.ID  `json:"highest_event_id"`
	LatestAt       time.Time `json:"latest_created_at"`
}

func (m *snapshotMeta) add(e *event.Event) {
	m.HighestEventID = max(m.HighestEventID, e.EventID)
	if e.CreatedAt.After(m.LatestAt) {
		m.LatestAt = e.CreatedAt.UTC()
	}
}

// seed is where a replay starts: at the beginning, or at a snapshot.
type seed struct {
	Seq  int64
	meta snapshotMeta
}

// thaw sets the options up to go on from the snapshot of the execution. When
// there is none, or it cannot be read, or it holds what the cutoff or the limit
// keeps out, the fold starts at the beginning: a snapshot saves time and
// nothing else.
func (p *Plane) thaw(ctx context.Context, o *replay.Options, cut cutoff, limit int64, named bool) seed {
	if limit == 0 {
		return seed{}
	}
	snap, err := p.store.Snapshot(ctx, o.ExecutionID, replay.SnapshotType, replay.SnapshotID(o.ExecutionID))
	if err != nil {
		return seed{}
	}
	var m snapshotMeta
	if json.Unmarshal(snap.Meta, &m) != nil || !cut.holds(&snap, &m) {
		return seed{}
	}
	base, err := replay.Thaw(snap.State, snap.Checksum)
	if err != nil || base.LastEventID != snap.Version || base.EventCount != snap.Seq || base.EventCount > limit ||
		base.UpcasterDigest != o.UpcasterDigest {
		return seed{}
	}
	if e, err := p.store.Event(ctx, o.ExecutionID, snap.Version); err != nil || e.Seq != snap.Seq {
		return seed{}
	}
	o.Base = base
	if named {
		o.Seed = &replay.SnapshotNote{
			AggregateID: snap.ID, AggregateType: snap.Type, Version: snap.Version, Checksum: snap.Checksum, Meta: snap.Meta,
		}
	}
	return seed{Seq: snap.Seq, meta: m}
}

// holds tells whether the cutoff lets in everything a snapshot holds.
func (c *cutoff) holds(s *store.Snapshot, m *snapshotMeta) bool {
	return !c.none && (c.seq == 0 || s.Seq <= c.seq) &&
		(c.id == nil || m.HighestEventID <= *c.id) &&
		(c.at == nil || !m.LatestAt.After(*c.at))
}

// camera takes a snapshot of a fold at the last moment at which all events in
// it are old and none is left out.
type camera struct {
	execution event.ID
	began     int64 // events the fold began with
	seq       int64 // place of the last event folded
	meta      snapshotMeta
	ripe      time.Time // what is younger stays out
	done      bool
	now       time.Time
	shot      *store.Snapshot
}

func newCamera(execution event.ID, from seed, now time.Time) *camera {
	return &camera{execution: execution, began: from.Seq, seq: from.Seq, meta: from.meta, ripe: now.Add(-snapshotAge), now: now}
}

// before is told of each event about to be folded.
func (c *camera) before(f *replay.Fold, e *event.Event) {
	if c.done {
		return
	}
	if e.CreatedAt.After(c.ripe) || e.Seq != c.seq+1 {
		c.skip(f)
		return
	}
	c.seq = e.Seq
	c.meta.add(e)
}

// skip is told of an event that is left out: what follows is no prefix.
func (c *camera) skip(f *replay.Fold) {
	if !c.done {
		c.shot, c.done = c.expose(f), true
	}
}

// take is the snapshot, if the fold was worth one.
func (c *camera) take(f *replay.Fold) *store.Snapshot {
	c.skip(f)
	return c.shot
}

func (c *camera) expose(f *replay.Fold) *store.Snapshot {
	if c.seq-c.began < snapshotEvery {
		return nil
	}
	state, sum := f.Freeze()
	if len(state) > maxSnapshot {
		return nil
	}
	meta, err := json.Marshal(c.meta)
	if err != nil {
		return nil // a time no calendar has
	}
	return &store.Snapshot{
		ExecutionID: c.execution, Type: replay.SnapshotType, ID: replay.SnapshotID(c.execution),
		Version: f.Last(), Seq: c.seq, State: state, Checksum: sum, Meta: meta, UpdatedAt: c.now,
	}
}
