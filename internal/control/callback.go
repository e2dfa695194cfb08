package control

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// CallBack tells the step that waits for a job how it ended. It returns the id
// of the event, or 0 when nobody waits: the execution is unknown or over, the
// step does not wait, or it was told of this very job before. job is what is
// unique about the job; "" when that is not known.
func (p *Plane) CallBack(ctx context.Context, execution event.ID, in event.Incoming, job string) (event.ID, error) {
	told, err := p.toldBefore(ctx, execution, in.Step, job)
	if err != nil || told {
		return 0, err
	}
	a, err := p.Report(ctx, event.Report{ExecutionID: execution, Events: []event.Incoming{in}})
	switch {
	case err != nil && event.CodeOf(err) == event.NotFound:
		return 0, nil
	case err != nil:
		return 0, err
	}
	return a.EventIDs[0], nil
}

// toldBefore looks for an earlier callback of the same job. A step that is tried
// again waits for another job, and must not take the end of the first for it.
func (p *Plane) toldBefore(ctx context.Context, execution event.ID, step, job string) (bool, error) {
	if job == "" {
		return false, nil
	}
	for after := int64(0); ; {
		events, err := p.store.Events(ctx, execution, after, foldPage)
		if err != nil {
			return false, storeError("read events", err)
		}
		for i := range events {
			e := &events[i]
			if e.Type.Canonical() == event.CallDone && e.NodeName == step && bytes.Contains(e.Result, []byte(`"job_uid"`)) && jobOf(e) == job {
				return true, nil
			}
		}
		if len(events) < foldPage {
			return false, nil
		}
		after = events[len(events)-1].Seq
	}
}

// jobOf is the job whose end a stored callback reports.
func jobOf(e *event.Event) string {
	var r struct {
		Context struct {
			Result struct {
				Context struct {
					JobUID string `json:"job_uid"`
				} `json:"context"`
			} `json:"result"`
		} `json:"context"`
	}
	if json.Unmarshal(e.Result, &r) != nil {
		return ""
	}
	return r.Context.Result.Context.JobUID
}
