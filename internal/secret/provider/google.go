package provider

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
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	googleTokenURL = "https://oauth2.googleapis.com/token"
	cloudPlatform  = "https://www.googleapis.com/auth/cloud-platform"
	googleMetadata = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/"
)

// googleAccount is a credential file: of a service account, or of a person who
// allowed the use of theirs.
type googleAccount struct {
	Type         string `json:"type"`
	Email        string `json:"client_email"`
	PrivateKey   string `json:"private_key"`
	KeyID        string `json:"private_key_id"`
	TokenURI     string `json:"token_uri"`
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	AccessToken  string `json:"access_token"`
	Token        string `json:"token"`
}

// account finds the Google account in a login, which may hold its file as text.
func account(login map[string]any) (googleAccount, error) {
	var a googleAccount
	raw, err := json.Marshal(login)
	if text := (Options{Login: login}).text("service_account_json", "credentials_json", "key_json", "service_account"); text != "" {
		raw = []byte(text)
	}
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return a, event.Errorf(event.Invalid, "the login is no Google account")
	}
	return a, nil
}

// googleToken is an access token of the login, of the file
// GOOGLE_APPLICATION_CREDENTIALS, or of the machine.
func (s *Set) googleToken(ctx context.Context, o Options) (string, error) {
	login := o.Login
	if file := s.first("GOOGLE_APPLICATION_CREDENTIALS"); len(login) == 0 && file != "" {
		text, err := readFile("gcp", file)
		if err != nil {
			return "", err
		}
		login = map[string]any{"credentials_json": text}
	}
	if len(login) == 0 {
		tok, err := s.tokens.get("gcp|metadata", func() (token, error) { return s.machineToken(ctx) })
		return tok.text, err
	}
	a, err := account(login)
	if err != nil {
		return "", err
	}
	if given := firstText(a.AccessToken, a.Token); given != "" && a.PrivateKey == "" && a.RefreshToken == "" {
		return given, nil
	}
	tok, err := s.tokens.get("gcp|"+digest(a.Email, a.PrivateKey, a.RefreshToken), func() (token, error) {
		answer, ends, err := s.grant(ctx, a, map[string]any{"scope": cloudPlatform})
		return token{answer.AccessToken, ends}, err
	})
	return tok.text, err
}

func (s *Set) machineToken(ctx context.Context) (token, error) {
	req, err := http.NewRequest(http.MethodGet, firstText(s.first("NOETL_GCP_METADATA_TOKEN_URL"), googleMetadata+"token"), nil)
	if err != nil {
		return token{}, missing("gcp", "a metadata address that is no URL", "check NOETL_GCP_METADATA_TOKEN_URL on the server")
	}
	req.Header.Set("Metadata-Flavor", "Google")
	var answer grantAnswer
	if err := (call{provider: "gcp", what: "a token of the machine", client: s.own, request: req}).do(ctx, &answer); err != nil {
		return token{}, err
	}
	return token{answer.AccessToken, s.s.Clock().Add(time.Duration(answer.ExpiresIn) * time.Second)}, nil
}

type grantAnswer struct {
	AccessToken string `json:"access_token"`
	IDToken     string `json:"id_token"`
	ExpiresIn   int64  `json:"expires_in"`
}

// grant trades what an account knows for a token.
func (s *Set) grant(ctx context.Context, a googleAccount, claims map[string]any) (grantAnswer, time.Time, error) {
	uri := firstText(a.TokenURI, googleTokenURL)
	var form url.Values
	switch {
	case a.PrivateKey != "":
		now := s.s.Clock()
		claims["iss"], claims["aud"] = a.Email, uri
		claims["iat"], claims["exp"] = now.Unix(), now.Add(time.Hour).Unix()
		assertion, err := signJWT(a, claims)
		if err != nil {
			return grantAnswer{}, time.Time{}, err
		}
		form = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	case a.RefreshToken != "":
		form = url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {a.RefreshToken}, "client_id": {a.ClientID}, "client_secret": {a.ClientSecret},
		}
	default:
		return grantAnswer{}, time.Time{}, missing("gcp", "a login without private_key, refresh_token and access_token", "give the credential one of them")
	}
	req, err := http.NewRequest(http.MethodPost, uri, strings.NewReader(form.Encode()))
	if err != nil {
		return grantAnswer{}, time.Time{}, event.Errorf(event.Invalid, "token_uri of the Google account is no URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer grantAnswer
	err = call{provider: "gcp", what: "a token for " + quote(firstText(a.Email, a.ClientID)), client: s.asked, request: req, explain: loginRefused}.do(ctx, &answer)
	return answer, s.s.Clock().Add(time.Duration(answer.ExpiresIn) * time.Second), err
}

func signJWT(a googleAccount, claims map[string]any) (string, error) {
	block, _ := pem.Decode([]byte(a.PrivateKey))
	bad := event.Errorf(event.Invalid, "private_key of the Google account is no RSA key in PEM")
	if block == nil {
		return "", bad
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			return "", bad
		}
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return "", bad
	}
	head, _ := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": a.KeyID}) // text always has a JSON form
	body, err := json.Marshal(claims)
	if err != nil {
		return "", event.Errorf(event.Internal, "encode the claims of a token")
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", bad
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// GoogleIDToken mints a token that tells a service who calls: of the service
// account in login, or of the machine without one.
func (s *Set) GoogleIDToken(ctx context.Context, login map[string]any, audience string) (Value, error) {
	if audience == "" {
		return Value{}, event.Errorf(event.Invalid, "target_audience: say which service the token is for")
	}
	text := ""
	if len(login) > 0 {
		a, err := account(login)
		if err != nil {
			return Value{}, err
		}
		if a.PrivateKey == "" {
			return Value{}, missing("gcp", "a login without private_key", "id tokens need a service account")
		}
		answer, _, err := s.grant(ctx, a, map[string]any{"target_audience": audience})
		if err != nil {
			return Value{}, err
		}
		text = answer.IDToken
	} else {
		base := strings.TrimSuffix(firstText(s.first("NOETL_GCP_METADATA_TOKEN_URL"), googleMetadata+"token"), "token")
		req, err := http.NewRequest(http.MethodGet, base+"identity?format=full&audience="+url.QueryEscape(audience), nil)
		if err != nil {
			return Value{}, missing("gcp", "a metadata address that is no URL", "check NOETL_GCP_METADATA_TOKEN_URL on the server")
		}
		req.Header.Set("Metadata-Flavor", "Google")
		body, err := call{provider: "gcp", what: "an id token of the machine", client: s.own, request: req}.raw(ctx)
		if err != nil {
			return Value{}, err
		}
		text = strings.TrimSpace(string(body))
	}
	ends := jwtEnd(text)
	if ends.IsZero() {
		return Value{}, event.Errorf(event.Internal, "the answer of gcp for an id token is not as expected")
	}
	raw, _ := json.Marshal(map[string]string{"id_token": text, "token": text, "access_token": text, "token_type": "Bearer"}) // text always has a JSON form
	return Value{Object: raw, ExpiresAt: ends}, nil
}

// jwtEnd is when a token says that it ends. It is not verified: whoever gave it
// to us is trusted, and a wrong time only means an earlier or a later renewal.
func jwtEnd(text string) time.Time {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}
