package control

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/store"
)

// KeptSecret names a value that is kept for a playbook.
type KeptSecret struct {
	CatalogID   event.ID
	Name        string
	Scope       string // local, shared or global; global when ""
	ExecutionID event.ID
	Use         secret.Use // who asks
}

// KeptValue finds a kept value. The release is recorded, and so is its absence.
func (p *Plane) KeptValue(ctx context.Context, k KeptSecret) (keychain.Held, error) {
	desk, err := p.desk()
	if err != nil {
		return keychain.Held{}, err
	}
	h, err := desk.Look(ctx, k.CatalogID, k.Name, k.Scope, k.ExecutionID)
	outcome := secret.OutcomeOK
	switch {
	case err != nil:
		outcome = secret.OutcomeFailed
	case h.Status != "found":
		outcome = secret.OutcomeNotFound
	}
	if failed := p.recordKept(ctx, k, secret.OpResolve, outcome); err == nil && failed != nil {
		return keychain.Held{}, failed
	}
	return h, err
}

// KeepValue keeps a value that somebody else got.
func (p *Plane) KeepValue(ctx context.Context, k KeptSecret, d keychain.Deposit) (key string, until time.Time, err error) {
	desk, err := p.desk()
	if err != nil {
		return "", time.Time{}, err
	}
	if _, err := p.Entry(ctx, EntryRef{CatalogID: k.CatalogID}); err != nil {
		return "", time.Time{}, err
	}
	d.Catalog, d.Name, d.Scope, d.Execution = k.CatalogID, k.Name, k.Scope, k.ExecutionID
	if err := p.recordKept(ctx, k, secret.OpUpdate, secret.OutcomeOK); err != nil {
		return "", time.Time{}, err
	}
	if k.ExecutionID != 0 {
		p.keyed.Put(k.ExecutionID, struct{}{})
	}
	return desk.Put(ctx, d)
}

// DropValue forgets a kept value and tells whether there was one.
func (p *Plane) DropValue(ctx context.Context, k KeptSecret) (key string, known bool, err error) {
	desk, err := p.desk()
	if err != nil {
		return "", false, err
	}
	if key, known, err = desk.Remove(ctx, k.CatalogID, k.Name, k.Scope, k.ExecutionID); err != nil {
		return "", false, err
	}
	if known {
		err = p.recordKept(ctx, k, secret.OpDelete, secret.OutcomeOK)
	}
	return key, known, err
}

// KeptValues describes what is kept for a playbook, without values.
func (p *Plane) KeptValues(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error) {
	desk, err := p.desk()
	if err != nil {
		return nil, err
	}
	return desk.List(ctx, catalog)
}

func (p *Plane) desk() (*keychain.Keychain, error) {
	if p.o.Secrets == nil || p.o.Secrets.Keychain == nil {
		return nil, noSecrets()
	}
	return p.o.Secrets.Keychain, nil
}

func (p *Plane) recordKept(ctx context.Context, k KeptSecret, op, outcome string) error {
	use := k.Use
	use.Operation, use.ExecutionID = op, k.ExecutionID
	return p.o.Secrets.Audit.Record(ctx, use, "keychain:"+k.Name, outcome, "")
}
