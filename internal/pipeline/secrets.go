package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/redact"
	"github.com/noetl/noetl-go/internal/tool"
)

// Secrets finds credentials for a command whose claim this worker holds. Errors
// are coded; an uncoded one counts as a network failure.
type Secrets interface {
	ResolveSecrets(ctx context.Context, r event.SecretRequest) ([]event.Secret, error)
}

// patience is the attempt from which on credentials that cannot be had now fail
// the command; before, it is given back to be tried later.
const patience = 3

// vault is what one command knows of secrets: those it asked for, kept until it
// ends, and what must not be seen of them.
type vault struct {
	run    *run
	hidden redact.Secrets

	mu    sync.Mutex
	found map[string]event.Secret
	// away is why secrets cannot be had at the moment; the command is to be
	// tried again later.
	away *tool.Error
}

func newVault(s *run) *vault {
	v := &vault{run: s, found: map[string]event.Secret{}}
	for _, value := range s.opt.EnvSecrets {
		v.hidden.Add(value)
	}
	return v
}

// credentials finds credentials by alias, all or none.
func (v *vault) credentials(ctx context.Context, aliases ...string) (map[string]*tool.Credential, error) {
	secrets, err := v.resolve(ctx, aliases)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*tool.Credential, len(secrets))
	for alias, secret := range secrets {
		data, err := plainSecret(secret.Data)
		if err != nil {
			return nil, &tool.Error{Kind: tool.KindAuth, Code: "CREDENTIAL_UNREADABLE", Message: fmt.Sprintf("the data of credential %q cannot be read", alias)}
		}
		c := &tool.Credential{Alias: alias, Type: secret.Type}
		var isMap bool
		if c.Data, isMap = data.(map[string]any); !isMap {
			c.Data = map[string]any{"value": data, "token": data}
		}
		out[alias] = c
	}
	return out, nil
}

