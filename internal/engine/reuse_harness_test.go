package engine

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// rerun starts the execution again from a step on, in a host of its own whose
// log stands alone.
func (h *host) rerun(from, payload string) (*host, error) {
	harvest, err := NewHarvest(executionID, h.prog, nil, from)
	if err != nil {
		return nil, err
	}
	for _, e := range reread(h.log) {
		harvest.Apply(&e)
	}
	if err := harvest.Check(h.prog); err != nil {
		return nil, err
	}
	again := &host{t: h.t, prog: h.prog, ids: h.ids + 1000, now: h.now, stored: h.stored}
	again.state = again.lend(NewState(executionID))
	start, err := Start(h.prog, StartInput{
		ExecutionID: executionID, CatalogID: 9, Path: h.prog.pb.Metadata.Path, Version: 1, Payload: json.RawMessage(payload),
		Rerun: &Rerun{Of: executionID, FromStep: from},
	}, again.env())
	if err != nil {
		return nil, err
	}
	scratch := NewState(executionID)
	first := start
	scratch.Apply(&first)
	plan := harvest.TakeOver(h.prog, scratch, again.env())
	again.input(append([]event.Event{start}, plan.Events...)...)
	return again, nil
}
