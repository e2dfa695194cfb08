package secret

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// What is written down.
const (
	OpCreate  = "create"
	OpUpdate  = "update"
	OpDelete  = "delete"
	OpRotate  = "rotate"
	OpGet     = "get_credential"
	OpCheck   = "check"
	OpSealed  = "get_sealed"
	OpResolve = "resolve_keychain"
)

// How it ended.
const (
	OutcomeOK         = "ok"
	OutcomeDenied     = "denied"
	OutcomeNotFound   = "credential_not_found"
	OutcomeUnreadable = "decrypt_error"
	OutcomeFailed     = "failed"
)

// Use says on whose behalf a secret is used, and for what.
type Use struct {
	Operation         string
	Actor             string // user, token or worker
	RequestID         string
	WorkerID          string
	ExecutionID       event.ID
	ParentExecutionID event.ID
	Notes             string // never the secret
}

const (
	// maxPending bounds the lines that wait to be written.
	maxPending = 4096
	auditBatch = 200
	// drainTime bounds what the end of the process waits for the last lines.
	drainTime = 5 * time.Second
	// maxAudit is the longest list; maxText what is kept of a text of a caller.
	maxAudit = 10000
	maxText  = 512
)

// Record writes down a use of a credential that this service had no part in. An
// error means that nothing may leave the server.
func (s *Service) Record(ctx context.Context, use Use, credential, outcome, keyVersion string) error {
	switch {
	case outcome == OutcomeOK && (use.Operation == OpGet || use.Operation == OpSealed || use.Operation == OpResolve):
		s.o.Meter.Released(use.Operation)
	case outcome != OutcomeOK:
		s.o.Meter.Denied(use.Operation)
	}
	line := store.SecretAudit{
		ID: s.o.IDs(), At: s.o.Clock().UTC(), Credential: short(credential), Operation: use.Operation, Outcome: outcome, Actor: short(use.Actor),
		RequestID: short(use.RequestID), WorkerID: short(use.WorkerID), ExecutionID: use.ExecutionID, ParentExecutionID: use.ParentExecutionID,
		Region: s.o.Region, KeyVersion: short(keyVersion), Notes: short(use.Notes),
	}
	if !s.o.AuditRequired {
		s.trail.add(line)
		return nil
	}
	err := s.o.Store.AddAudit(ctx, line)
	s.o.Meter.AuditWritten(use.Operation, outcome, err == nil)
	if err != nil {
		return &event.Error{
			Code: event.Unavailable, Message: "the use of the secret could not be written down, so it is refused",
			Remedy: "see that the database takes writes", Reason: "audit_required", Err: err,
		}
	}
	return nil
}

func short(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// Audit lists what was written down, newest first.
func (s *Service) Audit(ctx context.Context, f store.AuditFilter) ([]store.SecretAudit, error) {
	if f.Limit < 0 || f.Limit > maxAudit {
		return nil, event.Errorf(event.Invalid, "limit: want 1 to %d, got %d", maxAudit, f.Limit)
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return nil, event.Errorf(event.Invalid, "from must be before to")
	}
	if err := s.trail.flush(ctx); err != nil {
		return nil, err
	}
	return s.o.Store.ListAudit(ctx, f)
}

// trail holds the lines that are yet to be written.
type trail struct {
	store store.Secrets
	log   *slog.Logger
	meter Meter
	wake  chan struct{} // has room for one: there is something to write

	mu      sync.Mutex // guards pending
	pending []store.SecretAudit

	writing sync.Mutex // held by the one who writes
}

func newTrail(o Options) *trail {
	return &trail{store: o.Store, log: o.Logger, meter: o.Meter, wake: make(chan struct{}, 1)}
}

// add takes a line; when too many wait, the oldest is lost.
func (t *trail) add(line store.SecretAudit) {
	t.mu.Lock()
	t.pending = append(t.pending, line)
	lost := max(0, len(t.pending)-maxPending)
	t.pending = slices.Delete(t.pending, 0, lost)
	t.mu.Unlock()
	t.dropped(lost)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *trail) dropped(n int) {
	if n > 0 {
		t.meter.AuditDropped(n)
	}
}

// flush writes all that waits.
func (t *trail) flush(ctx context.Context) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	for {
		batch := t.take()
		if len(batch) == 0 {
			return nil
		}
		err := t.store.AddAudit(ctx, batch...)
		for i := range batch {
			t.meter.AuditWritten(batch[i].Operation, batch[i].Outcome, err == nil)
		}
		if err != nil {
			t.giveBack(batch) // lines have ids: one that was stored after all is not stored twice
			return err
		}
	}
}

func (t *trail) take() []store.SecretAudit {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.pending), auditBatch)
	batch := slices.Clone(t.pending[:n])
	t.pending = slices.Delete(t.pending, 0, n)
	return batch
}

func (t *trail) giveBack(batch []store.SecretAudit) {
	t.mu.Lock()
	room := maxPending - len(t.pending)
	lost := max(0, len(batch)-room)
	t.pending = append(slices.Clone(batch[lost:]), t.pending...)
	t.mu.Unlock()
	t.dropped(lost)
}

// run writes lines as they come; when the store is away it tries again, ever
// more seldom.
func (t *trail) run(ctx context.Context) error {
	const first, most = time.Second, 30 * time.Second
	pause := time.Duration(0)
	for {
		if pause == 0 {
			select {
			case <-ctx.Done():
				return t.finish()
			case <-t.wake:
			}
		} else if !wait(ctx, pause) {
			return t.finish()
		}
		if err := t.flush(ctx); err != nil {
			pause = min(max(first, 2*pause), most)
			t.log.Warn("write secret audit", "error", err, "retry_in", pause)
			continue
		}
		pause = 0
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// finish writes the rest in the time there is. Lines that are lost here are told.
func (t *trail) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := t.flush(ctx); err != nil {
		t.mu.Lock()
		lost := len(t.pending)
		t.mu.Unlock()
		t.dropped(lost)
		t.log.Error("secret audit lost at the end", "lines", lost, "error", err)
	}
	return nil
}

// orDefault is the operation of a use that names none.
func orDefault(use Use, operation string) Use {
	use.Operation = cmp.Or(use.Operation, operation)
	return use
}
