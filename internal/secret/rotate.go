package secret

import (
	"context"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	defaultBatch   = 100
	maxBatch       = 1000
	defaultBatches = 1000
	// rewrapTries bounds how often a row is read again that others change.
	rewrapTries = 5
)

// Rotation tells what became of the rows of one table.
type Rotation struct {
	Processed int    `json:"processed"`
	Rewrapped int    `json:"rewrapped"`
	Skipped   int    `json:"skipped"` // wrapped with the current key already, or gone
	Failed    int    `json:"failed"`  // no key of this server opens them
	LastID    string `json:"last_id,omitempty"`
	More      bool   `json:"more,omitempty"` // rows are left
}

// RotationReport tells what became of all.
type RotationReport struct {
	Credential Rotation `json:"credential"`
	Keychain   Rotation `json:"keychain"`
	Key        string   `json:"key_version"` // the current one
}

// RotateRequest bounds a rotation; 0 means the default.
type RotateRequest struct {
	BatchSize  int `json:"batch_size"`
	MaxBatches int `json:"max_batches"`
}

// Rotate wraps the data keys of all rows with the current key. What they hold
// is not decrypted, and a row that somebody writes at the same time keeps what
// was written. It may be repeated at any time.
func (s *Service) Rotate(ctx context.Context, r RotateRequest, use Use) (report RotationReport, err error) {
	if r.BatchSize < 0 || r.BatchSize > maxBatch || r.MaxBatches < 0 {
		return report, event.Errorf(event.Invalid, "batch_size: want 1 to %d, and max_batches at least 1", maxBatch)
	}
	if r.BatchSize == 0 {
		r.BatchSize = defaultBatch
	}
	if r.MaxBatches == 0 {
		r.MaxBatches = defaultBatches
	}
	report.Key = s.o.Keys.Current().Version
	report.Credential, err = rotate(ctx, r, s.credentialRows())
	if err == nil {
		report.Keychain, err = rotate(ctx, r, s.keychainRows())
	}
	for table, r := range map[string]Rotation{"credential": report.Credential, "keychain": report.Keychain} {
		s.o.Meter.Rotated(table, r.Rewrapped, r.Skipped, r.Failed)
	}
	use.Operation = OpRotate
	use.Notes = fmt.Sprintf("credentials: %d rewrapped, %d failed; keychain: %d rewrapped, %d failed",
		report.Credential.Rewrapped, report.Credential.Failed, report.Keychain.Rewrapped, report.Keychain.Failed)
	outcome := OutcomeOK
	if err != nil || report.Credential.Failed+report.Keychain.Failed > 0 {
		outcome = OutcomeFailed
	}
	if recording := s.Record(ctx, use, "*", outcome, report.Key); err == nil {
		err = recording
	}
	return report, err
}

// rows is how rotation goes over a table.
type rows[T any] struct {
	after  func(ctx context.Context, last T, limit int) ([]T, error)
	again  func(ctx context.Context, row T) (T, error) // ErrNotFound when it is gone
	rewrap func(ctx context.Context, row T) (changed, swapped bool, err error)
	id     func(T) string
}

// errUnopened marks a row whose key is not here; others may still be rotated.
type errUnopened struct{ error }

func rotate[T any](ctx context.Context, r RotateRequest, table rows[T]) (Rotation, error) {
	var (
		out  Rotation
		last T
	)
	for range r.MaxBatches {
		page, err := table.after(ctx, last, r.BatchSize)
		if err != nil {
			return out, err
		}
		for _, row := range page {
			if err := rotateRow(ctx, &out, table, row); err != nil {
				return out, err
			}
			last = row
			out.LastID = table.id(row)
		}
		if len(page) < r.BatchSize {
			return out, nil
		}
	}
	left, err := table.after(ctx, last, 1)
	out.More = len(left) > 0
	return out, err
}

func rotateRow[T any](ctx context.Context, out *Rotation, table rows[T], row T) error {
	out.Processed++
	for range rewrapTries {
		changed, swapped, err := table.rewrap(ctx, row)
		if _, unopened := err.(errUnopened); unopened {
			out.Failed++
			return nil
		}
		switch {
		case err != nil:
			return err
		case !changed:
			out.Skipped++
			return nil
		case swapped:
			out.Rewrapped++
			return nil
		}
		// Somebody wrote the row meanwhile; what is there now counts.
		if row, err = table.again(ctx, row); event.CodeOf(err) == event.NotFound && err != nil {
			out.Skipped++
			return nil
		} else if err != nil {
			return err
		}
	}
	out.Failed++
	return nil
}

