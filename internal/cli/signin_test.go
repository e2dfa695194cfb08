package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/testkit/oidcd"
)

// guarded is a server that people sign in at with an issuer.
func guarded(t *testing.T, issuer *oidcd.Issuer) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Options{
		DataDir: t.TempDir(), InProcess: true, Relaxed: true, NoWorker: true, Listen: "127.0.0.1:0",
		Auth: node.Authentication{Mode: "oidc", Issuer: issuer.URL, Audience: issuer.Audience, ClientID: "noetl-cli", Grants: "role=viewer->viewer"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// browser is a program that opens an address the way one with a person does: it
// goes where it is sent.
func browser(t *testing.T, script string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "browser")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BROWSER", file)
}

func ownConfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	t.Setenv("NOETL_CONFIG", file)
	return file
}

// TestPeopleSignInWithABrowserAndOut goes the whole way: the server says where,
// the browser comes back with a code, and the session ends at the server too.
func TestPeopleSignInWithABrowserAndOut(t *testing.T) {
	issuer := oidcd.Start(t)
	issuer.SignIn(issuer.Claims("viewer", oidcd.Claims{"name": "Ada"}))
	n := guarded(t, issuer)
	file := ownConfig(t)
	browser(t, `exec curl -sSfL "$1" >/dev/null`)

	if code, out := noetl(t, "list", "--server-url", n.URL); code != ExitFailed {
		t.Errorf("before the login: %d\n%s", code, out)
	}
	code, out := noetl(t, "auth", "login", "--browser", "--pkce-port", "0", "--server-url", n.URL)
	if code != ExitOK || !strings.Contains(out, "kept in context default") || !strings.Contains(out, "Sign in at:\n  "+issuer.URL+"/authorize?") {
		t.Fatalf("login: %d\n%s", code, out)
	}
	if code, out := noetl(t, "auth", "whoami"); code != ExitOK || !strings.Contains(out, "Ada at "+n.URL) {
		t.Errorf("whoami: %d\n%s", code, out)
	}
	if code, out := noetl(t, "list"); code != ExitOK {
		t.Errorf("after the login: %d\n%s", code, out)
	}
	cfg, err := readConfig(&Env{Stderr: os.Stderr})
	if err != nil || cfg.Contexts["default"] == nil || cfg.Contexts["default"].Session == "" {
		t.Fatalf("no session is kept: %+v %v", cfg, err)
	}
	session := cfg.Contexts["default"].Session
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the session: %v %v", info.Mode(), err)
	}
	if code, out := noetl(t, "auth", "logout"); code != ExitOK || strings.Contains(out, "warning") {
		t.Errorf("logout: %d\n%s", code, out)
	}
	if code, out := noetl(t, "list", "--session-token", session); code != ExitFailed {
		t.Errorf("the session goes on after the logout: %d\n%s", code, out)
	}
}

func TestALogoutWithoutTheServerForgetsTheSession(t *testing.T) {
	file := ownConfig(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // and nobody answers there
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	if code, out := noetl(t, "context", "add", "gone", "--server-url", url, "--session-token", "a-session"); code != ExitOK {
		t.Fatalf("context: %d\n%s", code, out)
	}
	code, out := noetl(t, "auth", "logout")
	if code != ExitOK || !strings.Contains(out, "the session was not ended at "+url) || !strings.Contains(out, "signed out of context gone") {
		t.Errorf("logout: %d\n%s", code, out)
	}
	if b, err := os.ReadFile(file); err != nil || strings.Contains(string(b), "a-session") {
		t.Errorf("the session is still kept: %v\n%s", err, b)
	}
}

// TestAFailedSignInKeepsNothing lets the provider, the browser and the server
// refuse.
func TestAFailedSignInKeepsNothing(t *testing.T) {
	issuer := oidcd.Start(t)
	n := guarded(t, issuer)
	file := ownConfig(t)
	back := `back=$(printf %s "$1" | sed 's/.*redirect_uri=\([^&]*\).*/\1/; s/%3A/:/g; s/%2F/\//g'); state=$(printf %s "$1" | sed 's/.*state=\([^&]*\).*/\1/'); `
	for name, c := range map[string]struct {
		role, browser string
		args          []string
		code          int
		want          string
	}{
		"the provider refuses": {"viewer", back + `exec curl -sS "$back?state=$state&error=access_denied&error_description=not%20you"`, nil, ExitFailed, "refuses: not you"},
		"a wrong code":         {"viewer", back + `exec curl -sS "$back?state=$state&code=guessed"`, nil, ExitFailed, "redeem the code"},
		"another's answer is not taken": {
			"viewer", back + `curl -sS "$back?state=stolen&code=x"; exec curl -sS "$back?state=$state&error=end"`, nil, ExitFailed, "refuses: end",
		},
		"no such provider": {"viewer", "true", []string{"--issuer", "http://127.0.0.1:1"}, ExitInvalid, "ask the identity provider http://127.0.0.1:1"},
		"no rights here":   {"stranger", `exec curl -sSfL "$1" >/dev/null`, nil, ExitOK, "signed in"},
	} {
		t.Run(name, func(t *testing.T) {
			issuer.SignIn(issuer.Claims(c.role, nil))
			browser(t, c.browser)
			code, out := noetl(t, append([]string{"auth", "login", "--browser", "--pkce-port", "0", "--server-url", n.URL}, c.args...)...)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("code %d, want %d and %q in\n%s", code, c.code, c.want, out)
			}
			if _, err := os.Stat(file); c.code != ExitOK && err == nil {
				t.Error("something is kept")
			}
			_ = os.Remove(file)
		})
	}
}
