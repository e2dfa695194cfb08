package keychain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/provider"
)

// The scopes: how widely a resolved value is shared.
const (
	Local  = "local"  // one execution
	Shared = "shared" // an execution and all that it started
	Global = "global" // all executions of a playbook
)

// ScopeOf reads the scope of a declaration, in which older words are known too.
// Nothing said means local.
func ScopeOf(word string) (string, error) {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "", Local, "execution":
		return Local, nil
	case Shared, "workflow":
		return Shared, nil
	case Global, "catalog":
		return Global, nil
	}
	return "", event.Errorf(event.Invalid, "scope: want local, shared or global, got %q", word)
}

// Entry is a rendered declaration: everything that is needed to get the value,
// also much later and without its execution.
type Entry struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"` // one of the kinds below
	Type       string            `json:"type,omitempty"`
	Scope      string            `json:"scope"`
	Credential string            `json:"credential,omitempty"`
	Provider   string            `json:"provider,omitempty"`
	Auth       string            `json:"auth,omitempty"`
	Map        map[string]string `json:"map,omitempty"`
	Ref        string            `json:"ref,omitempty"`
	Data       any               `json:"data,omitempty"`
	JSON       any               `json:"json,omitempty"`
	Token      string            `json:"token,omitempty"`
	Audience   string            `json:"audience,omitempty"`
	Account    string            `json:"account,omitempty"` // the credential of the service account
	Endpoint   string            `json:"endpoint,omitempty"`
	Method     string            `json:"method,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Params     map[string]any    `json:"params,omitempty"`
	TokenField string            `json:"token_field,omitempty"`
	TTLField   string            `json:"ttl_field,omitempty"`
	Region     string            `json:"region,omitempty"`
	Residency  string            `json:"residency,omitempty"`
	Allowed    []string          `json:"allowed_regions,omitempty"`
	TTL        time.Duration     `json:"ttl,omitempty"` // 0 = by kind
	AutoRenew  bool              `json:"auto_renew,omitempty"`
	Renewal    *Entry            `json:"renewal,omitempty"` // how to renew it, where that differs
}

// The kinds of entries.
const (
	kindSecret     = "secret_manager"
	kindCredential = "credential"
	kindOAuth      = "oauth2"
	kindIDToken    = "google_id_token"
	kindBearer     = "bearer"
	kindStatic     = "static"
	kindHTTP       = "http"
)

var kinds = map[string]string{
	"secret_manager": kindSecret, "secrets": kindSecret, "secret": kindSecret, "credential": kindCredential, "credential_ref": kindCredential,
	"oauth2": kindOAuth, "oauth2_client_credentials": kindOAuth, "google_id_token": kindIDToken, "bearer": kindBearer,
	"static": kindStatic, "http": kindHTTP,
}

// maxTTL bounds how long a value is kept, whatever its entry says.
const maxTTL = 30 * 24 * time.Hour

// ParseEntry reads a rendered declaration. The error is Invalid and names the
// entry and the field.
func ParseEntry(raw map[string]any) (Entry, error) {
	f := fields(raw)
	e := Entry{
		Name: f.text("name"), Type: f.text("type", "credential_type"), Credential: f.text("credential", "credential_ref"),
		Provider: f.text("provider"), Auth: f.text("auth"), Map: f.texts("map"), Ref: f.text("secret", "path", "secret_path", "secret_name", "ref"),
		Token: f.text("token"), Audience: f.text("target_audience", "audience"), Account: f.text("service_account_credential"),
		Endpoint: f.text("endpoint", "token_url", "url"), Method: f.text("method"), Headers: f.texts("headers"),
		TokenField: f.text("token_field"), TTLField: f.text("ttl_field"), Region: f.text("region"), Residency: f.text("residency"),
		Allowed: f.list("allowed_regions"), Data: raw["data"], JSON: raw["json"],
	}
	e.Params, _ = raw["params"].(map[string]any)
	e.AutoRenew, _ = raw["auto_renew"].(bool)
	fail := func(err error) (Entry, error) {
		return Entry{}, event.Errorf(event.Invalid, "keychain entry %q: %w", e.Name, err)
	}
	var err error
	if e.Scope, err = ScopeOf(f.text("scope", "scope_type")); err != nil {
		return fail(err)
	}
	if e.TTL, err = f.span("ttl_seconds", "ttl", "expires_in"); err != nil {
		return fail(err)
	}
	e.Kind = e.kind(f.text("kind"))
	if e.Kind == kindIDToken {
		if secret := f.text("service_account_secret"); secret != "" {
			e.Ref = secret
			e.Provider = firstText(e.Provider, "gcp")
		}
	}
	if e.Kind == kindStatic && e.Data == nil {
		e.Data = first(raw, "value", "values")
	}
	if e.Kind == kindOAuth {
		e.oauth(f)
	}
	if renewal, ok := raw["renew_config"].(map[string]any); ok {
		r, err := ParseRenewal(e.Name, e.Scope, renewal)
		if err != nil {
			return fail(err)
		}
		e.Renewal = &r
	}
	return e, nil
}

// ParseRenewal reads how a value is renewed: an endpoint, as oauth2 has it.
func ParseRenewal(name, scope string, raw map[string]any) (Entry, error) {
	all := map[string]any{"name": name, "kind": kindOAuth, "scope": scope, "auto_renew": true}
	for k, v := range raw {
		if k != "name" && k != "scope" && k != "renew_config" {
			all[k] = v
		}
	}
	if f := fields(all); f.text("endpoint", "token_url", "url") == "" {
		return Entry{}, event.Errorf(event.Invalid, "renew_config: the endpoint is missing")
	}
	return ParseEntry(all)
}

// kind is what an entry is, by the word its author used or by what it has.
func (e *Entry) kind(word string) string {
	if k, ok := kinds[strings.ToLower(word)]; ok && (k != kindSecret || e.Provider != "" || e.Credential == "") {
		return k
	}
	switch {
	case e.Provider != "":
		return kindSecret
	case e.Credential != "":
		return kindCredential
	case e.Endpoint != "":
		return kindOAuth
	case e.Token != "":
		return kindBearer
	case e.Data != nil:
		return kindStatic
	}
	e.Credential = e.Ref // older entries say ref
	return kindCredential
}

// oauth completes the form of a token request by the names that stand beside it.
func (e *Entry) oauth(f fields) {
	if e.JSON != nil {
		return
	}
	form, _ := e.Data.(map[string]any)
	whole := map[string]any{}
	for k, v := range form {
		whole[k] = v
	}
	for _, name := range []string{"grant_type", "client_id", "client_secret", "username", "password", "refresh_token", "audience"} {
		if v := f.text(name); v != "" && whole[name] == nil {
			whole[name] = v
		}
	}
	if scopes := firstText(f.text("scopes", "oauth_scope"), strings.Join(f.list("scopes"), " ")); scopes != "" && whole["scope"] == nil {
		whole["scope"] = scopes
	}
	if len(form) == 0 && whole["grant_type"] == nil {
		whole["grant_type"] = "client_credentials"
	}
	e.Data = whole
	e.TokenField = firstText(e.TokenField, "access_token")
}

// renewal is the entry that the renewer works from.
func (e Entry) renewal() Entry {
	if e.Renewal == nil {
		return e
	}
	r := *e.Renewal
	r.TTL, r.Type, r.Region, r.Residency, r.Allowed = e.TTL, e.Type, e.Region, e.Residency, e.Allowed
	return r
}

func (e Entry) residency() provider.Residency {
	return provider.Residency{Mode: e.Residency, Region: e.Region, Allowed: e.Allowed}
}

// minted tells that the value is made by somebody else at some cost, so that it
// is worth keeping. Others are at hand whenever they are asked for.
func (e Entry) minted() bool {
	return e.Kind == kindSecret || e.Kind == kindOAuth || e.Kind == kindIDToken || e.Kind == kindHTTP
}

// fields reads a rendered declaration.
type fields map[string]any

func (f fields) text(names ...string) string {
	for _, name := range names {
		switch v := f[name].(type) {
		case string:
			if v != "" {
				return v
			}
		case int64, float64, json.Number:
			return fmt.Sprint(v)
		}
	}
	return ""
}

func (f fields) texts(name string) map[string]string {
	m, _ := f[name].(map[string]any)
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v != nil {
			out[k] = fmt.Sprint(v)
		}
	}
	return out
}

func (f fields) list(name string) []string {
	items, _ := f[name].([]any)
	var out []string
	for _, v := range items {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// span reads a time: seconds, or text such as 10m.
func (f fields) span(names ...string) (time.Duration, error) {
	for _, name := range names {
		v := f[name]
		if v == nil {
			continue
		}
		text := f.text(name)
		d, err := time.ParseDuration(text)
		if err != nil {
			d, err = time.ParseDuration(text + "s")
		}
		if err != nil || d <= 0 || d > maxTTL {
			return 0, event.Errorf(event.Invalid, "%s: want a time above zero and up to 30 days", name)
		}
		return d, nil
	}
	return 0, nil
}

func first(m map[string]any, names ...string) any {
	for _, name := range names {
		if m[name] != nil {
			return m[name]
		}
	}
	return nil
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
