package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// RetentionOptions say how long executions are kept, and how hard it is worked
// at.
type RetentionOptions struct {
	Policy  RetentionPolicy
	Every   time.Duration // 10 min: how often what is over is looked for
	PerRun  int           // 20000: executions one run removes at most
	Holder  string        // who this process is among those that share the database
	Archive Archive       // takes executions before they go; nil takes none
}

// Archive keeps executions elsewhere before they are removed.
type Archive interface {
	// Keep returns when all of them are durable.
	Keep(ctx context.Context, batch []ArchivedExecution) error
}

// ArchivedExecution is all of an execution that is worth keeping.
type ArchivedExecution struct {
	Execution store.Execution
	Events    []event.Event
}

const (
	retentionEvery  = 10 * time.Minute
	retentionPerRun = 20000
	retentionBatch  = 200
	retentionPage   = 1000
	retentionLooks  = 500000 // executions one run looks at
	retentionLease  = 10 * time.Minute
	retentionTime   = 2 * time.Minute // of one batch
	retentionPaths  = 10000           // paths one run remembers the newest of
	retentionWork   = "retention"
	holdTime        = 15 * time.Minute         // of an execution another one is being started from
	removedKept     = 5 * 365 * 24 * time.Hour // how long it is known that an execution existed
	rangeMost       = 500000                   // executions that go together with their part of the log
)

func (o RetentionOptions) withDefaults() RetentionOptions {
	o.Every, o.PerRun = orDefault(o.Every, retentionEvery), orDefault(o.PerRun, retentionPerRun)
	return o
}

// RetentionRequest asks for a run.
type RetentionRequest struct {
	DryRun bool
	Limit  int             // executions to remove at most; 0 = as usual
	Policy RetentionPolicy // instead of the one in force; nil = that
}

// RetentionReport tells what a run removed, or would remove.
type RetentionReport struct {
	DryRun     bool           `json:"dry_run"`
	Policy     string         `json:"policy"`
	Looked     int            `json:"looked"`     // ended executions that were looked at
	Removed    int            `json:"removed"`    // executions
	Kept       map[string]int `json:"kept"`       // executions whose time is over, by what keeps them
	Rules      map[string]int `json:"rules"`      // removed, by the rule that says so
	Rows       map[string]int `json:"rows"`       // removed, by table
	Partitions int            `json:"partitions"` // of the log that went as a whole
	Strays     int64          `json:"strays"`     // executions outside of the partitions made for them
	Archived   int            `json:"archived"`
	Truncated  bool           `json:"truncated"` // there may be more
	Lag        float64        `json:"lag_seconds"`
	Seconds    float64        `json:"duration_seconds"`
}

// Why executions whose time is over are kept beside what the store finds.
const (
	keptNewest    = "newest"     // of the newest of their path
	keptUndeleted = "value_left" // a value could not be removed
)

// RetentionState tells how retention stands.
type RetentionState struct {
	Policy   string           `json:"policy"` // "" keeps everything
	Rules    []string         `json:"rules"`
	Every    float64          `json:"every_seconds"`
	NextRun  *time.Time       `json:"next_run,omitempty"` // of this server, if it is its turn
	LastRun  *time.Time       `json:"last_run,omitempty"` // of this server
	Last     *RetentionReport `json:"last,omitempty"`
	Pending  RetentionReport  `json:"pending"` // what would go now
	Archives bool             `json:"archives"`
}

// retaining is what a plane knows of its runs.
type retaining struct {
	running sync.Mutex // held by a run
	mu      sync.Mutex // guards the rest
	next    time.Time
	ran     time.Time
	last    *RetentionReport
	after   event.ID // where a run that was cut short goes on
}

// sweepRetention removes executions whose time is over until ctx ends. Of all
// servers that share a database one does it at a time.
func (p *Plane) sweepRetention(ctx context.Context) {
	for {
		wait := jitter(p.o.Retention.Every)
		p.retaining.mu.Lock()
		p.retaining.next = p.now().Add(wait)
		p.retaining.mu.Unlock()
		if !sleep(ctx, wait) {
			return
		}
		if err := p.retain(ctx); err != nil {
			p.sweepFailed(ctx, "executions whose time is over", err)
		}
	}
}

func (p *Plane) retain(ctx context.Context) error {
	if p.o.Retention.Policy.shortest() == Forever {
		return nil
	}
	report, err := p.Retain(ctx, RetentionRequest{})
	if errors.Is(err, errRetaining) {
		return nil
	}
	if report.Removed > 0 {
		p.log.Info("executions removed", "executions", report.Removed, "partitions", report.Partitions, "rows", report.Rows, "kept", report.Kept)
	}
	if report.Strays > 0 {
		p.log.Warn("executions lie outside of the partitions made for their time; they go one by one", "executions", report.Strays)
	}
	if _, err := p.inBatches(ctx, "execution_removed", func(ctx context.Context) (int, error) {
		return p.store.PurgeRemoved(ctx, p.now().Add(-removedKept), purgeBatch)
	}); err != nil {
		return err
	}
	return err
}

