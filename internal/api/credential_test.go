package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/event"
	keeper "github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const canary = "canary-9f3b1c"

// withSecrets serves credentials kept in memory.
func withSecrets(t *testing.T, change ...func(*api.Options)) *httptest.Server {
	t.Helper()
	o := api.Options{Plane: &apitest.Plane{}, InternalToken: secret, Secrets: newKeeper(t, nil)}
	for _, f := range change {
		f(&o)
	}
	s, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checked(t, s))
	t.Cleanup(srv.Close)
	return srv
}

func newKeeper(t *testing.T, meter keeper.Meter) *keeper.Service {
	t.Helper()
	keys, err := envelope.Load(envelope.Settings{Key: base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))})
	if err != nil {
		t.Fatal(err)
	}
	var last atomic.Int64
	last.Store(1 << 60)
	return keeper.New(keeper.Options{
		Store: memstore.New(), Keys: keys, IDs: func() event.ID { return event.ID(last.Add(1)) }, Meter: meter,
		Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	})
}

// exerciseSecrets has a secret shown and refused, often enough that the audit,
// which nobody writes here, overflows.
func exerciseSecrets(t *testing.T, l *living) {
	t.Helper()
	ask(t, l.Server, "POST", "/api/credentials", pgBody).ok(t)
	const path = "/api/credentials/pg_demo?include_data=true"
	askAs(t, l.Server, "Bearer "+testToken, "GET", path, "").ok(t)
	for range 4100 {
		ask(t, l.Server, "GET", path, "").wantError(t, 403, "not shown")
	}
}

const pgBody = `{"name":"pg_demo","type":"postgres","data":{"db_host":"h","db_password":"` + canary + `"},"tags":["a"],"description":"Demo","meta":{"team":"x"}}`

func TestCredentialsAreWrittenAndShownWithoutTheirData(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t)
	const shown = `{"id":"1152921504606846977","name":"pg_demo","type":"postgres","meta":{"team":"x"},"tags":["a"],"description":"Demo",` +
		`"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:05Z"}`
	askAs(t, srv, "", "POST", "/api/credentials", pgBody).want(t, 200, shown)
	askAs(t, srv, "", "GET", "/api/credentials/pg_demo", "").want(t, 200, shown)
	askAs(t, srv, "", "GET", "/api/credentials/1152921504606846977?include_data=false", "").want(t, 200, shown)
	askAs(t, srv, "", "GET", "/api/credentials", "").want(t, 200, `{"items":[`+shown+`]}`)
	askAs(t, srv, "", "GET", "/api/credentials?type=postgres&q=DEMO", "").want(t, 200, `{"items":[`+shown+`],"filter":{"type":"postgres","q":"DEMO"}}`)
	askAs(t, srv, "", "GET", "/api/credentials?q=nothing", "").want(t, 200, `{"items":[],"filter":{"q":"nothing"}}`)
	askAs(t, srv, "", "GET", "/api/credentials/pg_demo/check", "").want(t, 200,
		`{"name":"pg_demo","type":"postgres","ok":true,"fields":["db_host","db_password"],"key_version":"v1"}`)
	askAs(t, srv, "", "GET", "/api/credentials/nobody", "").wantError(t, 404, "nobody")
	bare := askAs(t, srv, "", "POST", "/api/credentials", `{"name":"a/b","type":"secret","data":{}}`)
	if bare.ok(t); strings.Contains(bare.body, "tags") || strings.Contains(bare.body, "null") {
		t.Errorf("absent members are not omitted: %s", bare.body)
	}
	askAs(t, srv, "", "DELETE", "/api/credentials/a%2Fb", "").ok(t)
	askAs(t, srv, "", "DELETE", "/api/credentials/pg_demo", "").want(t, 200, `{"message":"Credential deleted successfully","id":"1152921504606846977"}`)
	askAs(t, srv, "", "DELETE", "/api/credentials/pg_demo", "").wantError(t, 404, "pg_demo")
}

func TestBadCredentialsAreRefusedWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t)
	for body, status := range map[string]int{
		``:                              400,
		`{"name":"a","data":` + canary:  400,
		`"` + canary + `"`:              422,
		`{"name":"a","type":"secret"}`:  422,
		`{"name":"a","data":{}}`:        422,
		`{"name":{"` + canary + `":1}}`: 422,
		`{"name":"a","type":"secret","data":"` + canary + `"}`:                               422,
		`{"name":"a","type":"secret","data":{"a":"` + canary + `"},"tags":"` + canary + `"}`: 422,
		`{"name":"a","type":"postgres","data":{"password":"` + canary + `"}}`:                422,
	} {
		a := askAs(t, srv, "", "POST", "/api/credentials", body)
		a.wantError(t, status, "")
		if strings.Contains(a.body, canary) {
			t.Errorf("%s: the answer repeats the secret: %s", body, a.body)
		}
	}
	askAs(t, srv, "", "GET", "/api/credentials", "").want(t, 200, `{"items":[]}`)
}

