package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/secret/sealed"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const canary = "canary-77aa"

const keyedPlaybook = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: keyed, path: test/keyed}
workload: {vault_path: APP, trick: "{{ '{{' }} keychain.static.k {{ '}}' }}"}
keychain:
  - {name: app, kind: secret_manager, provider: env, map: {key: "{{ workload.vault_path }}", again: "{{ vault_path }}"}}
  - {name: joined, kind: bearer, token: "x-{{ keychain.app.key }}"}
  - {name: tree, kind: secret_manager, provider: env, scope: shared, path: APP}
  - {name: static, kind: static, data: {k: "{{ workload.trick }}"}}
  - {name: wrong, kind: static, data: {k: "{{ workload.vault_path / 2 }}"}}
  - {name: strict, provider: env, path: APP, region: us, residency: strict}
workflow:
  - {step: start, tool: {kind: noop}}
`

const innerPlaybook = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: inner, path: test/inner}
keychain:
  - {name: own, kind: static, data: {k: v}}
workflow:
  - {step: start, tool: {kind: noop}}
`

// vaulted gives a plane a wallet with the credential pg, and a keychain.
func (r *rig) vaulted(env map[string]string) (func(*control.Options), *secret.Service) {
	r.t.Helper()
	keys, err := envelope.Ephemeral()
	if err != nil {
		r.t.Fatal(err)
	}
	wallet := secret.New(secret.Options{Store: r.store, Keys: keys, IDs: r.ids.Next, AuditRequired: true})
	_, _, err = wallet.Put(r.t.Context(), secret.Registration{Name: "pg", Type: "secret", Data: json.RawMessage(`{"password":"` + canary + `"}`)}, secret.Use{Actor: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	providers := provider.NewSet(provider.Settings{Getenv: func(name string) string { return env[name] }})
	opened := keychain.Registered{Store: r.store, Keys: keys}
	chain, err := keychain.New(keychain.Options{Rows: r.store, Cipher: keys, Credentials: opened, Providers: providers, Region: "eu"})
	if err != nil {
		r.t.Fatal(err)
	}
	return func(o *control.Options) {
		o.Secrets = &control.SecretOptions{Credentials: opened, Keychain: chain, Audit: wallet}
	}, wallet
}

// audited are the records of an alias, newest first.
func (r *rig) audited(alias string) []string {
	r.t.Helper()
	lines, err := r.store.ListAudit(context.Background(), store.AuditFilter{Credential: alias})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, l := range lines {
		if strings.Contains(fmt.Sprintf("%+v", l), canary) {
			r.t.Errorf("the record holds a value: %+v", l)
		}
		if l.Operation == secret.OpResolve || l.Operation == secret.OpSealed {
			out = append(out, fmt.Sprintf("%s %s %s", l.Operation, l.WorkerID, l.Outcome))
		}
	}
	return out
}

func wantSecret(t *testing.T, p *running, q event.SecretRequest, alias, kind, data string) {
	t.Helper()
	q.Aliases = []string{alias}
	got, err := p.ResolveSecrets(t.Context(), q)
	if err != nil || len(got) != 1 || got[0].Type != kind || string(got[0].Data) != data || got[0].Alias != alias {
		t.Errorf("%s: %s, %v; want %s %s", alias, fmt.Sprint(got), err, kind, data)
	}
}

func secretsOf(cmd *event.Command, worker string, aliases ...string) event.SecretRequest {
	return event.SecretRequest{ExecutionID: cmd.ExecutionID, EventID: cmd.EventID, WorkerID: worker, Attempt: cmd.Meta.Attempt, Aliases: aliases}
}

func TestSecretsGoToTheHolderOfALiveClaimAndToNobodyElse(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		wallet, _ := r.vaulted(nil)
		p := r.plane(nil, quiet, wallet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		unclaimed := event.SecretRequest{ExecutionID: id, EventID: eventID, WorkerID: "w1", Aliases: []string{"pg"}}
		_, err := p.ResolveSecrets(t.Context(), unclaimed)
		wantCode(t, err, event.Forbidden, "stale_claim")

		first := secretsOf(claimFor(t, p, eventID, "w1"), "w1", "pg")
		wantSecret(t, p, first, "pg", "secret", `{"password":"`+canary+`"}`)
		if got := r.audited("pg"); len(got) != 2 || got[0] != "resolve_keychain w1 ok" || got[1] != "resolve_keychain w1 denied" {
			t.Errorf("records %q", got)
		}
		for name, change := range map[string]func(q *event.SecretRequest){
			"another worker":    func(q *event.SecretRequest) { q.WorkerID = "w2" },
			"another attempt":   func(q *event.SecretRequest) { q.Attempt++ },
			"another execution": func(q *event.SecretRequest) { q.ExecutionID++ },
			"another command":   func(q *event.SecretRequest) { q.EventID++ },
		} {
			q, before := first, len(r.audited("pg"))
			change(&q)
			got, err := p.ResolveSecrets(t.Context(), q)
			if event.CodeOf(err) != event.Forbidden || got != nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if after := r.audited("pg"); len(after) != before+1 || !strings.HasSuffix(after[0], "denied") {
				t.Errorf("%s: records %q", name, after)
			}
		}

		time.Sleep(2 * time.Minute) // the lease is over
		_, err = p.ResolveSecrets(t.Context(), first)
		wantCode(t, err, event.Forbidden, "stale_claim")
		second := secretsOf(claimFor(t, p, eventID, "w2"), "w2", "pg")
		_, err = p.ResolveSecrets(t.Context(), first)
		wantCode(t, err, event.Forbidden, "stale_claim")
		wantSecret(t, p, second, "pg", "secret", `{"password":"`+canary+`"}`)

		if _, err := p.Cancel(t.Context(), id, control.CancelRequest{}); err != nil {
			t.Fatal(err)
		}
		_, err = p.ResolveSecrets(t.Context(), second)
		wantCode(t, err, event.Forbidden, "execution_ended")
	})
}

func TestAliasesAreLookedForInThePlaybooksOfTheFamily(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		wallet, _ := r.vaulted(map[string]string{"NOETL_SECRET_APP": canary})
		p := r.plane(nil, quiet, wallet)
		entry := r.register(p, keyedPlaybook)
		r.register(p, innerPlaybook)
		id := r.start(p, "test/keyed")
		q := secretsOf(claimFor(t, p, r.pending()[0].EventID, "w"), "w")
		wantSecret(t, p, q, "app", "keychain", `{"again":"`+canary+`","key":"`+canary+`"}`)
		wantSecret(t, p, q, "joined", "bearer", `{"access_token":"x-`+canary+`","token":"x-`+canary+`","token_type":"Bearer"}`)
		wantSecret(t, p, q, "tree", "keychain", `"`+canary+`"`)
		wantSecret(t, p, q, "static", "keychain", `{"k":"{{ keychain.static.k }}"}`) // what a template gives is no template
		for alias, want := range map[string]struct {
			code   event.Code
			record string
		}{
			"nothing": {event.NotFound, "resolve_keychain w credential_not_found"}, "wrong": {event.Invalid, "resolve_keychain w template_error"},
			"strict": {event.Forbidden, "resolve_keychain w residency_violation"}, "own": {event.NotFound, "resolve_keychain w credential_not_found"},
		} {
			q.Aliases = []string{"pg", alias}
			got, err := p.ResolveSecrets(t.Context(), q)
			if event.CodeOf(err) != want.code || got != nil || strings.Contains(err.Error(), canary) {
				t.Errorf("%s: %v, %v", alias, got, err)
			}
			if got := r.audited(alias); len(got) != 1 || got[0] != want.record {
				t.Errorf("%s: records %q", alias, got)
			}
		}
		if got := r.audited("pg"); len(got) != 0 {
			t.Errorf("pg did not leave, but the record says %q", got)
		}

		inner, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/inner", ParentExecutionID: id})
		if err != nil {
			t.Fatal(err)
		}
		below := secretsOf(claimFor(t, p, r.pending()[0].EventID, "w"), "w")
		wantSecret(t, p, below, "own", "keychain", `{"k":"v"}`)
		wantSecret(t, p, below, "tree", "keychain", `"`+canary+`"`)
		below.Aliases = []string{"app"} // it is the parent's alone
		_, err = p.ResolveSecrets(t.Context(), below)
		wantCode(t, err, event.NotFound, "credential_not_found")

		rows, err := r.store.ListKeychain(t.Context(), entry.CatalogID)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%d values are kept, %v", len(rows), err)
		}
		for _, e := range []event.ID{inner.ExecutionID, id} {
			if _, err := p.Cancel(t.Context(), e, control.CancelRequest{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			rows, err := r.store.ListKeychain(t.Context(), entry.CatalogID)
			if want := map[event.ID]int{inner.ExecutionID: 2, id: 0}[e]; len(rows) != want || err != nil {
				t.Errorf("after the end of %s %d values are kept, want %d, %v", e, len(rows), want, err)
			}
		}
	})
}

