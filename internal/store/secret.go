package store

import (
	"context"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Credential is a registered secret. Sealed is ciphertext: stores never see the
// secret itself.
type Credential struct {
	ID          event.ID
	Name        string
	Type        string
	Sealed      string
	Schema      []byte // JSON, or empty
	Meta        []byte // JSON, or empty
	Tags        []string
	Description string
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// CredentialFilter selects credentials; zero fields do not restrict.
type CredentialFilter struct {
	Type  string
	Query string // case-insensitive substring of name or description
}

// KeychainEntry is a resolved secret or a token that is kept for a while.
type KeychainEntry struct {
	CacheKey          string
	Name              string
	CatalogID         event.ID
	CredentialType    string
	CacheType         string // secret, token
	Scope             string // local, shared, global
	ExecutionID       event.ID
	ParentExecutionID event.ID
	Sealed            string
	ExpiresAt         time.Time // the effective deadline; always set
	CreatedAt         time.Time
	AccessedAt        time.Time
	AccessCount       int64
	AutoRenew         bool
	SealedRenewal     string // how to renew it, ciphertext; or empty
}

// Validate refuses an entry no driver could keep.
func (e *KeychainEntry) Validate() error {
	switch {
	case e.CacheKey == "":
		return &event.Error{Code: event.Invalid, Message: "a keychain entry needs a cache key"}
	case e.CacheType != "secret" && e.CacheType != "token":
		return event.Errorf(event.Invalid, "cache_type of a keychain entry is secret or token, not %q", e.CacheType)
	case e.Scope != "local" && e.Scope != "shared" && e.Scope != "global":
		return event.Errorf(event.Invalid, "scope_type of a keychain entry is local, shared or global, not %q", e.Scope)
	case e.ExpiresAt.IsZero():
		return &event.Error{Code: event.Invalid, Message: "a keychain entry needs a deadline"}
	}
	return nil
}

// SecretAudit is one line of the record of who got which secret, or did not.
type SecretAudit struct {
	ID                event.ID
	At                time.Time
	Credential        string
	Operation         string // get_sealed, resolve, get_credential, create, update, delete, rotate, …
	Outcome           string // ok, credential_not_found, no_pubkey, denied, …
	Actor             string // user, token or worker
	RequestID         string
	WorkerID          string
	ExecutionID       event.ID
	ParentExecutionID event.ID
	Region            string
	KeyVersion        string
	Notes             string
}

// AuditFilter selects audit lines; zero fields do not restrict.
type AuditFilter struct {
	Credential  string
	ExecutionID event.ID
	From        time.Time // inclusive
	To          time.Time // exclusive
	Limit       int       // 0 = 100
}

// Rows is how many lines the filter allows.
func (f *AuditFilter) Rows() int {
	if f.Limit <= 0 {
		return 100
	}
	return f.Limit
}

// Matches tells whether the filter selects c; drivers whose database cannot
// compare without case ask it.
func (f *CredentialFilter) Matches(c *Credential) bool {
	if f.Type != "" && f.Type != c.Type {
		return false
	}
	q := strings.ToLower(f.Query)
	return q == "" || strings.Contains(strings.ToLower(c.Name), q) || strings.Contains(strings.ToLower(c.Description), q)
}

// Secrets keeps credentials, the keychain and the record of their use. They
// belong to the whole cluster, not to a shard.
type Secrets interface {
	// PutCredential stores c by name. One that exists keeps its id and creation
	// time and gets everything else; created tells which happened. A new name with
	// an id that is taken is a conflict.
	PutCredential(ctx context.Context, c Credential) (stored Credential, created bool, err error)
	// Credential finds by name, CredentialByID by id. ErrNotFound when absent.
	Credential(ctx context.Context, name string) (Credential, error)
	CredentialByID(ctx context.Context, id event.ID) (Credential, error)
	// ListCredentials returns them newest first.
	ListCredentials(ctx context.Context, f CredentialFilter) ([]Credential, error)
	// DeleteCredential removes one. ErrNotFound when absent.
	DeleteCredential(ctx context.Context, id event.ID) error
	// CredentialsAfter pages by id, ascending; for rotation.
	CredentialsAfter(ctx context.Context, id event.ID, limit int) ([]Credential, error)
	// SwapCredential replaces the ciphertext if it is still old.
	SwapCredential(ctx context.Context, id event.ID, old, sealed string) (bool, error)

	// PutKeychain stores an entry by its cache key, over one that exists.
	PutKeychain(ctx context.Context, e KeychainEntry) error
	// Keychain finds an entry, expired or not, and counts the access at now.
	// ErrNotFound when absent.
	Keychain(ctx context.Context, cacheKey string, now time.Time) (KeychainEntry, error)
	// ListKeychain returns the entries of a catalog entry by cache key.
	ListKeychain(ctx context.Context, catalog event.ID) ([]KeychainEntry, error)
	// DeleteKeychain removes an entry and tells whether there was one.
	DeleteKeychain(ctx context.Context, cacheKey string) (bool, error)
	// DeleteKeychainOf removes the local and shared entries of an execution.
	DeleteKeychainOf(ctx context.Context, execution event.ID) (int, error)
	// ExpireKeychain removes entries that expired before now, and DueKeychain
	// returns those to renew that expire before then; at most limit each.
	ExpireKeychain(ctx context.Context, now time.Time, limit int) (int, error)
	DueKeychain(ctx context.Context, before time.Time, limit int) ([]KeychainEntry, error)
	// KeychainAfter pages by cache key, ascending; SwapKeychain replaces the
	// ciphertexts if Sealed is still old.
	KeychainAfter(ctx context.Context, cacheKey string, limit int) ([]KeychainEntry, error)
	SwapKeychain(ctx context.Context, cacheKey, old, sealed, sealedRenewal string) (bool, error)

	// AddAudit appends lines, one whose id is stored not again; ListAudit returns
	// them newest first.
	AddAudit(ctx context.Context, lines ...SecretAudit) error
	ListAudit(ctx context.Context, f AuditFilter) ([]SecretAudit, error)
}
