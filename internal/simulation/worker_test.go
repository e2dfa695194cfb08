package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// beatEvery is the number of ticks between heartbeats.
const beatEvery = 30

// worker runs commands, not always as it should.
type worker struct {
	w    *world
	name string
	home *plane // the plane it lives in; nil for one that talks to all
	ctx  context.Context
	quit context.CancelFunc // ends all it does, at once

	mu   sync.Mutex     // guards told
	told map[string]int // how often it was told of the same thing
}

func (w *world) newWorker(name string, home *plane) *worker {
	x := &worker{w: w, name: name, home: home}
	x.ctx, x.quit = context.WithCancel(context.Background())
	return x
}

func (w *world) hire() {
	w.hired++
	w.staff = append(w.staff, w.newWorker(fmt.Sprintf("worker%02d", w.hired), nil))
}

// job is one goroutine of a worker or a client.
type job struct {
	*worker
	name string
	r    *rand.Rand
	ctx  context.Context
}

// employ starts a job. Its dice depend on its name and not on when it starts.
func (x *worker) employ(what string, f func(j *job)) {
	x.mu.Lock()
	if x.told == nil {
		x.told = map[string]int{}
	}
	x.told[what]++
	name := fmt.Sprintf("%s, %s", x.name, what)
	if n := x.told[what]; n > 1 {
		name += fmt.Sprintf(" (%d)", n)
	}
	x.mu.Unlock()
	j := &job{worker: x, name: name, r: x.w.dice(name), ctx: context.WithValue(x.ctx, actor{}, name)}
	x.w.jobs.Add(1)
	x.w.ends.Go(func() {
		defer x.w.jobs.Add(-1)
		f(j)
	})
}

// errs tells whether the worker does something wrong now.
func (j *job) errs(p float64, what string) bool {
	return j.w.strike(j.r, p*j.w.odds.misbehave, "%s: %s", j.name, what)
}

// pause waits for a number of ticks and tells whether the worker lives on.
func (j *job) pause(ticks int) bool {
	t := time.NewTimer(time.Duration(ticks) * tick)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-j.ctx.Done():
		return false
	}
}

// call makes one request to a plane once it is this job's turn. The answer of
// a plane that dies meanwhile is Unavailable.
func (j *job) call(what string, f func(ctx context.Context, p *control.Plane) error) error {
	if _, err := j.w.turns.enter(j.ctx, &turn{name: j.name + " " + what}); err != nil {
		return event.Errorf(event.Unavailable, "%s: %w", what, err)
	}
	p := j.home
	if p == nil {
		p = j.w.somePlane(j.r)
	}
	if p == nil || p.dead.Load() {
		return errDead
	}
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	err := f(ctx, p.Plane)
	if ctx.Err() != nil {
		return errDead // and if there was an answer, it did not arrive
	}
	return err
}

// insist repeats a request while the answer is Unavailable.
func (j *job) insist(what string, f func(ctx context.Context, p *control.Plane) error) error {
	for {
		err := j.call(what, f)
		if err == nil || event.CodeOf(err) != event.Unavailable || !j.pause(1+j.r.IntN(5)) {
			return err
		}
	}
}

// expect complains about an answer that no fault explains.
func (j *job) expect(what string, err error, codes ...event.Code) {
	if err == nil || event.CodeOf(err) == event.Unavailable {
		return
	}
	for _, c := range codes {
		if event.CodeOf(err) == c {
			return
		}
	}
	j.w.problem(answers, "%s: %s: %v", j.name, what, err)
}

