// Package oidcd is an OpenID Connect issuer for tests: it publishes its
// description and keys and signs what a test asks for, also what no honest
// issuer would. It must not be used outside of tests.
package oidcd

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Claims are what a token says.
type Claims map[string]any

// Issuer is a running issuer.
type Issuer struct {
	URL      string
	Audience string
	t        testing.TB
	key      *rsa.PrivateKey

	mu     sync.Mutex // guards what follows
	person Claims     // who signs in
	logins map[string]login
}

// KeyID names the issuer's key.
const KeyID = "key-1"

// Start runs an issuer until the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{Audience: "noetl", t: t, key: key, logins: map[string]login{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KeyID,
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	i.URL = srv.URL
	return i
}

func (i *Issuer) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Errorf("answer of the issuer: %v", err)
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Claims are good ones of a subject with a role, with others laid over them; nil
// takes one away.
func (i *Issuer) Claims(role string, over Claims) Claims {
	now := time.Now()
	c := Claims{
		"iss": i.URL, "aud": i.Audience, "sub": "user-" + role, "role": role,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(c, over)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token signs claims with the issuer's key.
func (i *Issuer) Token(c Claims) string { return i.Signed(nil, c) }

// Signed is Token with others laid over the header.
func (i *Issuer) Signed(over map[string]any, c Claims) string {
	i.t.Helper()
	header := map[string]any{"alg": "RS256", "kid": KeyID, "typ": "JWT"}
	maps.Copy(header, over)
	maps.DeleteFunc(header, func(_ string, v any) bool { return v == nil })
	text := i.unsigned(header, c)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return text + "." + encode(sig)
}

// None is a token without a signature, whose algorithm is spelled as given.
func (i *Issuer) None(alg string, c Claims) string {
	return i.unsigned(map[string]any{"alg": alg, "kid": KeyID, "typ": "JWT"}, c) + "."
}

// Confused is signed with the public key as if it were a shared secret.
func (i *Issuer) Confused(c Claims) string {
	i.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		i.t.Fatal(err)
	}
	text := i.unsigned(map[string]any{"alg": "HS256", "kid": KeyID, "typ": "JWT"}, c)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	_, _ = mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

func (i *Issuer) unsigned(header map[string]any, c Claims) string {
	i.t.Helper()
	h, err := json.Marshal(header)
	if err != nil {
		i.t.Fatal(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		i.t.Fatal(err)
	}
	return encode(h) + "." + encode(body)
}

// PublicJWK is the issuer's key as others would put it into a header.
func (i *Issuer) PublicJWK() map[string]any {
	return map[string]any{"kty": "RSA", "kid": KeyID, "n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())}
}
