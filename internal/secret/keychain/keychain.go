// Package keychain turns the entries of a playbook's keychain into secrets: it
// looks up stored credentials, asks secret providers and token endpoints, and
// keeps what it got, encrypted, for as long as it is good.
//
// It must not know templates, executions or workers: entries reach it with the
// means to render them, and whoever asks has been let in before.
package keychain

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/store"
)

// Rows is where resolved secrets are kept; store.Secrets has it.
type Rows interface {
	PutKeychain(ctx context.Context, e store.KeychainEntry) error
	Keychain(ctx context.Context, cacheKey string, now time.Time) (store.KeychainEntry, error)
	ListKeychain(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error)
	DeleteKeychain(ctx context.Context, cacheKey string) (bool, error)
	DeleteKeychainOf(ctx context.Context, execution event.ID) (int, error)
	ExpireKeychain(ctx context.Context, now time.Time, limit int) (int, error)
	DueKeychain(ctx context.Context, before time.Time, limit int) ([]store.KeychainEntry, error)
}

// Cipher encrypts what is kept. aad says what the text belongs to; it opens
// only with the same.
type Cipher interface {
	Seal(aad string, plain []byte) (string, error)
	Open(aad, text string) ([]byte, error)
}

// Credential is a stored credential, opened.
type Credential struct {
	ID   event.ID
	Name string
	Type string
	Data json.RawMessage
}

// Credentials opens stored credentials by name, or by id where it is a number.
// NotFound when there is none.
type Credentials interface {
	OpenCredential(ctx context.Context, nameOrID string) (Credential, error)
}

// Providers fetch secrets and mint tokens; *provider.Set does.
type Providers interface {
	Fetch(ctx context.Context, id, ref string, o provider.Options) (provider.Value, error)
	Ask(ctx context.Context, e provider.Endpoint) (provider.Value, error)
	GoogleIDToken(ctx context.Context, login map[string]any, audience string) (provider.Value, error)
}

// Options of a Keychain. Rows, Cipher, Credentials and Providers are required.
type Options struct {
	Rows        Rows
	Cipher      Cipher
	Credentials Credentials
	Providers   Providers
	Region      string           // of this server, for secrets that may not leave theirs
	Clock       func() time.Time // time.Now
	Logger      *slog.Logger     // discards
	Meter       Meter            // counts nothing
	Margin      time.Duration    // 60 s: how long before the end that its issuer names a value is given up
	Window      time.Duration    // 60 s: how long before its end a kept value is fetched again
	Renew       time.Duration    // 15 s: how often values to renew are looked for
	Sweep       time.Duration    // 1 min: how often values that ended are removed
	// Alive tells whether an execution goes on; all do when nil.
	Alive func(ctx context.Context, execution event.ID) (bool, error)
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Meter == nil {
		o.Meter = noMeter{}
	}
	for d, def := range map[*time.Duration]time.Duration{&o.Margin: time.Minute, &o.Window: time.Minute, &o.Renew: 15 * time.Second, &o.Sweep: time.Minute} {
		if *d <= 0 {
			*d = def
		}
	}
	return o
}

// Declaration is an entry as its playbook has it. Text outside templates is
// known at once, the rest when Render is called.
type Declaration struct {
	Name  string
	Scope string   // as written
	Needs []string // entries that its templates read
	// Render evaluates the templates, given the entries it needs.
	Render func(keychain map[string]json.RawMessage) (map[string]any, error)
}

// Place is whose keychain it is.
type Place struct {
	Catalog   event.ID // of the playbook that declares it
	Execution event.ID
	Parent    event.ID
	Root      event.ID // the execution at the top
}

// Secret is a resolved entry.
type Secret struct {
	Type      string
	Data      json.RawMessage
	ExpiresAt time.Time // when it should be asked for again; zero when it lasts
}

// Keychain resolves entries. All methods are safe for concurrent use.
type Keychain struct {
	o       Options
	flights singleflight.Group

	ahead     chan job
	mu        sync.Mutex // guards refreshed
	refreshed map[string]bool
}

