package outbound_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// prove makes the proof of a credential and what it hid on the way.
func prove(t *testing.T, p *outbound.Prover, c *tool.Credential) (*outbound.Proof, []string, error) {
	t.Helper()
	var mu sync.Mutex
	var hidden []string
	call := &tool.Call{Log: io.Discard, Hide: func(values ...string) {
		mu.Lock()
		defer mu.Unlock()
		hidden = append(hidden, values...)
	}}
	proof, err := p.Prove(t.Context(), call, c)
	return proof, hidden, err
}

func newProver(t *testing.T) *outbound.Prover {
	t.Helper()
	pool := egress.NewPool(nil, egress.PoolOptions{})
	t.Cleanup(func() { _ = pool.Close() })
	return outbound.NewProver(pool)
}

func TestCredentialsBecomeHeadersAndParameters(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		kind   string
		data   map[string]any
		header string // name: value
		query  string
		hidden string
	}{
		"bearer":              {"bearer", map[string]any{"token": "t"}, "Authorization: Bearer t", "", "t"},
		"bearer token":        {"bearer_token", map[string]any{"access_token": "t"}, "Authorization: Bearer t", "", "t"},
		"a keychain entry":    {"keychain", map[string]any{"access_token": "t", "expires_in": int64(5)}, "Authorization: Bearer t", "", "t"},
		"no type":             {"", map[string]any{"username": "u", "password": "p"}, "Authorization: Basic dTpw", "", "p"},
		"basic":               {"basic", map[string]any{"username": "u", "db_password": "p"}, "Authorization: Basic dTpw", "", "dTpw"},
		"api key":             {"api_key", map[string]any{"api_key": "k"}, "X-Api-Key: k", "", "k"},
		"api key by header":   {"api_key", map[string]any{"key": "k", "header": "X-Mine"}, "X-Mine: k", "", "k"},
		"api key in query":    {"api_key", map[string]any{"key": "k", "in": "query", "name": "appid"}, "", "appid=k", "k"},
		"api key by param":    {"apikey", map[string]any{"value": "k", "query_param": "q"}, "", "q=k", "k"},
		"header":              {"header", map[string]any{"header": "X-A", "value": "v"}, "X-A: v", "", "v"},
		"several headers":     {"headers", map[string]any{"headers": map[string]any{"X-B": "w"}}, "X-B: w", "", "w"},
		"oauth2 with a token": {"oauth2", map[string]any{"access_token": "t"}, "Authorization: Bearer t", "", "t"},
	} {
		proof, hidden, err := prove(t, newProver(t), &tool.Credential{Type: tc.kind, Data: tc.data})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		u, h := &url.URL{RawQuery: "a=1"}, http.Header{}
		proof.Apply(h, u)
		key, value, _ := strings.Cut(tc.header, ": ")
		if h.Get(key) != value || strings.TrimPrefix(strings.TrimPrefix(u.RawQuery, "a=1"), "&") != tc.query || !slices.Contains(hidden, tc.hidden) {
			t.Errorf("%s: header %v, query %q, hidden %q", name, h, u.RawQuery, hidden)
		}
		if tc.query != "" && strings.Contains(outbound.Masked(u, proof.Params()...), "k&") {
			t.Errorf("%s: the key is shown in %s", name, outbound.Masked(u, proof.Params()...))
		}
	}
	for name, c := range map[string]*tool.Credential{
		"no token":     {Type: "bearer", Alias: "a", Data: map[string]any{}},
		"unknown type": {Type: "kerberos", Data: map[string]any{"x": "y"}},
		"no endpoint":  {Type: "oauth2", Data: map[string]any{"client_id": "x"}},
		"bad key":      {Type: "gcp", Data: map[string]any{"client_email": "x", "private_key": "secret-key"}},
	} {
		_, _, err := prove(t, newProver(t), c)
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindConfig || strings.Contains(e.Message, "secret-key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if proof, _, err := prove(t, newProver(t), nil); proof != nil || err != nil {
		t.Errorf("no credential: %v %v", proof, err)
	}
}

