package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/store"
)

// family is an execution and those above it, as far as one request needs to
// know them.
type family struct {
	p       *Plane
	members []*member // from the execution upwards
	whole   bool      // the top is known
}

// member is one execution of a family.
type member struct {
	row     *store.Execution
	entries []keychain.Declaration // nil until asked for
	read    bool
}

// resolve finds a secret by alias: a stored credential, then the keychain of
// the execution's playbook, then what those above share with it.
func (f *family) resolve(ctx context.Context, row *store.Execution, alias string) (event.Secret, error) {
	found, err := f.p.o.Secrets.Credentials.OpenCredential(ctx, alias)
	if err == nil {
		return event.Secret{Alias: alias, Type: found.Type, Data: found.Data}, nil
	}
	if event.CodeOf(err) != event.NotFound {
		return event.Secret{}, secretsAway(err)
	}
	if len(f.members) == 0 {
		f.members = []*member{{row: row}}
	}
	for i := 0; i < len(f.members) || f.climb(ctx, &err); i++ {
		s, known, err := f.declared(ctx, i, alias)
		if known || err != nil {
			return s, err
		}
	}
	if event.CodeOf(err) != event.NotFound {
		return event.Secret{}, err
	}
	return event.Secret{}, &event.Error{
		Code: event.NotFound, Message: "there is no credential " + quoted(alias) + ", and no keychain entry of that name", Reason: "credential_not_found",
		Remedy: "register it, or declare it under the playbook's keychain",
	}
}

// secretsAway makes Unavailable of what has no code: the store is away.
func secretsAway(err error) error {
	if _, coded := errors.AsType[*event.Error](err); coded {
		return err
	}
	return &event.Error{Code: event.Unavailable, Message: "the store of credentials did not answer", Remedy: "try again", Err: err}
}

// climb adds the execution above the last one. It stops at the top, and with an
// error when the one above cannot be read.
func (f *family) climb(ctx context.Context, failed *error) bool {
	parent := f.members[len(f.members)-1].row.ParentExecutionID
	if f.whole || parent == 0 || len(f.members) == maxDepth {
		f.whole = true
		return false
	}
	row, err := f.p.store.Execution(ctx, parent)
	switch {
	case errors.Is(err, store.ErrNotFound): // a parent may live elsewhere
		f.whole = true
		return false
	case err != nil:
		*failed = storeError("read execution", err)
		return false
	}
	f.members = append(f.members, &member{row: &row})
	return true
}

// declared resolves an alias in the keychain of a member. What those above
// declare is seen only when it is shared.
func (f *family) declared(ctx context.Context, i int, alias string) (event.Secret, bool, error) {
	m := f.members[i]
	if err := f.read(ctx, m); err != nil {
		return event.Secret{}, false, err
	}
	for _, d := range m.entries {
		if d.Name != alias {
			continue
		}
		scope, err := keychain.ScopeOf(d.Scope)
		if err != nil {
			return event.Secret{}, true, err
		}
		if i > 0 && scope != keychain.Shared {
			return event.Secret{}, false, nil
		}
		at, err := f.place(ctx, m, scope)
		if err != nil {
			return event.Secret{}, true, err
		}
		s, err := f.p.o.Secrets.Keychain.Resolve(ctx, m.entries, alias, at)
		if err != nil {
			return event.Secret{}, true, secretsAway(err)
		}
		return event.Secret{Alias: alias, Type: s.Type, Data: s.Data, ExpiresAt: timeOrNil(s.ExpiresAt)}, true, nil
	}
	return event.Secret{}, false, nil
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// place says whose values these are, and notes executions that must be cleared
// up after.
func (f *family) place(ctx context.Context, m *member, scope string) (keychain.Place, error) {
	at := keychain.Place{Catalog: m.row.CatalogID, Execution: m.row.ExecutionID, Parent: m.row.ParentExecutionID, Root: m.row.ExecutionID}
	if scope != keychain.Global { // what an entry needs may be shared although it is not
		var failed error
		for f.climb(ctx, &failed) {
		}
		if failed != nil {
			return at, failed
		}
		at.Root = f.members[len(f.members)-1].row.ExecutionID
		f.p.keyed.Put(at.Root, struct{}{})
		f.p.keyed.Put(at.Execution, struct{}{})
	}
	return at, nil
}

// read finds the keychain of a member's playbook.
func (f *family) read(ctx context.Context, m *member) error {
	if m.read {
		return nil
	}
	what, err := f.p.runnable(ctx, EntryRef{CatalogID: m.row.CatalogID})
	if err != nil {
		if event.CodeOf(err) == event.Unavailable {
			return err
		}
		m.read = true // one that cannot be compiled any more declares nothing
		return nil
	}
	if list := what.program.Playbook().Keychain; len(list) > 0 {
		workload, err := f.p.Workload(ctx, m.row.ExecutionID)
		if err != nil {
			return err
		}
		if m.entries, err = declarations(list, workload, m.row); err != nil {
			return err
		}
	}
	m.read = true
	return nil
}

// declarations makes a keychain of what a playbook says. Its text is template,
// and nothing else is: what templates give is used as it is.
func declarations(list []any, workload json.RawMessage, row *store.Execution) ([]keychain.Declaration, error) {
	names := jinja.NewDict(8)
	var given jinja.Dict
	if len(workload) > 0 {
		if err := given.UnmarshalJSON(workload); err != nil {
			return nil, event.Errorf(event.Internal, "read the workload of execution %s: %w", row.ExecutionID, err)
		}
	}
	for k, v := range given.All() {
		names.Set(k, v)
	}
	names.Set("workload", &given)
	names.Set("execution_id", row.ExecutionID.String())
	out := make([]keychain.Declaration, 0, len(list))
	for _, item := range list {
		tree, errs := jinja.CompileTree(item, jinja.TreeOptions{})
		if len(errs) > 0 {
			return nil, event.Errorf(event.Internal, "compile the keychain: %v", errs[0].Err)
		}
		raw, _ := jinja.Plain(item).(map[string]any)
		d := keychain.Declaration{Needs: needed(tree), Render: renderer(tree, names)}
		d.Name, _ = raw["name"].(string)
		d.Scope, _ = raw["scope"].(string)
		out = append(out, d)
	}
	return out, nil
}

// needed lists the entries that templates read.
func needed(tree *jinja.Tree) []string {
	var list []string
	for _, path := range tree.Free() {
		if len(path) > 1 && path[0] == "keychain" {
			list = append(list, path[1])
		}
	}
	return compact(list)
}

func compact(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

func renderer(tree *jinja.Tree, names *jinja.Dict) func(map[string]json.RawMessage) (map[string]any, error) {
	return func(entries map[string]json.RawMessage) (map[string]any, error) {
		known := jinja.NewDict(len(entries))
		for name, raw := range entries {
			known.Set(name, raw)
		}
		own := jinja.NewDict(1)
		own.Set("keychain", known)
		v, err := tree.Eval(jinja.Layer(own, names))
		if err != nil {
			return nil, unrendered(err)
		}
		m, _ := jinja.Plain(v).(map[string]any)
		return m, nil
	}
}

// unrendered says where a template failed, but not with what: the message of an
// evaluation may quote values.
func unrendered(err error) error {
	e := &event.Error{Code: event.Invalid, Message: "a template of the keychain cannot be evaluated", Reason: "template_error"}
	if at, ok := errors.AsType[*jinja.EvalError](err); ok && len(at.Path) > 0 {
		e.Message = "the template of " + quoted(at.Path[len(at.Path)-1]) + " in the keychain cannot be evaluated"
	}
	return e
}
