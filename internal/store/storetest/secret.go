package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newCredential(name, kind string) store.Credential {
	return store.Credential{
		ID: newID(), Name: name, Type: kind, Sealed: "sealed " + name, Meta: []byte(`{"team":"data"}`), Tags: []string{"a", "b,{c}"},
		Description: "The " + name, CreatedAt: epoch, UpdatedAt: epoch,
	}
}

// wantCredentials compares credentials; JSON counts as equal when it means the same.
func wantCredentials(t *testing.T, what string, want, got []store.Credential) {
	t.Helper()
	plain := func(all []store.Credential) []store.Credential {
		out := append([]store.Credential{}, all...)
		for i := range out {
			for _, doc := range []*[]byte{&out[i].Schema, &out[i].Meta} {
				if len(*doc) > 0 {
					*doc, _ = json.Marshal(meaning(*doc))
				}
			}
		}
		return out
	}
	wantSame(t, what, plain(want), plain(got))
}

func mustPutCredential(t *testing.T, s store.Store, c store.Credential) (store.Credential, bool) {
	t.Helper()
	stored, created, err := s.PutCredential(t.Context(), c)
	if err != nil {
		t.Fatalf("PutCredential(%s) = %v", c.Name, err)
	}
	return stored, created
}

func credentialNames(all []store.Credential) string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return fmt.Sprint(names)
}

