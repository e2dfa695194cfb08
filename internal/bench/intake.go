package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	batchSize   = 1000 // executions per batch
	ingestBatch = 50   // events per report
	ingestLogs  = 64   // executions reported to at a time
)

// batches measures how fast executions start when they are asked for by the
// thousand. Nobody runs them: their pool has no workers.
func (b *bench) batches(ctx context.Context) error {
	playbook, err := b.register(ctx, chain("bench/batch", 1))
	if err != nil {
		return err
	}
	requests := make([]control.ExecuteRequest, batchSize)
	for i := range requests {
		requests[i] = control.ExecuteRequest{CatalogID: playbook, Pool: "bench-nobody"}
	}
	started, before, begin := 0, b.commits(), time.Now()
	for time.Since(begin) < b.length {
		for _, a := range b.node.Plane.ExecuteBatch(ctx, requests) {
			if a.Err != nil {
				return a.Err
			}
			started++
		}
	}
	rate := float64(started) / time.Since(begin).Seconds()
	b.row("starts in batches of 1,000", fmt.Sprintf("%.0f executions/s", rate), float64(b.commits()-before)/float64(started)*batchSize, rate)
	return nil
}

// ingest measures how fast events of workers enter the logs.
func (b *bench) ingest(ctx context.Context) error {
	playbook, err := b.register(ctx, chain("bench/ingest", 1))
	if err != nil {
		return err
	}
	payload, err := json.Marshal(map[string]any{"note": "a row was read", "row": 17})
	if err != nil {
		return err
	}
	var stored atomic.Int64
	before, begin := b.commits(), time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for range ingestLogs {
		g.Go(func() error {
			a, err := b.node.Plane.Execute(gctx, control.ExecuteRequest{CatalogID: playbook, Pool: "bench-nobody"})
			if err != nil {
				return err
			}
			for time.Since(begin) < b.length {
				r := event.Report{ExecutionID: a.ExecutionID, WorkerID: "bench"}
				for range ingestBatch {
					r.Events = append(r.Events, event.Incoming{Type: "bench.noted", Step: "s0", Payload: payload})
				}
				if _, err := b.node.Plane.Report(gctx, r); err != nil {
					return err
				}
				stored.Add(ingestBatch)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	rate := float64(stored.Load()) / time.Since(begin).Seconds()
	b.row("events ingested, reports of 50", fmt.Sprintf("%.0f events/s", rate), float64(b.commits()-before)/float64(stored.Load()), rate)
	return nil
}
