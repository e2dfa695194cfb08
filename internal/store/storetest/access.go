package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newToken(name string) store.Token {
	return store.Token{ID: newID(), Name: name, Hash: "hash of " + name, Grants: []byte(`[{"role":"viewer"}]`), CreatedAt: epoch}
}

func newSession(hash, principal string) store.Session {
	return store.Session{
		Hash: hash, PrincipalID: principal, Principal: []byte(`{"id":"` + principal + `"}`), CreatedAt: epoch, UsedAt: epoch,
		EndsAt: after(60), ExpiresAt: after(600),
	}
}

// newAction is an action whose id is of the given second.
func newAction(second int, kind, actor, target string) store.Action {
	at := after(second)
	return store.Action{
		ID: store.IDAt(at) + event.ID(lastID.Add(1)%4096), At: at, Type: kind, Actor: actor, Target: target, Outcome: "ok", Status: 200,
	}
}

func mustAdd(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tokenNames(all []store.Token) string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return fmt.Sprint(names)
}

// wantToken compares a stored token; JSON counts as equal when it means the same.
func wantToken(t *testing.T, what string, want, got store.Token) {
	t.Helper()
	wantSame(t, what+": grants", meaning(want.Grants), meaning(got.Grants))
	want.Grants, got.Grants = nil, nil
	wantSame(t, what, want, got)
}

