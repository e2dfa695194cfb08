package control

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	collectEvery = 10 * time.Minute
	collectBatch = 500
	collectMost  = 100000 // values one collection looks at
	collectLines = 1000   // values a report names
	ancestors    = 64     // executions above one another
)

// CollectReport tells what a collection removed, or would remove.
type CollectReport struct {
	DryRun  bool            `json:"dry_run"`
	Looked  int             `json:"looked"`  // values whose time may be over
	Removed int             `json:"removed"` // those whose time is over
	Bytes   int64           `json:"bytes"`   // of them
	Kept    map[string]int  `json:"kept"`    // the others, by the reason
	Failed  int             `json:"failed"`  // what could not be removed now, and is tried again
	Results []CollectedItem `json:"results"` // the first of them
}

// CollectedItem is one value that is, or would be, removed.
type CollectedItem struct {
	Ref   string `json:"ref"`
	Store string `json:"store"`
	Scope string `json:"scope"`
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"` // expired, abandoned, remains, ended
}

// Why values are kept although their execution has ended.
const (
	keptByAncestor = "ancestor_open"  // an execution above may still refer to it
	keptByRoot     = "root_open"      // it is kept with the execution that started it all
	keptByPin      = "used_elsewhere" // a rerun reuses it
	keptByUnknown  = "unknown"        // it is not known who uses it
)

// sweepResults removes values whose time is over, until ctx ends. Every replica
// does it; of two that find the same value one removes it.
func (p *Plane) sweepResults(ctx context.Context) {
	for sleep(ctx, jitter(collectEvery)) {
		report, err := p.CollectResults(ctx, false)
		if err != nil {
			p.sweepFailed(ctx, "results", err)
		}
		if report.Removed > 0 {
			p.log.Info("results collected", "removed", report.Removed, "bytes", report.Bytes, "failed", report.Failed)
		}
	}
}

// CollectResults removes values whose time is over: those with an expiry that
// has come, what unfinished puts left, and those of executions that ended longer
// ago than the grace. When in doubt a value is kept. A dry run only reports.
func (p *Plane) CollectResults(ctx context.Context, dryRun bool) (CollectReport, error) {
	c := &collection{p: p, now: p.now(), dry: dryRun}
	c.report = CollectReport{DryRun: dryRun, Kept: map[string]int{}, Results: []CollectedItem{}}
	err := errors.Join(c.expired(ctx), c.outlived(ctx))
	if !dryRun {
		p.metrics.Purged.Add(float64(c.report.Removed), "result_store")
		p.metrics.GC.Inc(collected(c.report, err))
	}
	if err != nil {
		return c.report, storeError("collect results", err)
	}
	return c.report, nil
}

// collected is the word under which a collection is counted.
func collected(r CollectReport, err error) string {
	if err != nil || r.Failed > 0 {
		return obs.Error
	}
	return obs.OK
}

// collection is one of them.
type collection struct {
	p      *Plane
	now    time.Time
	dry    bool
	report CollectReport
}

// expired removes what has a time of its own.
func (c *collection) expired(ctx context.Context) error {
	limit := collectBatch
	if c.dry {
		limit = collectMost
	}
	for {
		rows, err := c.page(ctx, func(ctx context.Context) ([]store.Result, error) { return c.p.store.ExpiredResults(ctx, c.now, limit) })
		before := c.report.Removed
		for i := range rows {
			c.remove(ctx, &rows[i], whyExpired(&rows[i]))
		}
		// What could not be removed is found again: a page without progress is the last.
		if err != nil || c.dry || len(rows) < limit || c.report.Removed == before || !sleep(ctx, purgePause) {
			return err
		}
	}
}

func whyExpired(r *store.Result) string {
	switch {
	case !r.GoneAt.IsZero():
		return "remains"
	case r.Pending:
		return "abandoned"
	}
	return "expired"
}

// outlived removes what lives as long as executions do.
func (c *collection) outlived(ctx context.Context) error {
	before := c.now.Add(-c.p.o.Results.Grace)
	for after := (store.ResultPosition{}); c.report.Looked < collectMost; {
		rows, err := c.page(ctx, func(ctx context.Context) ([]store.Result, error) {
			return c.p.store.EndedResults(ctx, before, after, collectBatch)
		})
		for i := range rows {
			r := &rows[i]
			after = r.Position()
			reason, err := c.p.keeps(ctx, r, before)
			switch {
			case err != nil && event.CodeOf(err) != event.NotFound:
				return err
			case reason != "":
				c.report.Looked++
				c.report.Kept[reason]++
				c.saw("ended", obs.GCKept)
			default:
				c.remove(ctx, r, "ended")
			}
		}
		if err != nil || len(rows) < collectBatch || !sleep(ctx, purgePause) {
			return err
		}
	}
	return nil
}

func (c *collection) page(ctx context.Context, find func(context.Context) ([]store.Result, error)) ([]store.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return find(ctx)
}

// saw counts a value that was looked at; a dry run counts nothing.
func (c *collection) saw(class, action string) {
	if !c.dry {
		c.p.metrics.GCObjects.Inc(class, action)
	}
}

func (c *collection) remove(ctx context.Context, r *store.Result, why string) {
	c.report.Looked++
	done := true
	if !c.dry {
		var err error
		done, err = c.p.results.Remove(ctx, *r)
		c.p.values.Drop(r.Ref)
		if err != nil {
			c.report.Failed++
			c.saw(why, obs.GCFailed)
			c.p.valueStays(ctx, r, err)
			return
		}
	}
	if !done {
		return // somebody else did, or uses it
	}
	c.report.Removed++
	c.saw(why, obs.GCRemoved)
	c.report.Bytes += r.Bytes
	if len(c.report.Results) < collectLines {
		c.report.Results = append(c.report.Results, CollectedItem{r.Ref, r.Tier, r.Scope, r.Bytes, why})
	}
}

// keeps tells why a value of an execution that ended before the given time is
// kept; "" when it is not.
func (p *Plane) keeps(ctx context.Context, r *store.Result, before time.Time) (string, error) {
	row, err := p.Execution(ctx, r.ExecutionID)
	if err != nil {
		return keptByUnknown, err
	}
	for range ancestors {
		if row.ParentExecutionID == 0 {
			used, err := p.pinned(ctx, r, before)
			if used || err != nil {
				return keptByPin, err
			}
			return "", nil
		}
		parent, err := p.Execution(ctx, row.ParentExecutionID)
		if err != nil {
			return keptByUnknown, err
		}
		switch {
		case !event.IsFinal(parent.Status):
			return keptByAncestor, nil
		case r.Scope == store.ScopeWorkflow && !parent.EndedAt.Before(before):
			return keptByRoot, nil
		}
		row = parent
	}
	return keptByUnknown, nil
}

// pinned tells whether another execution uses a value: one that goes on, that
// ended after the given time, or that is about to start.
func (p *Plane) pinned(ctx context.Context, r *store.Result, before time.Time) (bool, error) {
	for _, id := range r.PinnedBy {
		row, err := p.store.Execution(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if id >= store.IDAt(p.now().Add(-pinWait)) {
				return true, nil
			}
		case err != nil:
			return true, storeError("read execution", err)
		case !event.IsFinal(row.Status) || !row.EndedAt.Before(before):
			return true, nil
		}
	}
	return false, nil
}

// pinWait is how long a start may take from its id to its first event.
const pinWait = time.Hour
