package obs

import "slices"

// What a sweep made of what it found.
const (
	SweepCandidate  = "candidate"
	SweepRequeued   = "requeued"   // announced to other workers
	SweepTerminated = "terminated" // given up or ended
	SweepCapped     = "capped"     // left for the next sweep
)

// What became of values whose time may be over.
const (
	GCRemoved = "removed"
	GCKept    = "kept"
	GCFailed  = "failed"
)

// Sweeps are the metrics of what looks after things nobody else does.
type Sweeps struct {
	Orphans   Counter // outcome
	Stalled   Counter // outcome
	GC        Counter // outcome
	GCObjects Counter // class, action
}

func newSweeps(r *Registry, verdicts []string) Sweeps {
	return Sweeps{
		Orphans: r.Counter("noetl_orphan_sweep_total", "Commands whose worker fell silent, and what became of them.",
			Label{Name: "outcome", Values: []string{SweepCandidate, SweepRequeued, SweepTerminated, SweepCapped, Error}}),
		Stalled: r.Counter("noetl_nonconvergence_sweep_total", "Executions without progress, and what became of them.",
			Label{Name: "outcome", Values: slices.Concat([]string{SweepCandidate, SweepTerminated, SweepCapped, Error}, verdicts)}),
		GC: r.Counter("noetl_result_tier_gc_total", "Collections of values whose time is over.", Label{Name: "outcome", Values: []string{OK, Error}}),
		GCObjects: r.Counter("noetl_result_tier_gc_objects_total", "Values that collections looked at.",
			Label{Name: "class", Values: []string{"expired", "abandoned", "remains", "ended"}},
			Label{Name: "action", Values: []string{GCRemoved, GCKept, GCFailed}}),
	}
}
