package control

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	errandQueue = 4096
	errandTime  = 30 * time.Second // with all its tries
	errandPause = 100 * time.Millisecond
)

// errand is work between executions that follows from a durable decision:
// starting a child, bringing its news to the parent, cancelling it. An errand
// may be lost; recovery sees from the log what is still to be done.
type errand func(ctx context.Context) error

// sent is an errand and the execution it follows from.
type sent struct {
	from event.ID
	do   errand
}

// send has an errand run in the background. When too many wait it is left to
// recovery.
func (p *Plane) send(from event.ID, do errand) {
	select {
	case p.errands <- sent{from, do}:
	default:
		p.log.Warn("too much to do between executions; recovery takes care of the rest", "execution_id", from)
	}
}

// runErrands runs errands until stop is closed.
func (p *Plane) runErrands(stop <-chan struct{}) {
	for {
		select {
		case e := <-p.errands:
			p.run(e)
		case <-stop:
			return
		}
	}
}

// run runs an errand, again and again while the system is not available.
func (p *Plane) run(e sent) {
	ctx, cancel := context.WithTimeout(p.work, errandTime)
	defer cancel()
	for pause := errandPause; ; pause *= 2 {
		err := e.do(ctx)
		if err == nil {
			return
		}
		if event.CodeOf(err) != event.Unavailable || reasonOf(err) == reasonShutdown || !sleep(ctx, pause) {
			p.log.Warn("errand between executions failed; recovery tries again", "execution_id", e.from, "error", err)
			return
		}
	}
}

func reasonOf(err error) string {
	e, _ := errors.AsType[*event.Error](err)
	if e == nil {
		return ""
	}
	return e.Reason
}
