package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	keeper "github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/secret/sealed"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// later is a control plane that is known only after the server was made.
type later struct{ *control.Plane }

// withKeychain serves a control plane that keeps the credential api_key.
func withKeychain(t *testing.T) (*httptest.Server, *memstore.Store) {
	t.Helper()
	keys, err := envelope.Ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	mem, ids := memstore.New(), snowflake.New(1, nil).Next
	wallet := keeper.New(keeper.Options{Store: mem, Keys: keys, IDs: ids, AuditRequired: true})
	opened := keychain.Registered{Store: mem, Keys: keys}
	chain, err := keychain.New(keychain.Options{Rows: mem, Cipher: keys, Credentials: opened, Providers: provider.NewSet(provider.Settings{})})
	if err != nil {
		t.Fatal(err)
	}
	desk := &later{}
	srv, plane := serve(t, control.Options{
		Store: mem, Bus: membus.New(membus.Options{}), IDs: ids, Secrets: &control.SecretOptions{Credentials: opened, Keychain: chain, Audit: wallet},
	}, api.Options{InternalToken: secret, Secrets: wallet, Keychain: desk})
	desk.Plane = plane
	askAs(t, srv, "", "POST", "/api/credentials", `{"name":"key","type":"secret","data":{"value":"`+canary+`"}}`).ok(t)
	return srv, mem
}

func TestARemoteWorkerGetsTheSecretsOfItsCommandSealed(t *testing.T) {
	t.Parallel()
	srv, mem := withKeychain(t)
	cl, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]string{"content": twoSteps})
	ask(t, srv, "POST", "/api/catalog/register", string(body)).ok(t)
	ask(t, srv, "POST", "/api/execute", `{"path":"demo/two"}`).ok(t)
	pending, err := mem.PendingCommands(t.Context(), time.Now().Add(time.Hour), 0)
	if err != nil || len(pending) == 0 {
		t.Fatalf("%d commands wait, %v", len(pending), err)
	}
	cmd, err := cl.Claim(t.Context(), event.ClaimRequest{EventID: pending[0].EventID, WorkerID: "w", Heartbeats: true})
	if err != nil {
		t.Fatal(err)
	}
	q := event.SecretRequest{ExecutionID: cmd.ExecutionID, EventID: cmd.EventID, WorkerID: "w", Attempt: cmd.Meta.Attempt, Aliases: []string{"key"}}
	if _, err := cl.ResolveSecrets(t.Context(), q); event.CodeOf(err) != event.BadRequest || !strings.Contains(err.Error(), "worker_public_key") {
		t.Errorf("a worker without a key: %v", err)
	}
	key, err := sealed.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	said := json.RawMessage(fmt.Sprintf(`{"worker_public_key":%q}`, sealed.PublicText(key.PublicKey())))
	if _, err := cl.Enlist(t.Context(), event.Registration{Name: "w", Runtime: said}); err != nil {
		t.Fatal(err)
	}
	a, err := cl.ResolveSecrets(t.Context(), q)
	if err != nil || a.Sealed == nil || len(a.Secrets) != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	plain, err := sealed.Open(key, sealed.Binding{Execution: q.ExecutionID, Aliases: q.Aliases}, *a.Sealed)
	if err != nil || string(plain) != `[{"alias":"key","type":"secret","data":{"value":"`+canary+`"}}]` {
		t.Errorf("opened %s, %v", plain, err)
	}

	path := fmt.Sprintf("/api/credentials/key/sealed?worker_id=w&execution_id=%s", q.ExecutionID)
	old := ask(t, srv, "GET", path, "").ok(t)
	var box event.Sealed
	if err := json.Unmarshal([]byte(old.body), &box); err != nil || box.Version != 1 || old.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %v, %v", old.body, old.header, err)
	}
	if plain, err := sealed.Open(key, sealed.Binding{}, box); err != nil || !strings.Contains(string(plain), canary) {
		t.Errorf("opened %s, %v", plain, err)
	}
	ask(t, srv, "GET", "/api/credentials/key/sealed?worker_id=w", "").wantError(t, 400, "execution_id")
	ask(t, srv, "GET", strings.Replace(path, "=w", "=w2", 1), "").wantError(t, 400, "public key")
	q.Attempt++
	if _, err := cl.ResolveSecrets(t.Context(), q); event.CodeOf(err) != event.Forbidden {
		t.Errorf("another attempt: %v", err)
	}
	lines, err := mem.ListAudit(t.Context(), store.AuditFilter{Credential: "key"})
	if err != nil || strings.Contains(fmt.Sprintf("%+v", lines), canary) {
		t.Errorf("records %+v, %v", lines, err)
	}
}

func TestKeptValuesAreShownToTheInternalTokenOnly(t *testing.T) {
	t.Parallel()
	srv, mem := withKeychain(t)
	body, _ := json.Marshal(map[string]string{"content": twoSteps})
	ask(t, srv, "POST", "/api/catalog/register", string(body)).ok(t)
	entries, err := mem.ListEntries(t.Context(), store.EntryFilter{})
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	at := "/api/keychain/" + entries[0].CatalogID.String() + "/tok"
	keep := `{"data":{"token":"` + canary + `"},"expires_in":60,"auto_renew":true,"renew_config":{"endpoint":"https://x","data":{"client_secret":"` + canary + `"}}}`
	ask(t, srv, "POST", at, keep).wantError(t, 403, "internal token")
	kept := askInternal(t, srv, "POST", at, keep).ok(t)
	if !strings.Contains(kept.body, `"status":"success","cache_key":"tok:`+entries[0].CatalogID.String()+`:global"`) {
		t.Errorf("kept: %s", kept.body)
	}
	ask(t, srv, "GET", at, "").wantError(t, 403, "not shown")
	shown := askInternal(t, srv, "GET", at, "").ok(t)
	if !strings.Contains(shown.body, `"status":"found","data":{"token":"`+canary+`"}`) || !strings.Contains(shown.body, `"access_count":1`) {
		t.Errorf("shown: %s", shown.body)
	}
	list := ask(t, srv, "GET", "/api/keychain/catalog/"+entries[0].CatalogID.String(), "").ok(t)
	if strings.Contains(list.body, canary) || !strings.Contains(list.body, `"keychain_name":"tok"`) || !strings.Contains(list.body, `"auto_renew":true`) {
		t.Errorf("list: %s", list.body)
	}
	askInternal(t, srv, "GET", at+"?scope_type=local&execution_id=7", "").want(t, 200, `{"status":"not_found"}`)
	askInternal(t, srv, "GET", at+"?scope_type=world", "").wantError(t, 422, "scope")
	askInternal(t, srv, "POST", "/api/keychain/77/tok", keep).wantError(t, 404, "")
	if bad := askInternal(t, srv, "POST", at, `{"data":"`+canary+`","expires_in":"soon"}`); strings.Contains(bad.body, canary) {
		t.Errorf("a refusal repeats the secret: %s", bad.body)
	}
	askInternal(t, srv, "DELETE", at, "").want(t, 200, `{"status":"deleted","cache_key":"tok:`+entries[0].CatalogID.String()+`:global"}`)
	askInternal(t, srv, "DELETE", at, "").want(t, 200, `{"status":"not_found","cache_key":"tok:`+entries[0].CatalogID.String()+`:global"}`)
	lines, err := mem.ListAudit(t.Context(), store.AuditFilter{Credential: "keychain:tok"})
	if err != nil || strings.Contains(fmt.Sprintf("%+v", lines), canary) || len(lines) < 5 {
		t.Errorf("records %+v, %v", lines, err)
	}
}
