package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

func TestSettingsOfAuthenticationSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	oidc := Authentication{Mode: "oidc", Issuer: "https://login.example.com", Audience: "noetl", Grants: "sub=*->viewer"}
	with := func(change func(*Authentication)) Authentication {
		a := oidc
		change(&a)
		return a
	}
	for name, c := range map[string]struct {
		a    Authentication
		want string // "" is fine
	}{
		"nothing":                       {Authentication{}, ""},
		"off":                           {Authentication{Mode: "off"}, ""},
		"token":                         {Authentication{Mode: "token", BootstrapToken: strings.Repeat("x", 40), CertGrants: "CN=w->worker"}, ""},
		"oidc":                          {oidc, ""},
		"a client":                      {with(func(a *Authentication) { a.ClientID, a.ClientSecret = "page", "s" }), ""},
		"two issuers":                   {with(func(a *Authentication) { a.Issuer += ", http://localhost:5556/dex" }), ""},
		"an unknown mode":               {Authentication{Mode: "tokens"}, "choose off, token or oidc"},
		"no issuer":                     {with(func(a *Authentication) { a.Issuer = "" }), "NOETL_OIDC_ISSUER is missing"},
		"no audience":                   {with(func(a *Authentication) { a.Audience = " , " }), "NOETL_OIDC_AUDIENCE is missing"},
		"no grants":                     {with(func(a *Authentication) { a.Grants = "" }), "NOETL_OIDC_GRANTS is missing"},
		"wrong grants":                  {with(func(a *Authentication) { a.Grants = "sub=*->king" }), `NOETL_OIDC_GRANTS: rule "sub=*->king" gives nothing`},
		"an open issuer":                {with(func(a *Authentication) { a.Issuer = "http://login.example.com" }), "NOETL_OIDC_ISSUER: "},
		"a secret without its client":   {with(func(a *Authentication) { a.ClientSecret = "s" }), "without NOETL_OIDC_CLIENT_ID"},
		"an issuer of no use":           {Authentication{Mode: "token", Issuer: "https://x.example"}, "NOETL_OIDC_ISSUER is set, but authentication is token"},
		"a first token of no use":       {Authentication{BootstrapToken: "x"}, "NOETL_BOOTSTRAP_TOKEN is set, but authentication is off"},
		"certificates of no use":        {Authentication{CertGrants: "CN=w->worker"}, "NOETL_AUTH_CERT_GRANTS is set, but authentication is off"},
		"certificates by nothing":       {Authentication{Mode: "token", CertGrants: "O=w->worker"}, "NOETL_AUTH_CERT_GRANTS: "},
		"much leeway":                   {Authentication{Leeway: time.Hour}, "NOETL_AUTH_JWT_LEEWAY_SECS"},
		"keys asked for all the time":   {Authentication{KeysTTL: time.Second}, "NOETL_AUTH_JWKS_TTL_SECS"},
		"sessions that end at once":     {Authentication{SessionIdle: time.Second}, "NOETL_SESSION_IDLE"},
		"sessions idle after their end": {Authentication{SessionIdle: 2 * time.Hour, SessionMax: time.Hour}, "NOETL_SESSION_MAX"},
		"a short record":                {Authentication{KeepActions: time.Minute}, "NOETL_AUDIT_KEEP"},
	} {
		err := c.a.Check()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || event.CodeOf(err) != event.Invalid):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	a := Authentication{Mode: "token", BootstrapToken: "short"}
	if _, err := Start(t.Context(), Options{DataDir: t.TempDir(), InProcess: true, NoWorker: true, Listen: "127.0.0.1:0", Auth: a}); err == nil || !strings.Contains(err.Error(), "NOETL_BOOTSTRAP_TOKEN") {
		t.Errorf("a first token that is too short = %v", err)
	}
}

func TestAServerWithTokensOpensToItsFirstTokenOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := func() (*Node, string) {
		t.Helper()
		n, err := Start(t.Context(), Options{DataDir: dir, InProcess: true, NoWorker: true, Listen: "127.0.0.1:0", Auth: Authentication{Mode: "token"}})
		if err != nil {
			t.Fatal(err)
		}
		return n, n.URL
	}
	call := func(url, token string) error {
		t.Helper()
		c, err := client.New(url, client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Tokens(t.Context())
		return err
	}
	n, url := begin()
	if n.Bootstrap == "" {
		t.Fatal("no first token was made")
	}
	if err := call(url, n.Bootstrap); err != nil {
		t.Errorf("the first token = %v", err)
	}
	for _, wrong := range []string{"", n.Bootstrap + "x"} {
		if err := call(url, wrong); event.CodeOf(err) != event.Unauthorized {
			t.Errorf("another = %v", err)
		}
	}
	first := n.Bootstrap
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
	// Whoever has lost it makes another at the database.
	made, secret, err := NewToken(t.Context(), Options{DataDir: dir}, "again", "admin", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RevokeToken(t.Context(), Options{DataDir: dir}, "1"); err != nil {
		t.Fatal(err)
	}
	list, err := ListTokens(t.Context(), Options{DataDir: dir})
	if err != nil || len(list) != 2 || list[0].ID != made.ID || list[1].RevokedAt.IsZero() {
		t.Errorf("%+v, %v", list, err)
	}
	n, url = begin()
	if n.Bootstrap != "" {
		t.Error("a second start made a first token again")
	}
	if err := call(url, secret); err != nil {
		t.Errorf("the new token = %v", err)
	}
	if err := call(url, first); event.CodeOf(err) != event.Unauthorized {
		t.Errorf("the revoked token = %v", err)
	}
	c, err := client.New(url, client.WithToken(secret))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	actions, _, err := c.Actions(t.Context(), client.ActionFilter{Type: "token.created", Target: made.ID})
	if err != nil || len(actions) != 1 || actions[0].Actor != "database" {
		t.Errorf("the record of it: %+v, %v", actions, err)
	}
	if err := n.Stop(); err != nil {
		t.Fatal(err)
	}
}

func TestBrowsersNeedAnAddressToComeBackTo(t *testing.T) {
	t.Parallel()
	a := Authentication{Mode: "oidc", Issuer: "https://login.example.com", Audience: "noetl", Grants: "sub=*->viewer", ClientID: "page"}
	_, err := Start(t.Context(), Options{DataDir: t.TempDir(), InProcess: true, NoWorker: true, Listen: "0.0.0.0:0", Auth: a})
	if err == nil || !strings.Contains(err.Error(), "NOETL_PUBLIC_SERVER_URL") {
		t.Errorf("without an address = %v", err)
	}
	for url, want := range map[string]bool{"http://0.0.0.0:8082": true, "http://[::]:8082": true, "https://x.example": false, "http://127.0.0.1:1": false, "": true} {
		if anyAddress(url) != want {
			t.Errorf("%q names any address: %v", url, !want)
		}
	}
}
