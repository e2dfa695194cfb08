package keychain

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/provider"
)

// get finds the value of an entry where it comes from.
func (k *Keychain) get(ctx context.Context, e Entry, at Place, before []Declaration) (s Secret, err error) {
	began := k.now()
	defer func() { k.o.Meter.Resolved(e.source(), statusOf(err), k.now().Sub(began)) }()
	switch e.Kind {
	case kindCredential:
		return k.stored(ctx, e)
	case kindStatic:
		return data(e, e.Data)
	case kindBearer:
		if e.Token == "" {
			return Secret{}, entryError(e, event.Invalid, "token is empty")
		}
		return data(e, map[string]any{"token": e.Token, "access_token": e.Token, "token_type": "Bearer"})
	}
	remark, err := e.residency().Check(k.o.Region)
	k.resides(strings.ToLower(e.Residency), remark, err)
	if err != nil {
		return Secret{}, of(e, err)
	}
	if remark != "" {
		k.o.Logger.Warn("secret is read outside its regions", "execution_id", at.Execution, "alias", e.Name, "region", k.o.Region, "remark", remark)
	}
	login, err := k.login(ctx, e.Auth, at, before)
	if err != nil {
		return Secret{}, of(e, err)
	}
	var v provider.Value
	switch e.Kind {
	case kindSecret:
		v, err = k.fetched(ctx, e, login)
	case kindIDToken:
		v, err = k.idToken(ctx, e, login, at, before)
	default:
		v, err = k.o.Providers.Ask(ctx, e.endpoint(login))
	}
	if err != nil {
		return Secret{}, of(e, err)
	}
	return Secret{Type: e.secretType(), Data: v.JSON(), ExpiresAt: v.ExpiresAt}, nil
}

func (k *Keychain) stored(ctx context.Context, e Entry) (Secret, error) {
	name := firstText(e.Credential, e.Name)
	c, err := k.o.Credentials.OpenCredential(ctx, name)
	if err != nil {
		return Secret{}, of(e, err)
	}
	return Secret{Type: firstText(e.Type, c.Type), Data: c.Data}, nil
}

func data(e Entry, v any) (Secret, error) {
	if v == nil {
		return Secret{}, entryError(e, event.Invalid, "it has no data")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return Secret{}, entryError(e, event.Invalid, "its data has no JSON form")
	}
	return Secret{Type: e.secretType(), Data: raw}, nil
}

// secretType is what tools take the value for.
func (e Entry) secretType() string {
	switch {
	case e.Type != "":
		return e.Type
	case e.Kind == kindBearer || e.Kind == kindOAuth || e.Kind == kindIDToken:
		return "bearer"
	}
	return "keychain"
}

// login is the data of the credential that an entry names under auth: a stored
// one, or an entry before it.
func (k *Keychain) login(ctx context.Context, alias string, at Place, before []Declaration) (map[string]any, error) {
	if alias == "" {
		return nil, nil
	}
	c, err := k.o.Credentials.OpenCredential(ctx, alias)
	raw := c.Data
	if err != nil && event.CodeOf(err) == event.NotFound && slices.ContainsFunc(before, func(d Declaration) bool { return d.Name == alias }) {
		var s Secret
		s, err = k.Resolve(ctx, before, alias, at)
		raw = s.Data
	}
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if json.Unmarshal(raw, &m) == nil && len(m) > 0 {
		return m, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return map[string]any{"token": text, "credentials_json": text}, nil
	}
	return nil, event.Errorf(event.Invalid, "auth: credential %q has no data to log in with", alias)
}

// fetched asks a provider for each secret of the map, or for the one that the
// entry refers to.
func (k *Keychain) fetched(ctx context.Context, e Entry, login map[string]any) (provider.Value, error) {
	o := provider.Options{Login: login, Region: e.Region}
	if len(e.Map) == 0 {
		ref := e.Ref
		if ref == "" && provider.Canonical(e.Provider) != "gcp_iam" {
			ref = e.Name
		}
		return k.o.Providers.Fetch(ctx, e.Provider, ref, o)
	}
	var whole provider.Value
	parts := make(map[string]json.RawMessage, len(e.Map))
	for _, name := range slices.Sorted(maps.Keys(e.Map)) {
		v, err := k.o.Providers.Fetch(ctx, e.Provider, e.Map[name], o)
		if err != nil {
			return provider.Value{}, err
		}
		parts[name] = v.JSON()
		if !v.ExpiresAt.IsZero() && (whole.ExpiresAt.IsZero() || v.ExpiresAt.Before(whole.ExpiresAt)) {
			whole.ExpiresAt = v.ExpiresAt
		}
	}
	raw, err := json.Marshal(parts)
	if err != nil {
		return provider.Value{}, event.Errorf(event.Internal, "put the secrets together: not JSON")
	}
	whole.Object = raw
	return whole, nil
}

func (k *Keychain) idToken(ctx context.Context, e Entry, login map[string]any, at Place, before []Declaration) (provider.Value, error) {
	switch {
	case e.Account != "":
		var err error
		if login, err = k.login(ctx, e.Account, at, before); err != nil {
			return provider.Value{}, err
		}
	case e.Ref != "":
		v, err := k.o.Providers.Fetch(ctx, e.Provider, e.Ref, provider.Options{Login: login, Region: e.Region})
		if err != nil {
			return provider.Value{}, err
		}
		login = map[string]any{"credentials_json": v.Text}
	}
	return k.o.Providers.GoogleIDToken(ctx, login, e.Audience)
}

// endpoint is what to send where. A login adds what the entry does not say.
func (e Entry) endpoint(login map[string]any) provider.Endpoint {
	form, _ := e.Data.(map[string]any)
	p := provider.Endpoint{
		URL: e.Endpoint, Method: e.Method, Headers: e.Headers, Form: form, JSON: e.JSON, Params: e.Params, Token: e.TokenField, TTL: e.TTLField,
	}
	if e.Data != nil && form == nil && p.JSON == nil {
		p.JSON = e.Data
	}
	if e.Kind == kindHTTP && p.Method == "" && e.Data == nil && e.JSON == nil {
		p.Method = "GET"
	}
	if login == nil {
		return p
	}
	p.URL = firstText(p.URL, fields(login).text("token_url", "token_uri", "endpoint"))
	if e.Kind == kindOAuth && p.JSON == nil {
		p.Form = maps.Clone(p.Form)
		for _, name := range []string{"client_id", "client_secret", "refresh_token", "username", "password", "audience", "scope"} {
			if v := fields(login).text(name); v != "" && p.Form[name] == nil {
				p.Form[name] = v
			}
		}
	} else if tok := fields(login).text("token", "access_token"); tok != "" {
		p.Headers = maps.Clone(p.Headers)
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		if p.Headers["Authorization"] == "" {
			p.Headers["Authorization"] = "Bearer " + tok
		}
	}
	return p
}

// of says whose value could not be got. The cause goes no further: it may
// quote what was read.
func of(e Entry, err error) error {
	c, coded := errors.AsType[*event.Error](err)
	if !coded {
		c = &event.Error{Code: event.Unavailable, Message: "the store of secrets did not answer", Remedy: "try again"}
	}
	return &event.Error{Code: c.Code, Message: "keychain entry " + quote(e.Name) + ": " + c.Message, Reason: c.Reason, Remedy: c.Remedy}
}

func entryError(e Entry, code event.Code, why string) error {
	return &event.Error{Code: code, Message: "keychain entry " + quote(e.Name) + ": " + why}
}

func quote(s string) string { return strconv.Quote(s) }
