//go:build !failpoints

package failpoint

import "time"

// Now is the time.
func Now() time.Time { return time.Now() }
