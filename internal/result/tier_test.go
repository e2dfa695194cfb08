package result_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go"

	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/result/file"
	natstier "github.com/noetl/noetl-go/internal/result/nats"
	"github.com/noetl/noetl-go/internal/result/s3"
	"github.com/noetl/noetl-go/internal/testkit/s3d"
)

func natsTier(t *testing.T) result.Tier {
	t.Helper()
	bus, err := natsbus.Embedded(t.Context(), natsbus.EmbeddedOptions{StoreDir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bus.Close() })
	conn, err := nats.Connect(bus.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for range 2 { // the second finds the bucket
		if err := natstier.New(conn).Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return natstier.New(conn)
}

func s3Tier(t *testing.T) (result.Tier, *s3d.Server) {
	t.Helper()
	server := s3d.Start(t, "results")
	tier, err := s3.Open(t.Context(), s3.Options{
		Endpoint: server.Host, Bucket: "results", Region: "eu-west-1", AccessKey: "key", SecretKey: "secret", Prefix: "/noetl/", Insecure: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tier, server
}

// TestTiers holds every tier to the contract.
func TestTiers(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) result.Tier{
		"file": func(t *testing.T) result.Tier {
			tier, err := file.Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			return tier
		},
		"nats": natsTier,
		"s3":   func(t *testing.T) result.Tier { tier, _ := s3Tier(t); return tier },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tier := open(t)
			if tier.Name() != name {
				t.Errorf("it is called %s", tier.Name())
			}
			data := make([]byte, 9<<20) // several objects, and several parts of an upload
			rng := rand.New(rand.NewPCG(1, 2))
			for i := 0; i < len(data); i += 8 {
				binary.LittleEndian.PutUint64(data[i:], rng.Uint64())
			}
			content := map[string][]byte{"7/1.zst": {}, "7/2.zst": []byte("small"), "8/3.zst": data, "8/4.zst": data[:4<<20]}
			var all sync.WaitGroup
			for key, want := range content {
				all.Go(func() {
					if err := tier.Put(t.Context(), key, iotest.HalfReader(bytes.NewReader(want))); err != nil {
						t.Errorf("Put(%s): %v", key, err)
					}
				})
			}
			all.Wait()
			for key, want := range content {
				size := int64(len(want))
				wantRange(t, tier, key, want, 0, size)
				wantRange(t, tier, key, want, size/3, size/2)
				wantRange(t, tier, key, want, max(0, size-7), min(7, size))
			}
			if err := tier.Put(t.Context(), "7/2.zst", strings.NewReader("second")); err != nil {
				t.Errorf("putting again: %v", err)
			}
			wantRange(t, tier, "7/2.zst", []byte("second"), 0, 6)
			broken := errors.New("broken")
			err := tier.Put(t.Context(), "9/5.zst", io.MultiReader(bytes.NewReader(data[:5<<20]), iotest.ErrReader(broken)))
			if !errors.Is(err, broken) {
				t.Errorf("a source that breaks gives %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := tier.Put(ended, "9/6.zst", bytes.NewReader(data)); err == nil {
				t.Error("a put whose caller is gone succeeds")
			}
			for range 2 { // what is not there is no error
				for key := range content {
					if err := tier.Delete(t.Context(), key); err != nil {
						t.Errorf("Delete(%s): %v", key, err)
					}
				}
				for _, key := range []string{"9/5.zst", "9/6.zst"} {
					if err := tier.Delete(t.Context(), key); err != nil {
						t.Errorf("Delete(%s): %v", key, err)
					}
				}
			}
			body, err := tier.Open(t.Context(), "8/3.zst", 0, 10)
			if err == nil {
				_, err = io.ReadAll(body)
			}
			if err == nil {
				t.Error("a removed object can be read")
			}
		})
	}
}

func wantRange(t *testing.T, tier result.Tier, key string, all []byte, offset, length int64) {
	t.Helper()
	body, err := tier.Open(t.Context(), key, offset, length)
	if err != nil {
		t.Errorf("Open(%s, %d, %d): %v", key, offset, length, err)
		return
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, all[offset:offset+length]) {
		t.Errorf("%s from %d: %d bytes, %v; want %d", key, offset, len(got), err, length)
	}
	if err := body.Close(); err != nil {
		t.Errorf("close %s: %v", key, err)
	}
}

func TestABrokenUploadIsGivenUp(t *testing.T) {
	t.Parallel()
	tier, server := s3Tier(t)
	parts := 0
	server.Refuse = func(r *http.Request) int {
		if r.URL.Query().Has("partNumber") {
			if parts++; parts > 1 {
				return http.StatusForbidden
			}
		}
		if parts > 1 && r.Method == http.MethodDelete {
			return http.StatusForbidden // the process is dead
		}
		return 0
	}
	if err := tier.Put(t.Context(), "1/2.zst", bytes.NewReader(make([]byte, 20<<20))); err == nil {
		t.Fatal("the upload succeeds")
	}
	if server.Uploads() != 1 || len(server.Keys()) != 0 {
		t.Errorf("%d uploads and %q are there", server.Uploads(), server.Keys())
	}
	server.Refuse = nil
	if err := tier.Delete(t.Context(), "1/2.zst"); err != nil || server.Uploads() != 0 {
		t.Errorf("Delete leaves %d uploads: %v", server.Uploads(), err)
	}
}

func TestABucketThatIsNotThereStopsTheStart(t *testing.T) {
	t.Parallel()
	server := s3d.Start(t, "other")
	_, err := s3.Open(t.Context(), s3.Options{Endpoint: server.Host, Bucket: "results", AccessKey: "k", SecretKey: "s", Insecure: true})
	if err == nil || !strings.Contains(err.Error(), "no bucket results") {
		t.Errorf("Open = %v", err)
	}
}

func TestDamageInABucketIsNoticed(t *testing.T) {
	t.Parallel()
	tier, server := s3Tier(t)
	r := newRig(t, result.Options{Tiers: []result.Tier{tier}, Large: "s3", DBLimit: 1 << 20})
	data := text(1, 2<<20)
	at := r.put(t, event.ResultOptions{}, data)
	if at.Store != "s3" || len(server.Keys()) != 1 || !strings.HasPrefix(server.Keys()[0], "noetl/42/") {
		t.Fatalf("%+v in %q", at, server.Keys())
	}
	if got, err := r.read(t, at.Ref, 0, 0); err != nil || got != data {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	server.Damage(server.Keys()[0], 100)
	if _, err := r.read(t, at.Ref, 0, 0); err == nil {
		t.Error("damage is not noticed")
	}
}
