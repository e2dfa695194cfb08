package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// RebuildOptions say what to write anew. Store is required.
type RebuildOptions struct {
	Store     store.Store
	Execution event.ID         // this one alone; 0 = all
	All       bool             // rows that are right too
	DryRun    bool             // only tell what would be done
	Clock     func() time.Time // time.Now
	Lease     time.Duration    // 60 s: of held commands whose row is lost
}

// RebuildReport is what was written, and what could not be.
type RebuildReport struct {
	GeneratedAt time.Time `json:"generated_at"`
	Seconds     float64   `json:"duration_seconds"`
	DryRun      bool      `json:"dry_run"`

	Executions int64 `json:"executions"`
	Rebuilt    int64 `json:"rebuilt"` // executions whose rows were written, or would have been
	Unchanged  int64 `json:"unchanged"`
	Commands   int64 `json:"commands"` // command rows written
	Busy       int64 `json:"busy"`     // written to throughout; their rows come with the next append

	Differences []Difference `json:"differences"` // that were mended, the first ones
	Left        []Difference `json:"left"`        // that rows cannot mend, the first ones
	LeftTotal   int64        `json:"left_total"`
}

// Rebuild writes the projections anew from the log, while servers run: rows
// replace rows only when the log has not grown meanwhile, and the leases of
// commands that workers hold stay as they are. Executions whose log is damaged
// are left alone and reported.
func Rebuild(ctx context.Context, o RebuildOptions) (RebuildReport, error) {
	if o.Store == nil {
		return RebuildReport{}, errors.New("rebuild: a store is required")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Lease = orDefault(o.Lease, time.Minute)
	b := &rebuilder{o: o, report: RebuildReport{
		GeneratedAt: o.Clock().UTC(), DryRun: o.DryRun, Differences: []Difference{}, Left: []Difference{},
	}}
	err := b.run(ctx)
	b.report.Seconds = o.Clock().Sub(b.report.GeneratedAt).Seconds()
	return b.report, err
}

type rebuilder struct {
	o      RebuildOptions
	report RebuildReport
}

func (b *rebuilder) run(ctx context.Context) error {
	if id := b.o.Execution; id != 0 {
		there, err := logged(ctx, b.o.Store, id)
		if err != nil {
			return err
		}
		if !there {
			return noExecution(id)
		}
		return b.execution(ctx, id)
	}
	if err := eachLogged(ctx, b.o.Store, b.execution); err != nil {
		return err
	}
	// Rows without a log are told of, not removed: the log may come back.
	v := &verifier{o: VerifyOptions{Clock: b.o.Clock, Differences: verifyDifferences}, store: b.o.Store}
	if err := v.strayExecutions(ctx); err != nil {
		return err
	}
	if err := v.strayCommands(ctx); err != nil {
		return err
	}
	for _, d := range v.report.Differences {
		b.leave(d)
	}
	b.report.LeftTotal += v.report.Different - int64(len(v.report.Differences))
	return nil
}

// execution rebuilds one execution, again while it is written to.
func (b *rebuilder) execution(ctx context.Context, id event.ID) error {
	b.report.Executions++
	for range verifyTries {
		a, settled, err := readAudit(ctx, b.o.Store, id)
		if err != nil {
			return err
		}
		if settled {
			err = b.rewrite(ctx, a)
			if !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
		if !sleep(ctx, verifyPause) {
			return gaveUp(ctx.Err())
		}
	}
	b.report.Busy++
	return nil
}

// rewrite writes the rows of an execution when they differ. A conflict tells
// that the log has grown.
func (b *rebuilder) rewrite(ctx context.Context, a *audit) error {
	for _, d := range a.broken {
		b.leave(d)
	}
	if len(a.broken) > 0 {
		return nil
	}
	found := a.compare()
	if len(found) == 0 && !b.o.All {
		b.report.Unchanged++
		return nil
	}
	commands := b.commands(a, b.o.All || slices.ContainsFunc(found, Difference.aboutCommand))
	if !b.o.DryRun {
		if err := b.o.Store.Reproject(ctx, executionRow(a.state.Summary()), commands); err != nil {
			if errors.Is(err, store.ErrConflict) {
				return err
			}
			return storeError("write rows", err)
		}
	}
	b.report.Rebuilt++
	b.report.Commands += int64(len(commands))
	if room := verifyDifferences - len(b.report.Differences); room > 0 {
		b.report.Differences = append(b.report.Differences, found[:min(room, len(found))]...)
	}
	return nil
}

// commands are the rows as they should be. What was cleaned away of an ended
// execution stays away, unless complete asks for everything.
func (b *rebuilder) commands(a *audit, complete bool) []store.Command {
	present := make(map[event.ID]*store.Command, len(a.present))
	for i := range a.present {
		present[a.present[i].EventID] = &a.present[i]
	}
	rows := make([]store.Command, 0, len(a.order))
	for _, id := range a.order {
		c := a.commands[id]
		if present[id] == nil && a.state.Final() && event.IsFinal(c.row.Status) && !complete {
			continue
		}
		row := c.row
		if c.held != nil {
			row.LeaseUntil = b.lease(c, present[id])
		}
		rows = append(rows, row)
	}
	return rows
}

// lease is how long the holder of a command may be silent: as the row says,
// which heartbeats renew, or a little from now on when the row is lost.
func (b *rebuilder) lease(c *auditedCommand, present *store.Command) time.Time {
	if present != nil && present.WorkerID == c.row.WorkerID && present.Attempt == c.row.Attempt && !present.LeaseUntil.IsZero() {
		return present.LeaseUntil
	}
	until := b.o.Clock().UTC().Truncate(time.Microsecond).Add(b.o.Lease)
	if c.held.LeaseUntil.After(until) {
		return c.held.LeaseUntil
	}
	return until
}

func (b *rebuilder) leave(d Difference) {
	b.report.LeftTotal++
	if len(b.report.Left) < verifyDifferences {
		b.report.Left = append(b.report.Left, d)
	}
}
