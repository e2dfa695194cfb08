package wire

import (
	"crypto/ecdh"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/secret/sealed"
)

// masterKey encrypts the credentials of all worlds, so that replicas can read
// those of each other.
var masterKey = sync.OnceValues(envelope.Ephemeral)

// keepers are what keeps credentials and resolves them for workers. What is
// recorded is written before an answer leaves, since nothing goes on in the
// background.
func keepers(t *testing.T, o control.Options) (*secret.Service, *control.SecretOptions) {
	t.Helper()
	keys, err := masterKey()
	if err != nil {
		t.Fatal(err)
	}
	wallet := secret.New(secret.Options{Store: o.Store, Keys: keys, IDs: o.IDs, Clock: o.Clock, AuditRequired: true})
	opened := keychain.Registered{Store: o.Store, Keys: keys}
	providers := provider.NewSet(provider.Settings{Clock: o.Clock})
	t.Cleanup(func() { _ = providers.Close() })
	chain, err := keychain.New(keychain.Options{Rows: o.Store, Cipher: keys, Credentials: opened, Providers: providers, Clock: o.Clock})
	if err != nil {
		t.Fatal(err)
	}
	return wallet, &control.SecretOptions{Credentials: opened, Keychain: chain, Audit: wallet}
}

func newKey(t *testing.T) *ecdh.PrivateKey {
	t.Helper()
	key, err := sealed.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// enlist registers a worker with a key, for which its secrets are sealed.
func (w *world) enlist(name string) *ecdh.PrivateKey {
	w.t.Helper()
	key := newKey(w.t)
	w.post("/api/worker/pool/register", fmt.Sprintf(`{"name":%q,"kind":"worker_pool","runtime":{"worker_public_key":%q}}`, name, sealed.PublicText(key.PublicKey()))).ok()
	return key
}

// unseal opens what was sealed for a worker.
func (a answer) unseal(key *ecdh.PrivateKey, place string, b sealed.Binding) answer {
	a.t.Helper()
	text, err := json.Marshal(a.at(place))
	if err != nil {
		a.t.Fatal(err)
	}
	var box event.Sealed
	if err := json.Unmarshal(text, &box); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	plain, err := sealed.Open(key, b, box)
	if err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return answer{t: a.t, what: a.what + ", opened", status: a.status, header: a.header, body: string(plain)}
}
