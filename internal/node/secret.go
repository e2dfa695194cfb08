package node

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/snowflake"
)

// EncryptionKeys say where the keys come from.
type EncryptionKeys = envelope.Settings

// Secrets says how credentials are kept.
type Secrets struct {
	Keys EncryptionKeys
	// AllowEphemeralKey lets a server on PostgreSQL start without a key, with one
	// that ends with it: nothing it encrypts can be read later.
	AllowEphemeralKey bool
	AuditRequired     bool // no secret leaves unless that is written down first
	Region            string
}

// keyFile is made beside the embedded database, which is of no use without it.
const keyFile = "encryption.key"

// encryptionKeys finds the keys. A database of its own gets a key of its own;
// one that others share must be given it, or each would have another.
func (o *Options) encryptionKeys() (*envelope.Keys, error) {
	switch {
	case o.Secrets.Keys.Given():
		return envelope.Load(o.Secrets.Keys)
	case o.usesPostgres() && o.Secrets.AllowEphemeralKey:
		o.Logger.Warn("INSECURE: credentials are encrypted with a random key that is lost when this process ends; set NOETL_ENCRYPTION_KEY")
		return envelope.Ephemeral()
	case o.usesPostgres():
		return nil, &event.Error{
			Code: event.Invalid, Message: "there is no encryption key for credentials", Reason: "encryption_key",
			Remedy: "set NOETL_ENCRYPTION_KEY to the same value on every server; make one with: openssl rand -base64 32",
		}
	}
	path := filepath.Join(o.DataDir, keyFile)
	keys, made, err := envelope.LoadOrMake(path)
	if made {
		o.Logger.Info("made the key that credentials are encrypted with: keep a backup of it apart from the database", "file", path)
	}
	return keys, err
}

// openSecrets makes the keeper of credentials. It writes its audit as long as
// the control plane runs.
func (n *Node) openSecrets(o Options, keys *envelope.Keys, ids *snowflake.Generator) {
	n.secrets = secret.New(secret.Options{
		Store: n.Store, Keys: keys, IDs: ids.Next, Clock: failpoint.Now, Logger: o.Logger, Meter: obs.SecretMeter{Metrics: n.metrics, Region: o.Secrets.Region},
		AuditRequired: o.Secrets.AuditRequired, Region: o.Secrets.Region,
	})
	n.background = append(n.background, n.secrets.Run)
}

// PutCredential registers a credential from within the process.
func (n *Node) PutCredential(ctx context.Context, name, kind string, data json.RawMessage) error {
	_, _, err := n.secrets.Put(ctx, secret.Registration{Name: name, Type: kind, Data: data}, secret.Use{Actor: "this process"})
	return err
}
