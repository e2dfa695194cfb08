package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

// Keys take long to make, so that all tests share them.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return mustKey(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSA = sync.OnceValue(func() *rsa.PrivateKey { return mustKey(rsa.GenerateKey(rand.Reader, 2048)) })
	weakRSA  = sync.OnceValue(func() *rsa.PrivateKey { return mustKey(rsa.GenerateKey(rand.Reader, 1024)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return mustKey(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
)

func mustKey[K any](k K, err error) K {
	if err != nil {
		panic(err)
	}
	return k
}

// provider is an OpenID provider on this machine.
type provider struct {
	*httptest.Server
	mu      sync.Mutex
	keys    []jose.JSONWebKey
	broken  bool
	asked   int              // for keys
	codes   map[string]login // that were handed out
	doc     map[string]any   // of discovery; nil = the usual
	idToken func(l login) string
}

// login is what a browser asked the provider for.
type login struct{ challenge, nonce, redirect string }

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{codes: map[string]login{}, keys: []jose.JSONWebKey{
		{Key: rsaKey().Public(), KeyID: "r1", Algorithm: "RS256", Use: "sig"}, {Key: ecKey().Public(), KeyID: "e1", Use: "sig"},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		doc := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys"}
		p.mu.Lock()
		defer p.mu.Unlock()
		for k, v := range p.doc {
			doc[k] = v
		}
		if p.broken {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(doc)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		if p.broken {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
	})
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *provider) fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// says are the claims of a good token.
func (p *provider) says(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": p.URL, "aud": "noetl", "sub": "ada", "exp": noon.Add(time.Hour).Unix(), "iat": noon.Unix(), "nbf": noon.Unix(),
		"email": "Ada@example.com", "email_verified": true, "groups": []string{"data", "all"}, "realm": map[string]any{"roles": []string{"boss"}},
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

// sign makes a token the way libraries do.
func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, kid string, claims any) string {
	t.Helper()
	header := (&jose.SignerOptions{}).WithType("JWT")
	if kid != "" {
		header = header.WithHeader("kid", kid)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, header)
	if err != nil {
		t.Fatal(err)
	}
	payload, ok := claims.([]byte)
	if !ok {
		if payload, err = json.Marshal(claims); err != nil {
			t.Fatal(err)
		}
	}
	jws, err := s.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// forge puts any header over any payload, signed by hand.
func forge(t *testing.T, header map[string]any, payload any, key *rsa.PrivateKey) string {
	t.Helper()
	part := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := part(header) + "." + part(payload)
	if key == nil {
		return text + "."
	}
	h := crypto.SHA256.New()
	h.Write([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, h.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func withOIDC(t *testing.T, p *provider) func(*auth.Options) {
	t.Helper()
	rules, err := auth.ParseRules("groups=data->operator:team/a; sub=*->viewer; email=boss@example.com->admin; realm.roles=boss->worker")
	if err != nil {
		t.Fatal(err)
	}
	return func(o *auth.Options) {
		o.Mode, o.Leeway, o.RedirectURL = auth.ModeOIDC, time.Minute, "http://127.0.0.1:1"+auth.CallbackPath
		o.Transport = p.Client().Transport
		o.Issuers = []auth.Issuer{{URL: p.URL, Audience: []string{"noetl", "other"}, Rules: rules, ClientID: "page", ClientSecret: "hush"}}
	}
}

func TestABearerTokenOfTheIssuerTellsWhoCalls(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	for name, text := range map[string]string{
		"RS256":            sign(t, jose.RS256, rsaKey(), "r1", p.says(nil)),
		"ES256":            sign(t, jose.ES256, ecKey(), "e1", p.says(nil)),
		"without a key id": sign(t, jose.RS256, rsaKey(), "", p.says(nil)),
		"of many":          sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"aud": []string{"x", "noetl"}})),
		"within leeway":    sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"exp": noon.Add(-59 * time.Second).Unix(), "nbf": noon.Add(59 * time.Second).Unix()})),
		"with fractions":   sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"iat": float64(noon.Unix()) - 0.5})),
	} {
		who, err := w.Identify(t.Context(), bearer(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if who.ID != "oidc:"+p.URL+"#ada" || who.Name != "Ada@example.com" || who.By != auth.ByOIDC || auth.FormatGrants(who.Grants) != "operator:team/a,viewer,worker" {
			t.Errorf("%s: %+v", name, who)
		}
	}
	if p.fetches() != 1 {
		t.Errorf("the keys were fetched %d times", p.fetches())
	}
	if got := w.metric(t, `noetl_auth_jwt_verify_total{mode="bearer",outcome="ok"}`); got != "6" {
		t.Errorf("%s ok", got)
	}
}

func TestForgedBearerTokensGetNothing(t *testing.T) {
	t.Parallel()
	p, evil := newProvider(t), newProvider(t)
	public, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, jose.RS256, rsaKey(), "r1", p.says(nil))
	parts := strings.Split(good, ".")
	claim := func(change map[string]any) string { return sign(t, jose.RS256, rsaKey(), "r1", p.says(change)) }
	raw := func(s string) string { return sign(t, jose.RS256, rsaKey(), "r1", []byte(s)) }
	boss, _ := json.Marshal(p.says(map[string]any{"sub": "boss"}))
	jwk, _ := jose.JSONWebKey{Key: otherRSA().Public(), KeyID: "r1", Algorithm: "RS256"}.MarshalJSON()
	for name, c := range map[string]struct{ token, outcome string }{
		"alg none":                  {forge(t, map[string]any{"alg": "none", "kid": "r1"}, p.says(nil), nil), "algorithm"},
		"alg None":                  {forge(t, map[string]any{"alg": "None", "kid": "r1"}, p.says(nil), nil), "algorithm"},
		"no alg":                    {forge(t, map[string]any{"kid": "r1"}, p.says(nil), rsaKey()), "algorithm"},
		"HS256 with the public key": {sign(t, jose.HS256, public, "r1", p.says(nil)), "algorithm"},
		"HS256 said, RS256 done":    {forge(t, map[string]any{"alg": "HS256", "kid": "r1"}, p.says(nil), rsaKey()), "algorithm"},
		"RS512":                     {sign(t, jose.RS512, rsaKey(), "r1", p.says(nil)), "algorithm"},
		"PS256":                     {sign(t, jose.PS256, rsaKey(), "r1", p.says(nil)), "algorithm"},
		"another issuer":            {claim(map[string]any{"iss": evil.URL}), "issuer"},
		"another issuer's own":      {sign(t, jose.RS256, rsaKey(), "r1", evil.says(nil)), "issuer"},
		"an issuer with a slash":    {claim(map[string]any{"iss": p.URL + "/"}), "issuer"},
		"no issuer":                 {claim(map[string]any{"iss": nil}), "issuer"},
		"a list of issuers":         {claim(map[string]any{"iss": []string{p.URL}}), "issuer"},
		"another audience":          {claim(map[string]any{"aud": "billing"}), "audience"},
		"a longer audience":         {claim(map[string]any{"aud": "noetl2"}), "audience"},
		"the client's audience":     {claim(map[string]any{"aud": "page"}), "audience"},
		"no audience":               {claim(map[string]any{"aud": nil}), "audience"},
		"an odd audience":           {claim(map[string]any{"aud": map[string]any{"noetl": true}}), "audience"},
		"expired":                   {claim(map[string]any{"exp": noon.Add(-time.Minute).Unix()}), "expired"},
		"no end":                    {claim(map[string]any{"exp": nil}), "claims"},
		"an end in words":           {claim(map[string]any{"exp": "9999999999"}), "claims"},
		"an end beyond time":        {claim(map[string]any{"exp": 1e300}), "claims"},
		"a negative end":            {claim(map[string]any{"exp": -5}), "claims"},
		"not yet valid":             {claim(map[string]any{"nbf": noon.Add(61 * time.Second).Unix()}), "not_yet_valid"},
		"made in the future":        {claim(map[string]any{"iat": noon.Add(2 * time.Minute).Unix()}), "not_yet_valid"},
		"no subject":                {claim(map[string]any{"sub": ""}), "claims"},
		"a huge subject":            {claim(map[string]any{"sub": strings.Repeat("x", 300)}), "claims"},
		"an unknown key":            {sign(t, jose.RS256, otherRSA(), "r9", p.says(nil)), "unknown_key"},
		"a key id of elsewhere":     {sign(t, jose.RS256, otherRSA(), "../../r1", p.says(nil)), "unknown_key"},
		"another key of that id":    {sign(t, jose.RS256, otherRSA(), "r1", p.says(nil)), "signature"},
		"a key of another kind":     {sign(t, jose.ES256, ecKey(), "r1", p.says(nil)), "unknown_key"},
		"RS256 under an EC key":     {sign(t, jose.RS256, rsaKey(), "e1", p.says(nil)), "unknown_key"},
		"a changed payload":         {parts[0] + "." + base64.RawURLEncoding.EncodeToString(boss) + "." + parts[2], "signature"},
		"a changed signature":       {good[:len(good)-4] + "AAAA", "signature"},
		"no signature":              {parts[0] + "." + parts[1] + ".", "signature"},
		"an embedded key":           {forge(t, map[string]any{"alg": "RS256", "kid": "r1", "jwk": json.RawMessage(jwk)}, p.says(nil), otherRSA()), "malformed"},
		"a key address":             {forge(t, map[string]any{"alg": "RS256", "kid": "r1", "jku": evil.URL + "/keys"}, p.says(nil), rsaKey()), "malformed"},
		"a critical extension":      {forge(t, map[string]any{"alg": "RS256", "kid": "r1", "crit": []string{"x"}, "x": 1}, p.says(nil), rsaKey()), ""},
		"another kind of token":     {forge(t, map[string]any{"alg": "RS256", "kid": "r1", "typ": "logout+jwt"}, p.says(nil), rsaKey()), "malformed"},
		"a claim said twice":        {raw(`{"iss":"` + p.URL + `","aud":"noetl","sub":"ada","sub":"boss","exp":9999999999}`), "malformed"},
		"no object":                 {raw(`["noetl"]`), "malformed"},
		"nothing":                   {raw(`null`), "malformed"},
		"two objects":               {raw(`{"iss":"` + p.URL + `"}{"a":1}`), "malformed"},
		"oversized":                 {claim(map[string]any{"pad": strings.Repeat("x", 20000)}), "malformed"},
		"no token at all":           {"a.b.c", "malformed"},
		"the JSON form":             {`{"payload":".","protected":"."}`, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withOIDC(t, p))
			_, err := w.Identify(t.Context(), bearer(c.token))
			wantCode(t, name, err, event.Unauthorized)
			if c.outcome == "" {
				return
			}
			if got := w.metric(t, `noetl_auth_jwt_verify_total{mode="bearer",outcome="`+c.outcome+`"}`); got != "1" {
				t.Errorf("counted as %s %s times; %v", c.outcome, got, w.outcomes(t))
			}
		})
	}
	if evil.fetches() != 0 {
		t.Error("an issuer that is not configured was asked")
	}
}

