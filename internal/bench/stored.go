package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/storetest"
)

const (
	storedEvents = 20  // per stored execution
	asked        = 500 // times each question is asked
)

// stored measures what a long past costs: the same questions are put to an
// empty database and to one with b.past executions, and the ratio is printed.
func (b *bench) stored(ctx context.Context) error {
	empty, err := b.questions(ctx)
	if err != nil {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	full, err := b.questions(ctx)
	if err != nil {
		return err
	}
	for i, q := range full {
		fmt.Fprintf(b.out, "%s\t%s at %d executions\tp50 %.2f ms, p99 %.2f ms\tp50 %.1f× that of an empty database\n",
			b.name, q.name, b.past, ms(q.p50), ms(q.p99), float64(q.p50)/float64(empty[i].p50))
	}
	return b.out.Flush()
}

// fill invents the past while the node is down.
func (b *bench) fill(ctx context.Context) error {
	if err := b.node.Stop(); err != nil {
		return err
	}
	past := storetest.Fill{Executions: b.past, Events: storedEvents, Now: time.Now().Add(-time.Hour)}
	var err error
	if b.dsn != "" {
		err = past.Postgres(ctx, b.dsn)
	} else {
		err = past.SQLite(ctx, filepath.Join(b.dir, "node", "noetl.db"))
	}
	if err != nil {
		return err
	}
	return b.start(ctx)
}

type answered struct {
	name     string
	p50, p99 time.Duration
}

// questions asks what clients ask most.
func (b *bench) questions(ctx context.Context) ([]answered, error) {
	plane := b.node.Plane
	playbook, err := b.register(ctx, chain("bench/claimed", 1))
	if err != nil {
		return nil, err
	}
	newest, err := b.finish(ctx, playbook)
	if err != nil {
		return nil, err
	}
	list := func(f store.ExecutionFilter) func() error {
		return func() error { _, err := plane.Executions(ctx, f); return err }
	}
	var out []answered
	for _, q := range []struct {
		name string
		ask  func() error
	}{
		{"list, newest", list(store.ExecutionFilter{Limit: 50})},
		{"list, status FAILED", list(store.ExecutionFilter{Status: event.StatusFailed, Limit: 50})},
		{"list, path prefix", list(store.ExecutionFilter{PathPrefix: "fill/p7", Limit: 50})},
		{"list, path contains", list(store.ExecutionFilter{Path: "P49", Status: event.StatusFailed, Limit: 50})},
		{"list, an hour two weeks ago", list(store.ExecutionFilter{
			StartedFrom: time.Now().AddDate(0, 0, -14), StartedTo: time.Now().AddDate(0, 0, -14).Add(time.Hour), Limit: 50,
		})},
		{"status", func() error { _, err := plane.Execution(ctx, newest); return err }},
		{"detail with its log", func() error {
			if _, err := plane.Execution(ctx, newest); err != nil {
				return err
			}
			_, err := plane.Events(ctx, newest, 0, 2000)
			return err
		}},
	} {
		a, err := measure(q.name, asked, q.ask)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	claim, err := b.claims(ctx, playbook)
	return append(out, claim), err
}

// claims measures claims by the id of the command alone, as foreign workers
// make them, in a pool nobody else serves.
func (b *bench) claims(ctx context.Context, playbook event.ID) (answered, error) {
	var ids []event.ID
	for range asked {
		a, err := b.node.Plane.Execute(ctx, control.ExecuteRequest{CatalogID: playbook, Pool: "bench-remote"})
		if err != nil {
			return answered{}, err
		}
		events, err := b.node.Plane.Events(ctx, a.ExecutionID, 0, 0)
		if err != nil {
			return answered{}, err
		}
		i := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == event.CommandIssued })
		ids = append(ids, events[i].EventID)
	}
	n := 0
	return measure("claim", asked, func() error {
		n++
		_, err := b.node.Plane.Claim(ctx, event.ClaimRequest{EventID: ids[n-1], WorkerID: "bench"})
		return err
	})
}

func measure(name string, times int, ask func() error) (answered, error) {
	took := make([]time.Duration, times)
	for i := range took {
		start := time.Now()
		if err := ask(); err != nil {
			return answered{}, fmt.Errorf("%s: %w", name, err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return answered{name, took[times/2], took[times*99/100]}, nil
}

// start opens the node anew on what is stored.
func (b *bench) start(ctx context.Context) (err error) {
	b.node, err = node.Start(ctx, node.Options{DataDir: filepath.Join(b.dir, "node"), DatabaseURL: b.dsn, Slots: inFlight + 1, Secrets: node.Secrets{AllowEphemeralKey: true}})
	return err
}