func TestAStoreOfSecretsThatIsAwayIsWorthAnotherTry(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		wallet, _ := r.vaulted(nil)
		p := r.plane(nil, quiet, wallet)
		r.register(p, single)
		r.start(p, "test/single")
		q := secretsOf(claimFor(t, p, r.pending()[0].EventID, "w"), "w", "pg")
		for _, op := range []string{"Credential", "AddAudit", "Command", "Execution"} {
			r.store.Inject(memstore.Faults{Err: fmt.Errorf("connection refused"), Hook: func(o string) memstore.Fault {
				if o == op {
					return memstore.Refuse
				}
				return memstore.None
			}})
			got, err := p.ResolveSecrets(t.Context(), q)
			if event.CodeOf(err) != event.Unavailable || got != nil {
				t.Errorf("%s fails: %v, %v", op, got, err)
			}
		}
		r.store.Inject(memstore.Faults{})
		wantSecret(t, p, q, "pg", "secret", `{"password":"`+canary+`"}`)
	})
}

func TestWorkersElsewhereGetSealedSecrets(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		wallet, _ := r.vaulted(nil)
		p := r.plane(nil, quiet, wallet)
		r.register(p, single)
		id := r.start(p, "test/single")
		q := secretsOf(claimFor(t, p, r.pending()[0].EventID, "w"), "w", "pg")
		_, err := p.SealSecrets(t.Context(), q)
		wantCode(t, err, event.BadRequest, "no_pubkey")
		_, err = p.SealedCredential(t.Context(), "pg", "w", id)
		wantCode(t, err, event.BadRequest, "no_pubkey")

		mine, err := sealed.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		enlist := func(name, key string) error {
			_, err := p.Enlist(t.Context(), event.Registration{Name: name, Runtime: json.RawMessage(fmt.Sprintf(`{"worker_public_key":%q}`, key))})
			return err
		}
		if err := enlist("w", sealed.PublicText(mine.PublicKey())); err != nil {
			t.Fatal(err)
		}
		a, err := p.SealSecrets(t.Context(), q)
		if err != nil || a.Sealed == nil || a.Secrets != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		plain, err := sealed.Open(mine, sealed.Binding{Execution: id, Aliases: q.Aliases}, *a.Sealed)
		if err != nil || !strings.Contains(string(plain), canary) {
			t.Errorf("opened %s, %v", plain, err)
		}
		old, err := p.SealedCredential(t.Context(), "pg", "w", id)
		if err != nil {
			t.Fatal(err)
		}
		plain, err = sealed.Open(mine, sealed.Binding{}, old)
		if err != nil || string(plain) != `{"data":{"password":"`+canary+`"},"id":"0","name":"pg","type":"secret"}` {
			t.Errorf("opened %s, %v", plain, err)
		}

		other, err := sealed.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		if err := enlist("w2", sealed.PublicText(other.PublicKey())); err != nil {
			t.Fatal(err)
		}
		_, err = p.SealedCredential(t.Context(), "pg", "w2", id) // it holds nothing
		wantCode(t, err, event.Forbidden, "stale_claim")
		wantCode(t, enlist("w", sealed.PublicText(other.PublicKey())), event.Conflict, "key_in_use")
		wantCode(t, enlist("w", ""), event.Conflict, "key_in_use")
		wantCode(t, enlist("w3", "nonsense"), event.Invalid, "")
		if err := enlist("w", sealed.PublicText(mine.PublicKey())); err != nil {
			t.Errorf("a worker cannot enlist again: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if err := enlist("w", sealed.PublicText(other.PublicKey())); err != nil {
			t.Errorf("a silent worker's name cannot be taken over: %v", err)
		}
		_, err = p.SealSecrets(t.Context(), q) // its lease is over meanwhile
		wantCode(t, err, event.Forbidden, "stale_claim")
	})
}

func TestRequestsForSecretsThatMakeNoSense(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		wallet, _ := r.vaulted(nil)
		p := r.plane(nil, quiet, wallet)
		for name, q := range map[string]event.SecretRequest{
			"no worker": {Aliases: []string{"a"}}, "no alias": {WorkerID: "w"}, "an empty alias": {WorkerID: "w", Aliases: []string{""}},
			"too many": {WorkerID: "w", Aliases: make([]string, 1000)}, "a long one": {WorkerID: "w", Aliases: []string{strings.Repeat("x", 1000)}},
		} {
			if _, err := p.ResolveSecrets(t.Context(), q); event.CodeOf(err) != event.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		bare := r.plane(nil, quiet)
		_, err := bare.ResolveSecrets(t.Context(), event.SecretRequest{WorkerID: "w", Aliases: []string{"a"}})
		wantCode(t, err, event.Invalid, "no_secrets")
	})
}
