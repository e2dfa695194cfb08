package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/noetl/noetl-go/client"
	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/worker"
)

// WorkerOptions choose the parts of a worker process.
type WorkerOptions struct {
	ID        string
	ServerURL string
	NATSURL   string
	Pools     []string
	Slots     int
	Heartbeat time.Duration
	Drain     time.Duration
	Version   string
	Logger    *slog.Logger
}

// Worker is a worker process: NATS tells it of commands, HTTP carries claims
// and reports.
type Worker struct {
	worker *worker.Worker
	clean  closers
}

// StartWorker connects a worker; Run then serves.
func StartWorker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	cl, err := client.New(o.ServerURL)
	if err != nil {
		return nil, err
	}
	b, err := natsbus.Connect(ctx, natsbus.Options{URL: o.NATSURL})
	if err != nil {
		return nil, err
	}
	w := &Worker{clean: closers{b.Close}}
	tools := newToolbox(cl)
	w.clean = append(w.clean, tools.close)
	tools.warm(ctx, o.Logger)
	machine, err := snowflake.MachineID("", o.ID)
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	ids := snowflake.New(machine, time.Now)
	o.Pools, o.Slots = orDefault(o.Pools, DefaultPools()), orDefaultInt(o.Slots, DefaultSlots())
	w.worker, err = worker.New(worker.Options{
		ID: o.ID, Pools: o.Pools, Slots: o.Slots, Registry: cl, Registration: registration(o.Pools, o.Slots, tools.set, o.Version),
		Plane: cl, Bus: b, IDs: ids.Next, Heartbeat: o.Heartbeat, Drain: o.Drain, Logger: o.Logger,
		Runner: pipeline.New(pipeline.Options{Tools: tools.set, ServerURL: o.ServerURL, WorkerID: o.ID, Results: cl}),
	})
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	return w, nil
}

// Run serves until ctx ends, then drains and releases everything.
func (w *Worker) Run(ctx context.Context) error {
	return errors.Join(w.worker.Run(ctx), w.clean.close())
}
