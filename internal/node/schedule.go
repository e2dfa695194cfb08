package node

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/source/schedule"
)

// gaugeTime bounds how long a scrape waits for the number of schedules.
const gaugeTime = 5 * time.Second

// openSchedules has playbooks started by themselves. Only a server lives long
// enough for it.
func (n *Node) openSchedules(o Options, ids *snowflake.Generator) {
	if o.Listen == "" {
		return
	}
	n.schedules = schedule.New(schedule.Options{
		Store: n.Store, Executions: scheduled{n.Plane}, IDs: ids.Next, Clock: failpoint.Now, Logger: o.Logger, Metrics: obs.NewSchedules(&n.metrics.Registry),
	})
	n.metrics.OnScrape(func() {
		ctx, cancel := context.WithTimeout(context.Background(), gaugeTime)
		defer cancel()
		if err := n.schedules.Count(ctx); err != nil {
			o.Logger.Warn("schedules were not counted", "error", err)
		}
	})
	n.Plane.SetSchedules(n.schedules)
	n.background = append(n.background, n.schedules.Run)
}

// scheduled is the control plane as schedules see it.
type scheduled struct{ plane *control.Plane }

// Start implements schedule.Executions. The schedule is the caller, so that its
// keys and those of others do not mix.
func (s scheduled) Start(ctx context.Context, r schedule.Start) (event.ID, bool, error) {
	name := "schedule:" + r.Schedule.String()
	by := &event.Actor{ID: name, Name: name, By: "schedule"}
	if r.By != nil {
		by.For, by.Within, by.Without = r.By.ID, r.By.Within, r.By.Without
	}
	answer, err := s.plane.Execute(ctx, control.ExecuteRequest{
		Path: r.Path, Version: r.Version, Pool: r.Pool, Payload: r.Payload, Caller: name, Actor: by,
		Dedup: &control.Dedup{Key: r.Key, Window: r.Window},
	})
	return answer.ExecutionID, answer.Status == "started", err
}

// Status implements schedule.Executions.
func (s scheduled) Status(ctx context.Context, id event.ID) (string, time.Time, error) {
	x, err := s.plane.Execution(ctx, id)
	return x.Status, x.EndedAt, err
}

// Cancel implements schedule.Executions.
func (s scheduled) Cancel(ctx context.Context, id event.ID, reason string) error {
	_, err := s.plane.Cancel(ctx, id, control.CancelRequest{Reason: reason, By: "schedule", Cascade: true})
	if e, ok := errors.AsType[*event.Error](err); ok && (e.Reason == "already_ended" || e.Code == event.NotFound) {
		return nil
	}
	return err
}