// take claims what a notification announces, and runs it.
func (j *job) take(d bus.Delivery) {
	cmd, err := j.claim(d.Notification())
	switch {
	case j.errs(0.1, "does not answer the bus"): // it delivers again
	case err != nil && event.CodeOf(err) == event.Unavailable:
		_ = d.Nak(time.Duration(1+j.r.IntN(5)) * tick)
	default:
		_ = d.Ack()
	}
	j.expect("claim", err, event.Conflict)
	if err != nil || j.errs(0.1, "the answer to its claim is lost") {
		return
	}
	if j.errs(0.2, "claims twice") {
		again, err := j.claim(d.Notification())
		j.expect("second claim", err, event.Conflict)
		if err == nil {
			if again.Meta.Attempt < cmd.Meta.Attempt {
				j.w.problem(leases, "%s: attempt %d follows attempt %d", j.name, again.Meta.Attempt, cmd.Meta.Attempt)
			}
			cmd = again
		}
	}
	j.run(cmd)
}

func (j *job) claim(n event.Notification) (cmd *event.Command, err error) {
	err = j.call("claim", func(ctx context.Context, p *control.Plane) error {
		id := n.ExecutionID
		if j.r.IntN(4) == 0 {
			id = 0 // workers need not know it
		}
		cmd, err = p.Claim(ctx, event.ClaimRequest{EventID: n.EventID, ExecutionID: id, WorkerID: j.worker.name, Heartbeats: true})
		return err
	})
	return cmd, err
}

// run runs a command and those handed over after it.
func (j *job) run(first *event.Command) {
	for todo := []*event.Command{first}; len(todo) > 0 && j.ctx.Err() == nil; todo = todo[1:] {
		todo = append(todo, j.runOne(todo[0])...)
	}
}

func (j *job) runOne(cmd *event.Command) (more []*event.Command) {
	switch {
	case j.errs(0.1, "dies with it"):
		return nil
	case j.errs(0.06, "gives it back"):
		j.release(cmd)
		return nil
	}
	if j.r.IntN(4) == 0 {
		e := j.incoming(cmd, event.CommandStarted, map[string]any{})
		_, err := j.report(event.Report{ExecutionID: cmd.ExecutionID, WorkerID: j.worker.name, Events: []event.Incoming{e}})
		j.expect("report start", err)
	}
	if !j.work(cmd) {
		return nil
	}
	if p, ok := j.parks(cmd); ok {
		return j.reportPark(cmd, p)
	}
	return j.reportEnd(cmd)
}

// work takes its time, with heartbeats unless the worker forgets them. It
// tells whether there is something to report.
func (j *job) work(cmd *event.Command) bool {
	ticks, forgets := j.r.IntN(3), false
	switch {
	case j.errs(0.2, "works about as long as its lease"):
		ticks, forgets = int(lease/tick)-10+j.r.IntN(40), true
	case j.errs(0.3, "works long"):
		ticks, forgets = 10+j.r.IntN(250), j.r.IntN(2) == 0
	}
	for ; ticks > beatEvery; ticks -= beatEvery {
		if !j.pause(beatEvery) {
			return false
		}
		if !forgets && j.beat(cmd) && j.r.IntN(4) > 0 {
			return false // it was told to stop, and listens most of the time
		}
	}
	return j.pause(ticks)
}

// beat renews the lease and tells whether the run must stop.
func (j *job) beat(cmd *event.Command) (stop bool) {
	err := j.call("heartbeat", func(ctx context.Context, p *control.Plane) error {
		b := event.Heartbeat{EventID: cmd.EventID, WorkerID: j.worker.name, ExecutionID: cmd.ExecutionID, Attempt: cmd.Meta.Attempt}
		if j.r.IntN(4) == 0 {
			b.ExecutionID, b.Attempt = 0, 0 // as workers of other makes do
		}
		answers, err := p.Heartbeat(ctx, []event.Heartbeat{b})
		stop = err == nil && answers[0].Cancel
		return err
	})
	j.expect("heartbeat", err)
	return stop
}

func (j *job) release(cmd *event.Command) {
	err := j.call("release", func(ctx context.Context, p *control.Plane) error {
		return p.Release(ctx, event.Heartbeat{
			EventID: cmd.EventID, ExecutionID: cmd.ExecutionID, WorkerID: j.worker.name, Attempt: cmd.Meta.Attempt,
		})
	})
	j.expect("release", err)
}

