package outbound

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	defaultScope = "https://www.googleapis.com/auth/cloud-platform"
	googleTokens = "https://oauth2.googleapis.com/token"
	maxTokens    = 1000     // kept at once
	maxAnswer    = 64 << 10 // of a token endpoint
)

// grant is one way to get a token: a request to a token endpoint. Two grants
// with the same key give interchangeable tokens.
type grant struct {
	endpoint *url.URL
	method   string
	header   http.Header
	form     func(now time.Time) (url.Values, error) // nil = no body
	key      [sha256.Size]byte
}

func (g *grant) keyed(parts ...string) *grant {
	b, _ := json.Marshal(append([]string{g.method, g.endpoint.String()}, parts...))
	g.key = sha256.Sum256(b)
	return g
}

func tokenSource(kind string, c *tool.Credential) (*grant, error) {
	switch kind {
	case "oauth2":
		return clientGrant(c)
	case "gcp":
		return googleGrant(c)
	}
	return machineGrant(c)
}

// clientGrant is the client credentials grant of OAuth 2.
func clientGrant(c *tool.Credential) (*grant, error) {
	address := c.Text("token_url", "token_endpoint", "token_uri")
	id, secret := c.Text("client_id"), c.Text("client_secret")
	if address == "" || id == "" {
		return nil, missing(c, "token_url and client_id")
	}
	endpoint, err := ParseURL("auth token_url", address)
	if err != nil {
		return nil, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if refresh := c.Text("refresh_token"); refresh != "" {
		form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
	}
	for field, value := range map[string]string{"scope": scopes(c, ""), "audience": c.Text("audience"), "resource": c.Text("resource")} {
		if value != "" {
			form.Set(field, value)
		}
	}
	g := &grant{endpoint: endpoint, method: http.MethodPost, header: http.Header{}}
	if strings.EqualFold(c.Text("auth_style", "token_endpoint_auth_method"), "client_secret_basic") || strings.EqualFold(c.Text("auth_style"), "basic") {
		(&http.Request{Header: g.header}).SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	} else {
		form.Set("client_id", id)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	g.form = func(time.Time) (url.Values, error) { return form, nil }
	return g.keyed(form.Encode(), id, secret), nil
}

// scopes reads scope or scopes, as text or as a list.
func scopes(c *tool.Credential, def string) string {
	for _, name := range []string{"scopes", "scope"} {
		if list, ok := c.Data[name].([]any); ok {
			var out []string
			for _, item := range list {
				if s, ok := item.(string); ok {
					out = append(out, s)
				}
			}
			return strings.Join(out, " ")
		}
	}
	if text := c.Text("scopes", "scope"); text != "" {
		return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }), " ")
	}
	return def
}

// googleGrant exchanges a signed statement of a service account, whose key the
// credential holds as fields or as the text of its file.
func googleGrant(c *tool.Credential) (*grant, error) {
	if c.Text("private_key") == "" && c.Text("refresh_token") == "" {
		file := map[string]any{}
		text := c.Text("service_account_json", "service_account", "service_account_key", "credentials", "json", "key")
		if text == "" {
			return nil, missing(c, "private_key and client_email (the fields of a service account's key file)")
		}
		if json.Unmarshal([]byte(text), &file) != nil {
			return nil, tool.ConfigErrorf("auth holds a service account's key that is not JSON")
		}
		for _, name := range []string{"scope", "scopes"} {
			if v := c.Data[name]; v != nil {
				file[name] = v
			}
		}
		c = &tool.Credential{Alias: c.Alias, Type: c.Type, Data: file}
	}
	if c.Text("private_key") == "" && c.Text("refresh_token") != "" { // the login of a person
		data := map[string]any{"token_url": googleTokens}
		for k, v := range c.Data {
			data[k] = v
		}
		return clientGrant(&tool.Credential{Alias: c.Alias, Type: c.Type, Data: data})
	}
	return serviceGrant(c)
}

func serviceGrant(c *tool.Credential) (*grant, error) {
	address, mail, scope := c.Text("token_uri"), c.Text("client_email"), scopes(c, defaultScope)
	if address == "" {
		address = googleTokens
	}
	endpoint, err := ParseURL("auth token_uri", address)
	if err != nil {
		return nil, err
	}
	if mail == "" {
		return nil, missing(c, "client_email")
	}
	key, err := privateKey(c.Text("private_key"))
	if err != nil {
		return nil, err
	}
	g := &grant{endpoint: endpoint, method: http.MethodPost, header: http.Header{}}
	g.form = func(now time.Time) (url.Values, error) {
		statement, err := signed(key, c.Text("private_key_id"), map[string]any{
			"iss": mail, "scope": scope, "aud": address, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		})
		return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {statement}}, err
	}
	return g.keyed(mail, scope, c.Text("private_key")), nil
}

