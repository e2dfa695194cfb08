package tool

import (
	"context"
	"fmt"
)

// Credential is a resolved `auth:`. Its data is for the tool alone and must not
// appear in results, errors or logs.
type Credential struct {
	Alias string // "" when the author wrote the data into the playbook
	Type  string // lower case: postgres, bearer, api_key, basic, nats, …; "" when unknown
	Data  map[string]any
}

// Text is the first of names that the credential has, as text.
func (c *Credential) Text(names ...string) string {
	if c == nil {
		return ""
	}
	for _, name := range names {
		if v := c.Data[name]; v != nil {
			if text, err := Text(v); err == nil && text != "" {
				return text
			}
		}
	}
	return ""
}

// Login finds the credential that a map of fields names under auth or
// credential: an alias, an object with an alias and a type, or the data itself.
// It is nil when nothing is named.
func (c *Call) Login(ctx context.Context, f Fields) (*Credential, error) {
	name, v, ok := f.First("auth", "credential")
	if !ok {
		return nil, nil
	}
	return c.login(ctx, name, v)
}

// Logins finds credentials by name: `auth` is a map of names to what Login
// takes, or what Login takes itself, which then is under "".
func (c *Call) Logins(ctx context.Context, f Fields) (map[string]*Credential, error) {
	name, v, ok := f.First("auth", "credential")
	if !ok {
		return nil, nil
	}
	several, isMap := v.(map[string]any)
	if !isMap || isLogin(several) {
		one, err := c.login(ctx, name, v)
		if one == nil || err != nil {
			return nil, err
		}
		return map[string]*Credential{"": one}, nil
	}
	out := make(map[string]*Credential, len(several))
	for _, key := range SortedKeys(several) {
		one, err := c.login(ctx, name+"."+key, several[key])
		if err != nil {
			return nil, err
		}
		out[key] = one
	}
	return out, nil
}

// isLogin tells the description of one credential from a map of several.
func isLogin(m map[string]any) bool {
	for _, word := range []string{"type", "source", "key", "credential", "alias", "token", "username", "password", "secret_name", "service"} {
		switch m[word].(type) {
		case nil, map[string]any:
		default:
			return true
		}
	}
	return false
}

func (c *Call) login(ctx context.Context, field string, v any) (*Credential, error) {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil, ConfigErrorf("%s is empty; name a registered credential", field)
		}
		return c.credential(ctx, v)
	case map[string]any:
		return c.describedLogin(ctx, field, v)
	}
	return nil, ConfigErrorf("%s must name a credential or describe one, not %s", field, typeName(v))
}

// describedLogin reads {type, credential|key|alias, …} and {type, token, …}.
func (c *Call) describedLogin(ctx context.Context, field string, m map[string]any) (*Credential, error) {
	f := Fields(m)
	kind, err := f.String("type", "service")
	if err != nil {
		return nil, err
	}
	alias, err := f.String("credential", "key", "alias", "secret_name")
	if err != nil {
		return nil, err
	}
	source, err := f.String("source")
	if err != nil {
		return nil, err
	}
	if alias == "" || source == "inline" {
		data := make(map[string]any, len(m))
		for k, x := range m {
			if k != "type" && k != "source" && k != "service" {
				data[k] = x
				if text, ok := x.(string); ok && isProof[k] {
					c.Hidden(text)
				}
			}
		}
		return &Credential{Type: kind, Data: data}, nil
	}
	found, err := c.credential(ctx, alias)
	if err != nil {
		return nil, err
	}
	out := &Credential{Alias: alias, Type: found.Type, Data: make(map[string]any, len(found.Data)+2)}
	if kind != "" {
		out.Type = kind
	}
	for k, x := range found.Data {
		out.Data[k] = x
	}
	for _, k := range []string{"header", "username", "scopes", "scope"} { // how to use it is the author's to say
		if x := m[k]; x != nil {
			out.Data[k] = x
		}
	}
	return out, nil
}

// isProof are the names under which authors write a secret into a playbook.
var isProof = map[string]bool{
	"token": true, "access_token": true, "password": true, "api_key": true, "secret": true, "client_secret": true, "private_key": true,
	"secret_access_key": true, "secret_key": true, "db_password": true, "value": true,
}

func (c *Call) credential(ctx context.Context, alias string) (*Credential, error) {
	if c.Credentials == nil {
		return nil, &Error{Kind: KindAuth, Code: "NO_CREDENTIALS", Message: fmt.Sprintf("credential %q cannot be had: this worker has no access to credentials", alias)}
	}
	found, err := c.Credentials(ctx, alias)
	if err != nil {
		return nil, err
	}
	return found[alias], nil
}

// Names under which credentials of a kind keep a field, by the field's name.
var (
	PostgresNames = map[string][]string{
		"host": {"db_host", "host"}, "port": {"db_port", "port"}, "user": {"db_user", "user", "username"},
		"password": {"db_password", "password"}, "database": {"db_name", "database", "dbname"},
		"sslmode": {"sslmode", "ssl_mode"}, "schema": {"db_schema", "schema"},
		"connection": {"connection", "connection_string", "dsn", "url"},
	}
	NATSNames = map[string][]string{
		"url": {"nats_url", "url"}, "user": {"nats_user", "nats_username", "user", "username"},
		"password": {"nats_password", "password"}, "token": {"nats_token", "token"},
	}
	SnowflakeNames = map[string][]string{
		"account": {"sf_account", "account"}, "user": {"sf_user", "user"}, "password": {"sf_password", "password"},
		"private_key": {"sf_private_key", "private_key"}, "public_key": {"sf_public_key", "public_key"},
		"private_key_passphrase": {"sf_private_key_passphrase", "private_key_passphrase"}, "warehouse": {"sf_warehouse", "warehouse"},
		"database": {"sf_database", "database"}, "schema": {"sf_schema", "schema"}, "role": {"sf_role", "role"},
	}
)

// With is f with the fields that a credential adds; what the author wrote wins.
func (f Fields) With(c *Credential, names map[string][]string) Fields {
	if c == nil {
		return f
	}
	out := make(Fields, len(f)+len(names))
	for k, v := range f {
		out[k] = v
	}
	for field, theirs := range names {
		if out[field] != nil {
			continue
		}
		for _, name := range theirs {
			if v := c.Data[name]; v != nil && v != "" {
				out[field] = v
				break
			}
		}
	}
	return out
}
