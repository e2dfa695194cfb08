package node

import (
	"context"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/secret/sealed"
)

// openKeychain makes what resolves secrets for workers. Its providers take
// their settings from the environment when they are first asked.
func (n *Node) openKeychain(o Options, keys *envelope.Keys) (*control.SecretOptions, error) {
	policy, err := egress.Parse(o.Outbound.Egress) // token endpoints are named by playbooks, as the addresses of tools are
	if err != nil {
		return nil, err
	}
	providers := provider.NewSet(provider.Settings{Clock: failpoint.Now, Dial: policy.DialContext})
	n.clean = append(n.clean, providers.Close)
	credentials := keychain.Registered{Store: n.Store, Keys: keys}
	k, err := keychain.New(keychain.Options{
		Rows: n.Store, Cipher: keys, Credentials: credentials, Providers: providers, Region: o.Secrets.Region,
		Clock: failpoint.Now, Logger: o.Logger, Meter: obs.SecretMeter{Metrics: n.metrics, Region: o.Secrets.Region},
		Alive: func(ctx context.Context, id event.ID) (bool, error) { return n.Plane.ExecutionGoesOn(ctx, id) },
	})
	if err != nil {
		return nil, err
	}
	n.background = append(n.background, k.Run)
	return &control.SecretOptions{Credentials: credentials, Keychain: k, Audit: n.secrets}, nil
}

// Keyring gets secrets for a worker process: the server seals them for a key
// that was made when the process began and never leaves it.
type Keyring struct {
	client       *client.Client
	key          *ecdh.PrivateKey
	registration event.Registration
}

// NewKeyring makes a key and puts its public half into what the worker says of
// itself.
func NewKeyring(c *client.Client, worker string, r event.Registration) (*Keyring, event.Registration, error) {
	key, err := sealed.GenerateKey()
	if err != nil {
		return nil, r, err
	}
	said := map[string]any{}
	if len(r.Runtime) > 0 {
		if err := json.Unmarshal(r.Runtime, &said); err != nil {
			return nil, r, event.Errorf(event.Internal, "read the registration: %w", err)
		}
	}
	said["worker_public_key"] = sealed.PublicText(key.PublicKey())
	r.Runtime = asJSON(said)
	known := r
	known.Name, known.Kind = worker, event.KindWorkerPool
	return &Keyring{c, key, known}, r, nil
}

// ResolveSecrets asks the server and opens its answer. A worker that the server
// does not know yet makes itself known first.
func (k *Keyring) ResolveSecrets(ctx context.Context, r event.SecretRequest) ([]event.Secret, error) {
	a, err := k.client.ResolveSecrets(ctx, r)
	if e, ok := errors.AsType[*event.Error](err); ok && e.Reason == "no_pubkey" {
		if _, err := k.client.Enlist(ctx, k.registration); err != nil {
			return nil, err
		}
		a, err = k.client.ResolveSecrets(ctx, r)
	}
	switch {
	case err != nil:
		return nil, err
	case a.Sealed == nil:
		return nil, event.Errorf(event.Internal, "the server sent secrets that are not sealed; they are not used")
	}
	plain, err := sealed.Open(k.key, sealed.Binding{Execution: r.ExecutionID, Aliases: r.Aliases}, *a.Sealed)
	if err != nil {
		return nil, unopened(err)
	}
	defer clear(plain)
	var secrets []event.Secret
	if json.Unmarshal(plain, &secrets) != nil {
		return nil, event.Errorf(event.Internal, "the secrets that the server sent cannot be read")
	}
	return secrets, nil
}

// unopened tells to try again when the server still knows the key of the
// process that had this worker's name before.
func unopened(err error) error {
	if event.CodeOf(err) != event.Forbidden {
		return err
	}
	return &event.Error{
		Code: event.Unavailable, Message: "the server sealed secrets for another key than this worker's", Reason: "key_in_use",
		Remedy: "give each worker an id of its own; a restarted one gets its key in within a minute", Err: err,
	}
}

// EnvSecrets reads the worker's own secrets: variables of its environment that
// tools may use under their names. One that is missing is an error.
func EnvSecrets(names []string, lookup func(string) (string, bool)) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		value, ok := lookup(name)
		if !ok || value == "" {
			return nil, &event.Error{
				Code: event.Invalid, Message: "NOETL_KEYCHAIN_ENV_VARS names " + name + ", which is not set",
				Remedy: "set it, or take it off the list",
			}
		}
		out[name] = value
	}
	return out, nil
}
