package control

import (
	"context"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/sealed"
	"github.com/noetl/noetl-go/internal/store"
)

// SecretOptions are where secrets come from and where their use is recorded.
type SecretOptions struct {
	Credentials keychain.Credentials
	Keychain    *keychain.Keychain
	Audit       SecretAuditor
}

// SecretAuditor records who got which secret, or did not. What cannot be
// recorded is not released. *secret.Service is one.
type SecretAuditor interface {
	Record(ctx context.Context, use secret.Use, credential, outcome, keyVersion string) error
}

const (
	maxAliases = 100
	maxAlias   = 255
	maxDepth   = 64 // executions above one another that are looked at
)

// ResolveSecrets gives the worker that holds the live claim of a command the
// secrets that it asks for, in the order asked, all or none. Forbidden when it
// does not hold the claim, NotFound when an alias leads nowhere, Unavailable when
// the store or a provider is away. Every release and every denial is recorded.
func (p *Plane) ResolveSecrets(ctx context.Context, r event.SecretRequest) ([]event.Secret, error) {
	if err := p.checkAliases(r); err != nil {
		return nil, err
	}
	row, err := p.holder(ctx, r)
	if err != nil {
		return nil, p.deniedSecrets(ctx, secret.OpResolve, r, nil, err)
	}
	return p.release(ctx, secret.OpResolve, r, row)
}

func (p *Plane) checkAliases(r event.SecretRequest) error {
	switch {
	case p.o.Secrets == nil:
		return noSecrets()
	case r.WorkerID == "":
		return event.Errorf(event.Invalid, "worker_id: say who asks")
	case len(r.WorkerID) > maxRuntimeName:
		return event.Errorf(event.Invalid, "worker_id: at most %d bytes are accepted", maxRuntimeName)
	case len(r.Aliases) == 0 || len(r.Aliases) > maxAliases:
		return event.Errorf(event.Invalid, "aliases: want 1 to %d names, got %d", maxAliases, len(r.Aliases))
	}
	for i, alias := range r.Aliases {
		if alias == "" || len(alias) > maxAlias {
			return event.Errorf(event.Invalid, "aliases[%d]: want 1 to %d bytes", i, maxAlias)
		}
	}
	return nil
}

func noSecrets() error {
	return &event.Error{
		Code: event.Invalid, Message: "this server keeps no credentials", Reason: "no_secrets",
		Remedy: "start it with NOETL_ENCRYPTION_KEY set",
	}
}

// holder checks that a command is claimed by who asks, right now and of an
// execution that goes on.
func (p *Plane) holder(ctx context.Context, r event.SecretRequest) (*store.Execution, error) {
	c, err := p.store.Command(ctx, r.ExecutionID, r.EventID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, denial("no_command", "there is no command "+r.EventID.String()+" of execution "+r.ExecutionID.String())
	}
	if err != nil {
		return nil, storeError("find command", err)
	}
	if r.ExecutionID != c.ExecutionID && r.ExecutionID != 0 {
		return nil, denial("no_command", "there is no command "+r.EventID.String()+" of execution "+r.ExecutionID.String())
	}
	row, err := p.goesOn(ctx, c.ExecutionID)
	if err != nil {
		return nil, err
	}
	if why := p.claimLost(&c, r.WorkerID); why != "" {
		return row, denial("stale_claim", "worker "+r.WorkerID+" does not hold command "+r.EventID.String()+": "+why)
	}
	if c.Attempt != r.Attempt {
		return row, denial("stale_claim", "attempt "+strconv.Itoa(r.Attempt)+" of command "+r.EventID.String()+" is over")
	}
	return row, nil
}

// claimLost tells why a worker does not hold a command; "" when it does.
func (p *Plane) claimLost(c *store.Command, worker string) string {
	switch {
	case c.Status != event.StatusClaimed && c.Status != event.StatusRunning:
		return "it is " + c.Status
	case c.WorkerID != worker:
		return "another worker does"
	case !c.LeaseUntil.After(p.now()):
		return "the lease is over"
	}
	return ""
}

// goesOn is the row of an execution that has not ended.
func (p *Plane) goesOn(ctx context.Context, id event.ID) (*store.Execution, error) {
	row, err := p.store.Execution(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, denial("no_execution", "there is no execution "+id.String())
	case err != nil:
		return nil, storeError("read execution", err)
	case event.IsFinal(row.Status):
		return &row, denial("execution_ended", "execution "+id.String()+" is "+row.Status)
	}
	return &row, nil
}

func denial(reason, why string) error {
	return &event.Error{Code: event.Forbidden, Message: "no secrets are given out: " + why, Reason: reason}
}