func privateKey(text string) (*rsa.PrivateKey, error) {
	bad := tool.ConfigErrorf("auth holds a private_key that is not an RSA key in PEM form")
	block, _ := pem.Decode([]byte(strings.ReplaceAll(text, `\n`, "\n")))
	if block == nil {
		return nil, bad
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if key, ok := parsed.(*rsa.PrivateKey); ok && err == nil {
		return key, nil
	}
	return nil, bad
}

// signed is a JSON web token with an RS256 signature.
func signed(key *rsa.PrivateKey, id string, claims map[string]any) (string, error) {
	head := map[string]any{"alg": "RS256", "typ": "JWT"}
	if id != "" {
		head["kid"] = id
	}
	parts := make([]string, 0, 3)
	for _, part := range []map[string]any{head, claims} {
		b, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(b))
	}
	digest := sha256.Sum256([]byte(strings.Join(parts, ".")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", tool.ConfigErrorf("auth holds a private_key that cannot sign")
	}
	return strings.Join(append(parts, base64.RawURLEncoding.EncodeToString(signature)), "."), nil
}

// machineGrant uses what Google's own programs would: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, else the machine's metadata service.
func machineGrant(c *tool.Credential) (*grant, error) {
	if path := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, tool.ConfigErrorf("the worker's GOOGLE_APPLICATION_CREDENTIALS cannot be read")
		}
		return googleGrant(&tool.Credential{Type: c.Type, Data: map[string]any{"json": string(text), "scope": scopes(c, defaultScope)}})
	}
	host := os.Getenv("GCE_METADATA_HOST")
	if host == "" {
		host = "metadata.google.internal"
	}
	scope := scopes(c, defaultScope)
	g := &grant{
		method: http.MethodGet, header: http.Header{"Metadata-Flavor": {"Google"}},
		endpoint: &url.URL{
			Scheme: "http", Host: host, Path: "/computeMetadata/v1/instance/service-accounts/default/token",
			RawQuery: url.Values{"scopes": {strings.ReplaceAll(scope, " ", ",")}}.Encode(),
		},
	}
	return g.keyed(), nil
}

// fetch asks for a token and tells how long it may be used.
func (g *grant) fetch(ctx context.Context, pool *egress.Pool) (string, time.Duration, error) {
	what := "get a token from " + Shown(g.endpoint)
	var body io.Reader
	if g.form != nil {
		form, err := g.form(time.Now())
		if err != nil {
			return "", 0, err
		}
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, g.method, g.endpoint.String(), body)
	if err != nil {
		return "", 0, tool.ConfigErrorf("%s: the request cannot be made", what)
	}
	for name, values := range g.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := &http.Client{Transport: pool.Transport(true), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return "", 0, Failure(ctx, what, 0, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", 0, Failure(ctx, what, 0, err)
	}
	return readToken(what, resp, text)
}

func readToken(what string, resp *http.Response, text []byte) (string, time.Duration, error) {
	var answer struct {
		AccessToken string      `json:"access_token"`
		ExpiresIn   json.Number `json:"expires_in"`
		Error       string      `json:"error"`
	}
	readable := json.Unmarshal(text, &answer) == nil
	if e := StatusError(what, resp.StatusCode, resp.Header); e != nil {
		if resp.StatusCode < 500 && e.Kind != tool.KindRateLimit {
			e.Kind = tool.KindAuth
		}
		e.Code = "TOKEN_REFUSED"
		if readable && answer.Error != "" && len(answer.Error) < 100 {
			e.Message += " (" + answer.Error + ")"
		}
		return "", 0, e
	}
	if !readable || answer.AccessToken == "" {
		return "", 0, &tool.Error{Kind: tool.KindAuth, Code: "TOKEN_REFUSED", Message: what + ": the answer holds no access_token"}
	}
	seconds, err := answer.ExpiresIn.Float64()
	if err != nil || seconds <= 0 || seconds > 24*3600 {
		seconds = 3600
	}
	life := time.Duration(seconds * float64(time.Second))
	return answer.AccessToken, life - min(time.Minute, life/2), nil
}

// tokens keeps tokens until they expire. Each is fetched once, however many ask.
type tokens struct {
	mu   sync.Mutex
	held map[[sha256.Size]byte]*heldToken
}

type heldToken struct {
	turn  chan struct{} // held by whoever fetches
	token string
	until time.Time
}

func (t *tokens) slot(key [sha256.Size]byte) *heldToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.held[key]; h != nil {
		return h
	}
	if t.held == nil || len(t.held) >= maxTokens { // rare: those in use are fetched again
		t.held = map[[sha256.Size]byte]*heldToken{}
	}
	h := &heldToken{turn: make(chan struct{}, 1)}
	t.held[key] = h
	return h
}

func (t *tokens) get(ctx context.Context, g *grant, pool *egress.Pool) (token string, forget func(), err error) {
	h := t.slot(g.key)
	forget = func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.held[g.key] == h {
			delete(t.held, g.key)
		}
	}
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return "", nil, tool.Ended(ctx, "get a token", 0)
	}
	defer func() { <-h.turn }()
	if h.token != "" && time.Now().Before(h.until) {
		return h.token, forget, nil
	}
	token, life, err := g.fetch(ctx, pool)
	if err != nil {
		return "", nil, err
	}
	h.token, h.until = token, time.Now().Add(life)
	return token, forget, nil
}
