package node

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostGrowth and leastGrowth bound, in percent, how far the heap may grow
	// between two collections.
	mostGrowth, leastGrowth = 400, 60
	// headroom is how many bytes of garbage may pile up in a large heap.
	headroom = 128 << 20
)

// TuneMemory lets the heap of a long-lived process grow further between
// collections than Go's default: our live data is mostly small and our garbage
// is many short-lived events, so collecting less often costs little memory and
// saves about a tenth of the processor. A large heap gets less of that, so that
// memory stays near what is in use. GOGC, when set, decides instead.
func TuneMemory() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	debug.SetGCPercent(mostGrowth)
	runtime.SetFinalizer(&afterCollection{growth: mostGrowth}, (*afterCollection).adjust)
}

// afterCollection is garbage at every collection and so learns of each.
type afterCollection struct{ growth int }

func (a *afterCollection) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if growth := growthFor(live[0].Value.Uint64()); growth != a.growth {
		a.growth = growth
		debug.SetGCPercent(growth)
	}
	runtime.SetFinalizer(a, (*afterCollection).adjust)
}

// growthFor is in steps, so that it does not change with every collection.
func growthFor(live uint64) int {
	if live == 0 {
		return mostGrowth
	}
	growth := int(headroom * 100 / live)
	return min(max(growth-growth%20, leastGrowth), mostGrowth)
}
