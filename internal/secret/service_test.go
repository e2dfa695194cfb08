package secret_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

var noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

func keys(t *testing.T, versions ...byte) *envelope.Keys {
	t.Helper()
	var list []string
	for _, v := range versions {
		list = append(list, fmt.Sprintf("v%d:%s", v, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{v}, 32))))
	}
	k, err := envelope.Load(envelope.Settings{Keys: strings.Join(list, ",")})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// meter counts like the metrics do.
type meter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (m *meter) add(what string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	m.counts[what] += n
}

func (m *meter) Released(op string) { m.add("released "+op, 1) }
func (m *meter) Denied(op string)   { m.add("denied "+op, 1) }
func (m *meter) AuditDropped(n int) { m.add("dropped", n) }
func (m *meter) AuditWritten(op, outcome string, ok bool) {
	m.add(fmt.Sprintf("audit %s %s %t", op, outcome, ok), 1)
}

func (m *meter) Rotated(table string, rewrapped, skipped, failed int) {
	m.add("rewrapped "+table, rewrapped)
	m.add("skipped "+table, skipped)
	m.add("failed "+table, failed)
}
func (m *meter) get(what string) int { m.mu.Lock(); defer m.mu.Unlock(); return m.counts[what] }

type rig struct {
	*secret.Service
	store *memstore.Store
	meter *meter
}

func newRig(t *testing.T, change ...func(*secret.Options)) rig {
	t.Helper()
	var (
		mu   sync.Mutex
		last event.ID
	)
	r := rig{store: memstore.New(), meter: &meter{}}
	o := secret.Options{
		Store: r.store, Keys: keys(t, 1), Clock: func() time.Time { return noon }, Meter: r.meter, Region: "eu",
		IDs: func() event.ID { mu.Lock(); defer mu.Unlock(); last++; return 1000 + last },
	}
	for _, f := range change {
		f(&o)
	}
	r.Service = secret.New(o)
	return r
}

var me = secret.Use{Actor: "me", RequestID: "r-1"}

func (r rig) put(t *testing.T, name, kind, data string) store.Credential {
	t.Helper()
	c, _, err := r.Put(t.Context(), secret.Registration{Name: name, Type: kind, Data: json.RawMessage(data)}, me)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines are the audit as "operation credential outcome".
func (r rig) lines(t *testing.T) []string {
	t.Helper()
	all, err := r.Audit(t.Context(), store.AuditFilter{})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, l := range all {
		out = append(out, l.Operation+" "+l.Credential+" "+l.Outcome)
		if l.Actor != "me" || l.RequestID != "r-1" || l.Region != "eu" || !l.At.Equal(noon) {
			t.Errorf("line %+v", l)
		}
	}
	return out
}

func TestACredentialIsStoredEncryptedAndOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	made := r.put(t, "pg_demo", " Postgres ", `{"db_host":"h", "db_password":"geheim"}`)
	row, err := r.store.Credential(t.Context(), "pg_demo")
	if err != nil || strings.Contains(row.Sealed, "geheim") || row.Type != "postgres" || made.Sealed != "" {
		t.Fatalf("stored %+v, %v", row, err)
	}
	for _, identifier := range []string{"pg_demo", made.ID.String()} {
		c, data, err := r.Open(t.Context(), identifier, me)
		if err != nil || string(data) != `{"db_host":"h","db_password":"geheim"}` || c.Name != "pg_demo" || c.Sealed != "" {
			t.Errorf("Open(%s) = %+v, %s, %v", identifier, c, data, err)
		}
	}
	again := r.put(t, "pg_demo", "postgres", `{"host":"h2"}`)
	if again.ID != made.ID {
		t.Errorf("id %s became %s", made.ID, again.ID)
	}
	if _, data, err := r.Open(t.Context(), "pg_demo", me); err != nil || string(data) != `{"host":"h2"}` {
		t.Errorf("after the update: %s, %v", data, err)
	}
	if _, err := r.Delete(t.Context(), "pg_demo", me); err != nil {
		t.Error(err)
	}
	_, _, err = r.Open(t.Context(), "pg_demo", me)
	if event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), `"pg_demo"`) {
		t.Errorf("after the delete: %v", err)
	}
	want := []string{
		"get_credential pg_demo credential_not_found", "delete pg_demo ok", "get_credential pg_demo ok", "update pg_demo ok",
		"get_credential pg_demo ok", "get_credential pg_demo ok", "create pg_demo ok",
	}
	if diff := cmp.Diff(want, r.lines(t)); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
	if r.meter.get("released get_credential") != 3 || r.meter.get("denied get_credential") != 1 {
		t.Errorf("counted %v", r.meter.counts)
	}
}

