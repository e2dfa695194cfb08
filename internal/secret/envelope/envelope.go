// Package envelope encrypts records: each under a key of its own, which a key
// encryption key wraps. The text it makes names the key that opens it, so keys
// can be replaced one record at a time. It must not know what is in a record,
// nor where records are kept.
package envelope

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	algorithm = "AES-256-GCM"
	// plainVersion records are bound to nothing; boundVersion records to the row they were
	// made for, so that a ciphertext cannot be moved to another.
	plainVersion = 1
	boundVersion = 2

	keyBytes   = 32
	nonceBytes = 12
	// maxText bounds what is parsed as a record.
	maxText = 64 << 20
)

// KEK wraps data keys. Wrap uses the current key of a family; Unwrap the one
// that ref names, and says which is missing when it has no such key.
type KEK interface {
	Wrap(ctx context.Context, dek []byte) (Ref, []byte, error)
	Unwrap(ctx context.Context, ref Ref, wrapped []byte) ([]byte, error)
	// Current names the key that Wrap uses now.
	Current() Ref
}

// Ref names a key: who holds it, which one, and which version of it.
type Ref struct {
	Provider string `json:"p"`
	ID       string `json:"kid"`
	Version  string `json:"kv"`
}

func (r Ref) String() string { return r.Provider + " key " + r.ID + " version " + r.Version }

// record is the stored text.
type record struct {
	Version    int        `json:"v"`
	Algorithm  string     `json:"alg"`
	Ciphertext []byte     `json:"ct"` // nonce ‖ ciphertext ‖ tag
	DEK        wrappedKey `json:"dek"`
}

type wrappedKey struct {
	Ref
	Wrapped []byte `json:"ct"`
}

// Keys seals and opens records. Make one with New.
type Keys struct {
	kek KEK
}

// New returns the keys that kek wraps.
func New(kek KEK) *Keys { return &Keys{kek: kek} }

// Current names the key that new records are wrapped with.
func (k *Keys) Current() Ref { return k.kek.Current() }

// Seal encrypts plain for the row that aad names: "table|row identity".
func (k *Keys) Seal(aad string, plain []byte) (string, error) {
	dek := make([]byte, keyBytes)
	defer clear(dek)
	if _, err := rand.Read(dek); err != nil {
		return "", fmt.Errorf("make a data key: %w", err)
	}
	sealed, err := seal(dek, plain, bound(aad, boundVersion))
	if err != nil {
		return "", err
	}
	ref, wrapped, err := k.kek.Wrap(context.Background(), dek)
	if err != nil {
		return "", fmt.Errorf("wrap the data key: %w", err)
	}
	return encode(&record{boundVersion, algorithm, sealed, wrappedKey{ref, wrapped}})
}

// Open decrypts a record of the row that aad names. The caller owns the result
// and may clear it.
func (k *Keys) Open(aad, text string) ([]byte, error) {
	r, err := parse(text)
	if err != nil {
		return nil, err
	}
	dek, err := k.unwrap(r)
	if err != nil {
		return nil, err
	}
	defer clear(dek)
	plain, err := open(dek, r.Ciphertext, bound(aad, r.Version))
	if err != nil {
		return nil, &event.Error{
			Code: event.Internal, Message: "the encrypted record was changed, or belongs to another row",
			Remedy: "register it again", Reason: "tampered",
		}
	}
	return plain, nil
}

// Rewrap is text under the current key, and whether it changed. What is
// encrypted stays as it is. A record that no key opens is an error even when it
// names the current one: two keys may have borne one name.
func (k *Keys) Rewrap(_, text string) (string, bool, error) {
	r, err := parse(text)
	if err != nil {
		return "", false, err
	}
	dek, err := k.unwrap(r)
	if err != nil {
		return "", false, err
	}
	defer clear(dek)
	if r.DEK.Ref == k.kek.Current() {
		return text, false, nil
	}
	r.DEK.Ref, r.DEK.Wrapped, err = k.kek.Wrap(context.Background(), dek)
	if err != nil {
		return "", false, fmt.Errorf("wrap the data key: %w", err)
	}
	out, err := encode(r)
	return out, true, err
}

// Version is the version of the key a record is wrapped with; "invalid" when
// it is no record.
func (k *Keys) Version(text string) string {
	r, err := parse(text)
	if err != nil {
		return "invalid"
	}
	return r.DEK.Version
}

func (k *Keys) unwrap(r *record) ([]byte, error) {
	dek, err := k.kek.Unwrap(context.Background(), r.DEK.Ref, r.DEK.Wrapped)
	if err != nil {
		return nil, err
	}
	if len(dek) != keyBytes {
		clear(dek)
		return nil, errNoRecord
	}
	return dek, nil
}

var errNoRecord = &event.Error{
	Code: event.Internal, Message: "what is stored is no encrypted record", Remedy: "register the secret again", Reason: "not_encrypted",
}

func encode(r *record) (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the record: %w", err)
	}
	return string(text), nil
}

func parse(text string) (*record, error) {
	if len(text) > maxText || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return nil, errNoRecord
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, errNoRecord // the cause may quote what is stored
	}
	known := r.Version == plainVersion || r.Version == boundVersion
	if !known || r.Algorithm != algorithm || len(r.Ciphertext) == 0 || len(r.DEK.Wrapped) == 0 || r.DEK.Provider == "" {
		return nil, errNoRecord
	}
	return &r, nil
}

// bound is what the ciphertext of a record is tied to.
func bound(aad string, version int) []byte {
	if version == plainVersion {
		return nil
	}
	return fmt.Appendf(nil, "%s|%d", aad, version)
}

var errCipher = errors.New("ciphertext does not fit the key")

// seal is nonce ‖ ciphertext ‖ tag.
func seal(key, plain, aad []byte) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, nonceBytes, nonceBytes+len(plain)+gcm.Overhead())
	if _, err := rand.Read(out); err != nil {
		return nil, fmt.Errorf("make a nonce: %w", err)
	}
	return gcm.Seal(out, out, plain, aad), nil
}

func open(key, sealed, aad []byte) ([]byte, error) {
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	if len(sealed) < nonceBytes+gcm.Overhead() {
		return nil, errCipher
	}
	plain, err := gcm.Open(nil, sealed[:nonceBytes], sealed[nonceBytes:], aad)
	if err != nil {
		return nil, errCipher
	}
	return plain, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	return cipher.NewGCM(block)
}
