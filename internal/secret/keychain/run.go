package keychain

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	aheadQueue = 256 // values waiting to be fetched ahead of need
	aheadMost  = 4   // fetched at a time
	renewBatch = 100
	sweepBatch = 500
	sweepMost  = 20 // batches in one sweep
	storeTime  = 10 * time.Second
	// grace is how long a value that ended stays, so that it can still be renewed
	// after an outage of its endpoint.
	grace = 5 * time.Minute
	// idle is how long a value is renewed although nobody asks for it.
	idle = 24 * time.Hour
)

// job is a value to be got.
type job struct {
	key    string
	entry  Entry
	at     Place
	before []Declaration
}

// Run fetches ahead, renews and sweeps until ctx ends.
func (k *Keychain) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range aheadMost {
		all.Go(func() { k.runAhead(ctx) })
	}
	all.Go(func() { every(ctx, k.o.Renew, k.renewDue) })
	all.Go(func() { every(ctx, k.o.Sweep, k.sweep) })
	all.Wait()
	return nil
}

// every calls f again and again, at times that differ between processes.
func every(ctx context.Context, d time.Duration, f func(context.Context)) {
	for {
		t := time.NewTimer(d - d/10 + rand.N(d/5+1))
		select {
		case <-t.C:
			f(ctx)
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// refresh has a value fetched again in the background, once at a time. When too
// many wait, the next who asks tries again.
func (k *Keychain) refresh(j job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refreshed[j.key] {
		k.o.Meter.Refresh(refreshCollapsed)
		return
	}
	select {
	case k.ahead <- j:
		k.refreshed[j.key] = true
		k.o.Meter.Refresh(refreshTriggered)
	default:
	}
}

func (k *Keychain) runAhead(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case j := <-k.ahead:
			k.fetchAhead(ctx, j)
		}
	}
}

func (k *Keychain) fetchAhead(ctx context.Context, j job) {
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.refreshed, j.key)
	}()
	ctx, cancel := context.WithTimeout(ctx, getTime)
	defer cancel()
	if !k.alive(ctx, j.at.owner(j.entry.Scope)) {
		return
	}
	began := k.now()
	_, err := k.fetch(ctx, j)
	k.o.Meter.Refreshed(err == nil, k.now().Sub(began))
	if err != nil && ctx.Err() == nil {
		k.o.Logger.Warn("secret is not fetched ahead; the kept one is used while it lasts", "execution_id", j.at.Execution, "alias", j.entry.Name, "error", err)
	}
}

// alive tells whether a value still has an owner. In doubt it has.
func (k *Keychain) alive(ctx context.Context, execution event.ID) bool {
	if execution == 0 || k.o.Alive == nil {
		return true
	}
	ok, err := k.o.Alive(ctx, execution)
	return ok || err != nil
}

// renewDue renews the values that end soon.
func (k *Keychain) renewDue(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	rows, err := k.o.Rows.DueKeychain(call, k.now().Add(k.o.Window), renewBatch)
	if err != nil && ctx.Err() == nil {
		k.o.Logger.Warn("secrets to renew cannot be listed", "error", err)
	}
	for _, row := range rows {
		if ctx.Err() != nil {
			return
		}
		k.renew(ctx, row)
	}
}

func (k *Keychain) renew(ctx context.Context, row store.KeychainEntry) {
	ctx, cancel := context.WithTimeout(ctx, getTime)
	defer cancel()
	if !k.alive(ctx, row.ExecutionID) {
		k.o.Meter.Renewed(abandoned)
		_, _ = k.o.Rows.DeleteKeychain(ctx, row.CacheKey) // what stays is tried again, or ends
		return
	}
	if k.now().Sub(row.AccessedAt) > idle || row.SealedRenewal == "" {
		return // it ends, and is got again if somebody asks
	}
	err := k.renewed(ctx, row)
	if err == nil {
		k.o.Meter.Renewed(ended)
		return
	}
	k.o.Meter.Renewed(failed)
	k.o.Logger.Warn("secret is not renewed; it is tried again", "execution_id", row.ExecutionID, "alias", row.Name, "cache_key", row.CacheKey, "error", err)
}

func (k *Keychain) renewed(ctx context.Context, row store.KeychainEntry) error {
	plain, err := k.o.Cipher.Open(secret.RenewalRow(row.CacheKey), row.SealedRenewal)
	if err != nil {
		return err
	}
	var e Entry
	if json.Unmarshal(plain, &e) != nil {
		return event.Errorf(event.Internal, "how to renew it cannot be read")
	}
	old, err := k.open(row)
	if err != nil {
		return err
	}
	at := Place{Catalog: row.CatalogID, Execution: row.ExecutionID, Root: row.ExecutionID, Parent: row.ParentExecutionID}
	s, err := k.get(ctx, e.renewal(), at, nil)
	if err != nil {
		return err
	}
	now := k.now()
	until, ok := k.deadline(e, s.ExpiresAt, now)
	if !ok {
		return event.Errorf(event.Invalid, "the new value ends too soon to be kept")
	}
	fresh := row
	fresh.ExpiresAt, fresh.CreatedAt = until, now
	if err := k.seal(&fresh, content{s.Type, s.Data, old.Print}, nil); err != nil {
		return err
	}
	return away("store a renewed secret", k.o.Rows.PutKeychain(ctx, fresh))
}

// sweep removes what ended, in batches.
func (k *Keychain) sweep(ctx context.Context) {
	for range sweepMost {
		call, cancel := context.WithTimeout(ctx, storeTime)
		n, err := k.o.Rows.ExpireKeychain(call, k.now().Add(-grace), sweepBatch)
		cancel()
		if err != nil && ctx.Err() == nil {
			k.o.Logger.Warn("secrets that ended are not removed", "error", err)
		}
		if err != nil || n < sweepBatch {
			return
		}
	}
}