func (s *Service) credentialRows() rows[store.Credential] {
	return rows[store.Credential]{
		after: func(ctx context.Context, last store.Credential, limit int) ([]store.Credential, error) {
			return s.o.Store.CredentialsAfter(ctx, last.ID, limit)
		},
		again: func(ctx context.Context, row store.Credential) (store.Credential, error) {
			return s.o.Store.CredentialByID(ctx, row.ID)
		},
		rewrap: func(ctx context.Context, row store.Credential) (changed, swapped bool, err error) {
			next, changed, err := s.o.Keys.Rewrap(CredentialRow(row.Name), row.Sealed)
			if err != nil {
				return false, false, errUnopened{err}
			}
			if changed {
				swapped, err = s.o.Store.SwapCredential(ctx, row.ID, row.Sealed, next)
			}
			return changed, swapped, err
		},
		id: func(row store.Credential) string { return row.ID.String() },
	}
}

func (s *Service) keychainRows() rows[store.KeychainEntry] {
	return rows[store.KeychainEntry]{
		after: func(ctx context.Context, last store.KeychainEntry, limit int) ([]store.KeychainEntry, error) {
			return s.o.Store.KeychainAfter(ctx, last.CacheKey, limit)
		},
		again: func(ctx context.Context, row store.KeychainEntry) (store.KeychainEntry, error) {
			return s.keychainEntry(ctx, row)
		},
		rewrap: func(ctx context.Context, row store.KeychainEntry) (changed, swapped bool, err error) {
			sealed, changed, err := s.o.Keys.Rewrap(KeychainRow(row.CacheKey), row.Sealed)
			if err != nil {
				return false, false, errUnopened{err}
			}
			renewal, renewalChanged := row.SealedRenewal, false
			if renewal != "" {
				if renewal, renewalChanged, err = s.o.Keys.Rewrap(RenewalRow(row.CacheKey), renewal); err != nil {
					return false, false, errUnopened{err}
				}
			}
			if changed = changed || renewalChanged; changed {
				swapped, err = s.o.Store.SwapKeychain(ctx, row.CacheKey, row.Sealed, sealed, renewal)
			}
			return changed, swapped, err
		},
		id: func(row store.KeychainEntry) string { return row.CacheKey },
	}
}

// keychainEntry reads an entry without counting a use of it.
func (s *Service) keychainEntry(ctx context.Context, row store.KeychainEntry) (store.KeychainEntry, error) {
	entries, err := s.o.Store.ListKeychain(ctx, row.CatalogID)
	if err != nil {
		return row, err
	}
	for _, e := range entries {
		if e.CacheKey == row.CacheKey {
			return e, nil
		}
	}
	return row, store.ErrNotFound
}

// KeyStatus counts rows by the version of the key they are wrapped with;
// "invalid" are those that are not encrypted at all.
type KeyStatus struct {
	Credential map[string]int `json:"credential"`
	Keychain   map[string]int `json:"keychain"`
	Current    string         `json:"current"`
}

// KeyStatus tells how far a rotation has come.
func (s *Service) KeyStatus(ctx context.Context) (KeyStatus, error) {
	out := KeyStatus{Credential: map[string]int{}, Keychain: map[string]int{}, Current: s.o.Keys.Current().Version}
	err := each(ctx, s.credentialRows(), func(c store.Credential) { out.Credential[s.o.Keys.Version(c.Sealed)]++ })
	if err == nil {
		err = each(ctx, s.keychainRows(), func(e store.KeychainEntry) { out.Keychain[s.o.Keys.Version(e.Sealed)]++ })
	}
	return out, err
}

func each[T any](ctx context.Context, table rows[T], visit func(T)) error {
	var last T
	for {
		page, err := table.after(ctx, last, maxBatch)
		if err != nil {
			return err
		}
		for _, row := range page {
			visit(row)
			last = row
		}
		if len(page) < maxBatch {
			return nil
		}
	}
}
