package keychain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/secret/provider"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const canary = "canary-81b2"

// outside stands for providers and endpoints: it counts, and may take a while
// or be away.
type outside struct {
	mu     sync.Mutex
	calls  int
	lives  time.Duration // of what it gives; 0 says nothing
	takes  time.Duration
	fails  error
	asked  []provider.Endpoint
	logins []map[string]any
}

func (o *outside) next(ctx context.Context) (int, time.Time, error) {
	o.mu.Lock()
	takes, lives := o.takes, o.lives
	o.calls++
	n, err := o.calls, o.fails
	o.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return 0, time.Time{}, ctx.Err()
		}
	}
	var ends time.Time
	if lives > 0 {
		ends = time.Now().Add(lives)
	}
	return n, ends, err
}

func (o *outside) Fetch(ctx context.Context, id, ref string, opt provider.Options) (provider.Value, error) {
	n, ends, err := o.next(ctx)
	o.mu.Lock()
	o.logins = append(o.logins, opt.Login)
	o.mu.Unlock()
	return provider.Value{Text: fmt.Sprintf("%s/%s/%d", id, ref, n), ExpiresAt: ends}, err
}

func (o *outside) Ask(ctx context.Context, e provider.Endpoint) (provider.Value, error) {
	n, ends, err := o.next(ctx)
	o.mu.Lock()
	o.asked = append(o.asked, e)
	o.mu.Unlock()
	return provider.Value{Object: json.RawMessage(fmt.Sprintf(`{"access_token":"%s-%d"}`, canary, n)), ExpiresAt: ends}, err
}

func (o *outside) GoogleIDToken(ctx context.Context, login map[string]any, audience string) (provider.Value, error) {
	n, ends, err := o.next(ctx)
	return provider.Value{Object: json.RawMessage(fmt.Sprintf(`{"id_token":"%v-%s-%d"}`, login["client_email"], audience, n)), ExpiresAt: ends}, err
}

func (o *outside) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

func (o *outside) set(f func(*outside)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o)
}

type stored map[string]keychain.Credential

func (s stored) OpenCredential(_ context.Context, name string) (keychain.Credential, error) {
	if c, ok := s[name]; ok {
		return c, nil
	}
	return keychain.Credential{}, event.Errorf(event.NotFound, "there is no credential %q", name)
}

type bench struct {
	t     *testing.T
	store *memstore.Store
	out   *outside
	chain *keychain.Keychain
	log   *bytes.Buffer
	alive atomic.Bool
}

func newBench(t *testing.T, change ...func(*keychain.Options)) *bench {
	t.Helper()
	keys, err := envelope.Ephemeral()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: memstore.New(), out: &outside{}, log: &bytes.Buffer{}}
	b.alive.Store(true)
	o := keychain.Options{
		Rows: b.store, Cipher: keys, Providers: b.out, Region: "eu", Logger: slog.New(slog.NewTextHandler(b.log, nil)),
		Credentials: stored{
			"pg": {Name: "pg", Type: "postgres", Data: json.RawMessage(`{"password":"` + canary + `"}`)},
			"sa": {Name: "sa", Type: "google_service_account", Data: json.RawMessage(`{"client_email":"me"}`)},
		},
		Alive: func(context.Context, event.ID) (bool, error) { return b.alive.Load(), nil },
	}
	for _, f := range change {
		f(&o)
	}
	if b.chain, err = keychain.New(o); err != nil {
		t.Fatal(err)
	}
	return b
}

// runs has the background go on until the test ends.
func (b *bench) runs() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.chain.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// plain is a declaration without templates, or with the entries it needs put
// into one field.
func plain(entry map[string]any, needs ...string) keychain.Declaration {
	name, _ := entry["name"].(string)
	scope, _ := entry["scope"].(string)
	return keychain.Declaration{Name: name, Scope: scope, Needs: needs, Render: func(known map[string]json.RawMessage) (map[string]any, error) {
		out := map[string]any{}
		for k, v := range entry {
			out[k] = v
		}
		for _, need := range needs {
			out["ref"] = string(known[need])
		}
		return out, nil
	}}
}

