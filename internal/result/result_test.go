package result_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/result/file"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const execution event.ID = 42

type rig struct {
	*result.Service
	store *memstore.Store
	dir   string
	now   time.Time
}

func newRig(t *testing.T, o result.Options) *rig {
	t.Helper()
	r := &rig{store: memstore.New(), dir: t.TempDir(), now: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)}
	files, err := file.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	o.Store, o.IDs, o.Now = r.store, func() event.ID { return event.ID(ids.Add(1)) }, func() time.Time { return r.now }
	o.Tiers = append(o.Tiers, files)
	if r.Service, err = result.New(o); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) put(t *testing.T, o event.ResultOptions, data string) event.StoredResult {
	t.Helper()
	if o.Name == "" {
		o.Name = "step"
	}
	at, err := r.Put(t.Context(), execution, o, strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func (r *rig) read(t *testing.T, ref string, offset, length int64) (string, error) {
	t.Helper()
	at, err := event.ParseResultRef(ref)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := r.Open(t.Context(), at, offset, length)
	if err != nil {
		return "", err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	return string(data), err
}

// files lists what is in the directory.
func (r *rig) files(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// text is JSON of about so many bytes that does not compress to nothing.
func text(seed uint64, size int) string {
	r := rand.New(rand.NewPCG(seed, 0))
	var block strings.Builder
	for block.Len() < 20<<10 {
		fmt.Fprintf(&block, "%08x row ", r.Uint32())
	}
	return `["` + strings.Repeat(block.String(), size/block.Len()+1)[:size-4] + `"]`
}

func TestValuesGoWhereTheyBelongAndComeBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{Large: "file", DBLimit: 1 << 20})
	sizes := map[int]string{2: "db", 200 << 10: "db", 256 << 10: "db", 300 << 10: "db", 1 << 20: "db", 1<<20 + 100: "file", 2 << 20: "file"}
	for size, tier := range sizes {
		for _, store := range []string{"", "db", "file"} {
			want := tier
			if store != "" {
				want = store
			}
			data := "{}"
			if size > 2 {
				data = text(uint64(size), size)
			}
			at := r.put(t, event.ResultOptions{Store: store}, data)
			if at.Store != want || at.Bytes != int64(len(data)) {
				t.Errorf("%d bytes for %q are in %s, %d bytes; want %s", size, store, at.Store, at.Bytes, want)
			}
			if got, err := r.read(t, at.Ref, 0, 0); err != nil || got != data {
				t.Errorf("%d bytes for %q come back as %d, %v", size, store, len(got), err)
			}
			rng := rand.New(rand.NewPCG(uint64(size), 1))
			for range 5 {
				offset := rng.Int64N(int64(size) + 1)
				length := rng.Int64N(int64(size) + 10)
				end := min(int64(size), offset+length)
				if length == 0 {
					end = int64(size)
				}
				if got, err := r.read(t, at.Ref, offset, length); err != nil || got != data[offset:end] {
					t.Fatalf("bytes %d+%d of %d in %s: %d bytes, %v", offset, length, size, at.Store, len(got), err)
				}
			}
			if _, err := r.read(t, at.Ref, int64(size)+1, 0); event.CodeOf(err) != event.Invalid {
				t.Errorf("a range behind the end gives %v", err)
			}
		}
	}
}

func TestOtherMediaAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{})
	for _, data := range []string{"", "a,b\n1,2\n", "\x00\xff" + strings.Repeat("x", 2<<20)} {
		at := r.put(t, event.ResultOptions{MediaType: "text/csv; charset=utf-8"}, data)
		if got, err := r.read(t, at.Ref, 0, 0); err != nil || got != data || at.MediaType != "text/csv; charset=utf-8" {
			t.Errorf("%d bytes come back as %d, %v, %s", len(data), len(got), err, at.MediaType)
		}
	}
}

func TestOptionsSayHowLongAndWhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{})
	for _, c := range []struct {
		o     event.ResultOptions
		scope string
		ttl   time.Duration
		tier  string
	}{
		{event.ResultOptions{}, "execution", 0, "db"},
		{event.ResultOptions{TTL: "30m", Scope: "workflow", Store: "AUTO"}, "workflow", 30 * time.Minute, "db"},
		{event.ResultOptions{TTL: "1.5d"}, "execution", 36 * time.Hour, "db"},
		{event.ResultOptions{TTL: "2w", Store: "disk"}, "execution", 14 * 24 * time.Hour, "file"},
		{event.ResultOptions{TTL: "forever"}, "permanent", 0, "db"},
	} {
		at := r.put(t, c.o, `1`)
		switch {
		case at.Scope != c.scope || at.Store != c.tier || (at.ExpiresAt == nil) != (c.ttl == 0):
			t.Errorf("%+v gives %+v", c.o, at)
		case c.ttl > 0 && !at.ExpiresAt.Equal(r.now.Add(c.ttl)):
			t.Errorf("%+v expires at %v", c.o, at.ExpiresAt)
		}
	}
	for want, o := range map[string]event.ResultOptions{
		"ttl: want a time":       {Name: "n", TTL: "soon"},
		`got "-1h"`:              {Name: "n", TTL: "-1h"},
		`got "0d"`:               {Name: "n", TTL: "0d"},
		"scope: want":            {Name: "n", Scope: "world"},
		"store: want":            {Name: "n", Store: "tape"},
		"not configured to keep": {Name: "n", Store: "gcs"},
		"media_type":             {Name: "n", MediaType: "text/plain\r\nX: y"},
		"name: a result needs":   {},
		"too long":               {Name: strings.Repeat("n", 600)},
	} {
		_, err := r.Put(t.Context(), execution, o, strings.NewReader(`1`))
		if event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v gives %v, want %q", o, err, want)
		}
	}
}

// left is what the store and the directory hold of results that nobody can read.
func (r *rig) left(t *testing.T) (rows, files int) {
	t.Helper()
	all, err := r.store.ExpiredResults(t.Context(), r.now.Add(1000*time.Hour), 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(all), len(r.files(t))
}

func TestAFailedPutLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("the source broke")
	large := text(1, 3<<20)
	for name, c := range map[string]struct {
		r    func(cancel func()) io.Reader
		want func(error) bool
	}{
		"bad from the start": {func(func()) io.Reader { return strings.NewReader(`{"a":`) }, coded(event.Invalid)},
		"bad at the end":     {func(func()) io.Reader { return strings.NewReader(large + "x") }, coded(event.Invalid)},
		"empty":              {func(func()) io.Reader { return strings.NewReader(``) }, coded(event.Invalid)},
		"too large":          {func(func()) io.Reader { return strings.NewReader(text(2, 5<<20)) }, coded(event.Limit)},
		"a source that breaks": {
			func(func()) io.Reader {
				return io.MultiReader(strings.NewReader(large[:2<<20]), iotest.ErrReader(broken))
			},
			func(err error) bool { return errors.Is(err, broken) },
		},
		"a caller that goes": {
			func(cancel func()) io.Reader {
				return io.MultiReader(strings.NewReader(large[:2<<20]), &calls{cancel}, strings.NewReader(large[2<<20:]))
			},
			func(err error) bool { return errors.Is(err, context.Canceled) },
		},
	} {
		for _, tier := range []string{"db", "file"} {
			t.Run(name+" "+tier, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, result.Options{MaxBytes: 4 << 20})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				at, err := r.Put(ctx, execution, event.ResultOptions{Name: "n", Store: tier}, c.r(cancel))
				if err == nil || !c.want(err) {
					t.Errorf("Put = %+v, %v", at, err)
				}
				if rows, files := r.left(t); rows > 0 || files > 0 {
					t.Errorf("%d rows and %d files are left", rows, files)
				}
				if _, err := r.store.Part(t.Context(), execution, "42/1.zst", 0); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("a part is left: %v", err)
				}
			})
		}
	}
}

func coded(want event.Code) func(error) bool {
	return func(err error) bool { return event.CodeOf(err) == want }
}

// calls gives nothing but calls f.
type calls struct{ f func() }

func (c *calls) Read([]byte) (int, error) { c.f(); return 0, io.EOF }

