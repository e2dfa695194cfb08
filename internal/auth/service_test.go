package auth_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// noon is when the tests begin.
var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// counted is a store that counts look-ups of tokens and sessions.
type counted struct {
	*memstore.Store
	mu     sync.Mutex
	tokens int
}

func (c *counted) Token(ctx context.Context, id event.ID) (store.Token, error) {
	c.mu.Lock()
	c.tokens++
	c.mu.Unlock()
	return c.Store.Token(ctx, id)
}

func (c *counted) lookups() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens
}

// world is a service with everything around it.
type world struct {
	*auth.Service
	clock *clock
	store *counted
	reg   *obs.Registry
	ids   *snowflake.Generator
}

func newWorld(t *testing.T, change ...func(*auth.Options)) *world {
	t.Helper()
	w := &world{clock: &clock{now: noon}, store: &counted{Store: memstore.New()}, reg: &obs.Registry{}}
	w.ids = snowflake.New(1, w.clock.Now)
	w.Service = w.replica(t, change...)
	return w
}

// replica is another server on the same database.
func (w *world) replica(t *testing.T, change ...func(*auth.Options)) *auth.Service {
	t.Helper()
	o := auth.Options{Mode: auth.ModeToken, Store: w.store, IDs: w.ids.Next, Clock: w.clock.Now, Metrics: w.reg}
	for _, c := range change {
		c(&o)
	}
	s, err := auth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) create(t *testing.T, name, grants string, expires time.Time) (auth.Token, string) {
	t.Helper()
	g, err := auth.ParseGrants(grants)
	if err != nil {
		t.Fatal(err)
	}
	tok, secret, err := w.CreateToken(t.Context(), auth.TokenRequest{Name: name, Grants: g, Expires: expires, By: &auth.Local})
	if err != nil {
		t.Fatal(err)
	}
	return tok, secret
}

func bearer(text string) auth.Evidence { return auth.Evidence{Bearer: text, Remote: "192.0.2.1"} }

func wantCode(t *testing.T, what string, err error, want event.Code) {
	t.Helper()
	if err == nil || event.CodeOf(err) != want {
		t.Errorf("%s = %v, want %s", what, err, want)
	}
}

// metric is the value of a series in a scrape.
func (w *world) metric(t *testing.T, series string) string {
	t.Helper()
	var b strings.Builder
	if err := w.reg.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Errorf("there is no series %s", series)
	return ""
}

func TestATokenTellsWhoCallsUntilItEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tok, secret := w.create(t, "ci", "operator:team/a, viewer", noon.Add(time.Hour))
	if !strings.HasPrefix(secret, "noetl_pat_"+tok.ID+"_") {
		t.Errorf("token %q does not begin with its id %s", secret[:20], tok.ID)
	}
	p, err := w.Identify(t.Context(), bearer(secret))
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != "token:"+tok.ID || p.Name != "ci" || p.By != auth.ByToken || !p.MayAt(auth.Operator, "team/a/x") || p.May(auth.Operator) || !p.May(auth.Viewer) {
		t.Errorf("principal %+v", p)
	}
	stored, _ := w.store.ListTokens(t.Context(), 0, 0)
	if strings.Contains(fmt.Sprintf("%+v", stored), secret[len(secret)-64:]) {
		t.Error("the secret is stored")
	}
	for name, text := range map[string]string{
		"another secret": secret[:len(secret)-1] + "x", "a shorter secret": secret[:len(secret)-1], "no secret": "noetl_pat_" + tok.ID + "_",
		"no separator": "noetl_pat_" + tok.ID, "another id": strings.Replace(secret, tok.ID, "77", 1), "an id with zeros": strings.Replace(secret, "pat_", "pat_0", 1),
		"a negative id": strings.Replace(secret, "pat_", "pat_-", 1), "nothing of ours": "hunter2", "a huge one": secret + strings.Repeat("x", 1<<16),
		"the hash": "noetl_pat_" + tok.ID + "_" + stored[0].Hash, "upper case": strings.ToUpper(secret), "a JWT": "a.b.c",
	} {
		_, err := w.Identify(t.Context(), auth.Evidence{Bearer: text, Remote: name})
		wantCode(t, name, err, event.Unauthorized)
		if err != nil && (strings.Contains(err.Error(), tok.ID) || err.Error() != "this needs a valid token or session (send the header Authorization: Bearer <token>, or sign in)") {
			t.Errorf("%s: the message tells more than it should: %v", name, err)
		}
	}
	w.clock.pass(time.Hour)
	_, err = w.Identify(t.Context(), bearer(secret))
	wantCode(t, "an expired token", err, event.Unauthorized)
}

func TestNoEvidenceIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.Identify(t.Context(), auth.Evidence{Remote: "192.0.2.1"}); !errors.Is(err, auth.ErrNoEvidence) {
		t.Errorf("nothing = %v", err)
	}
	off := newWorld(t, func(o *auth.Options) { o.Mode = auth.ModeOff })
	p, err := off.Identify(t.Context(), bearer("anything"))
	if err != nil || p.ID != "local" || off.Required() {
		t.Errorf("without authentication %+v, %v", p, err)
	}
	if got := off.metric(t, "noetl_auth_disabled"); got != "1" {
		t.Errorf("noetl_auth_disabled is %s", got)
	}
	if got := w.metric(t, "noetl_auth_disabled"); got != "0" {
		t.Errorf("noetl_auth_disabled is %s with tokens", got)
	}
}

func TestARevocationReachesEveryServerWithinSeconds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.replica(t)
	tok, secret := w.create(t, "ci", "viewer", time.Time{})
	for _, s := range []*auth.Service{w.Service, other} {
		if _, err := s.Identify(t.Context(), bearer(secret)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.RevokeToken(t.Context(), tok.ID); err != nil || got.RevokedAt.IsZero() {
		t.Fatalf("revoked %+v, %v", got, err)
	}
	_, err := w.Identify(t.Context(), bearer(secret))
	wantCode(t, "here at once", err, event.Unauthorized)
	w.clock.pass(5 * time.Second)
	_, err = other.Identify(t.Context(), bearer(secret))
	wantCode(t, "there soon", err, event.Unauthorized)
	for _, id := range []string{"77", "", "x", "-1", "99999999999999999999"} {
		_, err := w.RevokeToken(t.Context(), id)
		wantCode(t, "revoking "+id, err, event.NotFound)
	}
}

func TestCheckedTokensAreNotLookedUpEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, secret := w.create(t, "ci", "viewer", time.Time{})
	var wg sync.WaitGroup
	if _, err := w.Identify(t.Context(), bearer(secret)); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		wg.Go(func() {
			if _, err := w.Identify(t.Context(), bearer(secret)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := w.store.lookups(); n != 1 {
		t.Errorf("%d look-ups for 51 requests", n)
	}
	list, err := w.Tokens(t.Context())
	if err != nil || !list[0].LastUsed.Equal(noon) {
		t.Errorf("last use %v, %v", list, err)
	}
	w.clock.pass(30 * time.Second)
	_, _ = w.Identify(t.Context(), bearer(secret))
	if list, _ = w.Tokens(t.Context()); !list[0].LastUsed.Equal(noon) {
		t.Error("a use was written down within the minute")
	}
	w.clock.pass(31 * time.Second)
	_, _ = w.Identify(t.Context(), bearer(secret))
	if list, _ = w.Tokens(t.Context()); !list[0].LastUsed.Equal(noon.Add(61 * time.Second)) {
		t.Errorf("last use %v a minute later", list[0].LastUsed)
	}
}

func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow := &auth.Principal{ID: "token:9", Grants: []auth.Grant{{Role: auth.Admin, Prefix: "team/a"}}}
	for grants, allowed := range map[string]bool{
		"operator:team/a": true, "viewer:team/a/etl": true, "admin:team/a": true, "viewer": false, "operator:team/ab": false,
		"operator:team": false, "viewer:team/a, admin:team/b": false,
	} {
		g, err := auth.ParseGrants(grants)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = w.CreateToken(t.Context(), auth.TokenRequest{Name: "x", Grants: g, By: narrow})
		if allowed != (err == nil) || err != nil && event.CodeOf(err) != event.Forbidden {
			t.Errorf("%s by an admin of team/a: %v", grants, err)
		}
	}
	good := []auth.Grant{{Role: auth.Viewer}}
	for name, r := range map[string]auth.TokenRequest{
		"no name": {Name: " ", Grants: good}, "a long name": {Name: strings.Repeat("x", 300), Grants: good}, "a name of two lines": {Name: "a\nb", Grants: good},
		"no grants": {Name: "x"}, "no such role": {Name: "x", Grants: []auth.Grant{{Role: "root"}}}, "in the past": {Name: "x", Grants: good, Expires: noon},
		"a path that climbs": {Name: "x", Grants: []auth.Grant{{Role: auth.Viewer, Prefix: "team/../b"}}},
	} {
		_, _, err := w.CreateToken(t.Context(), r)
		wantCode(t, name, err, event.Invalid)
	}
	if list, _ := w.Tokens(t.Context()); len(list) != 3 {
		t.Errorf("%d tokens were made", len(list))
	}
}

func TestAnAddressThatFailsTooOftenHasToWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, secret := w.create(t, "ci", "viewer", time.Time{})
	_, fresh := w.create(t, "new", "viewer", time.Time{})
	if _, err := w.Identify(t.Context(), bearer(secret)); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, err := w.Identify(t.Context(), bearer("noetl_pat_5_wrong"))
		wantCode(t, "a wrong token", err, event.Unauthorized)
	}
	before := w.store.lookups()
	_, err := w.Identify(t.Context(), bearer("noetl_pat_5_wrong"))
	wantCode(t, "one too many", err, event.Limit)
	e, _ := errors.AsType[*event.Error](err)
	if e.Reason != "too_many_failures" || e.RetryAfter < time.Second {
		t.Errorf("limit %+v", e)
	}
	_, err = w.Identify(t.Context(), bearer(fresh))
	wantCode(t, "a token not seen before", err, event.Limit)
	if w.store.lookups() != before {
		t.Error("an address that has to wait still makes look-ups")
	}
	w.clock.pass(6 * time.Second)
	if _, err := w.Identify(t.Context(), bearer(secret)); err != nil {
		t.Errorf("a token that was good here before = %v", err)
	}
	if _, err := w.Identify(t.Context(), auth.Evidence{Bearer: fresh, Remote: "192.0.2.2"}); err != nil {
		t.Errorf("another address = %v", err)
	}
	w.clock.pass(time.Minute)
	if _, err := w.Identify(t.Context(), bearer(fresh)); err != nil {
		t.Errorf("after a while = %v", err)
	}
	if got := w.metric(t, `noetl_auth_failures_total{reason="limited"}`); got != "2" {
		t.Errorf("%s limited", got)
	}
	if got := w.metric(t, `noetl_auth_failures_total{reason="token_unknown"}`); got != "20" {
		t.Errorf("%s unknown", got)
	}
}

func TestManyAddressesDoNotFillTheMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 6000 {
		_, err := w.Identify(t.Context(), auth.Evidence{Bearer: "noetl_pat_5_wrong", Remote: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)})
		wantCode(t, "a wrong token", err, event.Unauthorized)
	}
	if n := w.Addresses(); n != 4096 {
		t.Errorf("%d addresses are remembered", n)
	}
	// All of one customer's IPv6 is one address.
	for i := range 20 {
		_, _ = w.Identify(t.Context(), auth.Evidence{Bearer: "noetl_pat_5_wrong", Remote: fmt.Sprintf("2001:db8::%x", i)})
	}
	_, err := w.Identify(t.Context(), auth.Evidence{Bearer: "noetl_pat_5_wrong", Remote: "2001:db8::ffff"})
	wantCode(t, "the same network", err, event.Limit)
	_, err = w.Identify(t.Context(), auth.Evidence{Bearer: "noetl_pat_5_wrong", Remote: "2001:db8:0:1::1"})
	wantCode(t, "the network beside it", err, event.Unauthorized)
}

func TestADatabaseThatIsGoneIsNoFailureOfTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, secret := w.create(t, "ci", "viewer", time.Time{})
	_ = w.store.Close()
	for range 30 {
		_, err := w.Identify(t.Context(), bearer(secret))
		wantCode(t, "without a database", err, event.Unavailable)
	}
	w.store.Reopen()
	if _, err := w.Identify(t.Context(), bearer(secret)); err != nil {
		t.Errorf("when it is back = %v", err)
	}
}

func TestASessionLastsWhileItIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.replica(t)
	_, token := w.create(t, "ada", "operator", time.Time{})
	s, secret, err := w.Login(t.Context(), auth.LoginRequest{Token: token, Remote: "192.0.2.1", UserAgent: "curl"})
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := w.Login(t.Context(), auth.LoginRequest{Token: token})
	if err != nil || again == secret || len(secret) < 43 {
		t.Fatalf("a second login gives %q, %v", again, err)
	}
	if s.Principal.By != auth.BySession || !s.Expires.Equal(noon.Add(24*time.Hour)) {
		t.Errorf("session %+v", s)
	}
	evidence := auth.Evidence{Session: secret}
	for range 4 { // beyond the idle time
		w.clock.pass(5 * time.Hour)
		p, err := other.Identify(t.Context(), evidence)
		if err != nil || !p.May(auth.Operator) || p.By != auth.BySession || p.Name != "ada" {
			t.Fatalf("after 5h: %+v, %v", p, err)
		}
	}
	_, err = w.Identify(t.Context(), auth.Evidence{Session: again})
	wantCode(t, "a session left alone", err, event.Unauthorized)
	w.clock.pass(4*time.Hour + time.Second)
	_, err = w.Identify(t.Context(), evidence)
	wantCode(t, "a session after its time", err, event.Unauthorized)
	for _, wrong := range []string{"x", strings.Repeat("x", 1<<16), token} {
		_, err = w.Identify(t.Context(), auth.Evidence{Session: wrong})
		wantCode(t, "no session", err, event.Unauthorized)
	}
	_, _, err = w.Login(t.Context(), auth.LoginRequest{})
	wantCode(t, "a login with nothing", err, event.Unauthorized)
}

func TestASessionEndsWithItsTokenAndWithLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.replica(t)
	tok, token := w.create(t, "ada", "operator", noon.Add(time.Hour))
	open := func() string {
		s, secret, err := w.Login(t.Context(), auth.LoginRequest{Token: token})
		if err != nil || !s.Expires.Equal(noon.Add(time.Hour)) {
			t.Fatalf("session %+v, %v", s, err)
		}
		return secret
	}
	left, kept := open(), open()
	for _, secret := range []string{left, kept} {
		if _, err := other.Session(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Logout(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	if err := w.Logout(t.Context(), left); err != nil {
		t.Errorf("logging out twice = %v", err)
	}
	_, err := w.Session(t.Context(), left)
	wantCode(t, "after the logout", err, event.Unauthorized)
	w.clock.pass(5 * time.Second)
	_, err = other.Session(t.Context(), left)
	wantCode(t, "after the logout, elsewhere", err, event.Unauthorized)
	if _, err := w.RevokeToken(t.Context(), tok.ID); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(5 * time.Second)
	_, err = other.Session(t.Context(), kept)
	wantCode(t, "after its token was revoked", err, event.Unauthorized)
}

func TestManyUseAndEndOneSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token := w.create(t, "ada", "viewer", time.Time{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, secret, err := w.Login(t.Context(), auth.LoginRequest{Token: token})
			if err != nil {
				t.Error(err)
				return
			}
			for range 10 {
				if _, err := w.Identify(t.Context(), auth.Evidence{Session: secret}); err != nil {
					t.Error(err)
				}
			}
			if err := w.Logout(t.Context(), secret); err != nil {
				t.Error(err)
			}
			if _, err := w.Identify(t.Context(), auth.Evidence{Session: secret}); err == nil {
				t.Error("a session that was ended is good")
			}
		})
	}
	wg.Wait()
}

