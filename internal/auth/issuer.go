package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/noetl/noetl-go/internal/event"
)

// Issuer is somebody whose bearer tokens count.
type Issuer struct {
	URL          string   // exactly as in the tokens
	Audience     []string // one of which tokens must be for
	Rules        []Rule   // what claims are worth
	ClientID     string   // for browsers to sign in; "" = they cannot
	ClientSecret string
}

const (
	fetchTime  = 5 * time.Second
	fetchAgain = 10 * time.Second // not asked more often than this
	maxFetched = 1 << 20
	maxKeys    = 100
	minRSABits = 2048
)

// issuer knows the endpoints and keys of an Issuer, as soon as it could ask.
type issuer struct {
	Issuer
	o           *Options
	meters      meters
	client      *http.Client
	fingerprint string        // of what decides about its callers' rights
	asking      chan struct{} // has room for the one who asks

	mu       sync.Mutex // guards all below
	endpoint oauth2.Endpoint
	keysURL  string
	keys     []jose.JSONWebKey
	fetched  time.Time
	tried    time.Time
}

func newIssuer(i Issuer, o *Options, m meters) (*issuer, error) {
	if err := secureURL(i.URL); err != nil {
		return nil, err
	}
	if len(i.Audience) == 0 {
		return nil, &event.Error{
			Code: event.Invalid, Message: "issuer " + i.URL + " has no audience: tokens it made for others would count here",
			Remedy: "name the audience that the tokens for this server have",
		}
	}
	doc, err := json.Marshal([]any{i.URL, i.Rules})
	if err != nil {
		return nil, event.Errorf(event.Internal, "write rules: %w", err)
	}
	return &issuer{
		Issuer: i, o: o, meters: m, fingerprint: hash(string(doc))[:16], asking: make(chan struct{}, 1),
		client: &http.Client{Transport: bounded{o.Transport}, Timeout: fetchTime, CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 {
				return errors.New("too many redirects")
			}
			return secureURL(r.URL.String())
		}},
	}, nil
}

// CheckIssuer refuses an address that cannot be an issuer's.
func CheckIssuer(text string) error { return secureURL(text) }

// secureURL refuses addresses whose answers others on the network could forge.
func secureURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return &event.Error{Code: event.Invalid, Message: fmt.Sprintf("%q is not the address of an issuer", short(text)), Remedy: "write it like https://login.example.com/"}
	}
	ip := net.ParseIP(u.Hostname())
	loopback := strings.EqualFold(u.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
	if u.Scheme == "https" || u.Scheme == "http" && loopback {
		return nil
	}
	return &event.Error{
		Code: event.Invalid, Message: fmt.Sprintf("%q is not encrypted: anybody on the way could sign in as anybody", short(text)),
		Remedy: "use an https address; http is for issuers on this machine only",
	}
}

// bounded cuts answers that are too long.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxFetched), resp.Body}
	}
	return resp, err
}

// has tells whether a principal's id is of this issuer.
func (i *issuer) has(principalID string) bool {
	return strings.HasPrefix(principalID, i.principalID(""))
}

func (i *issuer) principalID(subject string) string { return "oidc:" + i.URL + "#" + subject }

// errUnknownKey: the issuer has no such key.
var errUnknownKey = errors.New("no such key")

// key finds the key of a token. Keys are asked for when they are old and when
// one is missing, but not again and again; an issuer that does not answer does
// not make the known ones worthless.
func (i *issuer) key(ctx context.Context, id string, alg jose.SignatureAlgorithm) (*jose.JSONWebKey, error) {
	now := i.o.Clock()
	i.mu.Lock()
	found, ok := pick(i.keys, id, alg)
	old, known, soon := now.Sub(i.fetched) >= i.o.KeysTTL, len(i.keys) > 0, !i.tried.IsZero() && now.Sub(i.tried) < fetchAgain
	i.mu.Unlock()
	switch {
	case ok && !old:
		i.meters.keys.Inc(keysHit)
		return found, nil
	case !ok:
		i.meters.keys.Inc(keysMiss)
	}
	if soon {
		i.meters.keys.Inc(keysLimited)
	} else if err := i.fetch(ctx, now, ok); err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if found, ok := pick(i.keys, id, alg); ok {
		return found, nil
	}
	if !known && len(i.keys) == 0 {
		return nil, &event.Error{
			Code: event.Unavailable, Message: "the issuer of bearer tokens does not answer", Reason: "issuer", Remedy: "try again in a moment",
		}
	}
	return nil, errUnknownKey
}

