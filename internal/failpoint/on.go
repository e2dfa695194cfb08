//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Enabled tells whether places can be switched on in this build.
const Enabled = true

// trap is what happens at a place.
type trap struct {
	rule
	hits atomic.Int64
}

var traps atomic.Pointer[map[Point]*trap]

// Configure replaces what happens where. It is called once, at start.
func Configure(spec string) error {
	rules, err := parse(spec)
	if err != nil {
		return err
	}
	set := make(map[Point]*trap, len(rules))
	for _, r := range rules {
		set[r.point] = &trap{rule: r}
	}
	traps.Store(&set)
	return nil
}

// Hit marks a place. The error is what was asked for there.
func Hit(p Point) error {
	set := traps.Load()
	if set == nil {
		return nil
	}
	t := (*set)[p]
	if t == nil || !t.due(t.hits.Add(1)) {
		return nil
	}
	switch t.action {
	case kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal arrives before anything else happens here
	case delay:
		<-time.After(t.pause)
		return nil
	default:
		return &event.Error{Code: event.Unavailable, Message: fmt.Sprintf("failpoint %s: no answer in time", p), Reason: "failpoint"}
	}
}