// outcomes are the series of the verifications that happened.
func (w *world) outcomes(t *testing.T) (found []string) {
	t.Helper()
	var b strings.Builder
	if err := w.reg.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "noetl_auth_jwt") && !strings.HasSuffix(line, " 0\n") {
			found = append(found, line)
		}
	}
	return found
}

func TestClaimsAreWorthWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for name, c := range map[string]struct {
		rules  string
		claims map[string]any
		want   string
	}{
		"a verified mail":        {"email=ada@EXAMPLE.com->admin", nil, "admin"},
		"a mail in words":        {"email=ada@example.com->admin", map[string]any{"email_verified": "true"}, "admin"},
		"an unverified mail":     {"email=ada@example.com->admin", map[string]any{"email_verified": false}, ""},
		"a mail nobody verified": {"email=*->admin", map[string]any{"email_verified": nil}, ""},
		"a domain":               {"email=*@example.com->viewer", nil, "viewer"},
		"a domain at the front":  {"email=*@example.com->viewer", map[string]any{"email": "x@example.com@evil.org"}, ""},
		"a longer domain":        {"email=*@example.com->viewer", map[string]any{"email": "x@evilexample.com"}, ""},
		"a group":                {"groups=all->viewer,operator:a", nil, "viewer,operator:a"},
		"a group in other case":  {"groups=ALL->viewer", nil, ""},
		"no star inside":         {"groups=a*->viewer", nil, ""},
		"a nested claim":         {"realm.roles=boss->viewer", nil, "viewer"},
		"a claim with a URL":     {"https://x/roles=a->viewer", map[string]any{"https://x/roles": []string{"a"}}, "viewer"},
		"words of a scope":       {"scope=noetl:run->operator", map[string]any{"scope": "openid noetl:run"}, "operator"},
		"words of another claim": {"title=run->operator", map[string]any{"title": "openid run"}, ""},
		"a truth":                {"staff=true->viewer", map[string]any{"staff": true}, "viewer"},
		"a number":               {"level=3->viewer", map[string]any{"level": 3}, "viewer"},
		"an object":              {"level=*->viewer", map[string]any{"level": map[string]any{"a": 1}}, ""},
		"nothing that fits":      {"groups=x->admin", nil, ""},
	} {
		rules, err := auth.ParseRules(c.rules)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w := newWorld(t, withOIDC(t, p), func(o *auth.Options) { o.Issuers[0].Rules = rules })
		who, err := w.Identify(t.Context(), bearer(sign(t, jose.RS256, rsaKey(), "r1", p.says(c.claims))))
		if err != nil || auth.FormatGrants(who.Grants) != c.want {
			t.Errorf("%s: %+v, %v; want %q", name, who, err, c.want)
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	old, next := sign(t, jose.RS256, rsaKey(), "r1", p.says(nil)), sign(t, jose.RS256, otherRSA(), "r2", p.says(nil))
	if _, err := w.Identify(t.Context(), bearer(old)); err != nil {
		t.Fatal(err)
	}
	p.change(func() {
		p.keys = []jose.JSONWebKey{{Key: otherRSA().Public(), KeyID: "r2"}, {Key: weakRSA().Public(), KeyID: "w1"}}
	})
	for range 5 { // a flood of unknown keys does not become a flood of requests
		_, err := w.Identify(t.Context(), bearer(next))
		wantCode(t, "a new key so soon", err, event.Unauthorized)
	}
	if p.fetches() != 1 {
		t.Errorf("the keys were fetched %d times", p.fetches())
	}
	w.clock.pass(11 * time.Second)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.Identify(t.Context(), bearer(next)); err != nil {
				t.Errorf("a new key = %v", err)
			}
		})
	}
	wg.Wait()
	if p.fetches() != 2 {
		t.Errorf("the keys were fetched %d times", p.fetches())
	}
	_, err := w.Identify(t.Context(), bearer(old))
	wantCode(t, "the old key", err, event.Unauthorized)
	_, err = w.Identify(t.Context(), bearer(forge(t, map[string]any{"alg": "RS256", "kid": "w1"}, p.says(nil), weakRSA())))
	wantCode(t, "a weak key", err, event.Unauthorized)
}

