package control

import (
	"context"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// all goes through the ended executions in the order of their ids, in which
// parents come before their children.
func (run *retentionRun) all(ctx context.Context, after event.ID) error {
	least := run.policy.shortest()
	if least == Forever {
		return nil
	}
	if !run.report.DryRun {
		if err := run.parts(ctx, least); err != nil {
			return err
		}
	}
	run.after = after
	for {
		rows, err := run.page(ctx, run.after, least)
		if err != nil {
			return err
		}
		last := len(rows) < retentionPage
		for len(rows) > 0 {
			n := min(len(rows), retentionBatch)
			if err := run.batch(ctx, rows[:n]); err != nil {
				return err
			}
			if run.report.Truncated || run.report.Looked >= retentionLooks {
				run.report.Truncated = true
				return run.compact(ctx)
			}
			run.after, rows = rows[n-1].ExecutionID, rows[n:]
			if !run.report.DryRun && !sleep(ctx, purgePause/4) {
				return gaveUp(ctx.Err())
			}
		}
		if last {
			return run.compact(ctx)
		}
	}
}

func (run *retentionRun) page(ctx context.Context, after event.ID, least time.Duration) ([]store.Execution, error) {
	ctx, cancel := context.WithTimeout(ctx, retentionTime)
	defer cancel()
	rows, err := run.p.store.EndedExecutions(ctx, after, run.now.Add(-least), retentionPage)
	if err != nil {
		return nil, storeError("find ended executions", err)
	}
	return rows, nil
}

// over tells whether the time of an execution is over, and by which rule. Those
// that are the newest of their path stay nevertheless.
func (run *retentionRun) over(ctx context.Context, x *store.Execution) (rule *RetentionRule, newest bool, err error) {
	age, rule := run.policy.Age(x.Path, x.Status)
	if age == Forever || x.EndedAt.Add(age).After(run.now) {
		return nil, false, nil
	}
	keep := run.policy.KeepLast(x.Path)
	if keep == 0 {
		return rule, false, nil
	}
	from, known := run.newest[x.Path]
	if !known {
		if from, err = run.p.store.NewestEnded(ctx, x.Path, keep); err != nil {
			return nil, false, storeError("find the newest executions", err)
		}
		if len(run.newest) >= retentionPaths {
			clear(run.newest)
		}
		run.newest[x.Path] = from
	}
	return rule, x.ExecutionID >= from, nil
}

// due is an execution that is to go.
type due struct {
	row  store.Execution
	rule string
}

// batch judges executions and removes those whose time is over.
func (run *retentionRun) batch(ctx context.Context, rows []store.Execution) error {
	var list []due
	for i := range rows {
		x := &rows[i]
		run.report.Looked++
		rule, newest, err := run.over(ctx, x)
		switch {
		case err != nil:
			return err
		case rule == nil:
		case newest:
			run.keep(keptNewest)
		case run.report.Removed >= run.most:
			run.report.Truncated = true
			age, _ := run.policy.Age(x.Path, x.Status)
			run.report.Lag = max(run.report.Lag, run.now.Sub(x.EndedAt.Add(age)).Seconds())
		default:
			list = append(list, due{*x, rule.String()})
		}
		if len(list) > 0 && run.report.Removed+len(list) >= run.most {
			if err := run.waves(ctx, list); err != nil { // some may be kept, which makes room for others
				return err
			}
			list = nil
		}
	}
	return run.waves(ctx, list)
}

// waves removes executions, children after their parents.
func (run *retentionRun) waves(ctx context.Context, list []due) error {
	for len(list) > 0 {
		waiting := make(map[event.ID]bool, len(list))
		for i := range list {
			waiting[list[i].row.ExecutionID] = true
		}
		var wave, later []due
		for _, d := range list {
			if waiting[d.row.ParentExecutionID] {
				later = append(later, d)
			} else {
				wave = append(wave, d)
			}
		}
		if len(wave) == 0 { // executions that started each other cannot be
			wave, later = list, nil
		}
		if err := run.wave(ctx, wave); err != nil {
			return err
		}
		list = later
	}
	return nil
}

func (run *retentionRun) keep(why string) {
	run.report.Kept[why]++
	if !run.report.DryRun {
		run.p.metrics.RetentionExecutions.Inc("kept")
	}
}

func (run *retentionRun) options() store.RemovalOptions {
	return store.RemovalOptions{
		Now: run.now, PinnedSince: run.now.Add(-pinWait), Unpublished: !run.p.o.Outbox.On, DryRun: run.report.DryRun,
	}
}

// wave removes executions of which none waits for another.
func (run *retentionRun) wave(ctx context.Context, list []due) error {
	ctx, cancel := context.WithTimeout(ctx, retentionTime)
	defer cancel()
	if now := run.p.now(); !run.report.DryRun && now.Sub(run.renewed) > retentionLease/4 {
		if taken, err := run.lease(ctx, retentionLease); err != nil || !taken {
			return orElse(err, errRetaining)
		}
	}
	if run.p.o.Retention.Archive != nil && !run.report.DryRun {
		if err := run.archive(ctx, list); err != nil {
			return err
		}
	}
	kept, err := run.remove(ctx, list)
	if err != nil {
		return err
	}
	var again []due
	for i, why := range kept {
		if why == store.KeptValue && !run.report.DryRun {
			again = append(again, list[i])
			continue
		}
		run.count(list[i], why)
	}
	if len(again) == 0 {
		return nil
	}
	if err := run.values(ctx, again); err != nil {
		return err
	}
	if kept, err = run.remove(ctx, again); err != nil {
		return err
	}
	for i, why := range kept {
		run.count(again[i], why)
	}
	return nil
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// remove asks the store, and tells what keeps each; "" when it is gone.
func (run *retentionRun) remove(ctx context.Context, list []due) ([]string, error) {
	removals := make([]store.Removal, len(list))
	for i, d := range list {
		removals[i] = store.Removal{ExecutionID: d.row.ExecutionID, LastSeq: d.row.LastSeq, Parent: d.row.ParentExecutionID}
		if run.gone[d.row.ParentExecutionID] {
			removals[i].Parent = 0
		}
	}
	report, err := run.p.store.RemoveExecutions(ctx, removals, run.options())
	run.rows(report.Rows)
	if err != nil {
		run.p.metrics.RetentionExecutions.Add(float64(len(list)), "failed")
		return nil, storeError("remove executions", err)
	}
	return report.Kept, nil
}

func (run *retentionRun) rows(rows map[string]int) {
	for table, n := range rows {
		run.report.Rows[table] += n
		run.p.metrics.Purged.Add(float64(n), table)
	}
}

// count notes what became of an execution.
func (run *retentionRun) count(d due, why string) {
	switch {
	case why != "":
		run.keep(why)
		return
	case run.report.DryRun:
		// A value elsewhere is removed first when it is meant.
		run.gone[d.row.ExecutionID] = true
	default:
		run.forget(d.row.ExecutionID)
		run.p.metrics.RetentionExecutions.Inc("removed")
	}
	run.report.Removed++
	run.report.Rules[d.rule]++
}

// forget drops what this process remembers of an execution.
func (run *retentionRun) forget(id event.ID) {
	run.p.recent.Drop(id)
	run.p.states.Drop(id)
}

// values removes the values of executions that are kept outside of the store.
func (run *retentionRun) values(ctx context.Context, list []due) error {
	ids := make([]event.ID, len(list))
	for i, d := range list {
		ids[i] = d.row.ExecutionID
	}
	found, err := run.p.store.ValuesOf(ctx, ids)
	if err != nil {
		return storeError("find values of executions", err)
	}
	for i := range found {
		_, err := run.p.results.Remove(ctx, found[i])
		run.p.values.Drop(found[i].Ref)
		if err != nil { // its execution stays until it can be removed
			run.p.valueStays(ctx, &found[i], err)
		}
	}
	return nil
}

// parts removes parts of the log in which every execution is over, as a whole.
func (run *retentionRun) parts(ctx context.Context, least time.Duration) error {
	state, err := run.p.store.LogState(ctx)
	if err != nil {
		return storeError("look at the parts of the log", err)
	}
	run.report.Strays = state.Strays
	for _, part := range state.Parts {
		if part.From == math.MinInt64 || part.To > store.IDAt(run.now.Add(-least)) {
			continue // what is before all time stays as a place
		}
		if err := run.part(ctx, part, least); err != nil {
			return err
		}
	}
	return nil
}

func (run *retentionRun) part(ctx context.Context, part store.LogPart, least time.Duration) error {
	list, whole, err := run.members(ctx, part, least)
	if err != nil || !whole || run.limited && run.report.Removed+len(list) > run.most {
		return err
	}
	if len(list) > 0 && run.p.o.Retention.Archive != nil {
		return nil // what is archived is read one by one; its part goes empty with a later run
	}
	members := make([]store.Removal, len(list))
	for i, d := range list {
		members[i] = store.Removal{ExecutionID: d.row.ExecutionID, LastSeq: d.row.LastSeq, Parent: d.row.ParentExecutionID}
	}
	rows, removed, err := run.p.store.RemoveRange(ctx, store.RangeRemoval{Part: part, Members: members, RemovalOptions: run.options()})
	if err != nil {
		run.p.log.Warn("a part of the log cannot be dropped; its rows are deleted instead", "part", part.Name, "error", err)
		if ctx.Err() != nil {
			return gaveUp(ctx.Err())
		}
		return nil
	}
	if !removed {
		return nil
	}
	run.rows(rows)
	for _, d := range list {
		run.report.Looked++
		run.count(d, "")
	}
	run.report.Partitions++
	run.p.metrics.RetentionPartitions.Inc()
	return nil
}

// members are the executions of a part, if all of them are over.
func (run *retentionRun) members(ctx context.Context, part store.LogPart, least time.Duration) (list []due, whole bool, err error) {
	for after := part.From - 1; ; {
		rows, err := run.page(ctx, after, least)
		if err != nil {
			return nil, false, err
		}
		for i := range rows {
			x := &rows[i]
			if x.ExecutionID >= part.To {
				return list, true, nil
			}
			if after = x.ExecutionID; store.ShardIndex(x.ExecutionID, run.p.store.Shards()) != part.Shard {
				continue
			}
			rule, newest, err := run.over(ctx, x)
			if err != nil || rule == nil || newest || len(list) == rangeMost {
				return nil, false, err
			}
			list = append(list, due{*x, rule.String()})
		}
		if len(rows) < retentionPage {
			return list, true, nil
		}
	}
}

// compactMost bounds how often a run asks the store to give space back.
const compactMost = 2000

// compact gives the space of what was removed back, little by little.
func (run *retentionRun) compact(ctx context.Context) error {
	if run.report.Removed == 0 || run.report.DryRun {
		return nil
	}
	for range compactMost {
		more, err := run.p.store.Compact(ctx)
		if err != nil {
			return storeError("give space back", err)
		}
		if !more {
			return nil
		}
		if !sleep(ctx, purgePause/4) {
			return gaveUp(ctx.Err())
		}
	}
	return nil
}

// archive keeps executions elsewhere that are about to go.
func (run *retentionRun) archive(ctx context.Context, list []due) error {
	removals := make([]store.Removal, len(list))
	for i, d := range list {
		removals[i] = store.Removal{ExecutionID: d.row.ExecutionID, LastSeq: d.row.LastSeq, Parent: d.row.ParentExecutionID}
	}
	o := run.options()
	o.DryRun = true
	report, err := run.p.store.RemoveExecutions(ctx, removals, o)
	if err != nil {
		return storeError("look what can be removed", err)
	}
	var batch []ArchivedExecution
	for i, why := range report.Kept {
		if why != "" && why != store.KeptValue {
			continue
		}
		events, err := run.p.store.Events(ctx, list[i].row.ExecutionID, 0, 0)
		if err != nil {
			return storeError("read events", err)
		}
		batch = append(batch, ArchivedExecution{list[i].row, events})
	}
	if len(batch) == 0 {
		return nil
	}
	if err := run.p.o.Retention.Archive.Keep(ctx, batch); err != nil {
		return event.Errorf(event.Unavailable, "archive executions before they are removed: %w", err)
	}
	run.report.Archived += len(batch)
	return nil
}