func TestTokensAreFetchedOnceAndForgottenWhenRejected(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if r.Form.Get("client_secret") != "s" || r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "a b" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "t" + string('0'+rune(asked.Add(1))), "expires_in": 3600})
	}))
	t.Cleanup(srv.Close)
	c := &tool.Credential{Type: "oauth2", Data: map[string]any{"token_url": srv.URL, "client_id": "i", "client_secret": "s", "scopes": []any{"a", "b"}}}
	p := newProver(t)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			proof, hidden, err := prove(t, p, c)
			if err != nil || proof.Header.Get("Authorization") != "Bearer t1" || !slices.Contains(hidden, "t1") {
				t.Errorf("got %v, hidden %q, %v", proof, hidden, err)
			}
		})
	}
	group.Wait()
	if asked.Load() != 1 {
		t.Errorf("%d tokens were fetched", asked.Load())
	}
	proof, _, _ := prove(t, p, c)
	proof.Rejected()
	if again, _, err := prove(t, p, c); err != nil || again.Header.Get("Authorization") != "Bearer t2" {
		t.Errorf("after a rejection: %v, %v", again, err)
	}
	c.Data["client_secret"] = "wrong-secret"
	_, _, err := prove(t, p, c)
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindAuth || e.Code != "TOKEN_REFUSED" || !strings.Contains(e.Message, "invalid_client") || strings.Contains(e.Message, "wrong-secret") {
		t.Errorf("a wrong secret: %v", err)
	}
}

func TestServiceAccountsSignForTheirToken(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/computeMetadata") {
			if r.Header.Get("Metadata-Flavor") != "Google" {
				w.WriteHeader(http.StatusForbidden)
			}
			_, _ = io.WriteString(w, `{"access_token":"machine","expires_in":"60"}`)
			return
		}
		_ = r.ParseForm()
		parts := strings.Split(r.Form.Get("assertion"), ".")
		if len(parts) != 3 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		if rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature) != nil || !strings.Contains(string(claims), `"iss":"me@x"`) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"account","expires_in":3600}`)
	}))
	t.Cleanup(srv.Close)
	file, err := json.Marshal(map[string]any{"client_email": "me@x", "private_key": text, "token_uri": srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(name, want string, c *tool.Credential) {
		t.Helper()
		proof, _, err := prove(t, newProver(t), c)
		if err != nil || proof.Header.Get("Authorization") != "Bearer "+want {
			t.Errorf("%s: %v, %v", name, proof, err)
		}
	}
	check("fields", "account", &tool.Credential{Type: "gcp", Data: map[string]any{"client_email": "me@x", "private_key": text, "token_uri": srv.URL}})
	check("a file's text", "account", &tool.Credential{Type: "gcp_service_account", Data: map[string]any{"service_account_json": string(file)}})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(srv.URL, "http://"))
	check("the machine", "machine", &tool.Credential{Type: "gcp_adc"})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", path)
	check("the worker's file", "account", &tool.Credential{Type: "gcp_adc"})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("GCE_METADATA_HOST", "")
	_, _, err = prove(t, newProver(t), &tool.Credential{Type: "gcp_adc"})
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Code != "EGRESS_DENIED" {
		t.Errorf("the metadata service: %v", err)
	}
}

func TestAddressesAndHeadersAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	u, err := url.Parse("https://u:hunter2@host/p?a=b%20c&Token=hunter2&sig=hunter2&flag#hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if got := outbound.Masked(u); got != "https://host/p?a=b%20c&Token=%5BREDACTED%5D&sig=%5BREDACTED%5D&flag" {
		t.Error(got)
	}
	if got := outbound.Shown(u); got != "https://host/p?…" {
		t.Error(got)
	}
	got := outbound.Headers(http.Header{"Set-Cookie": {"s=hunter2"}, "X-Two": {"1", "2"}, "Www-Authenticate": {"x"}})
	if got["set-cookie"] != "[REDACTED]" || got["www-authenticate"] != "[REDACTED]" || got["x-two"] != "1, 2" {
		t.Error(got)
	}
}

func TestACancelledFetchEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &tool.Credential{Type: "oauth2", Data: map[string]any{"token_url": "http://127.0.0.1:1", "client_id": "i"}}
	_, err := newProver(t).Prove(ctx, &tool.Call{Log: io.Discard}, c)
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindCancelled {
		t.Errorf("got %v", err)
	}
}
