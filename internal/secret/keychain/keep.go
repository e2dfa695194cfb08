package keychain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	secretTTL   = 10 * time.Minute // of what a provider keeps
	tokenTTL    = time.Hour        // of what an endpoint made, for one execution
	longTTL     = 24 * time.Hour   // the same for more than one
	shortestTTL = 5 * time.Second
)

// Key is the name under which a value is kept.
func Key(name string, catalog event.ID, scope string, execution event.ID) string {
	base := name + ":" + catalog.String() + ":"
	switch {
	case scope == Local && execution != 0:
		return base + execution.String()
	case scope == Shared && execution != 0:
		return base + Shared + ":" + execution.String()
	case scope == Local || scope == Shared:
		return base + scope
	}
	return base + Global
}

// owner is the execution that a value lives as long as; 0 for one that outlives
// executions.
func (p Place) owner(scope string) event.ID {
	switch scope {
	case Local:
		return p.Execution
	case Shared:
		if p.Root != 0 {
			return p.Root
		}
		return p.Execution
	}
	return 0
}

func (p Place) key(name, scope string) string { return Key(name, p.Catalog, scope, p.owner(scope)) }

// content is what a row holds besides its columns.
type content struct {
	Type  string          `json:"type"`
	Data  json.RawMessage `json:"data"`
	Print string          `json:"print,omitempty"` // of the entry it was got for; "" fits all
}

// fingerprint tells entries apart that have the same name but were rendered
// with different values: what was got for one must not be given to another. It
// is kept only encrypted.
func (e Entry) fingerprint() string {
	raw, _ := json.Marshal(e) // every field has a JSON form
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// kept finds a value that is still good; due tells that it should be fetched
// again soon. A store or a key that fails is no reason to fail: the value can be
// got where it comes from.
func (k *Keychain) kept(ctx context.Context, at Place, key, mark string) (s Secret, due, ok bool) {
	now := k.now()
	row, err := k.o.Rows.Keychain(ctx, key, now)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			k.o.Meter.Refresh(refreshUndecided)
			k.o.Logger.Warn("kept secret cannot be read; it is got again", "execution_id", at.Execution, "cache_key", key, "error", err)
		}
		return Secret{}, false, false
	}
	left := row.ExpiresAt.Sub(now)
	if left <= 0 {
		return Secret{}, false, false
	}
	c, err := k.open(row)
	if err != nil {
		k.o.Meter.Refresh(refreshUndecided)
		k.o.Logger.Warn("kept secret cannot be opened; it is got again", "execution_id", at.Execution, "cache_key", key, "error", err)
		return Secret{}, false, false
	}
	if c.Print != "" && c.Print != mark {
		return Secret{}, false, false
	}
	window := min(k.o.Window, row.ExpiresAt.Sub(row.CreatedAt)/2)
	return Secret{Type: c.Type, Data: c.Data, ExpiresAt: row.ExpiresAt}, c.Print != "" && left <= window, true
}

func (k *Keychain) open(row store.KeychainEntry) (content, error) {
	var c content
	plain, err := k.o.Cipher.Open(secret.KeychainRow(row.CacheKey), row.Sealed)
	if err != nil {
		return c, err
	}
	if json.Unmarshal(plain, &c) != nil {
		return c, errors.New("it is not what a keychain keeps")
	}
	return c, nil
}

// keep stores a value until it should be got again and says when that is. One
// that ends too soon is not stored, and one that cannot be stored is used
// nevertheless.
func (k *Keychain) keep(ctx context.Context, j job, s Secret) Secret {
	now := k.now()
	until, ok := k.deadline(j.entry, s.ExpiresAt, now)
	if !s.ExpiresAt.IsZero() {
		k.o.Meter.Lifetime(max(s.ExpiresAt.Sub(now), 0))
	}
	if !ok {
		k.o.Meter.NotKept(tooShort)
		return s
	}
	row := store.KeychainEntry{
		CacheKey: j.key, Name: j.entry.Name, CatalogID: j.at.Catalog, CredentialType: s.Type, CacheType: "secret", Scope: j.entry.Scope,
		ExecutionID: j.at.owner(j.entry.Scope), ParentExecutionID: j.at.Parent, ExpiresAt: until, CreatedAt: now, AccessedAt: now,
		AutoRenew: j.entry.AutoRenew,
	}
	if j.entry.Kind != kindSecret {
		row.CacheType = "token"
	}
	s.ExpiresAt = until
	err := k.seal(&row, content{s.Type, s.Data, j.entry.fingerprint()}, &j.entry)
	if err == nil {
		err = k.o.Rows.PutKeychain(ctx, row)
	}
	if err != nil {
		k.o.Meter.NotKept(notStored)
		k.o.Logger.Warn("secret is not kept; it is got again when it is needed", "execution_id", j.at.Execution, "cache_key", j.key, "error", err)
	}
	return s
}

// seal encrypts what a row holds; how to renew it only where it will be.
func (k *Keychain) seal(row *store.KeychainEntry, c content, e *Entry) error {
	plain, err := json.Marshal(c)
	if err != nil {
		return errors.New("the value has no JSON form")
	}
	if row.Sealed, err = k.o.Cipher.Seal(secret.KeychainRow(row.CacheKey), plain); err != nil || e == nil || !row.AutoRenew {
		return err
	}
	if plain, err = json.Marshal(e); err != nil {
		return errors.New("the entry has no JSON form")
	}
	row.SealedRenewal, err = k.o.Cipher.Seal(secret.RenewalRow(row.CacheKey), plain)
	return err
}

// deadline is until when a value may be used, which is some time before its
// issuer takes it back. One that is about to end already is not kept.
func (k *Keychain) deadline(e Entry, ends, now time.Time) (time.Time, bool) {
	ttl := e.TTL
	switch {
	case ttl > 0:
	case e.Kind == kindSecret:
		ttl = secretTTL
	case e.Scope == Local:
		ttl = tokenTTL
	default:
		ttl = longTTL
	}
	if !ends.IsZero() {
		left := ends.Sub(now) - k.o.Margin
		if left <= 0 {
			return time.Time{}, false
		}
		ttl = max(min(ttl, left), shortestTTL)
	}
	return now.Add(ttl), true
}