// reportEnd reports the outcome until it is acknowledged, and now and then
// once more, under the same id or as another event.
func (j *job) reportEnd(cmd *event.Command) (more []*event.Command) {
	rep := event.Report{
		ExecutionID: cmd.ExecutionID, WorkerID: j.worker.name, Eager: j.r.IntN(3), Events: []event.Incoming{j.outcome(cmd)},
	}
	if j.errs(0.2, "the answer to its report is lost") {
		_, err := j.reportOnce(&rep)
		j.expect("report", err)
	}
	answer, err := j.report(rep)
	j.expect("report", err)
	if err != nil {
		return nil
	}
	j.mustCount(cmd)
	if j.errs(0.2, "reports the same again") {
		_, err := j.report(rep)
		j.expect("repeated report", err)
	}
	if j.errs(0.15, "reports another end") {
		rep.Events = []event.Incoming{j.outcome(cmd)}
		rep.Events[0].EventID, rep.Eager = 0, 0
		_, err := j.report(rep)
		j.expect("second report", err)
	}
	return answer.Commands
}

// mustCount complains when an acknowledged end left its command as it was.
func (j *job) mustCount(cmd *event.Command) {
	row, err := j.w.store.Command(context.Background(), cmd.ExecutionID, cmd.EventID)
	if err != nil || event.IsFinal(row.Status) {
		return
	}
	if row.WorkerID == j.worker.name && row.Attempt == cmd.Meta.Attempt {
		j.w.problem(durable, "%s: the end of %s was acknowledged and is not durable", j.name, cmd.Meta.CommandID)
	}
}

func (j *job) report(rep event.Report) (answer event.ReportAnswer, err error) {
	err = j.insist("report", func(ctx context.Context, p *control.Plane) error {
		answer, err = j.send(ctx, p, &rep)
		return err
	})
	return answer, err
}

func (j *job) reportOnce(rep *event.Report) (answer event.ReportAnswer, err error) {
	err = j.call("report", func(ctx context.Context, p *control.Plane) error {
		answer, err = j.send(ctx, p, rep)
		return err
	})
	return answer, err
}

// send gives the events their ids, which they keep when they are sent again.
func (j *job) send(ctx context.Context, p *control.Plane, rep *event.Report) (event.ReportAnswer, error) {
	for i := range rep.Events {
		if rep.Events[i].EventID == 0 {
			rep.Events[i].EventID = j.w.ids.Next()
		}
	}
	return p.Report(ctx, *rep)
}

// outcome is the end of a command: mostly success.
func (j *job) outcome(cmd *event.Command) event.Incoming {
	if j.w.strike(j.r, j.w.odds.fail, "%s: its tool fails", j.name) {
		return j.incoming(cmd, event.CommandFailed, map[string]any{
			"error": map[string]any{"kind": "logic", "code": "E1", "message": "bad luck", "retryable": false},
		})
	}
	n := j.r.IntN(3)
	data := map[string]any{"n": n, "rows": []int{n, n + 1}}
	if c := cmd.Meta.Cursor; c != nil && c.Phase == "claim" {
		data["rows"] = []int{0, 1, 2}[:max(0, 2-c.Frame)] // two rows, then one, then none
	}
	if j.r.IntN(3) == 0 {
		data["_context_updates"] = map[string]any{"ctx." + j.w.book.variable(cmd.NodeName): n}
	}
	return j.incoming(cmd, event.CommandCompleted, map[string]any{
		"status": "success", "result": map[string]any{"status": "success", "context": map[string]any{"data": data}},
	})
}

func (j *job) incoming(cmd *event.Command, t event.Type, payload map[string]any) event.Incoming {
	payload["command_id"] = cmd.Meta.CommandID
	raw, err := json.Marshal(payload)
	if err != nil {
		j.w.t.Error(err)
	}
	meta := fmt.Sprintf(`{"command_id":%q,"attempt":%d}`, cmd.Meta.CommandID, cmd.Meta.Attempt)
	return event.Incoming{Type: t, Step: cmd.NodeName, Payload: raw, Meta: json.RawMessage(meta)}
}