func TestKnownKeysOutliveAnOutage(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	text := sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"exp": noon.Add(48 * time.Hour).Unix()}))
	p.change(func() { p.broken = true })
	_, err := w.Identify(t.Context(), bearer(text))
	wantCode(t, "before any key is known", err, event.Unavailable)
	if got := w.metric(t, `noetl_auth_failures_total{reason="jwt"}`); got != "0" {
		t.Error("an outage of the issuer counts as a failure of the caller")
	}
	p.change(func() { p.broken = false })
	w.clock.pass(time.Minute)
	if _, err := w.Identify(t.Context(), bearer(text)); err != nil {
		t.Fatal(err)
	}
	p.change(func() { p.broken = true })
	for range 5 {
		w.clock.pass(time.Hour)
		if _, err := w.Identify(t.Context(), bearer(text)); err != nil {
			t.Errorf("during an outage = %v", err)
		}
	}
	if got := w.metric(t, `noetl_auth_jwks_total{event="error"}`); got != "6" {
		t.Errorf("%s errors", got)
	}
	p.change(func() { p.broken, p.keys = false, nil }) // an issuer's mistake
	w.clock.pass(time.Hour)
	if _, err := w.Identify(t.Context(), bearer(text)); err != nil {
		t.Errorf("with an empty set = %v", err)
	}
	p.change(func() { p.keys = []jose.JSONWebKey{{Key: otherRSA().Public(), KeyID: "r2"}} })
	w.clock.pass(time.Hour)
	_, err = w.Identify(t.Context(), bearer(text))
	wantCode(t, "a key that was withdrawn", err, event.Unauthorized)
}

