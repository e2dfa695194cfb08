package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// signInTime bounds how long the browser may take to come back.
const signInTime = 5 * time.Minute

// provider is where one signs in.
type provider struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	Audience string `json:"audience"`
	secret   string
	redirect string
}

// provider joins flags, context and what the server says of itself.
func (c *loginCommand) provider(ctx context.Context, env *Env, t target) (provider, error) {
	p := provider{
		Issuer: orText(c.Issuer, c.Auth0Domain), ClientID: c.ClientID, Audience: c.Auth0Audience, secret: orEnvWhenBlank(c.Auth0ClientSecret, "NOETL_AUTH0_CLIENT_SECRET"),
		redirect: c.Auth0RedirectURI,
	}
	cfg, err := readConfig(env)
	if err != nil {
		return p, err
	}
	if own := cfg.Contexts[t.context]; own != nil {
		p.Issuer, p.ClientID, p.Audience = orText(p.Issuer, own.Auth0Domain), orText(p.ClientID, own.Auth0ClientID), orText(p.Audience, own.Auth0Audience)
		p.secret, p.redirect = orText(p.secret, auth0Secret(own)), orText(p.redirect, own.Auth0Redirect)
	}
	if p.Issuer == "" || p.ClientID == "" {
		var told provider
		if cl, err := t.client(); err == nil {
			if raw, err := cl.Ask(ctx, providerRoute); err == nil {
				_ = json.Unmarshal(raw, &told) // a server without a provider says nothing
			}
		}
		p.Issuer, p.ClientID, p.Audience = orText(p.Issuer, told.Issuer), orText(p.ClientID, told.ClientID), orText(p.Audience, told.Audience)
	}
	if p.Issuer == "" || p.ClientID == "" {
		return p, invalidf("neither the server nor the context says where to sign in: give --issuer URL and --client-id ID, or paste a token instead")
	}
	if !strings.Contains(p.Issuer, "://") {
		p.Issuer = "https://" + p.Issuer + "/"
	}
	return p, nil
}

// providerRoute is where a server tells which identity provider it trusts.
const providerRoute = "/api/auth/methods"

// browse lets the user sign in at the provider, with a code that only this
// process can redeem (PKCE), and returns the token it issues.
func (c *loginCommand) browse(ctx context.Context, env *Env, t target) (string, error) {
	p, err := c.provider(ctx, env, t)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	found, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return "", invalidf("ask the identity provider %s: %v", p.Issuer, err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(c.PKCEPort)))
	if err != nil {
		return "", invalidf("wait for the browser: %v: choose another port with --pkce-port, one the provider knows", err)
	}
	redirect := orText(p.redirect, fmt.Sprintf("http://127.0.0.1:%d/callback", listener.Addr().(*net.TCPAddr).Port))
	config := oauth2.Config{ClientID: p.ClientID, ClientSecret: p.secret, Endpoint: found.Endpoint(), RedirectURL: redirect, Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	verifier, state := oauth2.GenerateVerifier(), rand.Text()
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if p.Audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", p.Audience))
	}
	address := config.AuthCodeURL(state, options...)
	fmt.Fprintf(env.Stderr, "Sign in at:\n  %s\n", address)
	if !c.NoBrowserOpen {
		openBrowser(env, address)
	}
	code, err := awaitCode(ctx, listener, state)
	if err != nil {
		return "", err
	}
	issued, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return "", fmt.Errorf("redeem the code of the identity provider: %w", err)
	}
	if id, ok := issued.Extra("id_token").(string); ok && p.Audience == "" {
		return id, nil
	}
	return issued.AccessToken, nil
}

// awaitCode serves the one request the browser comes back with.
func awaitCode(ctx context.Context, listener net.Listener, state string) (string, error) {
	answers := make(chan url.Values, 1)
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) != 1 { // not ours
			http.Error(w, "This is not the sign-in that waits here.", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "Signed in. You can close this page and go back to the terminal.")
		select {
		case answers <- q:
		default:
		}
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
	}()
	select {
	case q := <-answers:
		if q.Get("error") != "" || q.Get("code") == "" {
			return "", fmt.Errorf("the identity provider refuses: %s", printable(orText(q.Get("error_description"), orText(q.Get("error"), "it sent no code"))))
		}
		return q.Get("code"), nil
	case err := <-ended:
		return "", fmt.Errorf("wait for the browser: %w", err)
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", fmt.Errorf("nobody signed in within %s", signInTime)
		}
		return "", exit(ExitInterrupted)
	}
}

// openBrowser shows an address; who has no browser opens it elsewhere.
func openBrowser(env *Env, address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	if browser := os.Getenv("BROWSER"); browser != "" {
		name = browser
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(env.Stderr, "(no browser could be opened here: open the address yourself)")
		return
	}
	go func() { _ = cmd.Wait() }() // the browser outlives this command
}
