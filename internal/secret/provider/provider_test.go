package provider_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/provider"
)

const canary = "canary-5f0e1d"

// service is a server that answers as the one it stands for.
type service struct {
	*httptest.Server
	calls atomic.Int64
}

func serve(t *testing.T, h func(w http.ResponseWriter, r *http.Request)) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func set(t *testing.T, env map[string]string, clock func() time.Time) *provider.Set {
	t.Helper()
	s := provider.NewSet(provider.Settings{Getenv: func(name string) string { return env[name] }, Clock: clock, Dial: (&net.Dialer{}).DialContext})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func want(t *testing.T, s *provider.Set, id, ref, text string) provider.Value {
	t.Helper()
	v, err := s.Fetch(t.Context(), id, ref, provider.Options{})
	if err != nil || string(v.JSON()) != text {
		t.Errorf("%s %s: %s, %v; want %s", id, ref, v.JSON(), err, text)
	}
	return v
}

func refuse(t *testing.T, s *provider.Set, id, ref string, code event.Code) {
	t.Helper()
	v, err := s.Fetch(t.Context(), id, ref, provider.Options{})
	if err == nil || event.CodeOf(err) != code {
		t.Errorf("%s %s: %s, %v; want %s", id, ref, v.JSON(), err, code)
	}
	if err != nil && strings.Contains(err.Error(), canary) {
		t.Errorf("%s %s: the error holds a value: %v", id, ref, err)
	}
}

func TestEnvGivesOnlyWhatIsMeantForPlaybooks(t *testing.T) {
	t.Parallel()
	s := set(t, map[string]string{"NOETL_SECRET_API": canary, "NOETL_SECRET_DB": `{"password":"p"}`, "NOETL_ENCRYPTION_KEY": canary}, nil)
	want(t, s, "env", "API", `"`+canary+`"`)
	want(t, s, "env", "NOETL_SECRET_API", `"`+canary+`"`)
	want(t, s, "env", "DB#password", `"p"`)
	refuse(t, s, "env", "NOETL_ENCRYPTION_KEY", event.NotFound)
	refuse(t, s, "env", "DB#user", event.NotFound)
	refuse(t, s, "env", "API#user", event.Invalid)
	refuse(t, s, "env", "", event.Invalid)
	refuse(t, s, "nowhere", "x", event.Invalid)
}

func TestFilesStayBelowTheirDirectory(t *testing.T) {
	t.Parallel()
	outside := file(t, canary)
	dir := t.TempDir()
	for name, text := range map[string]string{"api": "value\n", "db": `{"password":"p"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": outside, "in": "api"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := set(t, map[string]string{"NOETL_SECRET_FILES": dir}, nil)
	want(t, s, "file", "api", `"value"`)
	want(t, s, "file", "in", `"value"`)
	want(t, s, "file", "db#password", `"p"`)
	refuse(t, s, "file", "nothing", event.NotFound)
	refuse(t, s, "file", ".", event.Invalid)
	for _, ref := range []string{"../file", outside, "out", "a/../../x", ""} {
		refuse(t, s, "file", ref, event.Invalid)
	}
	refuse(t, set(t, nil, nil), "file", "api", event.Invalid)
}

// refusals are how services say no, and what that means to whoever asked.
func refusals(t *testing.T, ask func(t *testing.T, status int) error) {
	t.Helper()
	for status, code := range map[int]event.Code{
		403: event.Forbidden, 404: event.NotFound, 429: event.Unavailable, 500: event.Unavailable, 503: event.Unavailable, 302: event.Invalid,
	} {
		if err := ask(t, status); event.CodeOf(err) != code || strings.Contains(err.Error(), canary) {
			t.Errorf("status %d: %v, want %s", status, err, code)
		}
	}
}

func TestVaultSpeaksKeyValueVersionTwo(t *testing.T) {
	t.Parallel()
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Vault-Token") != "tok" || r.Header.Get("X-Vault-Namespace") != "team" {
			http.Error(w, `{"errors":["`+canary+`"]}`, http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/v1/secret/data/api":
			fmt.Fprint(w, `{"data":{"data":{"key":"`+canary+`"},"metadata":{"version":3}}}`)
		case "/v1/kv/data/app/db":
			fmt.Fprint(w, `{"data":{"data":{"user":"u","password":"p","port":5432}}}`)
		case "/v1/secret/data/gone":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"data":{"data":null,"metadata":{"deletion_time":"x"}}}`)
		default:
			http.Error(w, `{"errors":[]}`, http.StatusNotFound)
		}
	})
	tokenFile := file(t, "tok\n")
	env := map[string]string{"VAULT_ADDR": v.URL, "NOETL_VAULT_TOKEN_FILE": tokenFile, "VAULT_NAMESPACE": "team"}
	s := set(t, env, nil)
	want(t, s, "vault", "api", `"`+canary+`"`)
	want(t, s, "vault", "kv/app/db#password", `"p"`)
	want(t, s, "vault", "kv/app/db#port", `5432`)
	refuse(t, s, "vault", "kv/app/db", event.Invalid)
	refuse(t, s, "vault", "kv/app/db#no", event.NotFound)
	refuse(t, s, "vault", "gone", event.NotFound)
	refuse(t, s, "vault", "kv/../sys/seal", event.Invalid)
	if err := os.WriteFile(tokenFile, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, s, "vault", "api", event.Forbidden) // the file is read each time
	refuse(t, set(t, map[string]string{"VAULT_ADDR": v.URL}, nil), "vault", "api", event.Invalid)
	refuse(t, set(t, nil, nil), "vault", "api", event.Invalid)
	v.Close()
	refuse(t, s, "vault", "api", event.Unavailable)
}

