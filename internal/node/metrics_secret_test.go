package node_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/secret/sealed"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// issuerOfSecrets gives values that end, or none.
type issuerOfSecrets struct {
	lives atomic.Int64
	away  atomic.Bool
	takes atomic.Int64
}

func (i *issuerOfSecrets) value() (provider.Value, error) {
	time.Sleep(time.Duration(i.takes.Load()))
	if i.away.Load() {
		return provider.Value{}, event.Errorf(event.Unavailable, "away")
	}
	return provider.Value{Object: json.RawMessage(`{"access_token":"x"}`), ExpiresAt: time.Now().Add(time.Duration(i.lives.Load()))}, nil
}

func (i *issuerOfSecrets) Fetch(context.Context, string, string, provider.Options) (provider.Value, error) {
	return i.value()
}

func (i *issuerOfSecrets) Ask(context.Context, provider.Endpoint) (provider.Value, error) {
	return i.value()
}

func (i *issuerOfSecrets) GoogleIDToken(context.Context, map[string]any, string) (provider.Value, error) {
	return i.value()
}

// kept secrets are fetched, renewed and given up.
func keptSecrets(t *testing.T, m *meters) {
	metrics, st, from := control.NewMetricsIn("test", "eu"), memstore.New(), &issuerOfSecrets{}
	m.registry(&metrics.Registry)
	first, second := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("1", 32))), base64.StdEncoding.EncodeToString([]byte(strings.Repeat("2", 32)))
	keys, err := envelope.Load(envelope.Settings{Keys: "v1:" + first})
	if err != nil {
		t.Fatal(err)
	}
	newer, err := envelope.Load(envelope.Settings{Keys: "v2:" + second + ",v1:" + first})
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	meter := obs.SecretMeter{Metrics: metrics, Region: "eu"}
	chain, err := keychain.New(keychain.Options{
		Rows: st, Cipher: keys, Providers: from, Region: "eu", Meter: meter, Credentials: keychain.Registered{Store: st, Keys: keys},
		Alive: func(context.Context, event.ID) (bool, error) { return !over.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- chain.Run(ctx) }()
	defer func() { cancel(); <-done }()
	ask := func(name string, more map[string]any) {
		entry := map[string]any{"name": name, "kind": "oauth2", "endpoint": "https://issuer"}
		for k, v := range more {
			entry[k] = v
		}
		d := keychain.Declaration{Name: name, Render: func(map[string]json.RawMessage) (map[string]any, error) { return entry, nil }}
		_, _ = chain.Resolve(t.Context(), []keychain.Declaration{d}, name, keychain.Place{Catalog: 1, Execution: 2}) // some are denied
	}
	from.lives.Store(int64(10 * time.Minute))
	for _, residency := range []string{"strict", "advisory", ""} {
		ask("far"+residency, map[string]any{"residency": residency, "region": "us"})
		ask("near"+residency, map[string]any{"residency": residency, "region": "eu"})
	}
	ask("ahead", nil)
	time.Sleep(8*time.Minute + 30*time.Second)
	from.takes.Store(int64(10 * time.Second))
	for range 3 { // one fetches ahead, the others leave it to that one
		ask("ahead", nil)
		time.Sleep(time.Second)
	}
	time.Sleep(8*time.Minute + 30*time.Second)
	from.away.Store(true)
	ask("ahead", nil)
	ask("new", nil)
	time.Sleep(time.Minute)
	from.away.Store(false)
	from.takes.Store(0)

	ask("renewed", map[string]any{"auto_renew": true})
	time.Sleep(20 * time.Minute)
	from.away.Store(true)
	time.Sleep(10 * time.Minute)
	from.away.Store(false)
	ask("left", map[string]any{"auto_renew": true})
	over.Store(true)
	time.Sleep(20 * time.Minute)
	over.Store(false)

	from.lives.Store(int64(time.Second))
	ask("short", nil)
	from.lives.Store(int64(10 * time.Minute))
	st.Inject(memstore.Faults{Hook: memstore.Next("PutKeychain", memstore.Refuse)})
	ask("unkept", nil)
	st.Inject(memstore.Faults{Hook: memstore.Next("Keychain", memstore.Refuse)})
	ask("unread", nil)
	st.Inject(memstore.Faults{})
	rotated(t, st, keys, newer, meter)
}

// rotated has keys replaced, one of which is lost.
func rotated(t *testing.T, st *memstore.Store, keys, newer *envelope.Keys, meter obs.SecretMeter) {
	t.Helper()
	ids := snowflake.New(2, nil)
	put := func(k *envelope.Keys, name string) *secret.Service {
		s := secret.New(secret.Options{Store: st, Keys: k, IDs: ids.Next, Meter: meter})
		if name != "" {
			if _, _, err := s.Put(t.Context(), secret.Registration{Name: name, Type: "bearer", Data: json.RawMessage(`{"token":"x"}`)}, secret.Use{Actor: "test"}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	put(keys, "old")
	for range 2 { // the second time there is nothing to do
		if _, err := put(newer, "").Rotate(t.Context(), secret.RotateRequest{}, secret.Use{Actor: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	other, err := envelope.Ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	s := put(other, "new")
	_, _ = s.Rotate(t.Context(), secret.RotateRequest{}, secret.Use{Actor: "test"}) // the first key is lost
	_, _, _ = s.Open(t.Context(), "old", secret.Use{Operation: secret.OpGet, Actor: "test"})
	if _, err := s.Audit(t.Context(), store.AuditFilter{}); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 { // nobody writes them down in time
		_ = s.Record(t.Context(), secret.Use{Operation: secret.OpGet, Actor: "test"}, fmt.Sprint("c", i), secret.OutcomeDenied, "")
	}
	st.Inject(memstore.Faults{Hook: memstore.Next("AddAudit", memstore.Refuse)})
	_, _ = s.Audit(t.Context(), store.AuditFilter{})
	st.Inject(memstore.Faults{})
	if _, err := s.Audit(t.Context(), store.AuditFilter{}); err != nil {
		t.Fatal(err)
	}
}

const sealedPlaybook = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one, path: bed/one}
keychain:
  - {name: far, provider: env, path: APP, region: us, residency: strict}
workflow:
  - {step: start, tool: {kind: noop}}
`

// sealing gives secrets to workers elsewhere.
func sealing(b *bed) {
	if _, err := b.Register(b.t.Context(), control.RegisterRequest{Content: sealedPlaybook}); err != nil {
		b.t.Fatal(err)
	}
	a, err := b.Execute(b.t.Context(), control.ExecuteRequest{Path: "bed/one"})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := b.take(a.ExecutionID)
	seal := func(alias string) error {
		_, err := b.SealSecrets(b.t.Context(), event.SecretRequest{
			ExecutionID: cmd.ExecutionID, EventID: cmd.EventID, WorkerID: "w", Attempt: cmd.Meta.Attempt, Aliases: []string{alias},
		})
		return err
	}
	enlist := func(key string) {
		_, err := b.Enlist(b.t.Context(), event.Registration{Name: "w", Runtime: json.RawMessage(fmt.Sprintf(`{"worker_public_key":%q}`, key))})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	_ = seal("pg") // it has no key
	key, err := sealed.GenerateKey()
	if err != nil {
		b.t.Fatal(err)
	}
	enlist(sealed.PublicText(key.PublicKey()))
	if err := seal("pg"); err != nil {
		b.t.Error(err)
	}
	_ = seal("far")
	_ = seal("nobody")
	if _, err := b.Leave(b.t.Context(), event.KindWorkerPool, "w"); err != nil {
		b.t.Fatal(err)
	}
	enlist(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if seal("pg") == nil {
		b.t.Error("a secret was sealed for a key that gives it to everybody")
	}
	time.Sleep(2 * time.Hour)
	_ = seal("pg") // its lease is over
}

// withSecrets gives a plane a credential and a keychain in a region.
func withSecrets(b *bed, o *control.Options) {
	keys, err := envelope.Ephemeral()
	if err != nil {
		b.t.Fatal(err)
	}
	meter := obs.SecretMeter{Metrics: b.metrics}
	wallet := secret.New(secret.Options{Store: b.store, Keys: keys, IDs: b.ids.Next, AuditRequired: true, Meter: meter})
	_, _, err = wallet.Put(b.t.Context(), secret.Registration{Name: "pg", Type: "secret", Data: json.RawMessage(`{"password":"x"}`)}, secret.Use{Actor: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	opened := keychain.Registered{Store: b.store, Keys: keys}
	chain, err := keychain.New(keychain.Options{
		Rows: b.store, Cipher: keys, Credentials: opened, Region: "eu", Meter: meter,
		Providers: provider.NewSet(provider.Settings{Getenv: func(string) string { return "" }}),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	o.Secrets = &control.SecretOptions{Credentials: opened, Keychain: chain, Audit: wallet}
}

func init() {
	scenarios["secrets that are kept"] = scenario{[]string{
		`noetl_keychain_renew_total{outcome="abandoned"}`, `noetl_keychain_renew_total{outcome="failed"}`, `noetl_keychain_renew_total{outcome="succeeded"}`,
		`noetl_secret_refresh_total{outcome="stampede_collapsed"}`, `noetl_secret_refresh_total{outcome="failed"}`, `noetl_secret_refresh_total{outcome="decision_failed"}`,
		`noetl_secret_residency_check_total{decision="denied"}`, `noetl_secret_residency_check_total{decision="remarked"}`,
		`noetl_secret_cache_skip_total{reason="expires_soon"}`, `noetl_secret_cache_skip_total{reason="not_stored"}`, "noetl_secret_dynamic_ttl_seconds",
		"noetl_secret_audit_dropped_total", `noetl_secret_audit_writes_total{status="error"}`,
	}, virtual(keptSecrets)}
	scenarios["secrets that are sealed"] = scenario{[]string{
		`noetl_credentials_sealed_total{status="ok"}`, `noetl_credentials_sealed_total{status="seal_error"}`, `noetl_credentials_sealed_total{status="no_pubkey"}`,
		`noetl_credentials_sealed_total{status="residency_violation"}`, `noetl_credentials_sealed_total{status="credential_error"}`, `noetl_credentials_sealed_total{status="denied"}`,
	}, onBed(sealing, seldom, withSecrets)}
}