func TestANumberIsAnIDFirstAndANameThen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.put(t, "x", "secret", `{"v":"by id"}`)
	r.put(t, first.ID.String(), "secret", `{"v":"by name"}`)
	r.put(t, "77", "secret", `{"v":"77"}`)
	for identifier, want := range map[string]string{first.ID.String(): `{"v":"by id"}`, "77": `{"v":"77"}`} {
		if _, data, err := r.Open(t.Context(), identifier, me); err != nil || string(data) != want {
			t.Errorf("Open(%s) = %s, %v", identifier, data, err)
		}
	}
}

func TestWrongRegistrationsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("x", 300)
	for what, reg := range map[string]secret.Registration{
		"no name":           {Type: "secret", Data: []byte(`{}`)},
		"spaces":            {Name: " a", Type: "secret", Data: []byte(`{}`)},
		"control character": {Name: "a\nb", Type: "secret", Data: []byte(`{}`)},
		"long name":         {Name: long, Type: "secret", Data: []byte(`{}`)},
		"no type":           {Name: "a", Data: []byte(`{}`)},
		"no data":           {Name: "a", Type: "secret"},
		"null":              {Name: "a", Type: "secret", Data: []byte(`null`)},
		"text":              {Name: "a", Type: "secret", Data: []byte(`"geheim"`)},
		"list":              {Name: "a", Type: "secret", Data: []byte(`["geheim"]`)},
		"broken":            {Name: "a", Type: "secret", Data: []byte(`{"geheim`)},
		"postgres":          {Name: "a", Type: "postgres", Data: []byte(`{"db_password":"geheim"}`)},
		"bearer":            {Name: "a", Type: "Bearer", Data: []byte(`{"token":""}`)},
		"basic":             {Name: "a", Type: "basic", Data: []byte(`{"username":"u"}`)},
		"empty tag":         {Name: "a", Type: "secret", Data: []byte(`{}`), Tags: []string{""}},
		"broken meta":       {Name: "a", Type: "secret", Data: []byte(`{}`), Meta: []byte(`{`)},
		"large":             {Name: "a", Type: "secret", Data: []byte(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)},
	} {
		_, _, err := r.Put(t.Context(), reg, me)
		if code := event.CodeOf(err); err == nil || code != event.Invalid && code != event.Limit {
			t.Errorf("%s: %v, want a refusal", what, err)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error quotes the secret: %v", what, err)
		}
	}
	for kind, data := range map[string]string{
		"postgres": `{"connection_string":"x"}`, "api_key": `{"key":"k"}`, "nats": `{"nats_url":"u"}`, "never heard of it": `{}`, "snowflake": `{"sf_account":"a","sf_user":"u"}`,
	} {
		r.put(t, kind, kind, data)
	}
	if got, err := r.List(t.Context(), store.CredentialFilter{Type: "NATS"}); err != nil || len(got) != 1 || got[0].Sealed != "" {
		t.Errorf("List = %+v, %v", got, err)
	}
}

func TestACredentialOfAnotherRowOrKeyIsNotOpened(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.put(t, "a", "secret", `{"v":1}`), r.put(t, "b", "secret", `{"v":2}`)
	rowA, _ := r.store.CredentialByID(t.Context(), a.ID)
	rowB, _ := r.store.CredentialByID(t.Context(), b.ID)
	if ok, err := r.store.SwapCredential(t.Context(), b.ID, rowB.Sealed, rowA.Sealed); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, data, err := r.Open(t.Context(), "b", me); err == nil || data != nil {
		t.Errorf("a swapped row opened as %s", data)
	}
	other := secret.New(secret.Options{Store: r.store, Keys: keys(t, 2), IDs: func() event.ID { return 1 }})
	if _, err := other.Check(t.Context(), "a", me); err == nil || !strings.Contains(err.Error(), "version v1") {
		t.Errorf("without the key: %v", err)
	}
	checked, err := r.Check(t.Context(), "a", me)
	if err != nil || checked.KeyVersion != "v1" || !cmp.Equal(checked.Fields, []string{"v"}) {
		t.Errorf("Check = %+v, %v", checked, err)
	}
	if got := r.lines(t); got[0] != "check a ok" || got[1] != "get_credential b decrypt_error" {
		t.Errorf("audit %v", got)
	}
	if r.meter.get("released get_credential") != 0 || r.meter.get("denied get_credential") != 1 {
		t.Errorf("counted %v", r.meter.counts)
	}
}