func TestACertificateIsWorthWhatTheRulesSay(t *testing.T) {
	t.Parallel()
	rules, err := auth.ParseRules("CN=worker-1->worker; DNS=*.ops.example->operator:team/a; URI=spiffe://x/ns/*→viewer")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *auth.Options) { o.Certificates = rules })
	uri := func(s string) []*url.URL { u, _ := url.Parse(s); return []*url.URL{u} }
	for name, c := range map[string]struct {
		cert x509.Certificate
		want string
	}{
		"by name":         {x509.Certificate{Subject: pkix.Name{CommonName: "worker-1"}}, "worker"},
		"by another name": {x509.Certificate{Subject: pkix.Name{CommonName: "worker-11"}}, ""},
		"by host":         {x509.Certificate{DNSNames: []string{"a.OPS.example"}}, "operator:team/a"},
		"by host below":   {x509.Certificate{DNSNames: []string{"a.b.ops.example"}}, ""},
		"by address":      {x509.Certificate{URIs: uri("spiffe://x/ns/y")}, "viewer"},
		"by its root":     {x509.Certificate{URIs: uri("spiffe://x/ns/")}, ""},
		"by all":          {x509.Certificate{Subject: pkix.Name{CommonName: "worker-1"}, DNSNames: []string{"a.ops.example"}}, "worker,operator:team/a"},
	} {
		c.cert.NotBefore, c.cert.NotAfter = noon.Add(-time.Hour), noon.Add(time.Hour)
		p, err := w.Identify(t.Context(), auth.Evidence{Certificate: &c.cert})
		if err != nil || auth.FormatGrants(p.Grants) != c.want || p.By != auth.ByCertificate || !strings.HasPrefix(p.ID, "cert:") {
			t.Errorf("%s: %+v, %v; want %q", name, p, err, c.want)
		}
	}
	old := x509.Certificate{Subject: pkix.Name{CommonName: "worker-1"}, NotAfter: noon.Add(-time.Second)}
	_, err = w.Identify(t.Context(), auth.Evidence{Certificate: &old})
	wantCode(t, "one that has expired", err, event.Unauthorized)
	_, err = w.Identify(t.Context(), auth.Evidence{Certificate: &x509.Certificate{NotAfter: noon.Add(time.Hour)}})
	wantCode(t, "one without a name", err, event.Unauthorized)
}

func TestTheFirstTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		shown []string
	)
	for range 8 {
		replica := w.replica(t)
		wg.Go(func() {
			secret, _, err := replica.Bootstrap(t.Context(), "")
			if err != nil {
				t.Error(err)
			}
			if secret != "" {
				mu.Lock()
				defer mu.Unlock()
				shown = append(shown, secret)
			}
		})
	}
	wg.Wait()
	if len(shown) != 1 {
		t.Fatalf("%d tokens were shown", len(shown))
	}
	p, err := w.Identify(t.Context(), bearer(shown[0]))
	if err != nil || !p.May(auth.Admin) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := w.RevokeToken(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if secret, made, err := w.Bootstrap(t.Context(), ""); secret != "" || made || err != nil {
		t.Errorf("a revoked one came back: %v, %v", made, err)
	}
}

func TestTheFirstTokenMayBeGiven(t *testing.T) {
	t.Parallel()
	for _, given := range []string{strings.Repeat("ab", 32), "noetl_pat_1_" + strings.Repeat("cd", 32)} {
		w := newWorld(t)
		secret, made, err := w.Bootstrap(t.Context(), given)
		if secret != "" || !made || err != nil {
			t.Fatalf("%q, %v, %v", secret, made, err)
		}
		if p, err := w.Identify(t.Context(), bearer(given)); err != nil || !p.May(auth.Admin) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	for _, given := range []string{"short", strings.Repeat("a b", 20), "a.b." + strings.Repeat("c", 40), "noetl_pat_7_" + strings.Repeat("cd", 32), "noetl_pat_x", strings.Repeat("ä", 40)} {
		_, _, err := newWorld(t).Bootstrap(t.Context(), given)
		wantCode(t, given, err, event.Invalid)
		if err != nil && strings.Contains(err.Error(), given) {
			t.Error("the message repeats the token")
		}
	}
}

func TestDenialsAreRecordedUpToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *auth.Options) { o.Clock = time.Now })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		deny := func(remote string) {
			if err := w.Record(t.Context(), auth.Action{Type: "access.denied", Actor: "unknown", Remote: remote, Outcome: "refused", Status: 401, Detail: []byte("{")}); err != nil {
				t.Error(err)
			}
		}
		for range 100 {
			deny("192.0.2.1")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		rows, err := w.store.ListActions(t.Context(), store.ActionFilter{Limit: 1000})
		if err != nil || len(rows) != 30 || string(rows[0].Detail) != `{"left_out":"not JSON"}` {
			t.Errorf("%d denials of one address, %v", len(rows), err)
		}
		for i := range 3000 {
			deny(fmt.Sprintf("10.0.%d.%d", i>>8, i&255))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		rows, _ = w.store.ListActions(t.Context(), store.ActionFilter{Limit: 10000})
		if len(rows) > 30+1024 || len(rows) < 1000 {
			t.Errorf("%d denials of many addresses", len(rows))
		}
		if w.metric(t, "noetl_auth_denials_dropped_total") == "0" {
			t.Error("what was dropped is not counted")
		}
		deny("192.0.2.9")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, _ := w.store.ListActions(t.Context(), store.ActionFilter{Limit: 1}); got[0].Remote != "192.0.2.9" {
			t.Errorf("the last denial before the end is lost: %+v", got)
		}
	})
}

func TestActionsAreDurableAndFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, kind := range []string{"token.created", "catalog.registered", "token.created"} {
		w.clock.pass(time.Minute)
		err := w.Record(t.Context(), auth.Action{Type: kind, Actor: fmt.Sprint("token:", i%2), Target: "x\x00y", Outcome: "ok", Status: 201, Detail: []byte(`{"a":1}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.Actions(t.Context(), auth.ActionFilter{})
	if err != nil || len(all) != 3 || all[0].At.Before(all[1].At) || all[0].ID <= all[1].ID || string(all[0].Detail) != `{"a":1}` {
		t.Errorf("%+v, %v", all, err)
	}
	some, err := w.Actions(t.Context(), auth.ActionFilter{Type: "token.created", Actor: "token:0", Before: all[0].ID, From: noon, To: noon.Add(2 * time.Minute)})
	if err != nil || len(some) != 1 || some[0].ID != all[2].ID {
		t.Errorf("%+v, %v", some, err)
	}
	for name, f := range map[string]auth.ActionFilter{"too many": {Limit: 5000}, "less than none": {Limit: -1}, "backwards": {From: noon.Add(1), To: noon}} {
		_, err := w.Actions(t.Context(), f)
		wantCode(t, name, err, event.Invalid)
	}
	_ = w.store.Close()
	if err := w.Record(t.Context(), auth.Action{Type: "x", Outcome: "ok"}); err == nil {
		t.Error("an action that was not written is no error")
	}
}

func TestWhatHasEndedIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *auth.Options) { o.KeepActions = 48 * time.Hour })
		now := noon
		for i := range 2500 {
			_ = w.store.AddSession(t.Context(), store.Session{Hash: fmt.Sprint(i), EndsAt: now.Add(time.Duration(i) * time.Second), ExpiresAt: now.Add(time.Hour)})
		}
		_ = w.store.AddLogin(t.Context(), store.Login{Hash: "l", ExpiresAt: now.Add(time.Minute)})
		_ = w.store.AddActions(t.Context(), store.Action{ID: w.ids.Next(), At: now, Type: "old"})
		_ = w.store.AddToken(t.Context(), store.Token{ID: 1, Hash: "h", Grants: []byte("[]"), RevokedAt: now})
		_ = w.store.AddToken(t.Context(), store.Token{ID: 2, Hash: "h", Grants: []byte("[]"), RevokedAt: now})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		w.clock.pass(time.Hour)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if _, err := w.store.Session(t.Context(), "2499"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an old session = %v", err)
		}
		if _, err := w.store.TakeLogin(t.Context(), "l"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an old login = %v", err)
		}
		if got, _ := w.store.ListActions(t.Context(), store.ActionFilter{}); len(got) != 1 {
			t.Error("an action was removed too early")
		}
		w.clock.pass(91 * 24 * time.Hour)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got, _ := w.store.ListActions(t.Context(), store.ActionFilter{}); len(got) != 0 {
			t.Error("an old action is still there")
		}
		if got, _ := w.store.ListTokens(t.Context(), 0, 0); len(got) != 1 || got[0].ID != 1 {
			t.Errorf("tokens %v are left", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