// resolve finds secrets, those that are not at hand in one call.
func (v *vault) resolve(ctx context.Context, aliases []string) (map[string]event.Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[string]event.Secret, len(aliases))
	var missing []string
	for _, alias := range aliases {
		if secret, ok := v.found[alias]; ok {
			out[alias] = secret
		} else if value, ok := v.run.opt.EnvSecrets[alias]; ok {
			data, _ := json.Marshal(value)
			out[alias] = event.Secret{Alias: alias, Type: "secret", Data: data}
		} else {
			missing = append(missing, alias)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	fetched, err := v.fetch(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, secret := range fetched {
		data, err := plainSecret(secret.Data)
		if err == nil {
			v.hide(data)
		}
		v.found[secret.Alias] = secret
		out[secret.Alias] = secret
	}
	for _, alias := range missing {
		if _, ok := out[alias]; !ok {
			return nil, unknownCredential(alias)
		}
	}
	return out, nil
}

// hide makes data known that must not be seen.
func (v *vault) hide(data any) {
	if text, ok := data.(string); ok {
		v.hidden.Add(text)
		return
	}
	v.hidden.AddData(data)
}

func (v *vault) fetch(ctx context.Context, aliases []string) (found []event.Secret, _ error) {
	s := v.run
	if s.opt.Secrets == nil {
		return nil, unknownCredential(aliases[0])
	}
	err := s.persist(ctx, func() (err error) {
		found, err = s.opt.Secrets.ResolveSecrets(ctx, event.SecretRequest{
			ExecutionID: s.cmd.ExecutionID, EventID: s.cmd.EventID, WorkerID: s.opt.WorkerID, Attempt: s.cmd.Meta.Attempt, Aliases: aliases,
		})
		return err
	})
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, tool.Ended(ctx, "the look-up of credentials", 0)
	case transient(err):
		failed := &tool.Error{
			Kind: tool.KindConnection, Code: "CREDENTIALS_AWAY", Retryable: true,
			Message: "credentials cannot be had at the moment: " + err.Error(),
		}
		if s.cmd.Meta.Attempt < patience {
			v.away = failed
		}
		return nil, failed
	}
	e := &tool.Error{Kind: tool.KindAuth, Code: "CREDENTIAL_REFUSED", Message: err.Error()}
	if event.CodeOf(err) == event.NotFound {
		e.Code = "CREDENTIAL_NOT_FOUND"
	}
	return nil, e
}

func unknownCredential(alias string) *tool.Error {
	return &tool.Error{
		Kind: tool.KindAuth, Code: "CREDENTIAL_NOT_FOUND",
		Message: fmt.Sprintf("there is no credential %q; register it, or declare it under the playbook's keychain", alias),
	}
}

// keychain makes the entries that templates read known to them.
func (s *run) keychain(ctx context.Context, t *task) *tool.Error {
	aliases := append(t.keychain[:len(t.keychain):len(t.keychain)], s.input.keychain...)
	if len(aliases) == 0 {
		return nil
	}
	for _, alias := range aliases {
		if alias == anyAlias {
			return &tool.Error{
				Kind: tool.KindAuth, Code: "KEYCHAIN_UNRESOLVED",
				Message: "the keychain cannot be read as a whole; name the entry, as in {{ keychain.name.field }}",
			}
		}
	}
	secrets, err := s.vault.resolve(ctx, aliases)
	if err != nil {
		e := asToolError(err)
		if e.Code == "CREDENTIAL_NOT_FOUND" {
			e = &tool.Error{Kind: e.Kind, Code: "KEYCHAIN_UNRESOLVED", Message: "keychain: " + e.Message}
		}
		return e
	}
	entries := jinja.NewDict(len(secrets))
	for _, alias := range aliases {
		v, err := jinja.FromJSON(secrets[alias].Data)
		if err != nil {
			return &tool.Error{Kind: tool.KindAuth, Code: "CREDENTIAL_UNREADABLE", Message: fmt.Sprintf("the data of credential %q cannot be read", alias)}
		}
		entries.Set(alias, v)
	}
	s.names.keychain = entries
	return nil
}

// tokenFunc is token(alias): the access token of a credential.
func (s *run) tokenFunc(ctx context.Context) jinja.Func {
	return func(args []any, _ *jinja.Dict) (any, error) {
		if len(args) == 0 {
			return nil, errors.New("token() takes the name of a credential")
		}
		alias, ok := args[0].(string)
		if !ok {
			return nil, errors.New("token() takes the name of a credential as text")
		}
		found, err := s.vault.credentials(ctx, alias)
		if err != nil {
			return nil, err
		}
		if token := found[alias].Text("access_token", "token", "bearer_token", "api_key", "value"); token != "" {
			return token, nil
		}
		return nil, fmt.Errorf("credential %q has no token", alias)
	}
}

// named replaces the names of the worker's own secrets by what they stand for,
// in the fields that may name one.
func (s *run) named(config map[string]any) {
	for _, field := range []string{"password", "token", "api_key"} {
		if name, ok := config[field].(string); ok {
			if value, known := s.opt.EnvSecrets[name]; known {
				config[field] = value
			}
		}
	}
}

func plainSecret(raw json.RawMessage) (any, error) {
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, err
	}
	return jinja.Plain(v), nil
}

// clean takes secrets out of what a tool returned, before anybody sees it.
func (v *vault) clean(res *tool.Result, err *tool.Error) {
	if res != nil {
		res.Data = v.hidden.JSON(res.Data)
		res.Stdout, res.Stderr = v.hidden.String(res.Stdout), v.hidden.String(res.Stderr)
		if res.HTTP != nil {
			for name, value := range res.HTTP.Headers {
				if redact.Header(name) {
					res.HTTP.Headers[name] = redact.Mark
				} else {
					res.HTTP.Headers[name] = v.hidden.String(value)
				}
			}
		}
	}
	if err != nil {
		err.Message = v.hidden.String(err.Message)
		err.Details = v.cleanMap(err.Details)
	}
}

func (v *vault) cleanMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	raw, err := tool.Encode(m)
	if err != nil {
		return nil
	}
	clean := v.hidden.JSON(raw)
	if string(clean) == string(raw) {
		return m
	}
	x, err := plainSecret(clean)
	if err != nil {
		return nil
	}
	out, _ := x.(map[string]any)
	return out
}