func TestRotationBringsEverythingUnderTheCurrentKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 7 {
		r.put(t, fmt.Sprint("c", i), "secret", fmt.Sprintf(`{"v":%d}`, i))
	}
	seal := func(row, text string) string {
		out, err := keys(t, 1).Seal(row, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for i := range 5 {
		key := fmt.Sprintf("k%d:1:global", i)
		e := store.KeychainEntry{
			CacheKey: key, Name: "k", CatalogID: 1, CredentialType: "generic", CacheType: "token", Scope: "global", ExpiresAt: noon.Add(time.Hour),
			Sealed: seal(secret.KeychainRow(key), "token"), SealedRenewal: seal(secret.RenewalRow(key), "renewal"),
		}
		if err := r.store.PutKeychain(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	foreign, _ := keys(t, 9).Seal(secret.CredentialRow("lost"), []byte(`{}`))
	for name, sealed := range map[string]string{"lost": foreign, "plain": `{"password":"geheim"}`} {
		c := store.Credential{ID: event.ID(len(name)), Name: name, Type: "x", Sealed: sealed, CreatedAt: noon, UpdatedAt: noon}
		if _, _, err := r.store.PutCredential(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	next := newRig(t, func(o *secret.Options) { o.Store, o.Keys = r.store, keys(t, 2, 1) })
	next.store = r.store
	status, err := next.KeyStatus(t.Context())
	if err != nil || !maps.Equal(status.Credential, map[string]int{"v1": 7, "v9": 1, "invalid": 1}) || !maps.Equal(status.Keychain, map[string]int{"v1": 5}) {
		t.Fatalf("before: %+v, %v", status, err)
	}
	report, err := next.Rotate(t.Context(), secret.RotateRequest{BatchSize: 2}, me)
	if err != nil {
		t.Fatal(err)
	}
	if c := report.Credential; c.Processed != 9 || c.Rewrapped != 7 || c.Skipped != 0 || c.Failed != 2 || c.More {
		t.Errorf("credentials: %+v", c)
	}
	if k := report.Keychain; k.Processed != 5 || k.Rewrapped != 5 || k.Failed != 0 || k.LastID != "k4:1:global" {
		t.Errorf("keychain: %+v", k)
	}
	status, _ = next.KeyStatus(t.Context())
	if status.Credential["v2"] != 7 || status.Keychain["v2"] != 5 || status.Current != "v2" {
		t.Errorf("after: %+v", status)
	}
	only := keys(t, 2)
	entries, _ := r.store.KeychainAfter(t.Context(), "", 0)
	for _, e := range entries {
		data, errData := only.Open(secret.KeychainRow(e.CacheKey), e.Sealed)
		how, errHow := only.Open(secret.RenewalRow(e.CacheKey), e.SealedRenewal)
		if string(data) != "token" || string(how) != "renewal" {
			t.Errorf("%s: %s %v, %s %v", e.CacheKey, data, errData, how, errHow)
		}
	}
	report, err = next.Rotate(t.Context(), secret.RotateRequest{BatchSize: 2, MaxBatches: 1}, me)
	if err != nil || report.Credential.Processed != 2 || !report.Credential.More || report.Keychain.Skipped != 2 || !report.Keychain.More {
		t.Errorf("one batch: %+v, %v", report, err)
	}
	if _, err := next.Rotate(t.Context(), secret.RotateRequest{BatchSize: 100000}, me); event.CodeOf(err) != event.Invalid {
		t.Errorf("a huge batch: %v", err)
	}
}

// racing writes a row just before it would be swapped.
type racing struct {
	*memstore.Store
	write func()
}

func (r *racing) SwapCredential(ctx context.Context, id event.ID, old, sealed string) (bool, error) {
	if write := r.write; write != nil {
		r.write = nil
		write()
	}
	return r.Store.SwapCredential(ctx, id, old, sealed)
}

func TestRotationLosesNoConcurrentWrite(t *testing.T) {
	t.Parallel()
	old := newRig(t)
	old.put(t, "a", "secret", `{"v":"old"}`)
	race := &racing{Store: old.store}
	race.write = func() { old.put(t, "a", "secret", `{"v":"new"}`) } // by a server that still has the old key
	next := newRig(t, func(o *secret.Options) { o.Store, o.Keys = race, keys(t, 2, 1) })
	report, err := next.Rotate(t.Context(), secret.RotateRequest{}, me)
	if err != nil || report.Credential.Rewrapped != 1 || report.Credential.Failed != 0 {
		t.Errorf("Rotate = %+v, %v", report, err)
	}
	if _, data, err := next.Open(t.Context(), "a", me); err != nil || string(data) != `{"v":"new"}` {
		t.Errorf("after: %s, %v", data, err)
	}
	if status, _ := next.KeyStatus(t.Context()); status.Credential["v2"] != 1 {
		t.Errorf("status %+v", status)
	}
}

// deaf refuses audit lines while told to.
type deaf struct {
	*memstore.Store
	mu     sync.Mutex
	closed bool
	tries  int
}

func (d *deaf) AddAudit(ctx context.Context, lines ...store.SecretAudit) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.closed {
		return errors.New("no room")
	}
	return d.Store.AddAudit(ctx, lines...)
}

func (d *deaf) close(v bool) { d.mu.Lock(); defer d.mu.Unlock(); d.closed = v }

func TestWithoutItsAuditNoSecretLeavesWhenThatIsRequired(t *testing.T) {
	t.Parallel()
	d := &deaf{Store: memstore.New()}
	r := newRig(t, func(o *secret.Options) { o.Store, o.AuditRequired = d, true })
	r.put(t, "a", "secret", `{"v":"geheim"}`)
	d.close(true)
	_, data, err := r.Open(t.Context(), "a", me)
	if event.CodeOf(err) != event.Unavailable || data != nil {
		t.Errorf("Open = %s, %v; want a refusal", data, err)
	}
	d.close(false)
	if _, data, err = r.Open(t.Context(), "a", me); err != nil || len(data) == 0 {
		t.Errorf("Open = %s, %v", data, err)
	}
}

func TestTheAuditIsWrittenWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &deaf{Store: memstore.New()}
		r := newRig(t, func(o *secret.Options) { o.Store = d })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		d.close(true)
		r.put(t, "a", "secret", `{}`)
		synctest.Wait()
		if _, err := r.Audit(t.Context(), store.AuditFilter{}); err == nil {
			t.Error("the list does not say that lines are missing")
		}
		d.close(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		stored, _ := d.ListAudit(t.Context(), store.AuditFilter{})
		if len(stored) != 1 {
			t.Errorf("%d lines after the store came back", len(stored))
		}
		r.put(t, "b", "secret", `{}`)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stored, _ = d.ListAudit(t.Context(), store.AuditFilter{})
		if len(stored) != 2 || r.meter.get("dropped") != 0 {
			t.Errorf("%d lines at the end, %d dropped", len(stored), r.meter.get("dropped"))
		}
	})
}

func TestTheAuditQueueIsBoundedAndLossesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 5000 {
		if err := r.Record(t.Context(), me, "a", secret.OutcomeOK, ""); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.Audit(t.Context(), store.AuditFilter{Limit: 10000})
	if err != nil || len(all)+r.meter.get("dropped") != 5000 || r.meter.get("dropped") != 5000-4096 {
		t.Errorf("%d lines, %d dropped, %v", len(all), r.meter.get("dropped"), err)
	}
	if _, err := r.Audit(t.Context(), store.AuditFilter{Limit: 10001}); event.CodeOf(err) != event.Invalid {
		t.Errorf("a limit beyond the cap: %v", err)
	}
}
