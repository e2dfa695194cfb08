package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// vault reads [mount/]path[#key] from the key-value store, version 2, of a
// Vault. It logs in by a token, a file with a token, an AppRole or the service
// account of the pod, in this order.
type vault struct {
	set    *Set
	once   sync.Once
	client *http.Client
	err    error
}

func newVault(s *Set) *vault { return &vault{set: s} }

func (v *vault) open() (*http.Client, error) {
	v.once.Do(func() {
		v.client = v.set.own
		if file := v.set.first("NOETL_VAULT_CA_FILE", "VAULT_CACERT"); file != "" {
			v.client, v.err = trusting(file)
		}
	})
	return v.client, v.err
}

func (v *vault) close() {
	if v.client != nil {
		v.client.CloseIdleConnections()
	}
}

func (v *vault) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	path, key := cutKey(ref)
	mount, name, ok := strings.Cut(strings.Trim(path, "/"), "/")
	if !ok {
		mount, name = "secret", mount
	}
	if name == "" || strings.Contains("/"+path+"/", "/../") {
		return Value{}, badRef("vault", ref, "want [mount/]path[#key]")
	}
	s, err := v.session(o)
	if err != nil {
		return Value{}, err
	}
	var answer struct {
		Data struct {
			Data map[string]any `json:"data"`
		} `json:"data"`
	}
	if err := s.read(ctx, "/v1/"+escapePath(mount)+"/data/"+escapePath(name), "secret "+quote(path), &answer); err != nil {
		return Value{}, err
	}
	if answer.Data.Data == nil {
		return Value{}, noSecret("vault", ref, "its latest version is deleted")
	}
	return pick("vault", ref, key, answer.Data.Data)
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// vaultSession is one way to reach and to log into a Vault.
type vaultSession struct {
	v         *vault
	client    *http.Client
	addr      string
	namespace string
	login     Options
}

func (v *vault) session(o Options) (*vaultSession, error) {
	client, err := v.open()
	if err != nil {
		return nil, err
	}
	s := &vaultSession{v: v, client: client, login: o}
	s.addr = strings.TrimRight(firstText(o.text("vault_addr", "addr", "url"), v.set.first("VAULT_ADDR")), "/")
	s.namespace = firstText(o.text("namespace"), v.set.first("VAULT_NAMESPACE"))
	if s.addr == "" {
		return nil, missing("vault", "no address", "set VAULT_ADDR on the server")
	}
	return s, nil
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// read asks with a token, and once more with a new one when a token that was
// kept is refused: it may have been revoked.
func (s *vaultSession) read(ctx context.Context, path, what string, out any) error {
	for try := 0; ; try++ {
		tok, key, err := s.token(ctx)
		if err != nil {
			return err
		}
		req, err := s.request(http.MethodGet, path, tok, nil)
		if err != nil {
			return err
		}
		err = call{provider: "vault", what: what, client: s.client, request: req}.do(ctx, out)
		if err == nil || key == "" || try > 0 || event.CodeOf(err) != event.Forbidden {
			return err
		}
		s.v.set.tokens.drop(key)
	}
}

func (s *vaultSession) request(method, path, tok string, body any) (*http.Request, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, event.Errorf(event.Internal, "encode a request to vault")
	}
	req, err := http.NewRequest(method, s.addr+path, bytes.NewReader(raw))
	if err != nil {
		return nil, missing("vault", "an address that is no URL", "check VAULT_ADDR on the server")
	}
	if body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	req.Header.Set("X-Vault-Request", "true")
	if tok != "" {
		req.Header.Set("X-Vault-Token", tok)
	}
	if s.namespace != "" {
		req.Header.Set("X-Vault-Namespace", s.namespace)
	}
	return req, nil
}

// token is what to authenticate with, and under which key it is kept; "" when
// it was not minted.
func (s *vaultSession) token(ctx context.Context) (tok, key string, err error) {
	set := s.v.set
	role, secret := s.login.text("role_id"), s.login.text("secret_id")
	if len(s.login.Login) > 0 {
		if tok := s.login.text("token", "vault_token", "access_token"); tok != "" {
			return tok, "", nil
		}
		if role == "" {
			return "", "", missing("vault", "a login without token and role_id", "give the credential one of them")
		}
		return s.appRole(ctx, role, secret)
	}
	if tok := set.first("VAULT_TOKEN"); tok != "" {
		return tok, "", nil
	}
	if file := set.first("NOETL_VAULT_TOKEN_FILE"); file != "" {
		tok, err := readFile("vault", file) // whoever writes it renews it
		return tok, "", err
	}
	if role := set.first("VAULT_ROLE_ID"); role != "" {
		secret := set.first("VAULT_SECRET_ID")
		if file := set.first("NOETL_VAULT_SECRET_ID_FILE"); secret == "" && file != "" {
			if secret, err = readFile("vault", file); err != nil {
				return "", "", err
			}
		}
		return s.appRole(ctx, role, secret)
	}
	if role := set.first("NOETL_VAULT_K8S_ROLE"); role != "" {
		return s.podAccount(ctx, role)
	}
	return "", "", missing("vault", "no way to log in", "set VAULT_TOKEN, NOETL_VAULT_TOKEN_FILE, VAULT_ROLE_ID or NOETL_VAULT_K8S_ROLE on the server")
}

func (s *vaultSession) appRole(ctx context.Context, role, secret string) (string, string, error) {
	mount := firstText(s.login.text("mount"), s.v.set.first("NOETL_VAULT_APPROLE_MOUNT"), "approle")
	return s.logIn(ctx, mount, map[string]string{"role_id": role, "secret_id": secret})
}

func (s *vaultSession) podAccount(ctx context.Context, role string) (string, string, error) {
	jwt, err := readFile("vault", firstText(s.v.set.first("NOETL_K8S_TOKEN_FILE"), accountDir+"token"))
	if err != nil {
		return "", "", err
	}
	return s.logIn(ctx, firstText(s.v.set.first("NOETL_VAULT_K8S_MOUNT"), "kubernetes"), map[string]string{"role": role, "jwt": jwt})
}

func (s *vaultSession) logIn(ctx context.Context, mount string, proof map[string]string) (string, string, error) {
	key := "vault|" + s.addr + "|" + s.namespace + "|" + mount + "|" + digest(proof["role_id"], proof["secret_id"], proof["role"])
	tok, err := s.v.set.tokens.get(key, func() (token, error) {
		req, err := s.request(http.MethodPost, "/v1/auth/"+escapePath(mount)+"/login", "", proof)
		if err != nil {
			return token{}, err
		}
		var answer struct {
			Auth struct {
				ClientToken   string `json:"client_token"`
				LeaseDuration int64  `json:"lease_duration"`
			} `json:"auth"`
		}
		c := call{provider: "vault", what: "a login at " + quote(mount), client: s.client, request: req, explain: loginRefused}
		if err := c.do(ctx, &answer); err != nil {
			return token{}, err
		}
		ends := s.v.set.s.Clock().Add(time.Duration(answer.Auth.LeaseDuration) * time.Second)
		return token{answer.Auth.ClientToken, ends}, nil
	})
	return tok.text, key, err
}

// loginRefused tells a wrong login, which some services call a bad request.
func loginRefused(status int, _ []byte) event.Code {
	if status == http.StatusBadRequest {
		return event.Forbidden
	}
	return ""
}

func readFile(provider, file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", missing(provider, "no readable file "+file+": "+reason(err), "check the settings of the server")
	}
	return strings.TrimSpace(string(raw)), nil
}