// release resolves the aliases and records it before anything leaves.
func (p *Plane) release(ctx context.Context, op string, r event.SecretRequest, row *store.Execution) ([]event.Secret, error) {
	r.ExecutionID = row.ExecutionID
	tree := &family{p: p}
	out := make([]event.Secret, 0, len(r.Aliases))
	for _, alias := range r.Aliases {
		s, err := tree.resolve(ctx, row, alias)
		if err != nil {
			failed := r
			failed.Aliases = []string{alias}
			return nil, p.deniedSecrets(ctx, op, failed, row, err)
		}
		out = append(out, s)
	}
	if err := p.recordSecrets(ctx, op, r, row, secret.OutcomeOK, ""); err != nil {
		return nil, &event.Error{
			Code: event.Unavailable, Message: "the release of secrets cannot be recorded, so nothing is given out", Remedy: "try again", Err: err,
		}
	}
	return out, nil
}

// deniedSecrets records that something was not given out, and returns why.
func (p *Plane) deniedSecrets(ctx context.Context, op string, r event.SecretRequest, row *store.Execution, why error) error {
	outcome := reasonOf(why)
	switch event.CodeOf(why) {
	case event.NotFound:
		outcome = secret.OutcomeNotFound
	case event.Forbidden:
		if outcome != "residency_violation" && outcome != "provider_denied" {
			outcome = secret.OutcomeDenied
		}
	case event.Unavailable:
		outcome = "unavailable"
	}
	if outcome == "" {
		outcome = secret.OutcomeFailed
	}
	if err := p.recordSecrets(context.WithoutCancel(ctx), op, r, row, outcome, why.Error()); err != nil {
		p.log.Warn("a denied secret is not recorded", "execution_id", r.ExecutionID, "worker", r.WorkerID, "error", err)
	}
	return why
}

func (p *Plane) recordSecrets(ctx context.Context, op string, r event.SecretRequest, row *store.Execution, outcome, notes string) error {
	use := secret.Use{Operation: op, Actor: "worker:" + r.WorkerID, WorkerID: r.WorkerID, ExecutionID: r.ExecutionID, Notes: notes}
	if row != nil {
		use.ParentExecutionID = row.ParentExecutionID
	}
	for _, alias := range r.Aliases {
		if err := p.o.Secrets.Audit.Record(ctx, use, alias, outcome, ""); err != nil {
			return err
		}
	}
	return nil
}

// SealSecrets is ResolveSecrets for a worker elsewhere: what it gets is sealed
// for the key it registered with. BadRequest when it has none.
func (p *Plane) SealSecrets(ctx context.Context, r event.SecretRequest) (_ event.SecretAnswer, err error) {
	defer func() { p.metrics.CredentialsSealed.Inc(sealing(err)) }()
	if err := p.checkAliases(r); err != nil {
		return event.SecretAnswer{}, err
	}
	key, err := p.workerKey(ctx, r.WorkerID)
	if err != nil {
		return event.SecretAnswer{}, p.deniedSecrets(ctx, secret.OpResolve, r, nil, err)
	}
	secrets, err := p.ResolveSecrets(ctx, r)
	if err != nil {
		return event.SecretAnswer{}, err
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return event.SecretAnswer{}, event.Errorf(event.Internal, "the secrets have no JSON form")
	}
	defer clear(plain)
	s, err := sealed.Seal(key, sealed.Binding{Execution: r.ExecutionID, Aliases: r.Aliases}, plain)
	if err != nil {
		return event.SecretAnswer{}, errSeal{err}
	}
	return event.SecretAnswer{Sealed: &s}, nil
}

// errSeal tells that a secret was found and could not be sealed.
type errSeal struct{ error }

// Unwrap gives the cause.
func (e errSeal) Unwrap() error { return e.error }

// sealing is the word under which an attempt to seal secrets is counted.
func sealing(err error) string {
	if _, failed := errors.AsType[errSeal](err); failed {
		return "seal_error"
	}
	switch reason := reasonOf(err); {
	case err == nil:
		return "ok"
	case reason == "no_pubkey" || reason == "residency_violation":
		return reason
	case event.CodeOf(err) == event.Forbidden:
		return "denied"
	}
	return "credential_error"
}

// workerKey is the key that a worker registered with.
func (p *Plane) workerKey(ctx context.Context, worker string) (*ecdh.PublicKey, error) {
	row, err := p.store.Runtime(ctx, event.KindWorkerPool, worker)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, storeError("find registration", err)
	}
	if text := publicKey(row.Runtime); err == nil && text != "" {
		return sealed.ParsePublic(text)
	}
	return nil, &event.Error{
		Code: event.BadRequest, Message: "worker " + worker + " has no public key, so secrets cannot be sealed for it", Reason: "no_pubkey",
		Remedy: "register it with runtime.worker_public_key",
	}
}

