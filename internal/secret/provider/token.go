package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	tokensKept  = 256
	tokenMargin = 60 * time.Second // a token that ends sooner is not used again
)

// token is what a service accepts as proof of who asks.
type token struct {
	text string
	ends time.Time // zero when unknown, which is not kept
}

// tokens keeps the tokens of a process until shortly before they end. Those who
// want the same one at a time wait for one mint.
type tokens struct {
	clock   func() time.Time
	mu      sync.Mutex // guards kept
	kept    map[string]token
	flights singleflight.Group
}

// get returns a kept token, or mints one. The key must tell apart whatever
// leads to different tokens; what is secret in it is hashed by the caller.
func (t *tokens) get(key string, mint func() (token, error)) (token, error) {
	if tok, ok := t.held(key); ok {
		return tok, nil
	}
	v, err, _ := t.flights.Do(key, func() (any, error) {
		if tok, ok := t.held(key); ok {
			return tok, nil
		}
		tok, err := mint()
		if err == nil {
			t.put(key, tok)
		}
		return tok, err
	})
	if err != nil {
		return token{}, err
	}
	return v.(token), nil
}

func (t *tokens) held(key string) (token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tok, ok := t.kept[key]
	return tok, ok && tok.ends.Sub(t.clock()) > tokenMargin
}

func (t *tokens) put(key string, tok token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock()
	if tok.ends.Sub(now) <= tokenMargin {
		return
	}
	if t.kept == nil {
		t.kept = map[string]token{}
	}
	if len(t.kept) >= tokensKept {
		for k, old := range t.kept { // ended ones first, then whichever
			if old.ends.Sub(now) <= tokenMargin || len(t.kept) >= tokensKept {
				delete(t.kept, k)
			}
		}
	}
	t.kept[key] = tok
}

// drop forgets a token that was refused.
func (t *tokens) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kept, key)
}

// digest makes a part of a key of something secret.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}