func TestVaultLogsInByRoleAndAgainWhenTheTokenIsRevoked(t *testing.T) {
	t.Parallel()
	var logins atomic.Int64
	var revoked atomic.Bool
	v := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/auth/approle/login", "/v1/auth/kubernetes/login":
			var body map[string]string
			_ = json.NewDecoder(r.Body).Decode(&body)
			if body["role_id"]+body["role"] != "r" || body["secret_id"]+body["jwt"] != "s" {
				http.Error(w, "{}", http.StatusBadRequest)
				return
			}
			revoked.Store(false)
			fmt.Fprintf(w, `{"auth":{"client_token":"t%d","lease_duration":3600}}`, logins.Add(1))
		default:
			if revoked.Load() {
				http.Error(w, "{}", http.StatusForbidden)
				return
			}
			fmt.Fprint(w, `{"data":{"data":{"k":"v"}}}`)
		}
	})
	now := time.Unix(1e9, 0)
	s := set(t, map[string]string{"VAULT_ADDR": v.URL, "VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "s"}, func() time.Time { return now })
	want(t, s, "vault", "api", `"v"`)
	want(t, s, "vault", "api", `"v"`)
	if n := logins.Load(); n != 1 {
		t.Errorf("%d logins for two fetches", n)
	}
	revoked.Store(true)
	want(t, s, "vault", "api", `"v"`)
	now = now.Add(time.Hour)
	want(t, s, "vault", "api", `"v"`)
	if n := logins.Load(); n != 3 {
		t.Errorf("%d logins after a revocation and an end, want 3", n)
	}
	k := set(t, map[string]string{"VAULT_ADDR": v.URL, "NOETL_VAULT_K8S_ROLE": "r", "NOETL_K8S_TOKEN_FILE": file(t, "s")}, nil)
	want(t, k, "vault", "api", `"v"`)
	refuse(t, set(t, map[string]string{"VAULT_ADDR": v.URL, "VAULT_ROLE_ID": "r", "VAULT_SECRET_ID": "x"}, nil), "vault", "api", event.Forbidden)
}

func TestVaultIsTrustedByItsOwnCertificate(t *testing.T) {
	t.Parallel()
	v := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"data":{"k":"v"}}}`) }))
	t.Cleanup(v.Close)
	ca := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: v.Certificate().Raw})))
	want(t, set(t, map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": "t", "NOETL_VAULT_CA_FILE": ca}, nil), "vault", "x", `"v"`)
	refuse(t, set(t, map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": "t"}, nil), "vault", "x", event.Unavailable)
	refuse(t, set(t, map[string]string{"VAULT_ADDR": v.URL, "VAULT_TOKEN": "t", "NOETL_VAULT_CA_FILE": file(t, "no")}, nil), "vault", "x", event.Invalid)
}

func TestKubernetesReadsSecretsOfItsNamespace(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	k := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n := status.Load(); n != 0 {
			http.Error(w, canary, int(n))
			return
		}
		if r.Header.Get("Authorization") != "Bearer sa" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/api/v1/namespaces/prod/secrets/one":
			fmt.Fprintf(w, `{"data":{"k":%q}}`, base64.StdEncoding.EncodeToString([]byte("v")))
		case "/api/v1/namespaces/other/secrets/two":
			fmt.Fprintf(w, `{"data":{"a":%q,"b":%q}}`, base64.StdEncoding.EncodeToString([]byte("1")), base64.StdEncoding.EncodeToString([]byte("2")))
		default:
			http.Error(w, "{}", http.StatusNotFound)
		}
	})
	s := set(t, map[string]string{"NOETL_K8S_API_URL": k.URL, "NOETL_K8S_TOKEN_FILE": file(t, "sa"), "NOETL_K8S_NAMESPACE": "prod"}, nil)
	want(t, s, "k8s", "one/k", `"v"`)
	want(t, s, "kubernetes", "one", `"v"`)
	want(t, s, "k8s", "other/two/b", `"2"`)
	refuse(t, s, "k8s", "one/x", event.NotFound)
	refuse(t, s, "k8s", "a/b/c/d", event.Invalid)
	refusals(t, func(t *testing.T, n int) error {
		status.Store(int64(n))
		_, err := s.Fetch(t.Context(), "k8s", "one/k", provider.Options{})
		return err
	})
}

func TestAWSSecretsAreSignedFor(t *testing.T) {
	t.Parallel()
	var refusal atomic.Value
	refusal.Store("")
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if kind := refusal.Load().(string); kind != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":%q,"Message":%q}`, kind, canary)
			return
		}
		auth := r.Header.Get("Authorization")
		if r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" || !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AK") ||
			!strings.Contains(auth, "/eu-west-1/secretsmanager/aws4_request, SignedHeaders=content-type;host;x-amz-date") {
			t.Errorf("request %v", r.Header)
		}
		var body struct{ SecretId string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		switch body.SecretId {
		case "api", "arn:aws:secretsmanager:eu-west-1:1:secret:api":
			fmt.Fprintf(w, `{"SecretString":"{\"key\":\"%s\"}"}`, canary)
		case "binary":
			fmt.Fprintf(w, `{"SecretBinary":%q}`, base64.StdEncoding.EncodeToString([]byte("bytes")))
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"ResourceNotFoundException"}`)
		}
	})
	env := map[string]string{"NOETL_AWS_SM_ENDPOINT": a.URL, "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "AWS_REGION": "eu-west-1"}
	s := set(t, env, nil)
	want(t, s, "aws", "api#key", `"`+canary+`"`)
	want(t, s, "aws_sm", "eu-west-1:api#key", `"`+canary+`"`)
	want(t, s, "aws", "arn:aws:secretsmanager:eu-west-1:1:secret:api#key", `"`+canary+`"`)
	want(t, s, "aws", "binary", `"bytes"`)
	refuse(t, s, "aws", "nothing", event.NotFound)
	refuse(t, s, "aws", "binary#key", event.Invalid)
	for kind, code := range map[string]event.Code{
		"AccessDeniedException": event.Forbidden, "com.amazon#ThrottlingException": event.Unavailable, "ValidationException": event.Invalid,
	} {
		refusal.Store(kind)
		refuse(t, s, "aws", "api", code)
	}
	delete(env, "AWS_REGION")
	refuse(t, set(t, env, nil), "aws", "api", event.Invalid)
	refuse(t, set(t, map[string]string{"AWS_REGION": "eu-west-1"}, nil), "aws", "api", event.Invalid)
}

func TestAWSRolesAreTakenWithTheWebIdentity(t *testing.T) {
	t.Parallel()
	ends := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	sts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		switch {
		case r.Header.Get("Authorization") != "" || r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("DurationSeconds") != "900":
			t.Errorf("request %v %v", r.Header, r.Form)
		case r.Form.Get("WebIdentityToken") != "jwt":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>`+canary+`</Message></Error></ErrorResponse>`)
		default:
			fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>AK</AccessKeyId><SecretAccessKey>SK</SecretAccessKey><SessionToken>ST</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, ends.Format(time.RFC3339))
		}
	})
	sm := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Security-Token") != "ST" {
			t.Errorf("request %v", r.Header)
		}
		fmt.Fprint(w, `{"SecretString":"v"}`)
	})
	env := map[string]string{
		"NOETL_AWS_STS_ENDPOINT": sts.URL, "NOETL_AWS_SM_ENDPOINT": sm.URL, "AWS_WEB_IDENTITY_TOKEN_FILE": file(t, "jwt"),
		"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_REGION": "eu-west-1", "NOETL_AWS_STS_DURATION_SECS": "900",
	}
	s := set(t, env, func() time.Time { return ends.Add(-time.Hour) })
	v := want(t, s, "aws_sts", "arn:aws:iam::1:role/r#me", `{"access_key_id":"AK","secret_access_key":"SK","session_token":"ST"}`)
	if !v.ExpiresAt.Equal(ends) {
		t.Errorf("ends %s, want %s", v.ExpiresAt, ends)
	}
	before := sts.calls.Load()
	want(t, s, "aws", "api", `"v"`)
	want(t, s, "aws", "api", `"v"`)
	if n := sts.calls.Load() - before; n != 1 {
		t.Errorf("the role was taken %d times for two secrets", n)
	}
	refuse(t, s, "aws_iam", "role", event.Invalid)
	env["AWS_WEB_IDENTITY_TOKEN_FILE"] = file(t, "wrong")
	refuse(t, s, "aws_sts", "arn:aws:iam::1:role/r", event.Forbidden)
	env["NOETL_AWS_STS_DURATION_SECS"] = "soon"
	refuse(t, s, "aws_sts", "arn:aws:iam::1:role/r", event.Invalid)
}

