package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
)

const (
	chainSteps = 10
	inFlight   = 256 // executions at a time when saturated, and slots of the worker
)

// bench runs the workloads on one backend.
type bench struct {
	name   string
	dir    string
	dsn    string
	base   raw
	length time.Duration
	only   string // name of the one workload to run; "" = all
	past   int    // executions stored before the questions are asked
	out    *tabwriter.Writer
	node   *node.Node
}

func (b *bench) all(ctx context.Context) error {
	if err := b.start(ctx); err != nil {
		return err
	}
	ran := false
	for _, w := range []struct {
		name string
		run  func(context.Context) error
	}{{"single", b.single}, {"idle", b.chainIdle}, {"chain", b.chainLoaded}, {"loop", b.loops}, {"batch", b.batches}, {"ingest", b.ingest}, {"stored", b.stored}} {
		if b.only != "" && b.only != w.name {
			continue
		}
		ran = true
		if err := w.run(ctx); err != nil {
			_ = b.node.Stop()
			return err
		}
	}
	if err := b.node.Stop(); err != nil || ran {
		return err
	}
	return fmt.Errorf("unknown workload %q (single, idle, chain, loop, batch, ingest, stored)", b.only)
}

func (b *bench) register(ctx context.Context, src string) (event.ID, error) {
	reg, err := b.node.Plane.Register(ctx, control.RegisterRequest{Content: src})
	return reg.Entry.CatalogID, err
}

// finish runs one execution to its end.
func (b *bench) finish(ctx context.Context, playbook event.ID) (event.ID, error) {
	a, err := b.node.Plane.Execute(ctx, control.ExecuteRequest{CatalogID: playbook})
	if err != nil {
		return 0, err
	}
	row, err := b.node.Plane.Wait(ctx, a.ExecutionID)
	if err == nil && row.Status != event.StatusCompleted {
		err = fmt.Errorf("execution %s ended %s: %s", a.ExecutionID, row.Status, row.Error)
	}
	return a.ExecutionID, err
}

// saturate keeps n executions in flight and returns finished per second and
// commits per finished execution.
func (b *bench) saturate(ctx context.Context, playbook event.ID, n int) (perSecond, commits float64, err error) {
	g, gctx := errgroup.WithContext(ctx)
	var done atomic.Int64
	before, start := b.commits(), time.Now()
	for range n {
		g.Go(func() error {
			for time.Since(start) < b.length {
				if _, err := b.finish(gctx, playbook); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, 0, err
	}
	total := float64(done.Load())
	return total / time.Since(start).Seconds(), float64(b.commits()-before) / total, nil
}

func (b *bench) commits() int64 {
	if c, ok := b.node.Store.(interface{ Commits() int64 }); ok {
		return c.Commits()
	}
	return 0
}

func (b *bench) single(ctx context.Context) error {
	id, err := b.register(ctx, chain("bench/one", 1))
	if err != nil {
		return err
	}
	if _, err := b.finish(ctx, id); err != nil {
		return err
	}
	rate, commits, err := b.saturate(ctx, id, inFlight)
	if err != nil {
		return err
	}
	b.row("1-step executions, saturated", fmt.Sprintf("%.0f executions/s", rate), commits, rate)
	return nil
}

// chainIdle measures the gap from one step's command to the next while
// nothing else runs.
func (b *bench) chainIdle(ctx context.Context) error {
	id, err := b.register(ctx, chain("bench/chain", chainSteps))
	if err != nil {
		return err
	}
	var gaps []time.Duration
	before, steps := b.commits(), 0
	for range 100 {
		exec, err := b.finish(ctx, id)
		if err != nil {
			return err
		}
		events, err := b.node.Plane.Events(ctx, exec, 0, 0)
		if err != nil {
			return err
		}
		var last time.Time
		for _, e := range events {
			if e.Type != event.CommandIssued {
				continue
			}
			if !last.IsZero() {
				gaps = append(gaps, e.CreatedAt.Sub(last))
			}
			last = e.CreatedAt
			steps++
		}
	}
	slices.Sort(gaps)
	p50, p99 := gaps[len(gaps)/2], gaps[len(gaps)*99/100]
	b.row("10-step chain, idle, per step", fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", ms(p50), ms(p99)),
		float64(b.commits()-before)/float64(steps), 1/p50.Seconds())
	return nil
}

func (b *bench) chainLoaded(ctx context.Context) error {
	id, err := b.register(ctx, chain("bench/chain", chainSteps))
	if err != nil {
		return err
	}
	rate, commits, err := b.saturate(ctx, id, inFlight)
	if err != nil {
		return err
	}
	b.row("10-step chains, saturated", fmt.Sprintf("%.0f steps/s", rate*chainSteps), commits/chainSteps, rate*chainSteps)
	return nil
}

func (b *bench) loops(ctx context.Context) error {
	var perIteration [2]float64
	for i, n := range []int{1000, 10000} {
		id, err := b.register(ctx, loop(n))
		if err != nil {
			return err
		}
		best := time.Duration(1 << 62)
		var commits float64
		for range 3 {
			before, start := b.commits(), time.Now()
			if _, err := b.finish(ctx, id); err != nil {
				return err
			}
			if d := time.Since(start); d < best {
				best, commits = d, float64(b.commits()-before)/float64(n)
			}
		}
		rate := float64(n) / best.Seconds()
		perIteration[i] = best.Seconds() / float64(n)
		b.row(fmt.Sprintf("parallel loop of %d", n), fmt.Sprintf("%.2f s, %.0f iterations/s", best.Seconds(), rate), commits, rate)
	}
	fmt.Fprintf(b.out, "%s\tcost per iteration at 10,000 over that at 1,000\t%.2f×\n", b.name, perIteration[1]/perIteration[0])
	return b.out.Flush()
}

// row prints one result with its ratios to the raw backend.
func (b *bench) row(what, figure string, commits, rate float64) {
	fmt.Fprintf(b.out, "%s\t%s\t%s\t%.2f commits per unit\t%.2f of raw commits/s\t%.2f of raw rows/s\n",
		b.name, what, figure, commits, rate/b.base.commits, rate/b.base.rows)
	_ = b.out.Flush()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

var header = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: bench, path: %s}\nworkflow:\n"

func chain(path string, n int) string {
	var s strings.Builder
	fmt.Fprintf(&s, header, path)
	for i := range n {
		fmt.Fprintf(&s, "  - {step: s%d, tool: {kind: noop}", i)
		if i < n-1 {
			fmt.Fprintf(&s, ", next: s%d", i+1)
		}
		s.WriteString("}\n")
	}
	return s.String()
}

func loop(n int) string {
	return fmt.Sprintf(header, fmt.Sprintf("bench/loop%d", n)) + fmt.Sprintf(
		"  - {step: start, next: each}\n  - {step: each, loop: {in: %d, iterator: i, spec: {mode: parallel}}, tool: {kind: noop}}\n", n)
}
