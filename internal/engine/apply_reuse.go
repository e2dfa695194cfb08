package engine

import (
	"bytes"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
)

// applyReused makes a step look as it ended in another execution. It counts
// only while the execution is being prepared.
func (s *State) applyReused(e *event.Event) Effect {
	d := resultOf[reusedDetail](e)
	if e.WorkerID != "" || !s.preparing {
		return Effect{Ignored: IgnoredForeign}
	}
	if d.Part > 0 {
		return s.applyReusedPart(e.NodeName, d)
	}
	if s.steps[e.NodeName] != nil {
		return Effect{Ignored: IgnoredDuplicate}
	}
	st := s.touchStep(s.stepOf(e.NodeName))
	r := &run{
		step: st.name, gen: d.Gen, phase: phaseOf(d.Status), entered: e.EventID, ended: e.EventID,
		routed: !d.Unrouted, handled: d.Handled, updates: d.Updates, from: d.From, reused: event.ID(d.Execution),
		errText: d.Error, errRaw: d.ErrorFull, reason: d.Reason, skip: d.Skip,
		enteredAt: d.EnteredAt, endedAt: d.EndedAt, parts: d.Parts, epoch: s.epoch,
	}
	if l := d.Loop; l != nil {
		st.loop = true
		r.succeeded, r.faulted = l.Succeeded, l.Failed
		if l.Cursor {
			r.cursor = &cursorRun{rows: l.Total, failed: l.Failed}
		} else {
			r.loop = &loopRun{total: l.Total}
		}
	}
	st.runs, st.cur, st.kind, st.routed = d.Gen, r, d.Kind, d.Route
	if d.Info != nil {
		r.value = scope.Step(nonNil(d.Result), *d.Info)
	}
	s.showReused(st, r)
	switch {
	case d.Unrouted:
		s.unrouted = with(s.unrouted, r)
	case r.phase == failed && !r.handled:
		s.unhandled++
	}
	return Effect{}
}

// applyReusedPart adds to the results of a large loop; with the last part they
// are complete.
func (s *State) applyReusedPart(name string, d *reusedDetail) Effect {
	r := s.currentRun(name, d.Gen)
	if r == nil || r.reused == 0 || d.Part != len(r.collected)+1 || d.Part > r.parts {
		return Effect{Ignored: IgnoredForeign}
	}
	s.touch(r).collected = with(r.collected, d.Items)
	if d.Part < r.parts {
		return Effect{}
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for _, items := range r.collected {
		for _, item := range items {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(item)
		}
	}
	b.WriteByte(']')
	r.value, r.collected = scope.Step(rawJSON(b.Bytes()), r.value.Info()), nil
	s.showReused(s.touchStep(s.steps[name]), r)
	return Effect{}
}

// showReused sets what the step's name shows.
func (s *State) showReused(st *step, r *run) {
	switch r.phase {
	case failed:
		st.result = r.failureValue()
	case skipped:
		st.result, r.value = r.value, nil
	default:
		st.result = r.value
	}
}

// applyPrepared places the tokens with which a rerun goes on.
func (s *State) applyPrepared(e *event.Event) Effect {
	if e.WorkerID != "" || !s.preparing {
		return Effect{Ignored: IgnoredForeign}
	}
	s.preparing = false
	for _, t := range resultOf[preparedDetail](e).Tokens {
		cause := e.EventID
		if st := s.steps[t.From]; st != nil && st.cur != nil {
			cause = st.cur.ended
		}
		s.offers = with(s.offers, offer{target: t.Step, from: t.From, cause: cause})
	}
	return Effect{}
}

func phaseOf(status string) phase {
	switch status {
	case event.StatusFailed:
		return failed
	case event.StatusSkipped:
		return skipped
	}
	return completed
}
