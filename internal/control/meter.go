package control

import (
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

// eventTypes are those that are counted by name.
var eventTypes = []event.Type{
	event.PlaybookStarted, event.PlaybookCompleted, event.PlaybookFailed, event.PlaybookCancelled,
	event.StepEnter, event.StepExit, event.StepSkipped, event.StepFailed, event.LoopDone,
	event.CommandIssued, event.CommandClaimed, event.CommandStarted, event.CommandCompleted, event.CommandFailed,
	event.CommandCancelled, event.CommandReleased, event.CommandParked, event.CommandHeartbeat, event.CallDone, event.CallError,
	event.SignalReceived,
}

// jobStates are the ends of a job that are counted by name.
var jobStates = []string{"succeeded", "failed", "failed_image_pull", "failed_oom", "failed_node_lost", "failed_timeout"}

// NewMetrics makes the metrics of a server in the words of this package.
func NewMetrics(version string) *obs.Metrics { return NewMetricsIn(version, "") }

// NewMetricsIn makes those of a server in a region.
func NewMetricsIn(version, region string) *obs.Metrics {
	v := obs.Vocabulary{
		Pools: []string{"shared", "system", "subscription"}, JobStates: jobStates, Verdicts: verdicts, Surfaces: surfaces,
		Version: version, Region: region,
	}
	for _, t := range eventTypes {
		v.EventTypes = append(v.EventTypes, string(t))
	}
	return obs.New(v)
}

// verdicts are those on silent executions that are counted by name.
var verdicts = []string{
	VerdictLiveClaim, VerdictTimer, VerdictBusyPool, VerdictCallback, VerdictChild, VerdictParentActive, VerdictNudged, VerdictWouldFail,
}

// surfaces are the rows that a log is compared with.
const (
	surfaceExecution = "execution"
	surfaceCommand   = "command"
)

var surfaces = []string{surfaceExecution, surfaceCommand}

// mismatched counts contradictions between a log and its rows. Those about
// commands name one.
func (p *Plane) mismatched(differences []string) {
	for _, d := range differences {
		surface := surfaceExecution
		if strings.HasPrefix(d, "command ") {
			surface = surfaceCommand
		}
		p.metrics.ParityMismatches.Inc(surface)
	}
}

// phase counts the time since began and returns now.
func (p *Plane) phase(name string, began time.Time) time.Time {
	now := p.o.Clock()
	p.metrics.IngestPhase.Observe(now.Sub(began).Seconds(), name)
	return now
}

// stored counts events by whether they go to the outbox.
func (p *Plane) stored(events []event.Event, publish bool) {
	if publish {
		for i := range events {
			p.metrics.Outboxed.Inc(string(events[i].Type.Canonical()))
		}
		return
	}
	reason := obs.SkippedOff
	if p.o.Outbox.On {
		reason = obs.SkippedSystem
	}
	p.metrics.NotOutboxed.Add(float64(len(events)), reason)
}

// finished counts an execution that has just ended.
func (ps *pass) finished() {
	if sum := ps.state.Summary(); ps.state.Final() && !sum.StartedAt.IsZero() {
		ps.p.metrics.ExecutionTime.Observe(max(ps.env.Now.Sub(sum.StartedAt).Seconds(), 0), sum.Status)
	}
}

// outcome is the word under which an operation is counted.
func outcome(err error) string {
	if err == nil {
		return obs.OK
	}
	switch event.CodeOf(err) {
	case event.Invalid, event.BadRequest, event.NotFound, event.Conflict, event.Unauthorized, event.Forbidden, event.Limit:
		return obs.Refused
	}
	return obs.Error
}

// ingested counts the events of a report.
func (p *Plane) ingested(events []event.Incoming, began time.Time, err error) {
	how, took := outcome(err), p.o.Clock().Sub(began).Seconds()
	for i := range events {
		t := string(events[i].Type.Canonical())
		p.metrics.EventsIngested.Inc(t, how)
		p.metrics.IngestDuration.Observe(took, t)
	}
}

// asked counts a request for an execution; entry is single or batch.
func (p *Plane) asked(entry string, a ExecuteAnswer, err error) {
	what := obs.Started
	switch {
	case err != nil:
		what = obs.Error
	case a.Status == statusDuplicate:
		what = obs.Duplicate
	}
	p.metrics.ExecuteOutcomes.Inc(entry, what)
}

// askedMany counts a batch of such requests.
func (p *Plane) askedMany(results []BatchResult) {
	p.metrics.ExecuteBatchSize.Observe(float64(len(results)))
	for _, r := range results {
		p.asked("batch", r.ExecuteAnswer, r.Err)
	}
}

// announced counts notifications the bus took, or did not.
func (p *Plane) announced(notes []event.Notification, ok bool) {
	for i := range notes {
		if ok {
			p.metrics.Published.Inc(obs.ByBus, poolOf(notes[i].Pool))
		} else {
			p.metrics.PublishFailed.Inc(poolOf(notes[i].Pool))
		}
	}
}

// poolOf is the pool by name; an execution that names none is served by the shared one.
func poolOf(name string) string {
	if name == "" {
		return "shared"
	}
	return name
}

// timed counts an operation on stored results and how long it took.
func (p *Plane) timed(total obs.Counter, took obs.Histogram, began time.Time, err error) {
	how := outcome(err)
	total.Inc(how)
	took.Observe(p.o.Clock().Sub(began).Seconds(), how)
}
