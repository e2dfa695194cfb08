package control

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	valuesKept = 64      // values that were looked up lately
	valueKept  = 1 << 20 // bytes of one that is worth keeping
)

// fetch finds values that the log only refers to. A value that is not there is
// nil; when the store does not answer, failed is told and the decision must
// not be kept.
func (p *Plane) fetch(ctx context.Context, failed func(error)) scope.Fetch {
	return func(ref *scope.Reference) json.RawMessage {
		if raw, ok := p.values.Get(ref.Ref); ok {
			return raw
		}
		raw, err := p.Result(ctx, ref.Ref)
		switch {
		case err == nil && len(raw) <= valueKept:
			p.values.Put(ref.Ref, raw)
		case err == nil:
		case event.CodeOf(err) == event.Limit:
			p.log.Warn("a template asks for a value that is too large for it", "execution_id", ownerOf(ref.Ref), "ref", ref.Ref, "error", err)
		case event.CodeOf(err) != event.NotFound && event.CodeOf(err) != event.Invalid:
			failed(err)
		}
		return raw
	}
}

// fetch finds values for the decisions of a pass: those it is about to store
// itself, and others.
func (ps *pass) fetch(ctx context.Context) scope.Fetch {
	elsewhere := ps.p.fetch(ctx, func(err error) { ps.unread = err })
	return func(ref *scope.Reference) json.RawMessage {
		for i := range ps.stored {
			if ps.stored[i].Ref == ref.Ref {
				return ps.stored[i].Data
			}
		}
		for i := range ps.plan.Stored {
			if ps.plan.Stored[i].Ref == ref.Ref {
				return ps.plan.Stored[i].Data
			}
		}
		return elsewhere(ref)
	}
}

// results are the values the attempt puts beside the log.
func (ps *pass) results() []store.Result {
	out := slices.Clip(ps.stored)
	for _, s := range ps.plan.Stored {
		out = append(out, newResult(ps.id, s.Ref, s.Name, s.Data, ps.env.Now))
	}
	return out
}

// ownerOf is the execution that a reference names; 0 when it names none.
func ownerOf(ref string) event.ID {
	r, err := event.ParseResultRef(ref)
	if err != nil {
		return 0
	}
	return r.Execution
}