func TestGoogleSecretsAreReadWithTheMachinesToken(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	var minted atomic.Int64
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/token"):
			if r.Header.Get("Metadata-Flavor") != "Google" {
				t.Error("no Metadata-Flavor")
			}
			fmt.Fprintf(w, `{"access_token":"t%d","expires_in":600}`, minted.Add(1))
		case status.Load() != 0:
			w.Header().Set("Location", "http://127.0.0.1:1/"+canary)
			http.Error(w, canary, int(status.Load()))
		case r.Header.Get("Authorization") != fmt.Sprintf("Bearer t%d", minted.Load()):
			http.Error(w, "{}", http.StatusUnauthorized)
		case r.URL.Path == "/v1/projects/p/secrets/s/versions/latest:access", r.URL.Path == "/v1/projects/p/secrets/s/versions/2:access":
			fmt.Fprintf(w, `{"payload":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte(canary)))
		case r.URL.Path == "/v1/projects/-/serviceAccounts/sa@x.iam:generateAccessToken":
			body, _ := io.ReadAll(r.Body)
			if !bytes.Contains(body, []byte(`"lifetime":"300s"`)) || !bytes.Contains(body, []byte(`"scope":["drive"]`)) {
				t.Errorf("body %s", body)
			}
			fmt.Fprint(w, `{"accessToken":"at","expireTime":"2030-01-01T00:00:00Z"}`)
		default:
			http.Error(w, "{}", http.StatusNotFound)
		}
	})
	now := time.Unix(1e9, 0)
	s := set(t, map[string]string{
		"NOETL_GCP_SM_ENDPOINT": g.URL, "NOETL_GCP_METADATA_TOKEN_URL": g.URL + "/token", "GOOGLE_CLOUD_PROJECT": "p", "NOETL_GCP_IAM_ENDPOINT": g.URL,
		"NOETL_GCP_IAM_LIFETIME_SECS": "300",
	}, func() time.Time { return now })
	want(t, s, "gcp", "s", `"`+canary+`"`)
	want(t, s, "gcp", "projects/p/secrets/s/versions/2", `"`+canary+`"`)
	if n := minted.Load(); n != 1 {
		t.Errorf("%d tokens for two secrets", n)
	}
	now = now.Add(9 * time.Minute)
	want(t, s, "gcp", "projects/p/secrets/s", `"`+canary+`"`)
	if n := minted.Load(); n != 2 {
		t.Errorf("%d tokens after one ended", n)
	}
	if v := want(t, s, "gcp_iam", "sa@x.iam#drive", `"at"`); v.ExpiresAt.Year() != 2030 {
		t.Errorf("ends %s", v.ExpiresAt)
	}
	refuse(t, s, "gcp", "projects/p/s", event.Invalid)
	refuse(t, s, "gcp", "projects/p/secrets/no", event.NotFound)
	refuse(t, s, "gcp_iam", "", event.Invalid)
	refusals(t, func(t *testing.T, n int) error {
		status.Store(int64(n))
		_, err := s.Fetch(t.Context(), "gcp", "s", provider.Options{})
		return err
	})
}

func TestGoogleAccountsTradeASignedClaimForTokens(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	idToken := "h." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1893456000}`)) + ".s"
	g := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			if r.Header.Get("Authorization") != "Bearer at" {
				http.Error(w, "{}", http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"payload":{"data":%q}}`, base64.StdEncoding.EncodeToString([]byte("v")))
			return
		}
		_ = r.ParseForm()
		parts := strings.Split(r.Form.Get("assertion"), ".")
		raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
		var claims map[string]any
		_ = json.Unmarshal(raw, &claims)
		if claims["iss"] != "sa@x" {
			t.Errorf("claims %v", claims)
		}
		fmt.Fprintf(w, `{"access_token":"at","expires_in":3600,"id_token":%q}`, idToken)
	})
	login := map[string]any{
		"type": "service_account", "client_email": "sa@x", "token_uri": g.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
	s := set(t, map[string]string{"NOETL_GCP_SM_ENDPOINT": g.URL}, nil)
	v, err := s.Fetch(t.Context(), "gcp", "projects/p/secrets/s", provider.Options{Login: login})
	if err != nil || v.Text != "v" {
		t.Errorf("%v, %v", v, err)
	}
	id, err := s.GoogleIDToken(t.Context(), login, "https://svc")
	if err != nil || id.ExpiresAt.Unix() != 1893456000 || !strings.Contains(string(id.JSON()), idToken) {
		t.Errorf("id token %s, %v", id.JSON(), err)
	}
	login["private_key"] = canary
	if _, err := s.GoogleIDToken(t.Context(), login, "https://svc"); event.CodeOf(err) != event.Invalid || strings.Contains(err.Error(), canary) {
		t.Errorf("a key that is none: %v", err)
	}
}

func TestAzureVaultsAndTokens(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		switch {
		case status.Load() != 0:
			http.Error(w, canary, int(status.Load()))
		case r.URL.Path == "/imds":
			if r.Header.Get("Metadata") != "true" || r.Form.Get("resource") != "https://vault.azure.net" {
				t.Errorf("request %v %v", r.Header, r.Form)
			}
			fmt.Fprint(w, `{"access_token":"mt","expires_in":"3600"}`)
		case r.URL.Path == "/tenant/oauth2/v2.0/token":
			if r.Form.Get("client_secret") != "s" {
				http.Error(w, canary, http.StatusBadRequest)
				return
			}
			fmt.Fprintf(w, `{"access_token":"for %s","expires_in":3600}`, r.Form.Get("scope"))
		case r.URL.Path == "/secrets/name" || r.URL.Path == "/secrets/name/v1":
			if r.Header.Get("Authorization") != "Bearer mt" || r.URL.Query().Get("api-version") != "7.4" {
				http.Error(w, "{}", http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"value":%q}`, canary)
		default:
			http.Error(w, "{}", http.StatusNotFound)
		}
	})
	env := map[string]string{"NOETL_AZURE_KV_ENDPOINT": a.URL, "NOETL_AZURE_IMDS_URL": a.URL + "/imds", "AZURE_KEYVAULT_VAULT": "v", "AZURE_AUTHORITY_HOST": a.URL}
	s := set(t, env, nil)
	want(t, s, "azure", "name", `"`+canary+`"`)
	want(t, s, "azure_kv", "other/name#v1", `"`+canary+`"`)
	refuse(t, s, "azure", "nothing", event.NotFound)
	refuse(t, s, "azure", "evil.example/name", event.Invalid)
	refuse(t, s, "azure_oauth", "https://x/.default", event.Invalid)
	app := map[string]string{"AZURE_AUTHORITY_HOST": a.URL, "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s", "AZURE_TENANT_ID": "tenant"}
	now := time.Unix(1e9, 0)
	o := set(t, app, func() time.Time { return now })
	if v := want(t, o, "azure_oauth", "https://x/.default", `"for https://x/.default"`); !v.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("ends %s", v.ExpiresAt)
	}
	want(t, o, "azure_aad", "tenant:https://x/.default", `"for https://x/.default"`)
	app["AZURE_CLIENT_SECRET"] = "wrong"
	refuse(t, o, "azure_oauth", "https://x/.default", event.Forbidden)
	refusals(t, func(t *testing.T, n int) error {
		status.Store(int64(n))
		_, err := s.Fetch(t.Context(), "azure", "name", provider.Options{})
		return err
	})
}

