// Package sealed encrypts secrets for one worker, so that nobody between the
// control plane and that worker can read them: X25519 with a fresh key per
// message, HKDF-SHA256 and ChaCha20-Poly1305. It must not know what is sealed
// or who may have it.
package sealed

import (
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/noetl/noetl-go/internal/event"
)

// Algorithm is how every version seals.
const Algorithm = "x25519-hkdf-sha256-chacha20-poly1305"

// The versions. Version 1 says nothing of what the text is for; version 2 binds
// it to an execution and to the aliases that were asked for, so that an answer
// cannot be passed off as the answer to another question.
const (
	V1 = 1
	V2 = 2
)

// Binding is what a sealed text of version 2 belongs to.
type Binding struct {
	Execution event.ID
	Aliases   []string // in the order asked
}

// GenerateKey makes the key pair of a worker.
func GenerateKey() (*ecdh.PrivateKey, error) { return ecdh.X25519().GenerateKey(rand.Reader) }

// PublicText is the public half as workers register it.
func PublicText(key *ecdh.PublicKey) string { return base64.StdEncoding.EncodeToString(key.Bytes()) }

// ParsePublic reads a registered key. The error is Invalid when it is none.
func ParsePublic(text string) (*ecdh.PublicKey, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		var key *ecdh.PublicKey
		if key, err = ecdh.X25519().NewPublicKey(raw); err == nil {
			return key, nil
		}
	}
	return nil, &event.Error{
		Code: event.Invalid, Message: "worker_public_key is no X25519 key", Remedy: "send 32 bytes in base64", Err: err,
	}
}

// Seal encrypts plain for the owner of a key, bound to b.
func Seal(to *ecdh.PublicKey, b Binding, plain []byte) (event.Sealed, error) {
	return seal(rand.Reader.Read, to, V2, b.aad(), plain)
}

// SealV1 encrypts plain for the owner of a key, for workers that know only
// version 1.
func SealV1(to *ecdh.PublicKey, plain []byte) (event.Sealed, error) {
	return seal(rand.Reader.Read, to, V1, aad(V1), plain)
}

// Open decrypts what was sealed for the key. A text of version 2 opens only
// with the binding it was sealed with; version 1 has none. The error is
// Forbidden when the text is for another key, bound otherwise or damaged, which
// cannot be told apart.
func Open(key *ecdh.PrivateKey, b Binding, s event.Sealed) ([]byte, error) {
	var extra []byte
	switch {
	case s.Alg != Algorithm:
		return nil, event.Errorf(event.Invalid, "sealed with %q, which is not known here", s.Alg)
	case s.Version == V1:
		extra = aad(V1)
	case s.Version == V2:
		extra = b.aad()
	default:
		return nil, event.Errorf(event.Invalid, "sealed in version %d, which is not known here", s.Version)
	}
	from, err := ecdh.X25519().NewPublicKey(s.EphemeralKey)
	if err != nil {
		return nil, event.Errorf(event.Invalid, "the sealed text has no usable key: %w", err)
	}
	box, nonce, err := derive(key, from, s.Version)
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(nil, nonce, s.Ciphertext, extra)
	if err != nil {
		return nil, &event.Error{
			Code: event.Forbidden, Message: "the sealed text does not open with this worker's key", Reason: "not_for_this_key",
			Remedy: "it was sealed for another key or for another question, or it was changed on the way", Err: err,
		}
	}
	return plain, nil
}

func seal(random func([]byte) (int, error), to *ecdh.PublicKey, version int, extra, plain []byte) (event.Sealed, error) {
	secret := make([]byte, 32)
	if _, err := random(secret); err != nil {
		return event.Sealed{}, fmt.Errorf("make a key: %w", err)
	}
	own, err := ecdh.X25519().NewPrivateKey(secret)
	clear(secret)
	if err != nil {
		return event.Sealed{}, fmt.Errorf("make a key: %w", err)
	}
	box, nonce, err := derive(own, to, version)
	if err != nil {
		return event.Sealed{}, err
	}
	return event.Sealed{
		Alg: Algorithm, Version: version, EphemeralKey: own.PublicKey().Bytes(), Ciphertext: box.Seal(nil, nonce, plain, extra),
	}, nil
}

// derive makes the cipher and its nonce. The nonce may come from the key
// agreement because every message has a key of its own.
func derive(own *ecdh.PrivateKey, other *ecdh.PublicKey, version int) (cipher.AEAD, []byte, error) {
	shared, err := own.ECDH(other)
	if err != nil {
		return nil, nil, event.Errorf(event.Invalid, "the public key cannot be used: %w", err)
	}
	defer clear(shared)
	material, err := hkdf.Key(sha256.New, shared, nil, "noetl-sealed-v"+strconv.Itoa(version), chacha20poly1305.KeySize+chacha20poly1305.NonceSize)
	if err != nil {
		return nil, nil, fmt.Errorf("derive a key: %w", err)
	}
	defer clear(material[:chacha20poly1305.KeySize])
	box, err := chacha20poly1305.New(material[:chacha20poly1305.KeySize])
	if err != nil {
		return nil, nil, fmt.Errorf("make a cipher: %w", err)
	}
	return box, material[chacha20poly1305.KeySize:], nil
}

func aad(version int) []byte { return []byte(Algorithm + "|v=" + strconv.Itoa(version)) }

// aad writes the aliases as JSON, so that no two lists read the same.
func (b Binding) aad() []byte {
	aliases := b.Aliases
	if aliases == nil {
		aliases = []string{}
	}
	list, _ := json.Marshal(aliases) // text always has a JSON form
	return append(aad(V2), "|execution_id="+b.Execution.String()+"|aliases="+string(list)...)
}
