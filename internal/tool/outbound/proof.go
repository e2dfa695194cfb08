package outbound

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
)

// Proof is what a request shows to prove who asks.
type Proof struct {
	Header http.Header
	Query  url.Values
	stale  func()
}

// Headers are the names of the headers that carry the proof.
func (p *Proof) Headers() []string {
	if p == nil {
		return nil
	}
	return tool.SortedKeys(p.Header)
}

// Params are the names of the query parameters that carry the proof.
func (p *Proof) Params() []string {
	if p == nil {
		return nil
	}
	return tool.SortedKeys(p.Query)
}

// Apply adds the proof to the headers and the address of a request. A header
// that is already there wins: its author wrote it by hand.
func (p *Proof) Apply(h http.Header, u *url.URL) {
	if p == nil {
		return
	}
	for name, values := range p.Header {
		if len(h[name]) == 0 {
			h[name] = values
		}
	}
	if len(p.Query) > 0 {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += p.Query.Encode()
	}
}

// Rejected is called when the service does not accept the proof: a token that
// was kept is forgotten, so that the next try gets a new one.
func (p *Proof) Rejected() {
	if p != nil && p.stale != nil {
		p.stale()
	}
}

// Prover turns credentials into proofs. It keeps tokens until they expire.
type Prover struct {
	pool   *egress.Pool
	tokens tokens
}

// NewProver makes one; tokens are fetched over the pool.
func NewProver(pool *egress.Pool) *Prover { return &Prover{pool: pool} }

// Prove reads the credential; nil for none.
func (p *Prover) Prove(ctx context.Context, call *tool.Call, c *tool.Credential) (*Proof, error) {
	if c == nil {
		return nil, nil
	}
	proof := &Proof{Header: http.Header{}, Query: url.Values{}}
	switch kind := kindOf(c); kind {
	case "none":
		return nil, nil
	case "bearer":
		return proof, proof.bearer(call, c)
	case "api_key":
		return proof, proof.apiKey(call, c)
	case "basic":
		return proof, proof.basic(call, c)
	case "header":
		return proof, proof.header(call, c)
	case "oauth2", "gcp", "gcp_adc":
		source, err := tokenSource(kind, c)
		if err != nil {
			return nil, err
		}
		token, forget, err := p.tokens.get(ctx, source, p.pool)
		if err != nil {
			return nil, err
		}
		call.Hidden(token)
		proof.Header.Set("Authorization", "Bearer "+token)
		proof.stale = forget
		return proof, nil
	default:
		return nil, tool.ConfigErrorf("auth type %q is not available for requests; use bearer, basic, api_key, header, oauth2, gcp or gcp_adc", kind)
	}
}

// kindOf is what to do with a credential: by its type, or, where that does not
// say, by what it holds.
func kindOf(c *tool.Credential) string {
	kind := strings.ToLower(c.Type)
	switch kind {
	case "bearer", "bearer_token", "token":
		return "bearer"
	case "api_key", "apikey", "api-key":
		return "api_key"
	case "basic", "http_basic", "basic_auth":
		return "basic"
	case "header", "headers", "http_header", "custom_header":
		return "header"
	case "oauth2", "oauth2_client_credentials", "client_credentials":
		if c.Text("token_url", "token_endpoint", "token_uri") == "" && c.Text("access_token", "token") != "" {
			return "bearer"
		}
		return "oauth2"
	case "gcp", "gcp_service_account", "google_service_account", "service_account", "gcp_oauth", "google_oauth":
		return "gcp"
	case "", "keychain", "http", "secret", "generic":
		return guess(c)
	}
	return kind
}

func guess(c *tool.Credential) string {
	switch {
	case c.Text("token_url", "token_endpoint") != "" && c.Text("client_id") != "":
		return "oauth2"
	case c.Text("private_key") != "" && c.Text("client_email") != "":
		return "gcp"
	case c.Text("access_token", "token", "bearer_token") != "":
		return "bearer"
	case c.Text("api_key") != "":
		return "api_key"
	case c.Text("username", "user") != "" && c.Text("password") != "":
		return "basic"
	case c.Text("header") != "" && c.Text("value") != "":
		return "header"
	case len(c.Data) == 0:
		return "none"
	}
	return "unknown"
}

// missing complains about a credential without showing anything of it.
func missing(c *tool.Credential, what string) error {
	if c.Alias != "" {
		return tool.ConfigErrorf("auth has no %s: credential %q of type %s must hold it", what, c.Alias, c.Type)
	}
	return tool.ConfigErrorf("auth has no %s", what)
}

func (p *Proof) bearer(call *tool.Call, c *tool.Credential) error {
	token := c.Text("token", "access_token", "bearer_token", "value")
	if token == "" {
		return missing(c, "token")
	}
	call.Hidden(token)
	p.Header.Set("Authorization", "Bearer "+token)
	return nil
}

func (p *Proof) apiKey(call *tool.Call, c *tool.Credential) error {
	key := c.Text("api_key", "key", "token", "value")
	if key == "" {
		return missing(c, "key")
	}
	call.Hidden(key)
	param := c.Text("query_param", "param")
	if strings.EqualFold(c.Text("in", "location"), "query") && param == "" {
		if param = c.Text("name"); param == "" {
			param = "api_key"
		}
	}
	if param != "" {
		p.Query.Set(param, key)
		return nil
	}
	name := c.Text("header", "header_name")
	if name == "" {
		name = "X-API-Key"
	}
	p.Header.Set(name, c.Text("prefix")+key)
	return nil
}

func (p *Proof) basic(call *tool.Call, c *tool.Credential) error {
	user, password := c.Text("username", "user"), c.Text("password", "db_password")
	if user == "" && password == "" {
		return missing(c, "username and password")
	}
	pair := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	call.Hidden(pair)
	if password != "" {
		call.Hidden(password)
	}
	p.Header.Set("Authorization", "Basic "+pair)
	return nil
}

// header takes {header, value} or {headers: {name: value}}.
func (p *Proof) header(call *tool.Call, c *tool.Credential) error {
	if name, value := c.Text("header", "header_name", "name"), c.Text("value", "token", "key"); name != "" && value != "" {
		call.Hidden(value)
		p.Header.Set(name, value)
		return nil
	}
	several, err := tool.Fields(c.Data).Texts("headers")
	if err != nil {
		return err
	}
	if len(several) == 0 {
		return missing(c, "header and value")
	}
	for name, value := range several {
		call.Hidden(value)
		p.Header.Set(name, value)
	}
	return nil
}
