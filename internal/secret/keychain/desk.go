package keychain

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	deskLocalTTL = time.Hour
	deskTTL      = 7 * 24 * time.Hour
	maxName      = 255
	maxData      = 256 << 10
)

// Deposit is a value that somebody else got and wants kept.
type Deposit struct {
	Catalog   event.ID
	Name      string
	Scope     string // local, shared or global; global when ""
	Execution event.ID
	Parent    event.ID
	Type      string // "" is keychain
	Data      json.RawMessage
	ExpiresAt time.Time     // by default ExpiresIn from now
	ExpiresIn time.Duration // an hour for local values, a week for others, when 0
	AutoRenew bool
	Renewal   map[string]any // how to renew it: an endpoint; nil when it cannot be
}

// deskScope reads the scope of a request, which is global when it says nothing.
func deskScope(word string) (string, error) {
	if word == "" {
		return Global, nil
	}
	return ScopeOf(word)
}

// Put keeps a value and returns its key and until when.
func (k *Keychain) Put(ctx context.Context, d Deposit) (key string, until time.Time, err error) {
	scope, err := deskScope(d.Scope)
	now := k.now()
	until = d.until(scope, now)
	switch {
	case err != nil:
		return "", until, err
	case d.Name == "" || len(d.Name) > maxName:
		return "", until, event.Errorf(event.Invalid, "name: want 1 to %d bytes", maxName)
	case len(d.Data) == 0 || !json.Valid(d.Data):
		return "", until, event.Errorf(event.Invalid, "data: want a JSON value")
	case len(d.Data) > maxData:
		return "", until, event.Errorf(event.Limit, "data: at most %d bytes are kept", maxData)
	case !until.After(now):
		return "", until, event.Errorf(event.Invalid, "expires_at: it is over already")
	case until.Sub(now) > maxTTL:
		return "", until, event.Errorf(event.Invalid, "expires_at: want up to 30 days from now")
	}
	row := store.KeychainEntry{
		CacheKey: Key(d.Name, d.Catalog, scope, d.Execution), Name: d.Name, CatalogID: d.Catalog, CredentialType: firstText(d.Type, "keychain"),
		CacheType: "secret", Scope: scope, ExecutionID: d.Execution, ParentExecutionID: d.Parent, ExpiresAt: until, CreatedAt: now, AccessedAt: now,
	}
	var renewal *Entry
	if len(d.Renewal) > 0 {
		e, err := ParseRenewal(d.Name, scope, d.Renewal)
		if err != nil {
			return "", until, err
		}
		renewal, row.CacheType = &e, "token"
	}
	row.AutoRenew = d.AutoRenew && renewal != nil
	if scope == Global {
		row.ExecutionID = 0
	}
	if err := k.seal(&row, content{Type: row.CredentialType, Data: d.Data}, renewal); err != nil {
		return "", until, away("encrypt a secret", err)
	}
	return row.CacheKey, until, away("keep a secret", k.o.Rows.PutKeychain(ctx, row))
}

func (d Deposit) until(scope string, now time.Time) time.Time {
	switch {
	case !d.ExpiresAt.IsZero():
		return d.ExpiresAt.UTC()
	case d.ExpiresIn > 0:
		return now.Add(d.ExpiresIn)
	case scope == Local:
		return now.Add(deskLocalTTL)
	}
	return now.Add(deskTTL)
}

// Held is a value that is kept.
type Held struct {
	Status      string // found, expired or not_found
	Type        string
	Data        json.RawMessage // only when found
	ExpiresAt   time.Time
	AutoRenew   bool
	AccessCount int64
	CacheKey    string
}

// Look finds a value by its name and scope.
func (k *Keychain) Look(ctx context.Context, catalog event.ID, name, scope string, execution event.ID) (Held, error) {
	scope, err := deskScope(scope)
	if err != nil {
		return Held{}, err
	}
	key, now := Key(name, catalog, scope, execution), k.now()
	row, err := k.o.Rows.Keychain(ctx, key, now)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Held{Status: "not_found", CacheKey: key}, nil
	case err != nil:
		return Held{}, away("read a kept secret", err)
	}
	h := Held{Status: "expired", Type: row.CredentialType, ExpiresAt: row.ExpiresAt, AutoRenew: row.AutoRenew, AccessCount: row.AccessCount, CacheKey: key}
	if !row.ExpiresAt.After(now) {
		return h, nil
	}
	c, err := k.open(row)
	if err != nil {
		return Held{}, away("open a kept secret", err)
	}
	h.Status, h.Data = "found", c.Data
	return h, nil
}

// Remove forgets a value and tells whether there was one.
func (k *Keychain) Remove(ctx context.Context, catalog event.ID, name, scope string, execution event.ID) (key string, known bool, err error) {
	if scope, err = deskScope(scope); err != nil {
		return "", false, err
	}
	key = Key(name, catalog, scope, execution)
	known, err = k.o.Rows.DeleteKeychain(ctx, key)
	return key, known, away("remove a kept secret", err)
}

// List describes what is kept for a playbook, without values.
func (k *Keychain) List(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error) {
	rows, err := k.o.Rows.ListKeychain(ctx, catalog)
	for i := range rows {
		rows[i].Sealed, rows[i].SealedRenewal = "", ""
	}
	return rows, away("list kept secrets", err)
}