// errRetaining refuses a second run beside one that is under way.
var errRetaining = &event.Error{
	Code: event.Conflict, Reason: "running", Message: "executions are being removed already, by this server or another one",
	Remedy: "wait until that run has ended",
}

// Retain removes executions whose time is over, parents before their children,
// or tells what would be removed. It stops at the limit; the next run goes on
// from there.
func (p *Plane) Retain(ctx context.Context, r RetentionRequest) (RetentionReport, error) {
	if r.Limit < 0 {
		return RetentionReport{}, event.Errorf(event.Invalid, "limit: want a number above 0")
	}
	run := p.newRetention(r)
	if r.DryRun {
		err := run.all(ctx, 0)
		return run.done(), err
	}
	if !p.retaining.running.TryLock() {
		return run.done(), errRetaining
	}
	defer p.retaining.running.Unlock()
	taken, err := run.lease(ctx, retentionLease)
	if err != nil || !taken {
		return run.done(), errors.Join(err, refusedUnless(taken || err != nil))
	}
	defer func() { // the next may begin at once
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTime)
		defer cancel()
		_, _ = run.lease(ctx, 0)
	}()
	p.retaining.mu.Lock()
	after := p.retaining.after
	p.retaining.mu.Unlock()
	if r.Policy != nil {
		after = 0
	}
	err = run.all(ctx, after)
	report := run.done()
	p.metrics.RetentionLag.Set(report.Lag)
	p.retaining.mu.Lock()
	defer p.retaining.mu.Unlock()
	p.retaining.ran, p.retaining.last, p.retaining.after = p.now(), &report, 0
	if report.Truncated && r.Policy == nil {
		p.retaining.after = run.after
	}
	return report, err
}

func refusedUnless(ok bool) error {
	if ok {
		return nil
	}
	return errRetaining
}

// RetentionState tells the policy and what would go now.
func (p *Plane) RetentionState(ctx context.Context) (RetentionState, error) {
	s := RetentionState{
		Policy: p.o.Retention.Policy.String(), Rules: []string{}, Every: p.o.Retention.Every.Seconds(), Archives: p.o.Retention.Archive != nil,
	}
	for _, r := range p.o.Retention.Policy {
		s.Rules = append(s.Rules, r.String())
	}
	p.retaining.mu.Lock()
	if at := p.retaining.next; !at.IsZero() && s.Policy != "" {
		s.NextRun = &at
	}
	if at := p.retaining.ran; !at.IsZero() {
		s.LastRun, s.Last = &at, p.retaining.last
	}
	p.retaining.mu.Unlock()
	var err error
	s.Pending, err = p.Retain(ctx, RetentionRequest{DryRun: true})
	return s, err
}

// retentionRun is one of them.
type retentionRun struct {
	p       *Plane
	policy  RetentionPolicy
	now     time.Time
	most    int
	limited bool // by whoever asked
	report  RetentionReport
	newest  map[string]event.ID // by path: those from here on stay
	gone    map[event.ID]bool   // what a dry run would have removed
	after   event.ID
	renewed time.Time
}

func (p *Plane) newRetention(r RetentionRequest) *retentionRun {
	policy, most := p.o.Retention.Policy, p.o.Retention.PerRun
	if r.Policy != nil {
		policy = r.Policy
	}
	if r.Limit > 0 {
		most = r.Limit
	} else if r.DryRun {
		most = retentionLooks
	}
	return &retentionRun{
		p: p, policy: policy, now: p.now(), most: most, limited: r.Limit > 0, newest: map[string]event.ID{}, gone: map[event.ID]bool{},
		report: RetentionReport{
			DryRun: r.DryRun, Policy: policy.String(), Kept: map[string]int{}, Rules: map[string]int{}, Rows: map[string]int{},
		},
	}
}

func (run *retentionRun) done() RetentionReport {
	run.report.Seconds = run.p.now().Sub(run.now).Seconds()
	return run.report
}

// lease takes or renews the right to remove; a time of 0 gives it back.
func (run *retentionRun) lease(ctx context.Context, ttl time.Duration) (bool, error) {
	now := run.p.now()
	taken, err := run.p.store.TakeLease(ctx, retentionWork, run.p.retainer(), now, ttl)
	run.renewed = now
	held := 0.0
	if taken && err == nil && ttl > 0 {
		held = 1
	}
	run.p.metrics.LeaseHeld.Set(held, obs.TaskRetention)
	if err != nil {
		return false, storeError("take the lease of retention", err)
	}
	return taken, nil
}

// retainer is who this process is among those that share the database.
func (p *Plane) retainer() string {
	if p.o.Retention.Holder != "" {
		return p.o.Retention.Holder
	}
	return fmt.Sprintf("%s %d", p.o.ServerURL, p.began.UnixNano())
}