func TestACallerWhoLeavesDoesNotSpoilTheKeys(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	text := sign(t, jose.RS256, rsaKey(), "r1", p.says(nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Identify(ctx, bearer(text)); err == nil {
		t.Error("a caller who has left is known")
	}
	if _, err := w.Identify(t.Context(), bearer(text)); err != nil {
		t.Errorf("the next caller = %v", err)
	}
}

func TestIssuersMustBeSafe(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://login.example.com": true, "https://login.example.com/realms/x": true, "http://127.0.0.1:5556/dex": true, "http://localhost:1": true, "http://[::1]:1": true,
		"http://login.example.com": false, "": false, "login.example.com": false, "ftp://x": false, "https://u:p@login.example.com": false, "http://localhost.evil.org": false,
	} {
		if err := auth.CheckIssuer(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
	_, err := auth.New(auth.Options{Mode: auth.ModeOIDC, Issuers: []auth.Issuer{{URL: "https://x.example"}}})
	wantCode(t, "an issuer without audience", err, event.Invalid)
	_, err = auth.New(auth.Options{Mode: auth.ModeOIDC})
	wantCode(t, "no issuer", err, event.Invalid)
	_, err = auth.New(auth.Options{Mode: "on"})
	wantCode(t, "no such mode", err, event.Invalid)

	p := newProvider(t)
	text := sign(t, jose.RS256, rsaKey(), "r1", p.says(nil))
	for name, doc := range map[string]map[string]any{
		"keys over plain HTTP": {"jwks_uri": "http://login.example.com/keys"}, "no keys": {"jwks_uri": ""}, "another issuer": {"issuer": "https://evil.example"},
	} {
		p.change(func() { p.doc = doc })
		_, err := newWorld(t, withOIDC(t, p)).Identify(t.Context(), bearer(text))
		wantCode(t, name, err, event.Unavailable)
	}
}

// token answers with an id token when the code, the client and the verifier are
// the right ones.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l, known := p.codes[r.Form.Get("code")]
	delete(p.codes, r.Form.Get("code"))
	w.Header().Set("Content-Type", "application/json")
	h := crypto.SHA256.New()
	h.Write([]byte(r.Form.Get("code_verifier")))
	if !known || id != "page" || secret != "hush" || r.Form.Get("redirect_uri") != l.redirect || base64.RawURLEncoding.EncodeToString(h.Sum(nil)) != l.challenge {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": p.idToken(l)})
}

// visit does what a browser does at the provider: it comes back with a code.
func (p *provider) visit(t *testing.T, redirect string) (state, code string) {
	t.Helper()
	u, err := url.Parse(redirect)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if q.Get("client_id") != "page" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || !strings.Contains(q.Get("scope"), "openid") || len(q.Get("nonce")) < 32 {
		t.Errorf("asked for %v", q)
	}
	code = fmt.Sprint("code-", q.Get("state")[:8])
	p.change(func() { p.codes[code] = login{q.Get("code_challenge"), q.Get("nonce"), q.Get("redirect_uri")} })
	return q.Get("state"), code
}

func TestABrowserSignsInAtTheIssuer(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	other := w.replica(t, withOIDC(t, p))
	p.idToken = func(l login) string {
		return sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"aud": "page", "nonce": l.nonce, "exp": noon.Add(time.Minute).Unix()}))
	}
	redirect, state, err := w.BeginLogin(t.Context(), "/x?y=1")
	if err != nil {
		t.Fatal(err)
	}
	back, code := p.visit(t, redirect)
	if back != state {
		t.Error("the state is not the one in the address")
	}
	s, secret, to, err := other.FinishLogin(t.Context(), state, code, auth.LoginRequest{Remote: "192.0.2.1"})
	if err != nil || to != "/x?y=1" || s.Principal.Name != "Ada@example.com" {
		t.Fatalf("%+v, %q, %v", s, to, err)
	}
	w.clock.pass(7 * time.Hour) // far beyond the id token
	who, err := w.Identify(t.Context(), auth.Evidence{Session: secret})
	if err != nil || who.ID != "oidc:"+p.URL+"#ada" || !who.MayAt(auth.Operator, "team/a") {
		t.Errorf("%+v, %v", who, err)
	}
	_, _, _, err = w.FinishLogin(t.Context(), state, code, auth.LoginRequest{})
	wantCode(t, "the same state again", err, event.Unauthorized)

	changed := w.replica(t, withOIDC(t, p), func(o *auth.Options) { o.Issuers[0].Rules = o.Issuers[0].Rules[1:] })
	_, err = changed.Identify(t.Context(), auth.Evidence{Session: secret})
	wantCode(t, "after the rules were changed", err, event.Unauthorized)
}

