package sealed

import (
	"bytes"
	"crypto/ecdh"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func key(t *testing.T, fill byte) *ecdh.PrivateKey {
	t.Helper()
	k, err := ecdh.X25519().NewPrivateKey(bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The numbers are those of the reference's wire format.
func TestVersionOneIsTheReferencesFormat(t *testing.T) {
	t.Parallel()
	recipient := key(t, 1)
	fixed := func(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte{2}, 32)), nil }
	s, err := seal(fixed, recipient.PublicKey(), V1, aad(V1), []byte("hello-secret"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := recipient.ECDH(key(t, 2).PublicKey())
	if err != nil || hex.EncodeToString(shared) != "2ed76ab549b1e73c031eb49c9448f0798aea81b698279a0c3dc3e49fbfc4b953" {
		t.Errorf("shared secret %x, %v", shared, err)
	}
	got, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"alg":"x25519-hkdf-sha256-chacha20-poly1305","v":1,"eph_pub":"zo060cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfVk=","ciphertext":"+jupsh03UIOjRoeSx/UIwY0bBEoblbeIUD3/vQ=="}`
	if string(got) != want {
		t.Errorf("sealed\n%s\nwant\n%s", got, want)
	}
	var wire event.Sealed
	if err := json.Unmarshal([]byte(want), &wire); err != nil {
		t.Fatal(err)
	}
	if plain, err := Open(recipient, Binding{}, wire); err != nil || string(plain) != "hello-secret" {
		t.Errorf("opened %q, %v", plain, err)
	}
}

func TestASealedTextOpensOnlyForItsKeyAndItsQuestion(t *testing.T) {
	t.Parallel()
	mine, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := ParsePublic(PublicText(mine.PublicKey()))
	if err != nil {
		t.Fatal(err)
	}
	asked := Binding{Execution: 7, Aliases: []string{"a", "b"}}
	s, err := Seal(public, asked, []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := Open(mine, asked, s); err != nil || string(plain) != "value" {
		t.Fatalf("opened %q, %v", plain, err)
	}
	again, err := Seal(public, asked, []byte("value"))
	if err != nil || bytes.Equal(again.Ciphertext, s.Ciphertext) {
		t.Errorf("sealing twice gives the same text, %v", err)
	}
	changed := func(f func(*event.Sealed)) event.Sealed {
		c := s
		c.Ciphertext, c.EphemeralKey = bytes.Clone(s.Ciphertext), bytes.Clone(s.EphemeralKey)
		f(&c)
		return c
	}
	for _, c := range []struct {
		name   string
		key    *ecdh.PrivateKey
		b      Binding
		sealed event.Sealed
		want   event.Code
	}{
		{"another worker", key(t, 9), asked, s, event.Forbidden},
		{"another execution", mine, Binding{Execution: 8, Aliases: asked.Aliases}, s, event.Forbidden},
		{"other aliases", mine, Binding{Execution: 7, Aliases: []string{"a", "c"}}, s, event.Forbidden},
		{"aliases joined", mine, Binding{Execution: 7, Aliases: []string{`a","b`}}, s, event.Forbidden},
		{"a changed text", mine, asked, changed(func(s *event.Sealed) { s.Ciphertext[0] ^= 1 }), event.Forbidden},
		{"a cut text", mine, asked, changed(func(s *event.Sealed) { s.Ciphertext = nil }), event.Forbidden},
		{"as version 1", mine, asked, changed(func(s *event.Sealed) { s.Version = V1 }), event.Forbidden},
		{"an unknown version", mine, asked, changed(func(s *event.Sealed) { s.Version = 3 }), event.Invalid},
		{"an unknown algorithm", mine, asked, changed(func(s *event.Sealed) { s.Alg = "rot13" }), event.Invalid},
		{"a short key", mine, asked, changed(func(s *event.Sealed) { s.EphemeralKey = s.EphemeralKey[:31] }), event.Invalid},
		{"a key of low order", mine, asked, changed(func(s *event.Sealed) { clear(s.EphemeralKey) }), event.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plain, err := Open(c.key, c.b, c.sealed)
			if err == nil || event.CodeOf(err) != c.want {
				t.Errorf("opened %q with %v, want %s", plain, err, c.want)
			}
		})
	}
}

func TestKeysThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "!", base64.StdEncoding.EncodeToString(make([]byte, 31))} {
		if _, err := ParsePublic(text); !errors.Is(err, &event.Error{Code: event.Invalid}) {
			t.Errorf("%q: %v", text, err)
		}
	}
	low, err := ParsePublic(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Seal(low, Binding{}, []byte("x")); event.CodeOf(err) != event.Invalid {
		t.Errorf("sealed for a key of low order: %v", err)
	}
}