var here = keychain.Place{Catalog: 1, Execution: 10, Root: 10}

func (b *bench) resolve(entry map[string]any, at keychain.Place) (keychain.Secret, error) {
	b.t.Helper()
	return b.chain.Resolve(b.t.Context(), []keychain.Declaration{plain(entry)}, entry["name"].(string), at)
}

func (b *bench) want(entry map[string]any, at keychain.Place, data string) keychain.Secret {
	b.t.Helper()
	s, err := b.resolve(entry, at)
	if err != nil || string(s.Data) != data {
		b.t.Errorf("%v: %s, %v; want %s", entry["name"], s.Data, err, data)
	}
	return s
}

func TestEveryKindOfEntryGivesItsValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry map[string]any
		kind  string
		data  string
	}{
		{"a stored credential", map[string]any{"kind": "credential", "credential": "pg"}, "postgres", `{"password":"` + canary + `"}`},
		{"one under an older word", map[string]any{"type": "google", "ref": "sa"}, "google", `{"client_email":"me"}`},
		{"an unknown kind with a credential", map[string]any{"kind": "postgres_credential", "credential": "pg"}, "postgres", `{"password":"` + canary + `"}`},
		{"a map of secrets", map[string]any{"kind": "secrets", "provider": "gcp", "map": map[string]any{"a": "x", "b": "y"}}, "keychain", `{"a":"gcp/x/1","b":"gcp/y/2"}`},
		{"one secret", map[string]any{"kind": "secret_manager", "provider": "vault", "path": "x#k"}, "keychain", `"vault/x#k/1"`},
		{"one secret of its name", map[string]any{"kind": "secret_manager", "provider": "env", "type": "api_key"}, "api_key", `"env/e/1"`},
		{"a token", map[string]any{"kind": "bearer", "token": "t"}, "bearer", `{"access_token":"t","token":"t","token_type":"Bearer"}`},
		{"static data", map[string]any{"kind": "static", "data": map[string]any{"k": "v"}}, "keychain", `{"k":"v"}`},
		{"an oauth token", map[string]any{"kind": "oauth2", "endpoint": "https://x", "client_id": "c"}, "bearer", `{"access_token":"` + canary + `-1"}`},
		{"an endpoint", map[string]any{"kind": "http", "endpoint": "https://x"}, "keychain", `{"access_token":"` + canary + `-1"}`},
		{"an id token", map[string]any{"kind": "google_id_token", "target_audience": "aud", "service_account_credential": "sa"}, "bearer", `{"id_token":"me-aud-1"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.entry["name"] = "e"
			b := newBench(t)
			if s := b.want(c.entry, here, c.data); s.Type != c.kind {
				t.Errorf("type %q, want %q", s.Type, c.kind)
			}
		})
	}
}

func TestEntriesThatLeadNowhereAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry map[string]any
		code  event.Code
		says  string
	}{
		{"no credential", map[string]any{"kind": "credential", "credential": "nothing"}, event.NotFound, `"nothing"`},
		{"no login", map[string]any{"provider": "gcp", "auth": "nothing"}, event.NotFound, `"nothing"`},
		{"an empty token", map[string]any{"kind": "bearer"}, event.Invalid, "token"},
		{"another region", map[string]any{"provider": "gcp", "region": "us", "residency": "strict"}, event.Forbidden, "region"},
		{"a bad scope", map[string]any{"kind": "static", "data": 1, "scope": "world"}, event.Invalid, "scope"},
		{"a bad time", map[string]any{"kind": "static", "data": 1, "ttl_seconds": int64(-1)}, event.Invalid, "ttl_seconds"},
		{"a renewal without an endpoint", map[string]any{"kind": "static", "data": 1, "renew_config": map[string]any{"method": "GET"}}, event.Invalid, "endpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.entry["name"] = "e"
			_, err := newBench(t).resolve(c.entry, here)
			if event.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(fmt.Sprint(err), `"e"`) {
				t.Errorf("%v, want %s and %q", err, c.code, c.says)
			}
		})
	}
}

func TestEntriesReadOnlyThoseBeforeThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := plain(map[string]any{"name": "one", "provider": "env", "ref": "x"})
	two := plain(map[string]any{"name": "two", "provider": "env"}, "one")
	s, err := b.chain.Resolve(t.Context(), []keychain.Declaration{one, two}, "two", here)
	if err != nil || string(s.Data) != `"env/\"env/x/1\"/2"` {
		t.Errorf("%s, %v", s.Data, err)
	}
	if _, err := b.chain.Resolve(t.Context(), []keychain.Declaration{two, one}, "two", here); event.CodeOf(err) != event.Invalid {
		t.Errorf("an entry reads one below it: %v", err)
	}
	if _, err := b.chain.Resolve(t.Context(), []keychain.Declaration{two, one}, "three", here); event.CodeOf(err) != event.NotFound {
		t.Errorf("an entry that is none: %v", err)
	}
}

func TestValuesAreKeptForTheirScopeAndNoWider(t *testing.T) {
	t.Parallel()
	other := keychain.Place{Catalog: 1, Execution: 11, Parent: 10, Root: 10}
	stranger := keychain.Place{Catalog: 1, Execution: 20, Root: 20}
	for scope, want := range map[string][]int{"local": {1, 1, 2, 3}, "shared": {1, 1, 1, 2}, "global": {1, 1, 1, 1}} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			entry := map[string]any{"name": "e", "provider": "env", "ref": "x", "scope": scope}
			for i, at := range []keychain.Place{here, here, other, stranger} {
				b.want(entry, at, fmt.Sprintf(`"env/x/%d"`, want[i]))
			}
		})
	}
}

// A workload of one execution must not decide what another gets.
func TestAWiderScopeDoesNotMixEntriesThatWereRenderedDifferently(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entry := func(ref string) map[string]any {
		return map[string]any{"name": "e", "provider": "env", "ref": ref, "scope": "global"}
	}
	b.want(entry("mine"), here, `"env/mine/1"`)
	b.want(entry("yours"), here, `"env/yours/2"`)
}

func TestKeptValuesEndInTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry map[string]any
		lives time.Duration
		kept  time.Duration // 0 = not at all
	}{
		{"a secret", map[string]any{"provider": "env"}, 0, 10 * time.Minute},
		{"a secret with a time", map[string]any{"provider": "env", "ttl_seconds": int64(30)}, 0, 30 * time.Second},
		{"a secret that ends", map[string]any{"provider": "aws_sts"}, 5 * time.Minute, 4 * time.Minute},
		{"one that ends late", map[string]any{"provider": "aws_sts"}, 5 * time.Hour, 10 * time.Minute},
		{"one that ends in a moment", map[string]any{"provider": "aws_sts"}, time.Minute, 0},
		{"one that ends just after", map[string]any{"provider": "aws_sts"}, 61 * time.Second, 5 * time.Second},
		{"a token", map[string]any{"kind": "oauth2", "endpoint": "https://x"}, 0, time.Hour},
		{"a token for all", map[string]any{"kind": "oauth2", "endpoint": "https://x", "scope": "global"}, 0, 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.out.lives = c.lives
				c.entry["name"] = "e"
				if _, err := b.resolve(c.entry, here); err != nil {
					t.Fatal(err)
				}
				rows, err := b.store.ListKeychain(t.Context(), 1)
				if err != nil || len(rows) != min(1, int(c.kept)) {
					t.Fatalf("%d rows, %v", len(rows), err)
				}
				if c.kept == 0 {
					return
				}
				if got := time.Until(rows[0].ExpiresAt); got != c.kept {
					t.Errorf("kept for %s, want %s", got, c.kept)
				}
				if strings.Contains(fmt.Sprint(rows), canary) {
					t.Error("the row holds a value")
				}
				time.Sleep(c.kept)
				if _, err := b.resolve(c.entry, here); err != nil || b.out.count() != 2 {
					t.Errorf("%d fetches after its end, %v", b.out.count(), err)
				}
			})
		})
	}
}

func TestValuesAreFetchedAheadOnceAndWithoutWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.runs()
		entry := map[string]any{"name": "e", "provider": "env", "ref": "x"}
		b.want(entry, here, `"env/x/1"`)
		time.Sleep(9*time.Minute + 30*time.Second)
		b.out.set(func(o *outside) { o.takes = 5 * time.Second })
		for range 5 {
			began := time.Now()
			b.want(entry, here, `"env/x/1"`)
			if time.Since(began) > 0 {
				t.Error("whoever asks waits for the next value")
			}
		}
		time.Sleep(10 * time.Second)
		b.want(entry, here, `"env/x/2"`)
		if n := b.out.count(); n != 2 {
			t.Errorf("%d fetches, want 2", n)
		}
		time.Sleep(9*time.Minute + 30*time.Second)
		b.out.set(func(o *outside) { o.fails = errors.New(canary) })
		b.want(entry, here, `"env/x/2"`)
		time.Sleep(10 * time.Second)
		b.want(entry, here, `"env/x/2"`) // it is good while it lasts
		if strings.Contains(b.log.String(), canary) {
			t.Errorf("the log holds what a provider said: %s", b.log)
		}
	})
}

func TestThoseWhoWantTheSameWaitForOneFetch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.out.takes = 3 * time.Second
		entry := map[string]any{"name": "e", "provider": "env", "ref": "x"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // the first to come gives up; the others get theirs
			if _, err := b.chain.Resolve(ctx, []keychain.Declaration{plain(entry)}, "e", here); event.CodeOf(err) != event.Unavailable {
				t.Errorf("who gave up: %v", err)
			}
		})
		synctest.Wait()
		for range 4 {
			wg.Go(func() { b.want(entry, here, `"env/x/1"`) })
		}
		wg.Wait()
		if n := b.out.count(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

func TestTokensAreRenewedWhileSomebodyUsesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.runs()
		b.out.lives = 10 * time.Minute
		entry := map[string]any{
			"name": "e", "kind": "oauth2", "endpoint": "https://x", "client_secret": canary, "scope": "global", "auto_renew": true,
			"renew_config": map[string]any{"endpoint": "https://renew"},
		}
		b.want(entry, here, `{"access_token":"`+canary+`-1"}`)
		time.Sleep(25 * time.Minute)
		n := b.out.count()
		if n < 3 || b.out.asked[n-1].URL != "https://renew" {
			t.Errorf("%d calls in 25 minutes, the last to %s", n, b.out.asked[n-1].URL)
		}
		b.want(entry, here, fmt.Sprintf(`{"access_token":"%s-%d"}`, canary, n))
		if b.out.count() != n {
			t.Error("a renewed token was fetched again")
		}
		time.Sleep(26 * time.Hour)
		n = b.out.count()
		time.Sleep(2 * time.Hour)
		if rows, err := b.store.ListKeychain(t.Context(), 1); b.out.count() != n || len(rows) != 0 || err != nil {
			t.Errorf("a token nobody uses is renewed for ever: %d calls more, %d rows, %v", b.out.count()-n, len(rows), err)
		}
		if strings.Contains(b.log.String(), canary) {
			t.Error("the log holds a value")
		}
	})
}

func TestATokenWhoseExecutionEndedIsNotRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.runs()
		b.out.lives = 10 * time.Minute
		b.want(map[string]any{"name": "e", "kind": "oauth2", "endpoint": "https://x", "auto_renew": true}, here, `{"access_token":"`+canary+`-1"}`)
		b.alive.Store(false)
		time.Sleep(9 * time.Minute)
		if rows, err := b.store.ListKeychain(t.Context(), 1); len(rows) != 0 || b.out.count() != 1 || err != nil {
			t.Errorf("%d rows, %d calls, %v", len(rows), b.out.count(), err)
		}
	})
}

func TestAStoreThatIsAwayDoesNotKeepSecretsFromBeingResolved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.store.Close(); err != nil {
		t.Fatal(err)
	}
	b.want(map[string]any{"name": "e", "provider": "env", "ref": "x"}, here, `"env/x/1"`)
	if _, err := b.chain.Forget(t.Context(), 10); err == nil {
		t.Error("forgetting succeeds without a store")
	}
}

func TestEndedExecutionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, scope := range []string{"local", "shared", "global"} {
		b.want(map[string]any{"name": scope, "provider": "env", "ref": "x", "scope": scope}, here, fmt.Sprintf(`"env/x/%d"`, b.out.count()+1))
	}
	if n, err := b.chain.Forget(t.Context(), 10); n != 2 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	rows, err := b.store.ListKeychain(t.Context(), 1)
	if err != nil || len(rows) != 1 || rows[0].Scope != "global" {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestDepositsAreKeptShownAndRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		key, until, err := b.chain.Put(t.Context(), keychain.Deposit{Catalog: 1, Name: "e", Data: json.RawMessage(`"` + canary + `"`), ExpiresIn: time.Minute})
		if err != nil || key != "e:1:global" || time.Until(until) != time.Minute {
			t.Fatalf("%q until %s, %v", key, until, err)
		}
		h, err := b.chain.Look(t.Context(), 1, "e", "", 0)
		if err != nil || h.Status != "found" || string(h.Data) != `"`+canary+`"` || h.AccessCount != 1 {
			t.Errorf("%+v, %v", h, err)
		}
		b.want(map[string]any{"name": "e", "provider": "env", "scope": "global"}, here, `"`+canary+`"`)
		list, err := b.chain.List(t.Context(), 1)
		if err != nil || len(list) != 1 || list[0].Sealed != "" {
			t.Errorf("%v, %v", list, err)
		}
		time.Sleep(time.Minute)
		if h, err := b.chain.Look(t.Context(), 1, "e", "", 0); err != nil || h.Status != "expired" || h.Data != nil {
			t.Errorf("%+v, %v", h, err)
		}
		if _, known, err := b.chain.Remove(t.Context(), 1, "e", "", 0); !known || err != nil {
			t.Errorf("removed %v, %v", known, err)
		}
		if h, err := b.chain.Look(t.Context(), 1, "e", "", 0); err != nil || h.Status != "not_found" {
			t.Errorf("%+v, %v", h, err)
		}
		for name, d := range map[string]keychain.Deposit{
			"no name": {Data: json.RawMessage(`1`)}, "no data": {Name: "e"}, "over": {Name: "e", Data: json.RawMessage(`1`), ExpiresAt: time.Now().Add(-1)},
			"too long": {Name: "e", Data: json.RawMessage(`1`), ExpiresIn: 1000 * time.Hour}, "a scope": {Name: "e", Data: json.RawMessage(`1`), Scope: "x"},
		} {
			if _, _, err := b.chain.Put(t.Context(), d); event.CodeOf(err) != event.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestCacheKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scope     string
		execution event.ID
		want      string
	}{
		{"local", 5, "n:1:5"}, {"local", 0, "n:1:local"}, {"shared", 5, "n:1:shared:5"}, {"shared", 0, "n:1:shared"}, {"global", 5, "n:1:global"},
	} {
		if got := keychain.Key("n", 1, c.scope, c.execution); got != c.want {
			t.Errorf("%s %d: %s, want %s", c.scope, c.execution, got, c.want)
		}
	}
}

var _ keychain.Rows = store.Secrets(nil)