// publicKey is the key in what a worker says of itself; "" without one.
func publicKey(runtime []byte) string {
	var said struct {
		Key string `json:"worker_public_key"`
	}
	_ = json.Unmarshal(runtime, &said) // what cannot be read says nothing
	return said.Key
}

// checkKey refuses a key that is none, and one in the place of a living
// worker's: whoever could replace it would be sent that worker's secrets. A
// worker that was restarted under its old name gets in when the old one has
// been silent for long enough, or has left.
func (p *Plane) checkKey(ctx context.Context, r *event.Registration) error {
	key := publicKey(r.Runtime)
	if key != "" {
		if _, err := sealed.ParsePublic(key); err != nil {
			return err
		}
	}
	row, err := p.store.Runtime(ctx, r.Kind, r.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return storeError("find registration", err)
	}
	if old := publicKey(row.Runtime); old == "" || old == key || p.now().Sub(row.Heartbeat) > silence {
		return nil
	}
	return &event.Error{
		Code: event.Conflict, Message: "worker " + r.Name + " is alive and has another public key", Reason: "key_in_use",
		Remedy: "give each worker a name of its own, or deregister the old one first",
	}
}

// SealedCredential gives a worker one secret of an execution, of which it holds
// some command, in the older form: sealed in version 1. BadRequest when the
// worker has no key.
func (p *Plane) SealedCredential(ctx context.Context, alias, worker string, execution event.ID) (_ event.Sealed, err error) {
	defer func() { p.metrics.CredentialsSealed.Inc(sealing(err)) }()
	r := event.SecretRequest{ExecutionID: execution, WorkerID: worker, Aliases: []string{alias}}
	if err := p.checkAliases(r); err != nil {
		return event.Sealed{}, err
	}
	key, err := p.workerKey(ctx, worker)
	if err != nil {
		return event.Sealed{}, p.deniedSecrets(ctx, secret.OpSealed, r, nil, err)
	}
	row, err := p.holdsSome(ctx, worker, execution)
	if err != nil {
		return event.Sealed{}, p.deniedSecrets(ctx, secret.OpSealed, r, row, err)
	}
	secrets, err := p.release(ctx, secret.OpSealed, r, row)
	if err != nil {
		return event.Sealed{}, err
	}
	s := secrets[0]
	plain, err := json.Marshal(map[string]any{"id": "0", "name": alias, "type": s.Type, "data": s.Data})
	if err != nil {
		return event.Sealed{}, event.Errorf(event.Internal, "the secret has no JSON form")
	}
	defer clear(plain)
	out, err := sealed.SealV1(key, plain)
	if err != nil {
		return event.Sealed{}, errSeal{err}
	}
	return out, nil
}

// holdsSome checks that a worker holds some live claim of an execution.
func (p *Plane) holdsSome(ctx context.Context, worker string, execution event.ID) (*store.Execution, error) {
	row, err := p.goesOn(ctx, execution)
	if err != nil {
		return row, err
	}
	var held []event.ID
	err = p.look(ctx, execution, func(ps *pass) error {
		held = nil
		for _, c := range ps.state.OpenCommands() {
			if c.Worker == worker {
				held = append(held, c.EventID)
			}
		}
		return nil
	})
	if err != nil {
		return row, err
	}
	for _, id := range held {
		c, err := p.store.Command(ctx, execution, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return row, storeError("find command", err)
		}
		if err == nil && p.claimLost(&c, worker) == "" {
			return row, nil
		}
	}
	return row, denial("stale_claim", "worker "+worker+" holds no command of execution "+execution.String())
}

// forgetSecrets has the values removed that are kept for an execution, when it
// ends. Executions that have nothing to do with keychains cost nothing.
func (ps *pass) forgetSecrets() {
	s := ps.p.o.Secrets
	if s == nil || s.Keychain == nil || !ps.state.Final() {
		return
	}
	_, noted := ps.p.keyed.Get(ps.id)
	if !noted && (ps.live.program == nil || len(ps.live.program.Playbook().Keychain) == 0) {
		return
	}
	id := ps.id
	ps.p.send(ps.id, func(ctx context.Context) error {
		_, err := s.Keychain.Forget(ctx, id)
		if err == nil {
			ps.p.keyed.Drop(id)
		}
		return err
	})
}

// ExecutionGoesOn tells whether an execution has not ended; for keychains.
func (p *Plane) ExecutionGoesOn(ctx context.Context, id event.ID) (bool, error) {
	_, err := p.goesOn(ctx, id)
	if slices.Contains([]string{"no_execution", "execution_ended"}, reasonOf(err)) {
		return false, nil
	}
	return err == nil, err
}

func quoted(s string) string { return strconv.Quote(s) }