var credentialTests = map[string]func(*testing.T, store.Store){
	"a credential comes back by name and by id with every field": func(t *testing.T, s store.Store) {
		c := newCredential("pg_demo", "postgres")
		c.Schema, c.UpdatedAt = []byte(`{"host":"string"}`), after(3)
		bare := store.Credential{ID: newID(), Name: "77", Type: "x", Sealed: "s", CreatedAt: epoch, UpdatedAt: epoch}
		for _, want := range []store.Credential{c, bare} {
			stored, created := mustPutCredential(t, s, want)
			wantSame(t, "created", true, created)
			wantCredentials(t, "stored", []store.Credential{want}, []store.Credential{stored})
			byName := must[store.Credential](t)(s.Credential(t.Context(), want.Name))
			byID := must[store.Credential](t)(s.CredentialByID(t.Context(), want.ID))
			wantCredentials(t, "found", []store.Credential{want, want}, []store.Credential{byName, byID})
		}
		for _, name := range []string{"", "PG_DEMO", "pg_dem", "pg_demo "} {
			_, err := s.Credential(t.Context(), name)
			wantErr(t, "unknown name "+name, err, store.ErrNotFound)
		}
		_, err := s.CredentialByID(t.Context(), 77)
		wantErr(t, "unknown id", err, store.ErrNotFound)
	},
	"a credential that is stored again keeps its id and its age": func(t *testing.T, s store.Store) {
		first := newCredential("api", "bearer")
		mustPutCredential(t, s, first)
		next := store.Credential{ID: newID(), Name: "api", Type: "api_key", Sealed: "new", CreatedAt: after(9), UpdatedAt: after(9)}
		stored, created := mustPutCredential(t, s, next)
		wantSame(t, "created", false, created)
		next.ID, next.CreatedAt = first.ID, first.CreatedAt
		wantCredentials(t, "stored", []store.Credential{next}, []store.Credential{stored})
		wantCredentials(t, "found", []store.Credential{next}, []store.Credential{must[store.Credential](t)(s.Credential(t.Context(), "api"))})
	},
	"an id belongs to one credential": func(t *testing.T, s store.Store) {
		first := newCredential("one", "basic")
		mustPutCredential(t, s, first)
		other := newCredential("two", "basic")
		other.ID = first.ID
		_, _, err := s.PutCredential(t.Context(), other)
		if event.CodeOf(err) != event.Conflict {
			t.Errorf("PutCredential with a taken id = %v, want a conflict", err)
		}
		_, err = s.Credential(t.Context(), "two")
		wantErr(t, "the refused one", err, store.ErrNotFound)
	},
	"credentials are listed newest first by type and by words": func(t *testing.T, s store.Store) {
		for i, c := range []store.Credential{newCredential("pg_main", "postgres"), newCredential("pg_copy", "postgres"), newCredential("mail", "bearer")} {
			c.CreatedAt = after(i)
			if c.Name == "mail" {
				c.Description = "Sends 100% of MAIL"
			}
			mustPutCredential(t, s, c)
		}
		for f, want := range map[store.CredentialFilter]string{
			{}:                                "[mail pg_copy pg_main]",
			{Type: "postgres"}:                "[pg_copy pg_main]",
			{Type: "Postgres"}:                "[]",
			{Query: "PG_"}:                    "[pg_copy pg_main]",
			{Query: "the pg"}:                 "[pg_copy pg_main]",
			{Query: "0% of m"}:                "[mail]",
			{Query: "p%g"}:                    "[]",
			{Query: "main", Type: "bearer"}:   "[]",
			{Query: "copy", Type: "postgres"}: "[pg_copy]",
		} {
			wantSame(t, fmt.Sprintf("%+v", f), want, credentialNames(must[[]store.Credential](t)(s.ListCredentials(t.Context(), f))))
		}
	},
	"credentials are paged by id": func(t *testing.T, s store.Store) {
		var ids []event.ID
		for i := range 5 {
			c := newCredential(fmt.Sprint("c", 5-i), "x")
			mustPutCredential(t, s, c)
			ids = append(ids, c.ID)
		}
		page := func(id event.ID, limit int) string {
			return credentialNames(must[[]store.Credential](t)(s.CredentialsAfter(t.Context(), id, limit)))
		}
		wantSame(t, "first page", "[c5 c4]", page(0, 2))
		wantSame(t, "second page", "[c3 c2]", page(ids[1], 2))
		wantSame(t, "last page", "[c1]", page(ids[3], 2))
		wantSame(t, "behind the end", "[]", page(ids[4], 2))
		wantSame(t, "all", "[c5 c4 c3 c2 c1]", page(0, 0))
	},
	"a deleted credential is gone and its name is free": func(t *testing.T, s store.Store) {
		c := newCredential("gone", "x")
		mustPutCredential(t, s, c)
		if err := s.DeleteCredential(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "deleting again", s.DeleteCredential(t.Context(), c.ID), store.ErrNotFound)
		_, err := s.Credential(t.Context(), "gone")
		wantErr(t, "found", err, store.ErrNotFound)
		_, created := mustPutCredential(t, s, newCredential("gone", "x"))
		wantSame(t, "created anew", true, created)
	},
	"a ciphertext is swapped only while it is the one that was read": func(t *testing.T, s store.Store) {
		c := newCredential("pg", "postgres")
		mustPutCredential(t, s, c)
		swap := func(id event.ID, old, sealed string) bool {
			return must[bool](t)(s.SwapCredential(t.Context(), id, old, sealed))
		}
		wantSame(t, "with another old", false, swap(c.ID, "other", "new"))
		wantSame(t, "of an unknown one", false, swap(newID(), c.Sealed, "new"))
		wantSame(t, "with the right old", true, swap(c.ID, c.Sealed, "new"))
		wantSame(t, "twice", false, swap(c.ID, c.Sealed, "newer"))
		c.Sealed = "new"
		wantCredentials(t, "the rest stays", []store.Credential{c}, []store.Credential{must[store.Credential](t)(s.CredentialByID(t.Context(), c.ID))})
	},
	"of writers of one name one creates": func(t *testing.T, s store.Store) {
		const writers = 8
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			ids     = map[event.ID]bool{}
			creates int
		)
		for range writers {
			c := newCredential("shared", "x")
			wg.Go(func() {
				stored, created, err := s.PutCredential(t.Context(), c)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[stored.ID] = true
				if created {
					creates++
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 || creates != 1 {
			t.Errorf("%d ids and %d creations of one name", len(ids), creates)
		}
	},
}

func newAudit(credential, operation string, execution event.ID, at time.Time) store.SecretAudit {
	return store.SecretAudit{ID: newID(), At: at, Credential: credential, Operation: operation, Outcome: "ok", ExecutionID: execution}
}

func auditOperations(lines []store.SecretAudit) string {
	var out []string
	for i := range lines {
		out = append(out, lines[i].Operation)
	}
	return fmt.Sprint(out)
}

var auditTests = map[string]func(*testing.T, store.Store){
	"an audit line comes back with every field and once": func(t *testing.T, s store.Store) {
		full := store.SecretAudit{
			ID: newID(), At: after(1), Credential: "pg", Operation: "resolve", Outcome: "denied", Actor: "worker w1", RequestID: "r-1", WorkerID: "w1",
			ExecutionID: newID(), ParentExecutionID: newID(), Region: "eu", KeyVersion: "v2", Notes: "why",
		}
		bare := newAudit("pg", "create", 0, epoch)
		for range 2 {
			if err := s.AddAudit(t.Context(), full, bare); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.AddAudit(t.Context()); err != nil {
			t.Errorf("adding nothing = %v", err)
		}
		wantSame(t, "lines", []store.SecretAudit{full, bare}, must[[]store.SecretAudit](t)(s.ListAudit(t.Context(), store.AuditFilter{})))
	},
	"audit lines are found by credential, execution and time": func(t *testing.T, s store.Store) {
		x, y := newID(), newID()
		lines := []store.SecretAudit{
			newAudit("a", "1", x, after(1)), newAudit("b", "2", x, after(2)), newAudit("a", "3", y, after(3)), newAudit("a", "4", 0, after(3)),
		}
		if err := s.AddAudit(t.Context(), lines...); err != nil {
			t.Fatal(err)
		}
		for f, want := range map[store.AuditFilter]string{
			{}:                                "[4 3 2 1]",
			{Credential: "a"}:                 "[4 3 1]",
			{Credential: "A"}:                 "[]",
			{ExecutionID: x}:                  "[2 1]",
			{Credential: "a", ExecutionID: x}: "[1]",
			{From: after(2)}:                  "[4 3 2]",
			{To: after(3)}:                    "[2 1]",
			{From: after(2), To: after(3)}:    "[2]",
			{Limit: 3}:                        "[4 3 2]",
		} {
			wantSame(t, fmt.Sprintf("%+v", f), want, auditOperations(must[[]store.SecretAudit](t)(s.ListAudit(t.Context(), f))))
		}
	},
	"a list of audit lines is a hundred long unless told": func(t *testing.T, s store.Store) {
		var lines []store.SecretAudit
		for i := range 130 {
			lines = append(lines, newAudit("a", fmt.Sprint(i), 0, after(i)))
		}
		if err := s.AddAudit(t.Context(), lines...); err != nil {
			t.Fatal(err)
		}
		for limit, want := range map[int]int{0: 100, 120: 120, 1000: 130} {
			wantSame(t, fmt.Sprint("limit ", limit), want, len(must[[]store.SecretAudit](t)(s.ListAudit(t.Context(), store.AuditFilter{Limit: limit}))))
		}
	},
}

// callSecrets makes the calls of callAll that concern secrets.
func callSecrets(ctx context.Context, s store.Store, errs map[string]error) {
	_, _, errs["PutCredential"] = s.PutCredential(ctx, newCredential("life", "x"))
	_, errs["Credential"] = s.Credential(ctx, "life")
	_, errs["CredentialByID"] = s.CredentialByID(ctx, 1)
	_, errs["ListCredentials"] = s.ListCredentials(ctx, store.CredentialFilter{})
	errs["DeleteCredential"] = s.DeleteCredential(ctx, 1)
	_, errs["CredentialsAfter"] = s.CredentialsAfter(ctx, 0, 1)
	_, errs["SwapCredential"] = s.SwapCredential(ctx, 1, "a", "b")
	errs["PutKeychain"] = s.PutKeychain(ctx, newKeychain("life", 1))
	_, errs["Keychain"] = s.Keychain(ctx, "life", epoch)
	_, errs["ListKeychain"] = s.ListKeychain(ctx, 1)
	_, errs["DeleteKeychain"] = s.DeleteKeychain(ctx, "life")
	_, errs["DeleteKeychainOf"] = s.DeleteKeychainOf(ctx, 1)
	_, errs["ExpireKeychain"] = s.ExpireKeychain(ctx, epoch, 1)
	_, errs["DueKeychain"] = s.DueKeychain(ctx, epoch, 1)
	_, errs["KeychainAfter"] = s.KeychainAfter(ctx, "", 1)
	_, errs["SwapKeychain"] = s.SwapKeychain(ctx, "life", "a", "b", "")
	errs["AddAudit"] = s.AddAudit(ctx, newAudit("a", "b", 0, epoch))
	_, errs["ListAudit"] = s.ListAudit(ctx, store.AuditFilter{})
}