func TestABrowserWithTheWrongPapersGetsNoSession(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for name, c := range map[string]struct {
		claims map[string]any // of the id token, over the right ones
		tamper func(w *world, state, code *string)
	}{
		"another nonce":    {claims: map[string]any{"nonce": "x"}},
		"no nonce":         {claims: map[string]any{"nonce": nil}},
		"another client":   {claims: map[string]any{"aud": "noetl"}},
		"another party":    {claims: map[string]any{"azp": "other"}},
		"an expired token": {claims: map[string]any{"exp": noon.Add(-time.Hour).Unix()}},
		"another state":    {tamper: func(_ *world, state, _ *string) { *state = strings.Repeat("0", 64) }},
		"no state":         {tamper: func(_ *world, state, _ *string) { *state = "" }},
		"a huge state":     {tamper: func(_ *world, state, _ *string) { *state = strings.Repeat("x", 1<<16) }},
		"another code":     {tamper: func(_ *world, _, code *string) { *code = "guess" }},
		"no code":          {tamper: func(_ *world, _, code *string) { *code = "" }},
		"too late":         {tamper: func(w *world, _, _ *string) { w.clock.pass(11 * time.Minute) }},
	} {
		w := newWorld(t, withOIDC(t, p))
		p.change(func() {
			p.idToken = func(l login) string {
				claims := p.says(map[string]any{"aud": "page", "nonce": l.nonce})
				for k, v := range c.claims {
					if claims[k] = v; v == nil {
						delete(claims, k)
					}
				}
				return sign(t, jose.RS256, rsaKey(), "r1", claims)
			}
		})
		redirect, state, err := w.BeginLogin(t.Context(), "/")
		if err != nil {
			t.Fatal(err)
		}
		_, code := p.visit(t, redirect)
		if c.tamper != nil {
			c.tamper(w, &state, &code)
		}
		_, secret, _, err := w.FinishLogin(t.Context(), state, code, auth.LoginRequest{Remote: "192.0.2.1"})
		wantCode(t, name, err, event.Unauthorized)
		if secret != "" {
			t.Errorf("%s: there is a session", name)
		}
	}
}

