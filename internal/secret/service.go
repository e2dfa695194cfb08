// Package secret keeps credentials: what is secret in them is encrypted before
// it reaches the store and decrypted only for somebody who is written down. It
// must not know how callers are authenticated, nor what tools do with a secret.
package secret

import (
	"context"
	"log/slog"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/store"
)

// Options are the parts of a Service. Store, Keys and IDs are required.
type Options struct {
	Store  store.Secrets
	Keys   *envelope.Keys
	IDs    func() event.ID
	Clock  func() time.Time // time.Now when nil
	Logger *slog.Logger     // nil discards
	Meter  Meter            // nil counts nothing
	Region string           // of this server; goes into the audit
	// AuditRequired refuses what cannot be written down first. Without it lines
	// are written a moment later, and lost when the store is away for long.
	AuditRequired bool
}

// Meter counts what the service does.
type Meter interface {
	Released(operation string)
	Denied(operation string)
	AuditDropped(lines int)
	AuditWritten(operation, outcome string, ok bool)
	Rotated(table string, rewrapped, skipped, failed int)
}

type noMeter struct{}

func (noMeter) Released(string)  {}
func (noMeter) Denied(string)    {}
func (noMeter) AuditDropped(int) {}

func (noMeter) AuditWritten(string, string, bool) {}
func (noMeter) Rotated(string, int, int, int)     {}

// Service registers, opens and rotates credentials. Make one with New and keep
// Run going beside it.
type Service struct {
	o     Options
	trail *trail
}

// New returns a service.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	return &Service{o: o, trail: newTrail(o)}
}

// Run writes the audit until ctx ends, and then what is left of it.
func (s *Service) Run(ctx context.Context) error { return s.trail.run(ctx) }

// Keys seals and opens what others keep in the store of secrets.
func (s *Service) Keys() *envelope.Keys { return s.o.Keys }

// The rows that ciphertexts are bound to.

// CredentialRow names the row of a credential.
func CredentialRow(name string) string { return "credential|" + name }

// KeychainRow names the row of a keychain entry.
func KeychainRow(cacheKey string) string { return "keychain|" + cacheKey }

// RenewalRow names what a keychain entry holds about its renewal.
func RenewalRow(cacheKey string) string { return "keychain.renewal|" + cacheKey }
