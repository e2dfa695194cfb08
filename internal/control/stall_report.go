package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// sweepListed bounds each list of a report.
const sweepListed = 100

// SweepReport tells what the sweeps see and would do now, without doing it.
type SweepReport struct {
	GeneratedAt  time.Time          `json:"generated_at"`
	Mode         string             `json:"mode"`
	GraceSeconds int64              `json:"grace_seconds"`
	Pending      []SweptCommand     `json:"pending"` // wait for a worker and are announced again
	Expired      []SweptCommand     `json:"expired"` // their worker is silent
	Stalled      []StalledExecution `json:"stalled"` // executions nobody has written to for longer than the grace
	Counts       SweepCounts        `json:"counts"`
}

// SweepCounts counts the lists. A list that is full may not be all there is.
type SweepCounts struct {
	Pending   int            `json:"pending"`
	Expired   int            `json:"expired"`
	Stalled   int            `json:"stalled"`
	Verdicts  map[string]int `json:"verdicts"`
	Truncated bool           `json:"truncated"`
}

// SweptCommand is a command that a sweep looks after.
type SweptCommand struct {
	ExecutionID event.StringID `json:"execution_id"`
	EventID     event.StringID `json:"event_id"`
	CommandID   string         `json:"command_id"`
	Step        string         `json:"step"`
	Pool        string         `json:"pool"`
	AgeSeconds  int64          `json:"age_seconds"` // since it was issued, or since its lease ended
	Announced   int            `json:"announced"`   // times this process announced it again
	WorkerID    string         `json:"worker_id,omitempty"`
	Attempt     int            `json:"attempt"`
	MaxAttempts int            `json:"max_attempts"`
	Verdict     string         `json:"verdict"` // announced, retried or given_up
}

// Sweeps reports what the sweeps would do now.
func (p *Plane) Sweeps(ctx context.Context) (SweepReport, error) {
	now := p.now()
	r := SweepReport{
		GeneratedAt: now, Mode: p.o.Stall.Mode, GraceSeconds: int64(p.o.Stall.Grace.Seconds()),
		Pending: []SweptCommand{}, Expired: []SweptCommand{}, Counts: SweepCounts{Verdicts: map[string]int{}},
	}
	pending, err := p.store.PendingCommands(ctx, now.Add(-p.o.Republish), sweepListed)
	if err != nil {
		return SweepReport{}, storeError("list pending commands", err)
	}
	for i := range pending {
		r.Pending = append(r.Pending, p.swept(&pending[i], now.Sub(pending[i].CreatedAt), "announced"))
	}
	expired, err := p.store.ExpiredCommands(ctx, now, sweepListed)
	if err != nil {
		return SweepReport{}, storeError("list expired commands", err)
	}
	for i := range expired {
		verdict := "retried"
		if expired[i].Attempt >= expired[i].MaxAttempts {
			verdict = "given_up"
		}
		r.Expired = append(r.Expired, p.swept(&expired[i], now.Sub(expired[i].LeaseUntil), verdict))
	}
	if r.Stalled, err = p.judgeAll(ctx); err != nil {
		return SweepReport{}, err
	}
	r.count()
	return r, nil
}

func (p *Plane) swept(row *store.Command, age time.Duration, verdict string) SweptCommand {
	again, _ := p.repeats.Get(row.EventID)
	return SweptCommand{
		ExecutionID: event.StringID(row.ExecutionID), EventID: event.StringID(row.EventID), CommandID: row.CommandID,
		Step: row.Step, Pool: row.Pool, AgeSeconds: int64(age.Seconds()), Announced: again.count,
		WorkerID: row.WorkerID, Attempt: row.Attempt, MaxAttempts: row.MaxAttempts, Verdict: verdict,
	}
}

// judgeAll judges the oldest silent executions, behind those that this process
// has ended.
func (p *Plane) judgeAll(ctx context.Context) ([]StalledExecution, error) {
	ids, err := p.silent(ctx, 0, sweepListed)
	if err != nil {
		return nil, storeError("list open executions", err)
	}
	found := p.stalled.list()
	for _, id := range ids {
		x, err := p.judge(ctx, id, false)
		switch {
		case err == nil:
			found = append(found, x)
		case ctx.Err() != nil:
			return nil, err
		case !errors.Is(err, errWritten):
			p.log.Warn("execution without progress not judged", "execution_id", id, "error", err)
		}
	}
	return found, nil
}

func (r *SweepReport) count() {
	r.Counts.Pending, r.Counts.Expired, r.Counts.Stalled = len(r.Pending), len(r.Expired), len(r.Stalled)
	r.Counts.Truncated = len(r.Pending) >= sweepListed || len(r.Expired) >= sweepListed || len(r.Stalled) >= sweepListed
	for _, x := range r.Stalled {
		r.Counts.Verdicts[x.Verdict]++
	}
}

// endedStalls remembers the last executions that the sweep ended.
type endedStalls struct {
	mu   sync.Mutex // guards last
	last []StalledExecution
}

func (e *endedStalls) add(x StalledExecution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.last) == stallFailed {
		e.last = e.last[1:]
	}
	e.last = append(e.last, x)
}

func (e *endedStalls) list() []StalledExecution {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]StalledExecution{}, e.last...)
}