// pick finds a key that fits a token's header. A token that names none must
// leave no choice.
func pick(keys []jose.JSONWebKey, id string, alg jose.SignatureAlgorithm) (*jose.JSONWebKey, bool) {
	var found *jose.JSONWebKey
	for n := range keys {
		k := &keys[n]
		if id != "" && k.KeyID != id || !fits(k, alg) {
			continue
		}
		if found != nil {
			return nil, false
		}
		found = k
	}
	return found, found != nil
}

// fits tells whether a key may sign with an algorithm.
func fits(k *jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	if k.Use != "" && k.Use != "sig" || k.Algorithm != "" && k.Algorithm != string(alg) || !k.Valid() {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return alg == jose.RS256 && key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return alg == jose.ES256 && key.Curve == elliptic.P256()
	}
	return false
}

// fetch asks the issuer for its keys. Of many who want it one asks: the others
// wait for it, or go on with what is known when they can.
func (i *issuer) fetch(ctx context.Context, now time.Time, canGoOn bool) error {
	if canGoOn {
		select {
		case i.asking <- struct{}{}:
		default:
			return nil
		}
	} else {
		select {
		case i.asking <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-i.asking }()
	i.mu.Lock()
	done := i.tried.After(now) || i.tried.Equal(now)
	i.mu.Unlock()
	if done { // while this one waited
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	keys, err := i.ask(ctx)
	if err != nil && errors.Is(err, context.Canceled) {
		return err // the caller went away: nothing is known of the issuer
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tried = i.o.Clock()
	if err != nil {
		i.meters.keys.Inc(keysError)
		i.o.Logger.Warn("the keys of an issuer could not be read; those known go on", "issuer", i.URL, "known", len(i.keys), "error", err)
		return err
	}
	i.meters.keys.Inc(keysRefresh)
	i.keys, i.fetched = keys, i.tried
	return nil
}

func (i *issuer) ask(ctx context.Context) ([]jose.JSONWebKey, error) {
	address, err := i.discover(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for keys: %w", err)
	}
	resp, err := i.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask for keys: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for keys: %s", resp.Status)
	}
	return readKeys(body)
}

// readKeys takes the keys that tokens can be signed with; issuers publish others
// too. A set without any is a mistake of the issuer's, not the end of all keys.
func readKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("%d keys are more than the %d that are looked at", len(set.Keys), maxKeys)
	}
	var out []jose.JSONWebKey
	for _, raw := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(raw, &k) == nil && k.IsPublic() && (fits(&k, jose.RS256) || fits(&k, jose.ES256)) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no key among them that tokens could be signed with")
	}
	return out, nil
}

// discover finds the issuer's endpoints, once.
func (i *issuer) discover(ctx context.Context) (keysURL string, err error) {
	i.mu.Lock()
	known := i.keysURL
	i.mu.Unlock()
	if known != "" {
		return known, nil
	}
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.URL)
	if err != nil {
		return "", fmt.Errorf("discover the issuer: %w", err)
	}
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&doc); err != nil {
		return "", fmt.Errorf("discover the issuer: %w", err)
	}
	endpoint := p.Endpoint()
	for _, address := range []string{doc.Keys, endpoint.AuthURL, endpoint.TokenURL} {
		if address == "" && address != doc.Keys {
			continue // an issuer that only signs
		}
		if err := secureURL(address); err != nil {
			return "", fmt.Errorf("discover the issuer: %w", err)
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keysURL, i.endpoint = doc.Keys, endpoint
	return doc.Keys, nil
}
