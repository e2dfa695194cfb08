package control

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Dedup asks that requests with the same key start one execution.
type Dedup struct {
	Key    string
	Window time.Duration // how long the key is held
}

const (
	dedupWindowMost = 30 * 24 * time.Hour
	dedupKeyMost    = 512 // bytes; longer keys are held by their hash
	hashedKey       = "sha256:"

	// mintTries bounds the search for an id that lives in the database of its
	// claim; among n databases one in n does.
	mintTries = 1 << 16
)

// once is a start that may happen only once: the claim it takes, and the id
// made for it.
type once struct {
	claim  store.StartClaim
	parent event.ID // whose log tells of suppressed starts; 0 when there is none
	id     event.ID // made for the start; told of when it is suppressed
}

// once is the claim a request asks for; nil when it asks for none.
func (p *Plane) once(r ExecuteRequest) (*once, error) {
	if r.Dedup == nil {
		return nil, nil
	}
	switch {
	case r.Dedup.Key == "":
		return nil, event.Errorf(event.Invalid, "dedup.key: a key is needed")
	case r.Dedup.Window <= 0:
		return nil, event.Errorf(event.Invalid, "dedup.window_secs: want a number above 0")
	case r.Dedup.Window > dedupWindowMost:
		return nil, event.Errorf(event.Invalid, "dedup.window_secs: at most %d (30 days) are possible", int64(dedupWindowMost.Seconds()))
	}
	o := &once{parent: r.ParentExecutionID, claim: store.StartClaim{
		Scope: scopeOf(r), Key: heldKey(r.Dedup.Key), Window: r.Dedup.Window,
	}}
	return o, p.mint(o)
}

// scopeOf keeps the keys of callers that have nothing to do with each other
// apart: by parent, or else by who asks for what. Hashes are below zero, where
// no execution's id is.
func scopeOf(r ExecuteRequest) event.ID {
	if r.ParentExecutionID != 0 {
		return r.ParentExecutionID
	}
	what := "path\x00" + cleanPath(r.Path)
	if r.CatalogID != 0 {
		what = "catalog\x00" + r.CatalogID.String()
	}
	sum := sha256.Sum256([]byte(r.Caller + "\x00" + what))
	return event.ID(int64(binary.BigEndian.Uint64(sum[:8])) | math.MinInt64)
}

// heldKey is a key as stores can hold it.
func heldKey(key string) string {
	if len(key) <= dedupKeyMost && utf8.ValidString(key) && !strings.Contains(key, "\x00") && !strings.HasPrefix(key, hashedKey) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hashedKey + hex.EncodeToString(sum[:])
}

// mint gives a start an id that can be stored together with its claim.
func (p *Plane) mint(o *once) error {
	o.claim.At = p.now()
	for range mintTries {
		if o.id = p.o.IDs(); p.store.Colocated(o.id, o.claim) {
			return nil
		}
	}
	return event.Errorf(event.Unavailable, "no execution id was found that can be stored beside its dedup key")
}

// startedBefore answers a request whose key is held already; the answer is empty
// when it is not. It spares the work of a start: whether one happens is decided
// by the append.
func (p *Plane) startedBefore(ctx context.Context, o *once) (ExecuteAnswer, error) {
	holder, err := p.store.ClaimHolder(ctx, o.claim)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ExecuteAnswer{}, nil
	case err != nil:
		return ExecuteAnswer{}, storeError("look up dedup key", err)
	}
	return p.duplicate(o, holder), nil
}

// duplicate answers a request whose execution was started before.
func (p *Plane) duplicate(o *once, holder event.ID) ExecuteAnswer {
	if o.parent != 0 && len(p.errands) < errandQueue/2 { // a flood of notes must not keep children from starting
		p.send(holder, p.noteDuplicate(*o, holder))
	}
	return ExecuteAnswer{ExecutionID: holder, Status: statusDuplicate}
}

// claimed is the claim that the start among the pass's inputs takes.
func (ps *pass) claimed() *store.StartClaim {
	if ps.began != 0 || len(ps.inputs) == 0 {
		return nil
	}
	if in, ok := ps.inputs[0].(*startInput); ok && in.once != nil {
		c := in.once.claim
		c.At = ps.env.Now
		return &c
	}
	return nil
}

// reasonClaimed marks the refusal of a start whose key is held.
const reasonClaimed = "start_claimed"

// notStarted refuses a start whose key is held. Whoever else asked for the
// execution is told that there is none.
func (ps *pass) notStarted(held *store.ClaimedError) error {
	for _, in := range ps.inputs[1:] {
		in.answer(noExecution(ps.id))
	}
	ps.inputs = ps.inputs[:1]
	return &event.Error{Code: event.Conflict, Reason: reasonClaimed, Message: held.Error(), Err: held}
}

// claimedBy is the execution for whose sake a start was refused; 0 when it was
// not.
func claimedBy(err error) event.ID {
	if held, ok := errors.AsType[*store.ClaimedError](err); ok && reasonOf(err) == reasonClaimed {
		return held.ExecutionID
	}
	return 0
}

// noteDuplicate tells in the parent's log that a start was suppressed. A parent
// that is not here or has ended is told nothing.
func (p *Plane) noteDuplicate(o once, holder event.ID) errand {
	id := p.o.IDs() // made once, so that telling it again adds nothing
	detail, _ := json.Marshal(map[string]any{
		"subscription_id": o.parent.String(), "dedup_key": o.claim.Key, "original_execution_id": holder.String(),
		"suppressed_execution_id": o.id.String(), "duplicate_suppressed": true,
	})
	return func(ctx context.Context) error {
		err := p.ask(ctx, o.parent, &noteInput{ticket: newTicket(), id: id, context: detail})
		if err != nil && event.CodeOf(err) == event.NotFound {
			return nil
		}
		return err
	}
}

// noteInput adds an event to a log that changes nothing but tells something.
type noteInput struct {
	ticket
	id      event.ID
	context json.RawMessage
}

func (in *noteInput) apply(_ context.Context, ps *pass) error {
	if _, stored := ps.known[in.id]; stored || ps.state.Final() {
		return nil
	}
	ps.add(event.Event{
		ExecutionID: ps.id, CatalogID: ps.state.Summary().CatalogID, EventID: in.id, CreatedAt: ps.env.Now,
		Type: event.MessageDeduplicated, NodeName: "ingress", NodeType: "subscription", Status: event.StatusDeduplicated,
		Context: in.context,
	})
	return nil
}
