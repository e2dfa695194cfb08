// Package failpoint names the places where tests let the program die or fail.
// In a usual build a place costs nothing and nothing can be switched on. A
// build with the tag `failpoints` reads NOETL_FAILPOINTS:
//
//	name=action[@n][;…]
//
// where the action happens at the n-th time the place is reached (1 when n is
// absent, each n-th time when n is preceded by a star), and is one of
//
//	kill          end the process at once, as kill -9 does
//	error         fail there; what was done so far stays done
//	delay:500ms   wait
//
// It must not know what the places mean.
package failpoint

// Point is the name of a place.
type Point string

// The places on the way of an event from a request to the log and on to a
// worker. Each name says what is already durable when it is reached.
const (
	AppendBefore Point = "append.before" // decided, nothing written
	AppendAfter  Point = "append.after"  // written, nobody told

	StartDurable  Point = "start.durable"  // an execution has begun, its caller does not know
	ClaimDurable  Point = "claim.durable"  // a command is claimed, its worker does not know
	ReportDurable Point = "report.durable" // a result is in the log, its worker does not know

	CommitBefore Point = "commit.before" // a group of appends is written but not committed
	CommitAfter  Point = "commit.after"  // committed, no append of the group has been answered

	PublishBefore Point = "publish.before" // a notification is due
	PublishAfter  Point = "publish.after"  // the broker has it

	WorkerClaimed  Point = "worker.claimed"  // a worker holds a command and has not begun
	WorkerRan      Point = "worker.ran"      // the tool has ended, nothing is reported
	WorkerReported Point = "worker.reported" // the report is acknowledged

	ChildBefore Point = "child.before" // a child execution is promised and not started
	TimerBefore Point = "timer.before" // a timer is due and has not fired

	RelayClaimed   Point = "relay.claimed"   // outbox rows are claimed, nothing is published
	RelayPublished Point = "relay.published" // published, and not marked so
)

// Points lists them all, for campaigns that try each.
func Points() []Point {
	return []Point{
		AppendBefore, AppendAfter, StartDurable, ClaimDurable, ReportDurable, CommitBefore, CommitAfter,
		PublishBefore, PublishAfter, WorkerClaimed, WorkerRan, WorkerReported, ChildBefore, TimerBefore,
		RelayClaimed, RelayPublished,
	}
}
