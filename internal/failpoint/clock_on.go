//go:build failpoints

package failpoint

import (
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// clockFile names a file that holds a duration by which this process's clock
// is wrong. It is read again whenever it was not for a while, so that a test
// can move the clock of a process that runs.
const clockFile = "NOETL_CLOCK_FILE"

var (
	clockPath  = os.Getenv(clockFile)
	clockRead  atomic.Int64 // unix nanoseconds
	clockError atomic.Int64 // nanoseconds to add
)

// Now is the time, as wrong as a test wants it.
func Now() time.Time {
	now := time.Now()
	if clockPath == "" {
		return now
	}
	const keep = int64(20 * time.Millisecond)
	if last := clockRead.Load(); now.UnixNano()-last > keep && clockRead.CompareAndSwap(last, now.UnixNano()) {
		text, _ := os.ReadFile(clockPath)
		d, err := time.ParseDuration(strings.TrimSpace(string(text)))
		if err == nil {
			clockError.Store(int64(d))
		}
	}
	return now.Add(time.Duration(clockError.Load())).Round(0)
}
