package simulation

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// note is what a worker writes down when it parks a command and goes on later.
const note = `{"task":1}`

// parks tells whether the worker gives the command back to wait, and for what.
func (j *job) parks(cmd *event.Command) (event.Park, bool) {
	if r := cmd.Meta.Resume; r != nil {
		if string(r.State) != note {
			j.w.problem(parked, "%s: it goes on with the note %s", j.name, r.State)
		}
		return event.Park{}, false
	}
	if c := cmd.Meta.Cursor; c != nil && c.Phase == "claim" {
		return event.Park{}, false // it says when the rows are at an end
	}
	switch j.w.book.waitsAt(cmd.NodeName) {
	case pauses:
		return event.Park{Delay: 0.5 + float64(j.r.IntN(5)), Resume: json.RawMessage(note)}, true
	case calledBack:
		return event.Park{Callback: "somebody who calls"}, true
	case resumed:
		return event.Park{Callback: "somebody who calls", Resume: json.RawMessage(note)}, true
	case naps:
		return event.Park{Delay: 0.5 + float64(j.r.IntN(5)), Elapsed: &event.Wake{Data: json.RawMessage(`{"n":1}`)}}, true
	case signalled:
		return event.Park{Signal: &event.Signal{Name: "go"}}, true
	case signalledOn:
		return event.Park{Signal: &event.Signal{Name: "go", Approve: event.RejectFails}, Delay: 2 + float64(j.r.IntN(20)), Resume: json.RawMessage(note)}, true
	case neverCalled:
		return event.Park{Callback: "somebody who never calls"}, true
	case runsChild:
		return event.Park{Child: &event.ChildRequest{Path: j.childPath(cmd), Wait: true, ReturnStep: "c0", Timeout: float64(j.r.IntN(3) * 8)}}, true
	case startsChild:
		return event.Park{Child: &event.ChildRequest{Path: j.childPath(cmd)}}, true
	case noChild:
		return event.Park{Child: &event.ChildRequest{Path: "test/nowhere/" + j.w.name(cmd.EventID), Wait: j.r.IntN(2) == 0}}, true
	}
	return event.Park{}, false
}

// childPath is where a command finds the playbook it runs.
func (j *job) childPath(cmd *event.Command) string {
	return fmt.Sprint(childPath, j.w.dice("child", j.w.name(cmd.EventID)).IntN(childPaths))
}

// reportPark gives a command back to wait, and now and then twice.
func (j *job) reportPark(cmd *event.Command, p event.Park) []*event.Command {
	if w := j.w.book.waitsAt(cmd.NodeName); w == calledBack || w == resumed {
		j.w.hireCaller(cmd)
	} else if w == signalled || w == signalledOn {
		j.w.hireSender(cmd)
	}
	rep := event.Report{
		ExecutionID: cmd.ExecutionID, WorkerID: j.worker.name, Eager: j.r.IntN(3),
		Events: []event.Incoming{j.incoming(cmd, event.CommandParked, map[string]any{"park": p})},
	}
	answer, err := j.report(rep)
	j.expect("report that it waits", err)
	if err == nil && j.errs(0.2, "reports again that it waits") {
		_, err := j.report(rep)
		j.expect("repeated report", err)
	}
	if err == nil && j.errs(0.2, "says later once more that it waits") && j.pause(5+j.r.IntN(60)) {
		rep.Events[0].EventID, rep.Eager = 0, 0
		_, err := j.report(rep)
		j.expect("second report", err)
	}
	return answer.Commands
}

// hireCaller has somebody call back once the command is parked, now and then
// twice. Callers are no workers: they do not die with them.
func (w *world) hireCaller(cmd *event.Command) {
	c := &worker{w: w, name: "caller", ctx: w.life}
	c.employ(fmt.Sprintf("%s, attempt %d", w.name(cmd.EventID), cmd.Meta.Attempt), func(j *job) {
		for j.pause(1 + j.r.IntN(40)) {
			row, err := w.store.Command(context.Background(), cmd.ExecutionID, cmd.EventID)
			switch {
			case err != nil:
			case event.IsFinal(row.Status):
				return
			case row.Status == event.StatusWaiting:
				j.callBack(cmd)
				return
			}
		}
	})
}

// hireSender has somebody send a signal, perhaps before the command is parked,
// and again for as long as it waits. Others that wait take it too.
func (w *world) hireSender(cmd *event.Command) {
	c := &worker{w: w, name: "sender", ctx: w.life}
	c.employ(fmt.Sprintf("%s, attempt %d", w.name(cmd.EventID), cmd.Meta.Attempt), func(j *job) {
		early := j.errs(0.3, "sends before anybody waits")
		for j.pause(1 + j.r.IntN(40)) {
			row, err := w.store.Command(context.Background(), cmd.ExecutionID, cmd.EventID)
			switch {
			case err != nil:
			case event.IsFinal(row.Status):
				return
			case row.Status == event.StatusWaiting || early:
				early = false
				if j.signal(cmd) {
					return
				}
			case row.Attempt > cmd.Meta.Attempt: // it was woken by another
				return
			}
		}
	})
}

// signal sends a signal, now and then twice under one id. It is true when
// somebody took it, or nobody can any more.
func (j *job) signal(cmd *event.Command) bool {
	r := control.SignalRequest{EventID: j.w.ids.Next(), SentSignal: event.SentSignal{
		Name: "go", By: j.name, Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"approved":%t}`, j.r.IntN(3), j.r.IntN(3) > 0)),
	}}
	if j.r.IntN(2) == 0 {
		r.Step, r.Index = cmd.NodeName, cmd.Meta.IterationIndex
	}
	var answer control.SignalAnswer
	send := func(ctx context.Context, p *control.Plane) (err error) {
		answer, err = p.Signal(ctx, cmd.ExecutionID, r)
		return err
	}
	err := j.insist("signal", send)
	j.expect("send a signal", err, event.Conflict)
	taken := err != nil || answer.Woken > 0
	if err == nil && j.errs(0.3, "sends the same again") {
		again := j.insist("signal", send)
		j.expect("send the signal again", again, event.Conflict)
		if again == nil && answer.Status != "duplicate" {
			j.w.problem(answers, "%s: the same signal is %s the second time", j.name, answer.Status)
		}
	}
	return taken
}

func (j *job) callBack(cmd *event.Command) {
	data := map[string]any{"n": j.r.IntN(3)}
	e := j.incoming(cmd, event.CallDone, map[string]any{"status": "success", "result": map[string]any{"status": "success", "context": map[string]any{"data": data}}})
	e.Meta = json.RawMessage(fmt.Sprintf(`{"command_id":%q}`, cmd.Meta.CommandID)) // callers know of no attempts
	rep := event.Report{ExecutionID: cmd.ExecutionID, Events: []event.Incoming{e}}
	_, err := j.report(rep)
	j.expect("call back", err)
	if j.errs(0.3, "calls the same again") {
		_, err := j.report(rep)
		j.expect("call back again", err)
	}
	if j.errs(0.3, "makes another call") {
		rep.Events[0].EventID = 0
		_, err := j.report(rep)
		j.expect("another call back", err)
	}
}
