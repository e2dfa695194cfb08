package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newKeychain(key string, catalog event.ID) store.KeychainEntry {
	return store.KeychainEntry{
		CacheKey: key, Name: "token", CatalogID: catalog, CredentialType: "generic", CacheType: "token", Scope: "global",
		Sealed: "sealed " + key, ExpiresAt: after(60), CreatedAt: epoch,
	}
}

func mustPutKeychain(t *testing.T, s store.Store, entries ...store.KeychainEntry) {
	t.Helper()
	for _, e := range entries {
		if err := s.PutKeychain(t.Context(), e); err != nil {
			t.Fatalf("PutKeychain(%s) = %v", e.CacheKey, err)
		}
	}
}

func cacheKeys(entries []store.KeychainEntry) string {
	var keys []string
	for i := range entries {
		keys = append(keys, entries[i].CacheKey)
	}
	return fmt.Sprint(keys)
}

var keychainTests = map[string]func(*testing.T, store.Store){
	"a keychain entry comes back with every field and counts its reads": func(t *testing.T, s store.Store) {
		full := newKeychain("t:1:shared:5", newID())
		full.Scope, full.CacheType, full.ExecutionID, full.ParentExecutionID = "shared", "secret", newID(), newID()
		full.AutoRenew, full.SealedRenewal, full.ExpiresAt = true, "sealed renewal", epoch.Add(-time.Hour) // an expired one is found too
		bare := newKeychain("t:1:global", newID())
		mustPutKeychain(t, s, full, bare)
		for _, e := range []store.KeychainEntry{full, bare} {
			for i := 1; i <= 3; i++ {
				e.AccessCount, e.AccessedAt = int64(i), after(i)
				wantSame(t, "read", e, must[store.KeychainEntry](t)(s.Keychain(t.Context(), e.CacheKey, after(i))))
				wantSame(t, "listed", []store.KeychainEntry{e}, must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), e.CatalogID)))
			}
		}
		_, err := s.Keychain(t.Context(), "t:1", epoch)
		wantErr(t, "unknown key", err, store.ErrNotFound)
	},
	"a keychain entry that is stored again is a new one": func(t *testing.T, s store.Store) {
		old := newKeychain("k", 1)
		old.AutoRenew, old.SealedRenewal, old.ExecutionID = true, "how", newID()
		mustPutKeychain(t, s, old)
		must[store.KeychainEntry](t)(s.Keychain(t.Context(), "k", after(1)))
		next := newKeychain("k", 2)
		next.Sealed, next.CreatedAt, next.ExpiresAt, next.Name = "new", after(5), after(500), "other"
		mustPutKeychain(t, s, next)
		wantSame(t, "of the new catalog entry", []store.KeychainEntry{next}, must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 2)))
		wantSame(t, "of the old", 0, len(must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))))
	},
	"a keychain entry that cannot be kept is refused": func(t *testing.T, s store.Store) {
		for what, spoil := range map[string]func(*store.KeychainEntry){
			"no key":        func(e *store.KeychainEntry) { e.CacheKey = "" },
			"no deadline":   func(e *store.KeychainEntry) { e.ExpiresAt = time.Time{} },
			"unknown scope": func(e *store.KeychainEntry) { e.Scope = "world" },
			"unknown kind":  func(e *store.KeychainEntry) { e.CacheType = "" },
		} {
			e := newKeychain("k", 1)
			spoil(&e)
			if err := s.PutKeychain(t.Context(), e); event.CodeOf(err) != event.Invalid {
				t.Errorf("%s: PutKeychain = %v, want invalid", what, err)
			}
		}
		wantSame(t, "stored", 0, len(must[[]store.KeychainEntry](t)(s.KeychainAfter(t.Context(), "", 0))))
	},
	"the end of an execution takes its own and its shared entries": func(t *testing.T, s store.Store) {
		x, other := newID(), newID()
		for i, scope := range []string{"local", "shared", "global"} {
			for _, id := range []event.ID{x, other, 0} {
				e := newKeychain(fmt.Sprintf("%s%d", scope, id), 1)
				e.Scope, e.ExecutionID, e.ExpiresAt = scope, id, after(100+i)
				mustPutKeychain(t, s, e)
			}
		}
		wantSame(t, "removed", 2, must[int](t)(s.DeleteKeychainOf(t.Context(), x)))
		wantSame(t, "again", 0, must[int](t)(s.DeleteKeychainOf(t.Context(), x)))
		wantSame(t, "of no execution", 0, must[int](t)(s.DeleteKeychainOf(t.Context(), 0)))
		wantSame(t, "left", 7, len(must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))))
	},
	"a keychain entry is deleted by its key": func(t *testing.T, s store.Store) {
		mustPutKeychain(t, s, newKeychain("a", 1), newKeychain("b", 1))
		wantSame(t, "deleted", true, must[bool](t)(s.DeleteKeychain(t.Context(), "a")))
		wantSame(t, "again", false, must[bool](t)(s.DeleteKeychain(t.Context(), "a")))
		wantSame(t, "left", "[b]", cacheKeys(must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))))
	},
	"expired entries are removed in batches and those to renew are found": func(t *testing.T, s store.Store) {
		for i := range 6 {
			e := newKeychain(fmt.Sprint("k", 9-i), 1)
			e.ExpiresAt, e.AutoRenew = after(i), i%2 == 1
			mustPutKeychain(t, s, e)
		}
		due := func(before, limit int) string {
			return cacheKeys(must[[]store.KeychainEntry](t)(s.DueKeychain(t.Context(), after(before), limit)))
		}
		wantSame(t, "due", "[k8 k6]", due(5, 0))
		wantSame(t, "all due", "[k8 k6 k4]", due(6, 0))
		wantSame(t, "first due", "[k8]", due(6, 1))
		expire := func() int { return must[int](t)(s.ExpireKeychain(t.Context(), after(4), 3)) }
		wantSame(t, "first batch", 3, expire())
		wantSame(t, "second batch", 1, expire())
		wantSame(t, "third batch", 0, expire())
		wantSame(t, "left", "[k4 k5]", cacheKeys(must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))))
		wantSame(t, "without a limit", 2, must[int](t)(s.ExpireKeychain(t.Context(), after(100), 0)))
	},
	"the keychain is paged by key, byte by byte": func(t *testing.T, s store.Store) {
		for _, key := range []string{"b:2", "B:1", "a-1", "a:1", "_"} {
			mustPutKeychain(t, s, newKeychain(key, 1))
		}
		page := func(key string, limit int) string {
			return cacheKeys(must[[]store.KeychainEntry](t)(s.KeychainAfter(t.Context(), key, limit)))
		}
		wantSame(t, "first page", "[B:1 _]", page("", 2))
		wantSame(t, "second page", "[a-1 a:1]", page("_", 2))
		wantSame(t, "last page", "[b:2]", page("a:1", 2))
		wantSame(t, "all", "[B:1 _ a-1 a:1 b:2]", page("", 0))
		wantSame(t, "listed", "[B:1 _ a-1 a:1 b:2]", cacheKeys(must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))))
	},
	"the ciphertexts of an entry are swapped only while they are those read": func(t *testing.T, s store.Store) {
		e := newKeychain("k", 1)
		e.SealedRenewal = "how"
		mustPutKeychain(t, s, e)
		swap := func(key, old, sealed, renewal string) bool {
			return must[bool](t)(s.SwapKeychain(t.Context(), key, old, sealed, renewal))
		}
		wantSame(t, "with another old", false, swap("k", "other", "new", "new how"))
		wantSame(t, "of an unknown one", false, swap("l", e.Sealed, "new", "new how"))
		wantSame(t, "with the right old", true, swap("k", e.Sealed, "new", "new how"))
		wantSame(t, "twice", false, swap("k", e.Sealed, "newer", ""))
		e.Sealed, e.SealedRenewal = "new", "new how"
		wantSame(t, "the rest stays", []store.KeychainEntry{e}, must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1)))
		wantSame(t, "without renewal", true, swap("k", "new", "newest", ""))
		wantSame(t, "no renewal", "", must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))[0].SealedRenewal)
	},
	"no read of a keychain entry is lost": func(t *testing.T, s store.Store) {
		mustPutKeychain(t, s, newKeychain("k", 1))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					if _, err := s.Keychain(t.Context(), "k", epoch); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		wantSame(t, "reads", int64(40), must[[]store.KeychainEntry](t)(s.ListKeychain(t.Context(), 1))[0].AccessCount)
	},
}