func TestDataIsShownToTheInternalTokenAlone(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t)
	askAs(t, srv, "", "POST", "/api/credentials", pgBody).ok(t)
	const ask = "/api/credentials/pg_demo?include_data=true&execution_id=42"
	for _, authorization := range []string{"", "Bearer wrong", "Basic " + secret, secret} {
		a := askAs(t, srv, authorization, "GET", ask, "")
		a.wantError(t, 403, "not shown")
		if strings.Contains(a.body, canary) {
			t.Errorf("as %q: %s", authorization, a.body)
		}
	}
	a := askInternal(t, srv, "GET", ask, "")
	if a.ok(t); a.field(t, "data").(map[string]any)["db_password"] != canary || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("with the token: %s", a.body)
	}
	askInternal(t, srv, "GET", "/api/credentials/none?include_data=1", "").wantError(t, 404, "none")
	askInternal(t, srv, "GET", "/api/credentials/pg_demo?include_data=maybe", "").wantError(t, 422, "include_data")
	askInternal(t, srv, "GET", "/api/credentials/pg_demo?include_data=true&execution_id=x", "").wantError(t, 422, "execution_id")

	audit := askInternal(t, srv, "GET", "/api/internal/secret-audit?credential=pg_demo", "")
	var told []string
	for _, item := range audit.ok(t).field(t, "items").([]any) {
		line := item.(map[string]any)
		told = append(told, line["operation"].(string)+" "+line["outcome"].(string)+" "+line["actor"].(string))
		if line["operation"] == "get_credential" && line["execution_id"] != "42" || line["request_id"] == "" {
			t.Errorf("line %v", line)
		}
	}
	const denied = "get_credential denied api from 127.0.0.1"
	want := strings.Join([]string{"get_credential ok internal token", denied, denied, denied, denied, "create ok api from 127.0.0.1"}, "\n")
	if got := strings.Join(told, "\n"); got != want {
		t.Errorf("audit:\n%s\nwant:\n%s", got, want)
	}
	if strings.Contains(audit.body, canary) {
		t.Error("the audit holds the secret")
	}
	for query, count := range map[string]string{"?execution_id=42": "5", "?limit=2": "2", "?from=2027-01-01T00:00:00Z": "0", "?to=2026-01-02T03:04:06Z&credential=none": "1"} {
		if got := askInternal(t, srv, "GET", "/api/internal/secret-audit"+query, "").ok(t).field(t, "count"); fmt.Sprint(got) != count {
			t.Errorf("%s: %v lines, want %v", query, got, count)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=10001", "?from=yesterday", "?execution_id=x"} {
		askInternal(t, srv, "GET", "/api/internal/secret-audit"+query, "").wantError(t, 422, "")
	}
}

func TestAServerWithoutATokenShowsNoData(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t, func(o *api.Options) { o.InternalToken = "" })
	askAs(t, srv, "", "POST", "/api/credentials", pgBody).ok(t)
	for _, authorization := range []string{"", "Bearer", "Bearer "} {
		askAs(t, srv, authorization, "GET", "/api/credentials/pg_demo?include_data=true", "").wantError(t, 403, "not shown")
	}
}

func TestKeysAreRotatedAndCounted(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t)
	askAs(t, srv, "", "POST", "/api/credentials", pgBody).ok(t)
	askInternal(t, srv, "POST", "/api/internal/wallet/rotate-kek", `{"batch_size":1}`).want(t, 200,
		`{"credential":{"processed":1,"rewrapped":0,"skipped":1,"failed":0,"last_id":"1152921504606846977"},"keychain":{"processed":0,"rewrapped":0,"skipped":0,"failed":0},"key_version":"v1"}`)
	askInternal(t, srv, "POST", "/api/internal/wallet/rotate-kek", `{"batch_size":-1}`).wantError(t, 422, "batch_size")
	askInternal(t, srv, "GET", "/api/internal/wallet/key-status", "").want(t, 200, `{"credential":{"v1":1},"keychain":{},"current":"v1"}`)
}

func TestAServerWithoutSecretsSaysSo(t *testing.T) {
	t.Parallel()
	srv := withSecrets(t, func(o *api.Options) { o.Secrets = nil })
	askAs(t, srv, "", "GET", "/api/credentials", "").wantError(t, 503, "keeps no credentials")
	askAs(t, srv, "", "POST", "/api/credentials", pgBody).wantError(t, 503, "keeps no credentials")
}
