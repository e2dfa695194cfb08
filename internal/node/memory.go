package node

import (
	"os"
	"runtime/debug"
)

// TuneMemory lets the heap of a long-lived process grow further between
// collections than Go's default: our live data is small and our garbage is
// many short-lived events, so collecting less often costs little memory and
// saves about a tenth of the processor. GOGC, when set, decides instead.
func TuneMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(400)
	}
}
