package keychain

import (
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/provider"
)

// Meter counts what a keychain does, in words from closed sets.
type Meter interface {
	// Resolved: a value was got from its provider, or not; status is ok, refused
	// or error.
	Resolved(provider, status string, took time.Duration)
	// Lifetime: the issuer of a value takes it back after so long.
	Lifetime(d time.Duration)
	// NotKept: a value was used and not kept.
	NotKept(reason string)
	// Refresh: a step of fetching a kept value ahead of need.
	Refresh(outcome string)
	// Refreshed: the end of it.
	Refreshed(ok bool, took time.Duration)
	// Renewed: the end of a renewal.
	Renewed(outcome string)
	// Resides: a check whether a value may be read here.
	Resides(policy, decision string)
}

type noMeter struct{}

func (noMeter) Resolved(string, string, time.Duration) {}
func (noMeter) Lifetime(time.Duration)                 {}
func (noMeter) NotKept(string)                         {}
func (noMeter) Refresh(string)                         {}
func (noMeter) Refreshed(bool, time.Duration)          {}
func (noMeter) Renewed(string)                         {}
func (noMeter) Resides(string, string)                 {}

// What is counted.
const (
	refreshTriggered = "triggered"
	refreshCollapsed = "stampede_collapsed"
	refreshUndecided = "decision_failed"
	ended            = "succeeded"
	failed           = "failed"
	abandoned        = "abandoned"
	tooShort         = "expires_soon"
	notStored        = "not_stored"
)

// source is where the value of an entry comes from, as it is counted.
func (e Entry) source() string {
	switch e.Kind {
	case kindSecret:
		return provider.Canonical(e.Provider)
	case kindCredential, kindIDToken:
		return e.Kind
	case kindStatic, kindBearer:
		return kindStatic
	}
	return "token_endpoint"
}

func statusOf(err error) string {
	if err == nil {
		return "ok"
	}
	switch event.CodeOf(err) {
	case event.Invalid, event.BadRequest, event.NotFound, event.Forbidden, event.Unauthorized, event.Conflict, event.Limit:
		return "refused"
	}
	return "error"
}

// resides counts a residency check.
func (k *Keychain) resides(policy, remark string, err error) {
	decision := "allowed"
	switch {
	case err != nil:
		decision = "denied"
	case remark != "":
		decision = "remarked"
	}
	if policy == "" {
		policy = "none"
	}
	k.o.Meter.Resides(policy, decision)
}