func TestLoginsThatBeginAreBounded(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	refused := 0
	for range 150 {
		if _, _, err := w.BeginLogin(t.Context(), "/"); err != nil {
			wantCode(t, "one too many", err, event.Limit)
			refused++
		}
	}
	if refused != 50 {
		t.Errorf("%d of 150 were refused", refused)
	}
	_, _, err := newWorld(t).BeginLogin(t.Context(), "/")
	wantCode(t, "without an issuer", err, event.NotFound)
	p.change(func() { p.broken = true })
	_, _, err = newWorld(t, withOIDC(t, p)).BeginLogin(t.Context(), "/")
	wantCode(t, "when the issuer is gone", err, event.Unavailable)
}

func TestASessionIsOpenedWithATokenForOurClient(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWorld(t, withOIDC(t, p))
	forClient := sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"aud": "page"}))
	if _, _, err := w.Login(t.Context(), auth.LoginRequest{Token: forClient}); err != nil {
		t.Error(err)
	}
	_, _, err := w.Login(t.Context(), auth.LoginRequest{Token: sign(t, jose.RS256, rsaKey(), "r1", p.says(map[string]any{"aud": "billing"}))})
	wantCode(t, "a token for others", err, event.Unauthorized)
}

func TestNobodyIsSentElsewhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/": "/", "/a?b=c#d": "/a?b=c#d", "": "/", "//evil.example": "/", "/\\evil.example": "/", "https://evil.example": "/", "javascript:alert(1)": "/",
		"a/b": "/", "/a\nb": "/", "/%zz": "/", "/\t/evil.example": "/", "/" + strings.Repeat("x", 3000): "/",
	} {
		if got := auth.LocalPath(text); got != want {
			t.Errorf("%q goes to %q", text, got)
		}
	}
}