var tokenTests = map[string]func(*testing.T, store.Store){
	"a token comes back with every field": func(t *testing.T, s store.Store) {
		full := newToken("ci")
		full.CreatedBy, full.ExpiresAt, full.LastUsedAt, full.RevokedAt = "token:1", after(9), after(3), after(4)
		bare := newToken("")
		for _, want := range []store.Token{full, bare} {
			mustAdd(t, s.AddToken(t.Context(), want))
			wantToken(t, "found", want, must[store.Token](t)(s.Token(t.Context(), want.ID)))
		}
		_, err := s.Token(t.Context(), 77)
		wantErr(t, "an unknown id", err, store.ErrNotFound)
		again := newToken("other")
		again.ID = full.ID
		if err := s.AddToken(t.Context(), again); event.CodeOf(err) != event.Conflict {
			t.Errorf("a taken id = %v, want a conflict", err)
		}
		wantToken(t, "the first stays", full, must[store.Token](t)(s.Token(t.Context(), full.ID)))
	},
	"of many who add one token id one succeeds": func(t *testing.T, s store.Store) {
		var (
			wg   sync.WaitGroup
			wins atomic.Int32
		)
		for i := range 8 {
			tok := newToken(fmt.Sprint("t", i))
			tok.ID = 1
			wg.Go(func() {
				err := s.AddToken(t.Context(), tok)
				switch {
				case err == nil:
					wins.Add(1)
				case event.CodeOf(err) != event.Conflict:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "winners", int32(1), wins.Load())
	},
	"tokens are listed newest first in pages": func(t *testing.T, s store.Store) {
		var ids []event.ID
		for i := range 5 {
			tok := newToken(fmt.Sprint("t", i))
			mustAdd(t, s.AddToken(t.Context(), tok))
			ids = append(ids, tok.ID)
		}
		page := func(before event.ID, limit int) string {
			return tokenNames(must[[]store.Token](t)(s.ListTokens(t.Context(), before, limit)))
		}
		wantSame(t, "all", "[t4 t3 t2 t1 t0]", page(0, 0))
		wantSame(t, "first page", "[t4 t3]", page(0, 2))
		wantSame(t, "second page", "[t2 t1]", page(ids[3], 2))
		wantSame(t, "last page", "[t0]", page(ids[1], 2))
		wantSame(t, "behind the end", "[]", page(ids[0], 2))
	},
	"the last use of a token only moves on": func(t *testing.T, s store.Store) {
		a, b := newToken("a"), newToken("b")
		mustAdd(t, s.AddToken(t.Context(), a))
		mustAdd(t, s.AddToken(t.Context(), b))
		mustAdd(t, s.UseTokens(t.Context(), store.TokenUse{ID: a.ID, At: after(1)}, store.TokenUse{ID: a.ID, At: after(5)},
			store.TokenUse{ID: a.ID, At: after(3)}, store.TokenUse{ID: b.ID, At: after(2)}, store.TokenUse{ID: 99, At: after(2)}))
		mustAdd(t, s.UseTokens(t.Context(), store.TokenUse{ID: a.ID, At: after(4)}))
		mustAdd(t, s.UseTokens(t.Context()))
		wantSame(t, "a", after(5), must[store.Token](t)(s.Token(t.Context(), a.ID)).LastUsedAt)
		wantSame(t, "b", after(2), must[store.Token](t)(s.Token(t.Context(), b.ID)).LastUsedAt)
	},
	"a revoked token stays as it was revoked first": func(t *testing.T, s store.Store) {
		tok := newToken("a")
		mustAdd(t, s.AddToken(t.Context(), tok))
		tok.RevokedAt = after(2)
		wantToken(t, "revoked", tok, must[store.Token](t)(s.RevokeToken(t.Context(), tok.ID, after(2))))
		wantToken(t, "revoked again", tok, must[store.Token](t)(s.RevokeToken(t.Context(), tok.ID, after(9))))
		wantToken(t, "stored", tok, must[store.Token](t)(s.Token(t.Context(), tok.ID)))
		_, err := s.RevokeToken(t.Context(), 99, epoch)
		wantErr(t, "an unknown one", err, store.ErrNotFound)
	},
	"only tokens that ended are purged": func(t *testing.T, s store.Store) {
		low := newToken("low")
		low.ID, low.RevokedAt = 1, after(1)
		expired, revoked, young, open := newToken("expired"), newToken("revoked"), newToken("young"), newToken("open")
		expired.ExpiresAt, revoked.RevokedAt, young.ExpiresAt = after(1), after(2), after(10)
		for _, tok := range []store.Token{low, expired, revoked, young, open} {
			mustAdd(t, s.AddToken(t.Context(), tok))
		}
		purge := func(limit int) int { return must[int](t)(s.PurgeTokens(t.Context(), 1, after(10), limit)) }
		wantSame(t, "first", 1, purge(1))
		wantSame(t, "rest", 1, purge(0))
		wantSame(t, "again", 0, purge(0))
		wantSame(t, "left", "[open young low]", tokenNames(must[[]store.Token](t)(s.ListTokens(t.Context(), 0, 0))))
	},
}

func wantSession(t *testing.T, what string, want, got store.Session) {
	t.Helper()
	wantSame(t, what+": principal", meaning(want.Principal), meaning(got.Principal))
	want.Principal, got.Principal = nil, nil
	wantSame(t, what, want, got)
}

var sessionTests = map[string]func(*testing.T, store.Store){
	"a session comes back with every field": func(t *testing.T, s store.Store) {
		full, bare := newSession("h1", "oidc:x"), newSession("h2", "local")
		full.TokenID, full.Remote, full.UserAgent = newID(), "10.0.0.1", "curl"
		for _, want := range []store.Session{full, bare} {
			mustAdd(t, s.AddSession(t.Context(), want))
			wantSession(t, "found", want, must[store.Session](t)(s.Session(t.Context(), want.Hash)))
		}
		for _, hash := range []string{"", "H1", "h", "h1 ", "h\x00"} {
			_, err := s.Session(t.Context(), hash)
			wantErr(t, "unknown "+hash, err, store.ErrNotFound)
		}
		if err := s.AddSession(t.Context(), newSession("h1", "other")); event.CodeOf(err) != event.Conflict {
			t.Errorf("a taken hash = %v, want a conflict", err)
		}
	},
	"the end of a session moves with its use up to its last": func(t *testing.T, s store.Store) {
		v := newSession("h", "p")
		mustAdd(t, s.AddSession(t.Context(), v))
		use := func(at, end int) bool { return must[bool](t)(s.UseSession(t.Context(), "h", after(at), after(end))) }
		ends := func() time.Time { return must[store.Session](t)(s.Session(t.Context(), "h")).EndsAt }
		wantSame(t, "used", true, use(30, 90))
		wantSame(t, "moved", after(90), ends())
		wantSame(t, "used by one that is behind", true, use(20, 80))
		wantSame(t, "not back", after(90), ends())
		wantSame(t, "not used back", after(30), must[store.Session](t)(s.Session(t.Context(), "h")).UsedAt)
		wantSame(t, "used again", true, use(80, 700))
		wantSame(t, "not beyond the last", after(600), ends())
		wantSame(t, "at its end", false, use(600, 900))
		other, err := s.UseSession(t.Context(), "other", epoch, after(1))
		mustAdd(t, err)
		wantSame(t, "an unknown one", false, other)
	},
	"sessions end one by one and by caller": func(t *testing.T, s store.Store) {
		for i := range 6 {
			mustAdd(t, s.AddSession(t.Context(), newSession(fmt.Sprint("h", i), fmt.Sprint("p", i%2))))
		}
		wantSame(t, "one", true, must[bool](t)(s.DeleteSession(t.Context(), "h0")))
		wantSame(t, "the same", false, must[bool](t)(s.DeleteSession(t.Context(), "h0")))
		wantSame(t, "of a caller", 2, must[int](t)(s.DeleteSessionsOf(t.Context(), "p0")))
		wantSame(t, "of nobody", 0, must[int](t)(s.DeleteSessionsOf(t.Context(), "p")))
		if _, err := s.Session(t.Context(), "h1"); err != nil {
			t.Errorf("the session of the other = %v", err)
		}
	},
	"only sessions that ended are purged": func(t *testing.T, s store.Store) {
		for i := range 5 {
			v := newSession(fmt.Sprint("h", i), "p")
			v.EndsAt = after(i)
			mustAdd(t, s.AddSession(t.Context(), v))
		}
		purge := func(limit int) int { return must[int](t)(s.PurgeSessions(t.Context(), after(3), limit)) }
		wantSame(t, "some", 2, purge(2))
		wantSame(t, "rest", 1, purge(0))
		wantSame(t, "again", 0, purge(0))
		for i, want := range []error{3: nil, 4: nil} {
			if i >= 3 {
				_, err := s.Session(t.Context(), fmt.Sprint("h", i))
				wantErr(t, "one that goes on", err, want)
			}
		}
	},
	"of many who use and end one session all agree": func(t *testing.T, s store.Store) {
		mustAdd(t, s.AddSession(t.Context(), newSession("h", "p")))
		var (
			wg   sync.WaitGroup
			ends atomic.Int32
		)
		for i := range 8 {
			wg.Go(func() {
				if _, err := s.UseSession(t.Context(), "h", after(i), after(60+i)); err != nil {
					t.Error(err)
				}
				ended, err := s.DeleteSession(t.Context(), "h")
				if err != nil {
					t.Error(err)
				}
				if ended {
					ends.Add(1)
				}
			})
		}
		wg.Wait()
		wantSame(t, "who ended it", int32(1), ends.Load())
		used, err := s.UseSession(t.Context(), "h", epoch, after(9))
		mustAdd(t, err)
		wantSame(t, "used after its end", false, used)
	},
	"of many who take a login one gets it": func(t *testing.T, s store.Store) {
		want := store.Login{Hash: "s", Nonce: "n", Verifier: "v", ReturnTo: "/x", ExpiresAt: after(60)}
		mustAdd(t, s.AddLogin(t.Context(), want))
		if err := s.AddLogin(t.Context(), want); event.CodeOf(err) != event.Conflict {
			t.Errorf("a taken state = %v, want a conflict", err)
		}
		var (
			wg    sync.WaitGroup
			taken atomic.Int32
		)
		for range 8 {
			wg.Go(func() {
				got, err := s.TakeLogin(t.Context(), "s")
				switch {
				case err == nil:
					taken.Add(1)
					wantSame(t, "the login", want, got)
				case !errors.Is(err, store.ErrNotFound):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "takers", int32(1), taken.Load())
	},
	"only logins that expired are purged": func(t *testing.T, s store.Store) {
		for i := range 4 {
			mustAdd(t, s.AddLogin(t.Context(), store.Login{Hash: fmt.Sprint("s", i), Nonce: "n", Verifier: "v", ExpiresAt: after(i)}))
		}
		wantSame(t, "some", 1, must[int](t)(s.PurgeLogins(t.Context(), after(3), 1)))
		wantSame(t, "rest", 2, must[int](t)(s.PurgeLogins(t.Context(), after(3), 0)))
		got, err := s.TakeLogin(t.Context(), "s3")
		mustAdd(t, err)
		wantSame(t, "without a way back", "", got.ReturnTo)
	},
}

func actionTypes(all []store.Action) string {
	var out []string
	for i := range all {
		out = append(out, all[i].Type)
	}
	return fmt.Sprint(out)
}

var actionTests = map[string]func(*testing.T, store.Store){
	"an action comes back with every field and once": func(t *testing.T, s store.Store) {
		full := store.Action{
			ID: newID() + 1<<23, At: after(2), Type: "token.created", Actor: "token:1", ActorName: "ci", By: "token", Remote: "10.0.0.1", RequestID: "r-1",
			Method: "POST", Route: "/api/tokens", Target: "17", Outcome: "refused", Status: 403, Detail: []byte(`{"name":"x\u0000y"}`),
		}
		bare := newAction(0, "x", "", "")
		for range 2 {
			mustAdd(t, s.AddActions(t.Context(), full, bare))
		}
		changed := full
		changed.Outcome = "ok"
		mustAdd(t, s.AddActions(t.Context(), changed))
		mustAdd(t, s.AddActions(t.Context()))
		got := must[[]store.Action](t)(s.ListActions(t.Context(), store.ActionFilter{}))
		if len(got) != 2 {
			t.Fatalf("%d actions, want 2", len(got))
		}
		wantSame(t, "detail", meaning(full.Detail), meaning(got[0].Detail))
		got[0].Detail, full.Detail = nil, nil
		wantSame(t, "actions", []store.Action{full, bare}, got)
	},
	"actions are found by actor, type, target and time": func(t *testing.T, s store.Store) {
		mustAdd(t, s.AddActions(t.Context(), newAction(1, "a", "x", "t1"), newAction(2, "b", "x", "t2"), newAction(3, "c", "y", "t1"), newAction(4, "a", "y", "")))
		for f, want := range map[store.ActionFilter]string{
			{}:                              "[a c b a]",
			{Actor: "x"}:                    "[b a]",
			{Actor: "X"}:                    "[]",
			{Type: "a"}:                     "[a a]",
			{Target: "t1"}:                  "[c a]",
			{Type: "a", Target: "t1"}:       "[a]",
			{Actor: "y", Target: "t2"}:      "[]",
			{From: after(2)}:                "[a c b]",
			{To: after(3)}:                  "[b a]",
			{From: after(2), To: after(3)}:  "[b]",
			{Actor: "y", From: after(4)}:    "[a]",
			{Limit: 3}:                      "[a c b]",
			{Actor: "x", Limit: 1}:          "[b]",
			{From: after(3), To: after(2)}:  "[]",
			{From: epoch.AddDate(-9, 0, 0)}: "[a c b a]",
		} {
			wantSame(t, fmt.Sprintf("%+v", f), want, actionTypes(must[[]store.Action](t)(s.ListActions(t.Context(), f))))
		}
	},
	"pages of actions do not shift when more are written": func(t *testing.T, s store.Store) {
		for i := range 130 {
			mustAdd(t, s.AddActions(t.Context(), newAction(i, fmt.Sprint(i), "x", "")))
		}
		first := must[[]store.Action](t)(s.ListActions(t.Context(), store.ActionFilter{}))
		wantSame(t, "a page unless told", 100, len(first))
		mustAdd(t, s.AddActions(t.Context(), newAction(200, "late", "x", "")))
		next := must[[]store.Action](t)(s.ListActions(t.Context(), store.ActionFilter{Before: first[99].ID, Actor: "x"}))
		wantSame(t, "the next page", 30, len(next))
		wantSame(t, "begins where the first ended", "29", next[0].Type)
	},
	"old actions are purged, oldest first": func(t *testing.T, s store.Store) {
		for i := range 6 {
			mustAdd(t, s.AddActions(t.Context(), newAction(i, fmt.Sprint(i), "x", "")))
		}
		wantSame(t, "some", 2, must[int](t)(s.PurgeActions(t.Context(), after(4), 2)))
		wantSame(t, "left", "[5 4 3 2]", actionTypes(must[[]store.Action](t)(s.ListActions(t.Context(), store.ActionFilter{}))))
		wantSame(t, "rest", 2, must[int](t)(s.PurgeActions(t.Context(), after(4), 0)))
		wantSame(t, "again", 0, must[int](t)(s.PurgeActions(t.Context(), after(4), 0)))
	},
	"actions of many writers are all there": func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		for range 8 {
			var mine []store.Action
			for range 10 {
				a := newAction(0, "x", "w", "")
				a.ID = newID()
				mine = append(mine, a)
			}
			wg.Go(func() {
				if err := s.AddActions(t.Context(), mine...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "actions", 80, len(must[[]store.Action](t)(s.ListActions(t.Context(), store.ActionFilter{Actor: "w"}))))
	},
}

// callAccess makes the calls of callAll that concern who may call.
func callAccess(ctx context.Context, s store.Store, errs map[string]error) {
	errs["AddToken"] = s.AddToken(ctx, newToken("life"))
	_, errs["Token"] = s.Token(ctx, 1)
	_, errs["ListTokens"] = s.ListTokens(ctx, 0, 1)
	errs["UseTokens"] = s.UseTokens(ctx, store.TokenUse{ID: 1, At: epoch})
	_, errs["RevokeToken"] = s.RevokeToken(ctx, 1, epoch)
	_, errs["PurgeTokens"] = s.PurgeTokens(ctx, 1, epoch, 1)
	errs["AddSession"] = s.AddSession(ctx, newSession("life", "p"))
	_, errs["Session"] = s.Session(ctx, "life")
	_, errs["UseSession"] = s.UseSession(ctx, "life", epoch, epoch)
	_, errs["DeleteSession"] = s.DeleteSession(ctx, "life")
	_, errs["DeleteSessionsOf"] = s.DeleteSessionsOf(ctx, "p")
	_, errs["PurgeSessions"] = s.PurgeSessions(ctx, epoch, 1)
	errs["AddLogin"] = s.AddLogin(ctx, store.Login{Hash: "life", ExpiresAt: epoch})
	_, errs["TakeLogin"] = s.TakeLogin(ctx, "life")
	_, errs["PurgeLogins"] = s.PurgeLogins(ctx, epoch, 1)
	errs["AddActions"] = s.AddActions(ctx, newAction(0, "x", "y", ""))
	_, errs["ListActions"] = s.ListActions(ctx, store.ActionFilter{})
	_, errs["PurgeActions"] = s.PurgeActions(ctx, epoch, 1)
}