func TestEndpointsOfPlaybooks(t *testing.T) {
	t.Parallel()
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/token":
			if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || string(body) != "client_id=c&grant_type=client_credentials" {
				t.Errorf("%v %s", r.Header, body)
			}
			fmt.Fprint(w, `{"access_token":"`+canary+`","expires_in":120}`)
		case "/json":
			if r.Header.Get("Content-Type") != "application/json" || string(body) != `{"a":1}` || r.URL.Query().Get("q") != "1" {
				t.Errorf("%v %s %s", r.Header, body, r.URL)
			}
			fmt.Fprint(w, `plain`)
		case "/refused":
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_client","error_description":"`+canary+`"}`)
		case "/moved":
			http.Redirect(w, r, "/token", http.StatusTemporaryRedirect)
		case "/huge":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 3<<20))
		}
	})
	now := time.Unix(1e9, 0)
	s := set(t, nil, func() time.Time { return now })
	v, err := s.Ask(t.Context(), provider.Endpoint{URL: e.URL + "/token", Token: "access_token", Form: map[string]any{"client_id": "c", "grant_type": "client_credentials"}})
	if err != nil || !strings.Contains(string(v.JSON()), canary) || !v.ExpiresAt.Equal(now.Add(2*time.Minute)) {
		t.Errorf("%s until %s, %v", v.JSON(), v.ExpiresAt, err)
	}
	v, err = s.Ask(t.Context(), provider.Endpoint{URL: e.URL + "/json", JSON: map[string]any{"a": 1}, Params: map[string]any{"q": 1}})
	if err != nil || v.Text != "plain" {
		t.Errorf("%s, %v", v.JSON(), err)
	}
	for _, c := range []struct {
		e    provider.Endpoint
		code event.Code
	}{
		{provider.Endpoint{URL: e.URL + "/refused"}, event.Forbidden},
		{provider.Endpoint{URL: e.URL + "/moved"}, event.Invalid},
		{provider.Endpoint{URL: e.URL + "/huge"}, event.Limit},
		{provider.Endpoint{URL: e.URL + "/json", JSON: map[string]any{"a": 1}, Params: map[string]any{"q": 1}, Token: "access_token"}, event.Invalid},
		{provider.Endpoint{URL: "file:///etc/passwd"}, event.Invalid},
		{provider.Endpoint{URL: e.URL, Headers: map[string]string{"A": "b\r\nc: d"}}, event.Invalid},
	} {
		if _, err := s.Ask(t.Context(), c.e); event.CodeOf(err) != c.code || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, want %s", c.e.URL, err, c.code)
		}
	}
	guarded := provider.NewSet(provider.Settings{})
	t.Cleanup(func() { _ = guarded.Close() })
	if _, err := guarded.Ask(t.Context(), provider.Endpoint{URL: "http://169.254.169.254/latest/meta-data/", Method: "GET"}); event.CodeOf(err) != event.Forbidden {
		t.Errorf("a playbook reached the metadata of the machine: %v", err)
	}
}

