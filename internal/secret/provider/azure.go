package provider

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const azureVaultAPI = "7.4"

var azureName = regexp.MustCompile(`^[0-9A-Za-z-]+$`)

// azureVault reads [vault/]name[#version] from an Azure Key Vault.
type azureVault struct{ set *Set }

func (p *azureVault) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	path, version := cutKey(ref)
	vault, name, ok := strings.Cut(path, "/")
	if !ok {
		vault, name = firstText(o.text("vault"), p.set.first("AZURE_KEYVAULT_VAULT")), path
	}
	switch {
	case vault == "":
		return Value{}, missing("azure", "no vault", "write <vault>/<name>, or set AZURE_KEYVAULT_VAULT on the server")
	case !azureName.MatchString(vault) || !azureName.MatchString(name) || version != "" && !azureName.MatchString(version):
		return Value{}, badRef("azure", ref, "want [vault/]name[#version]")
	}
	tok, err := p.token(ctx, o)
	if err != nil {
		return Value{}, err
	}
	base := p.set.first("NOETL_AZURE_KV_ENDPOINT")
	if base == "" {
		base = "https://" + vault + "." + firstText(p.set.first("AZURE_KEYVAULT_DNS_SUFFIX"), "vault.azure.net")
	}
	at := strings.TrimRight(base, "/") + "/secrets/" + name
	if version != "" {
		at += "/" + version
	}
	req, err := http.NewRequest(http.MethodGet, at+"?api-version="+azureVaultAPI, nil)
	if err != nil {
		return Value{}, missing("azure", "an endpoint that is no URL", "check NOETL_AZURE_KV_ENDPOINT on the server")
	}
	req.Header.Set("Authorization", "Bearer "+tok)
	var answer struct {
		Value string `json:"value"`
	}
	if err := (call{provider: "azure", what: "secret " + quote(vault+"/"+name), client: p.set.own, request: req}).do(ctx, &answer); err != nil {
		return Value{}, err
	}
	return Value{Text: answer.Value}, nil
}

// token is that of the login, of the settings, of an application, or of the
// machine's managed identity.
func (p *azureVault) token(ctx context.Context, o Options) (string, error) {
	if given := o.text("token", "access_token"); given != "" {
		return given, nil
	}
	set, scope := p.set, "https://"+firstText(p.set.first("AZURE_KEYVAULT_DNS_SUFFIX"), "vault.azure.net")
	if app := set.azureApp(o); app.usable() {
		tok, err := set.tokens.get("azure|"+app.key()+"|"+scope, func() (token, error) { return set.azureGrant(ctx, "azure", app, scope+"/.default") })
		return tok.text, err
	}
	if len(o.Login) > 0 {
		return "", missing("azure", "a login without token, and without tenant_id, client_id and client_secret", "give the credential one or the other")
	}
	if tok := set.first("AZURE_KEYVAULT_TOKEN"); tok != "" {
		return tok, nil
	}
	tok, err := set.tokens.get("azure|imds|"+scope, func() (token, error) { return set.azureMachine(ctx, scope) })
	return tok.text, err
}

func (s *Set) azureMachine(ctx context.Context, resource string) (token, error) {
	base := firstText(s.first("NOETL_AZURE_IMDS_URL"), "http://169.254.169.254/metadata/identity/oauth2/token")
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {resource}}
	if id := s.first("AZURE_CLIENT_ID"); id != "" {
		query.Set("client_id", id)
	}
	req, err := http.NewRequest(http.MethodGet, base+"?"+query.Encode(), nil)
	if err != nil {
		return token{}, missing("azure", "a metadata address that is no URL", "check NOETL_AZURE_IMDS_URL on the server")
	}
	req.Header.Set("Metadata", "true")
	var answer azureAnswer
	if err := (call{provider: "azure", what: "a token of the machine", client: s.own, request: req}).do(ctx, &answer); err != nil {
		return token{}, err
	}
	return answer.token(s.s.Clock()), nil
}

// azureAnswer has its numbers as numbers or as text, depending on who answers.
type azureAnswer struct {
	Token     string      `json:"access_token"`
	ExpiresIn json.Number `json:"expires_in"`
}

func (a azureAnswer) token(now time.Time) token {
	n, _ := strconv.ParseInt(a.ExpiresIn.String(), 10, 64) // without a number it is not kept
	return token{a.Token, now.Add(time.Duration(n) * time.Second)}
}

// azureApp is an application that has an identity of its own.
type azureApp struct{ tenant, client, secret, assertion string }

func (a azureApp) usable() bool {
	return a.tenant != "" && a.client != "" && a.secret+a.assertion != ""
}
func (a azureApp) key() string { return a.tenant + "|" + a.client + "|" + digest(a.secret) }

func (s *Set) azureApp(o Options) azureApp {
	if len(o.Login) > 0 {
		return azureApp{tenant: o.text("tenant_id", "tenant"), client: o.text("client_id"), secret: o.text("client_secret")}
	}
	a := azureApp{tenant: s.first("AZURE_TENANT_ID"), client: s.first("AZURE_CLIENT_ID"), secret: s.first("AZURE_CLIENT_SECRET")}
	if file := s.first("AZURE_FEDERATED_TOKEN_FILE"); a.secret == "" && file != "" {
		a.assertion, _ = readFile("azure", file) // one that cannot be read is no identity
	}
	return a
}

// azureGrant asks for a token of an application.
func (s *Set) azureGrant(ctx context.Context, provider string, a azureApp, scope string) (token, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.client}, "scope": {scope}}
	if a.secret != "" {
		form.Set("client_secret", a.secret)
	} else {
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", a.assertion)
	}
	host := strings.TrimRight(firstText(s.first("AZURE_AUTHORITY_HOST"), "https://login.microsoftonline.com"), "/")
	req, err := http.NewRequest(http.MethodPost, host+"/"+url.PathEscape(a.tenant)+"/oauth2/v2.0/token", strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, missing(provider, "a login address that is no URL", "check AZURE_AUTHORITY_HOST on the server")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer azureAnswer
	err = call{provider: provider, what: "a token for " + quote(scope), client: s.own, time: slowTime, request: req, explain: loginRefused}.do(ctx, &answer)
	if err == nil && answer.Token == "" {
		err = event.Errorf(event.Internal, "the answer of %s for a token is not as expected", provider)
	}
	return answer.token(s.s.Clock()), err
}

// azureOAuth mints a token for [tenant:]scope.
type azureOAuth struct{ set *Set }

func (p *azureOAuth) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	app, scope := p.set.azureApp(o), ref
	if head, tail, ok := strings.Cut(ref, ":"); ok && !strings.HasPrefix(tail, "//") {
		app.tenant, scope = head, tail
	}
	switch {
	case scope == "":
		return Value{}, badRef("azure_oauth", ref, "want [tenant:]scope")
	case !app.usable():
		return Value{}, missing("azure_oauth", "no application", "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET on the server, or name a credential with auth")
	}
	tok, err := p.set.azureGrant(ctx, "azure_oauth", app, scope)
	if err != nil {
		return Value{}, err
	}
	return Value{Text: tok.text, ExpiresAt: tok.ends}, nil
}