// TestAKilledPutIsSwept stands for a process that dies in the middle: its store
// takes nothing any more.
func TestAKilledPutIsSwept(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"db", "file"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, result.Options{})
			die := func() {
				r.store.Inject(memstore.Faults{Hook: func(op string) memstore.Fault {
					if op == "PutPart" {
						return memstore.None
					}
					return memstore.Refuse
				}})
			}
			data := text(1, 3<<20)
			_, err := r.Put(t.Context(), execution, event.ResultOptions{Name: "n", Store: tier},
				io.MultiReader(strings.NewReader(data[:2<<20]), &calls{die}, strings.NewReader(data[2<<20:])))
			if err == nil {
				t.Fatal("the put of a dead process succeeds")
			}
			r.store.Inject(memstore.Faults{})
			rows, err := r.store.ListResults(t.Context(), execution, "", 0)
			if err != nil || len(rows) > 0 {
				t.Fatalf("a reference is left: %v, %v", rows, err)
			}
			rows, err = r.store.ExpiredResults(t.Context(), r.now.Add(25*time.Hour), 0)
			if err != nil || len(rows) != 1 {
				t.Fatalf("the sweep finds %d rows, %v", len(rows), err)
			}
			if done, err := r.Remove(t.Context(), rows[0]); err != nil || !done {
				t.Fatalf("Remove = %v, %v", done, err)
			}
			if rows, files := r.left(t); rows > 0 || files > 0 {
				t.Errorf("%d rows and %d files are left", rows, files)
			}
			if _, err := r.store.Part(t.Context(), execution, rows[0].Key, 0); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a part is left: %v", err)
			}
		})
	}
}

func TestALostAcknowledgementOfTheEndKeepsTheValue(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{})
	r.store.Inject(memstore.Faults{Hook: memstore.Next("FinishResult", memstore.LoseAck)})
	_, err := r.Put(t.Context(), execution, event.ResultOptions{Name: "n", Store: "file"}, strings.NewReader(text(1, 1<<20)))
	if event.CodeOf(err) != event.Unavailable {
		t.Errorf("Put = %v", err)
	}
	rows, err := r.store.ListResults(t.Context(), execution, "", 0)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%v, %v", rows, err)
	}
	if got, err := r.read(t, rows[0].Ref, 0, 0); err != nil || len(got) == 0 {
		t.Errorf("what was stored cannot be read: %v", err)
	}
}

func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{})
	data := text(1, 2<<20)
	at, other := r.put(t, event.ResultOptions{Store: "file"}, data), r.put(t, event.ResultOptions{Store: "file"}, text(2, 2<<20))
	names := r.files(t)
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	damage := func(t *testing.T, content []byte) {
		t.Helper()
		if err := os.WriteFile(names[0], content, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := r.read(t, at.Ref, 0, 0)
		if err == nil || len(got) >= len(data) {
			t.Errorf("%d of %d bytes are read without complaint: %v", len(got), len(data), err)
		}
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	damage(t, flipped)
	damage(t, whole[:len(whole)-10])
	damage(t, nil)
	swapped, err := os.ReadFile(names[1]) // whole frames of another value of the same shape
	if err != nil {
		t.Fatal(err)
	}
	damage(t, swapped)
	if _, err := r.read(t, other.Ref, 0, 0); err != nil {
		t.Errorf("the other value is damaged, too: %v", err)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read(t, at.Ref, 0, 0); event.CodeOf(err) != event.Unavailable {
		t.Errorf("a file that is gone gives %v", err)
	}
}

func TestWhatWasCollectedSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, result.Options{})
	at := r.put(t, event.ResultOptions{TTL: "1h", Store: "file"}, text(1, 1<<20))
	r.now = r.now.Add(time.Hour)
	_, err := r.read(t, at.Ref, 0, 0)
	if event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), "was collected") {
		t.Errorf("after its time: %v", err)
	}
	rows, err := r.store.ExpiredResults(t.Context(), r.now, 0)
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	for range 2 { // the second finds nothing to do
		if _, err := r.Remove(t.Context(), rows[0]); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.read(t, at.Ref, 0, 0)
	if event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), "was collected") {
		t.Errorf("after it was removed: %v", err)
	}
	if rows, files := r.left(t); rows > 0 || files > 0 {
		t.Errorf("%d rows and %d files are left", rows, files)
	}
	if _, err := r.read(t, "noetl://execution/42/result/x/999", 0, 0); err == nil || strings.Contains(err.Error(), "collected") {
		t.Errorf("what never was: %v", err)
	}
}

func TestALargeTierThatIsNotConfiguredStopsTheStart(t *testing.T) {
	t.Parallel()
	_, err := result.New(result.Options{Store: memstore.New(), IDs: func() event.ID { return 1 }, Now: time.Now, Large: "s3"})
	if err == nil || !strings.Contains(err.Error(), "s3") {
		t.Errorf("New = %v", err)
	}
}