func TestResidency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		r      provider.Residency
		server string
		code   event.Code // "" = allowed
		remark bool
	}{
		{"nothing said", provider.Residency{Region: "eu"}, "us", "", false},
		{"none", provider.Residency{Mode: "none", Region: "eu"}, "us", "", false},
		{"the same region", provider.Residency{Mode: "strict", Region: "eu"}, "EU", "", false},
		{"a listed region", provider.Residency{Mode: "strict", Region: "eu", Allowed: []string{"us"}}, "us", "", false},
		{"elsewhere", provider.Residency{Mode: "strict", Region: "eu"}, "us", event.Forbidden, true},
		{"a server without a region", provider.Residency{Mode: "strict", Region: "eu"}, "", event.Forbidden, true},
		{"not listed", provider.Residency{Mode: "strict", Allowed: []string{"eu"}}, "us", event.Forbidden, true},
		{"elsewhere, with advice", provider.Residency{Mode: "advisory", Region: "eu"}, "us", "", true},
		{"no region at all", provider.Residency{Mode: "strict"}, "", "", false},
		{"an unknown word", provider.Residency{Mode: "maybe", Region: "eu"}, "eu", event.Invalid, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			remark, err := c.r.Check(c.server)
			if (err != nil) != (c.code != "") || err != nil && event.CodeOf(err) != c.code || (remark != "") != c.remark {
				t.Errorf("%q, %v", remark, err)
			}
		})
	}
}
