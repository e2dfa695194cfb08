package oidcd

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/http"
	"net/url"
)

// login is a browser that signed in here and has not come back to its server.
type login struct {
	claims                        Claims
	client, back, nonce, proofKey string
}

// SignIn is who signs in from now on.
func (i *Issuer) SignIn(c Claims) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.person = c
}

// authorize is the page where people sign in. Nobody has to type: whoever the
// test says is sent back at once.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" || q.Get("response_type") != "code" || q.Get("client_id") == "" || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "invalid_request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	i.mu.Lock()
	i.logins[code] = login{i.person, q.Get("client_id"), q.Get("redirect_uri"), q.Get("nonce"), q.Get("code_challenge")}
	i.mu.Unlock()
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token gives the token of a code, once and to the one who began the login.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	code := r.FormValue("code")
	i.mu.Lock()
	l, ok := i.logins[code]
	delete(i.logins, code)
	i.mu.Unlock()
	proof := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || r.FormValue("grant_type") != "authorization_code" || r.FormValue("redirect_uri") != l.back || encode(proof[:]) != l.proofKey {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	claims := maps.Clone(l.claims)
	claims["aud"], claims["nonce"] = l.client, l.nonce
	i.answer(w, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 3600, "id_token": i.Token(claims)})
}