// New makes a keychain. Run owns what goes on in the background.
func New(o Options) (*Keychain, error) {
	if o.Rows == nil || o.Cipher == nil || o.Credentials == nil || o.Providers == nil {
		return nil, errors.New("keychain: Rows, Cipher, Credentials and Providers are required")
	}
	return &Keychain{o: o.withDefaults(), ahead: make(chan job, aheadQueue), refreshed: map[string]bool{}}, nil
}

func (k *Keychain) now() time.Time { return k.o.Clock().UTC() }

// Resolve gives the value of an entry. Entries that it needs must stand before
// it. NotFound when no entry has the name, or what it leads to does not exist.
func (k *Keychain) Resolve(ctx context.Context, entries []Declaration, name string, at Place) (Secret, error) {
	i := slices.IndexFunc(entries, func(d Declaration) bool { return d.Name == name })
	if i < 0 {
		return Secret{}, event.Errorf(event.NotFound, "the keychain has no entry %q", name)
	}
	needed := make(map[string]json.RawMessage, len(entries[i].Needs))
	for _, need := range entries[i].Needs {
		if !slices.ContainsFunc(entries[:i], func(d Declaration) bool { return d.Name == need }) {
			return Secret{}, &event.Error{
				Code: event.Invalid, Message: "keychain entry " + quote(name) + " reads keychain." + need + ", which does not stand before it",
				Remedy: "declare it further up", Reason: "template_error",
			}
		}
		s, err := k.Resolve(ctx, entries[:i], need, at)
		if err != nil {
			return Secret{}, err
		}
		needed[need] = s.Data
	}
	raw, err := entries[i].Render(needed)
	if err != nil {
		return Secret{}, err
	}
	e, err := ParseEntry(raw)
	if err != nil {
		return Secret{}, err
	}
	return k.value(ctx, e, at, entries[:i])
}

// value is what is kept of an entry, or what is got now. Those who want the
// same at a time wait for one.
func (k *Keychain) value(ctx context.Context, e Entry, at Place, before []Declaration) (Secret, error) {
	key, mark := at.key(e.Name, e.Scope), e.fingerprint()
	if s, due, ok := k.kept(ctx, at, key, mark); ok {
		if due {
			k.refresh(job{key: key, entry: e, at: at, before: before})
		}
		return s, nil
	}
	if !e.minted() {
		return k.get(ctx, e, at, before)
	}
	got := k.flights.DoChan(key+"|"+mark, func() (any, error) {
		// Whoever came first may leave; the others still wait.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), getTime)
		defer cancel()
		return k.fetch(ctx, job{key: key, entry: e, at: at, before: before})
	})
	select {
	case r := <-got:
		if r.Err != nil {
			return Secret{}, r.Err
		}
		return r.Val.(Secret), nil
	case <-ctx.Done():
		return Secret{}, &event.Error{Code: event.Unavailable, Message: "keychain entry " + quote(e.Name) + " took too long", Remedy: "try again", Err: ctx.Err()}
	}
}

// getTime bounds how long a value may take, with all that it needs.
const getTime = 45 * time.Second

// fetch gets a value and keeps it.
func (k *Keychain) fetch(ctx context.Context, j job) (Secret, error) {
	s, err := k.get(ctx, j.entry, j.at, j.before)
	if err != nil {
		return Secret{}, err
	}
	return k.keep(ctx, j, s), nil
}

// Forget removes what is kept for an execution that ended.
func (k *Keychain) Forget(ctx context.Context, execution event.ID) (int, error) {
	n, err := k.o.Rows.DeleteKeychainOf(ctx, execution)
	return n, away("forget the keychain of execution "+execution.String(), err)
}

// away makes a coded error of what a store returned.
func away(verb string, err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*event.Error](err); coded {
		return err
	}
	return &event.Error{Code: event.Unavailable, Message: "the store of secrets did not answer (" + verb + ")", Remedy: "try again", Err: err}
}
