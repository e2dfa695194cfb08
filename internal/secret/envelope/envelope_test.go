package envelope_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/envelope"
)

func b64(fill byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)) }

func load(t *testing.T, list string) *envelope.Keys {
	t.Helper()
	keys, err := envelope.Load(envelope.Settings{Keys: list})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func seal(t *testing.T, k *envelope.Keys, aad, plain string) string {
	t.Helper()
	text, err := k.Seal(aad, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func reason(err error) string {
	if e, ok := errors.AsType[*event.Error](err); ok {
		return e.Reason
	}
	return ""
}

func TestWhatIsSealedOpensForItsRowOnly(t *testing.T) {
	t.Parallel()
	k := load(t, "v1:"+b64(7))
	for _, plain := range []string{"", `{"password":"geheim"}`, strings.Repeat("x", 1<<20)} {
		text := seal(t, k, "credential|1", plain)
		if got, err := k.Open("credential|1", text); err != nil || string(got) != plain {
			t.Errorf("Open = %q, %v", got, err)
		}
		if plain != "" && strings.Contains(text, plain) {
			t.Error("the stored text holds the plain text")
		}
		for _, aad := range []string{"credential|2", "keychain|1", ""} {
			if got, err := k.Open(aad, text); err == nil || reason(err) != "tampered" {
				t.Errorf("Open for %q = %q, %v; want a refusal", aad, got, err)
			}
		}
	}
	if a, b := seal(t, k, "r", "same"), seal(t, k, "r", "same"); a == b {
		t.Error("two seals of one text are alike")
	}
}

func TestTheStoredTextDescribesItself(t *testing.T) {
	t.Parallel()
	var doc struct {
		V   int    `json:"v"`
		Alg string `json:"alg"`
		CT  []byte `json:"ct"`
		DEK struct {
			P   string `json:"p"`
			Kid string `json:"kid"`
			KV  string `json:"kv"`
			CT  []byte `json:"ct"`
		} `json:"dek"`
	}
	k := load(t, "v9:"+b64(9)+", v1:"+b64(1))
	text := seal(t, k, "r", "12345")
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.V != 2 || doc.Alg != "AES-256-GCM" || doc.DEK.P != "local" || doc.DEK.Kid != "env:NOETL_ENCRYPTION_KEY" || doc.DEK.KV != "v9" {
		t.Errorf("record %s", text)
	}
	if len(doc.CT) != 12+5+16 || len(doc.DEK.CT) != 12+32+16 {
		t.Errorf("ciphertexts of %d and %d bytes", len(doc.CT), len(doc.DEK.CT))
	}
	if k.Version(text) != "v9" || k.Version("{}") != "invalid" || k.Version(`{"a":1}`) != "invalid" || k.Version("") != "invalid" {
		t.Error("wrong versions")
	}
}

// gcm is an independent making of nonce ‖ ciphertext ‖ tag.
func gcm(t *testing.T, key, nonce, plain []byte) string {
	t.Helper()
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(a.Seal(bytes.Clone(nonce), nonce, plain, nil))
}

func TestRecordsOfTheFirstVersionAreRead(t *testing.T) {
	t.Parallel()
	dek, nonce := bytes.Repeat([]byte{3}, 32), bytes.Repeat([]byte{4}, 12)
	text := `{"v":1,"alg":"AES-256-GCM","ct":"` + gcm(t, dek, nonce, []byte(`{"token":"abc"}`)) +
		`","dek":{"p":"local","kid":"env:NOETL_ENCRYPTION_KEY","kv":"v1","ct":"` + gcm(t, bytes.Repeat([]byte{1}, 32), nonce, dek) + `"}}`
	k := load(t, "v2:"+b64(2)+",v1:"+b64(1))
	for _, aad := range []string{"credential|1", "credential|2"} {
		if got, err := k.Open(aad, text); err != nil || string(got) != `{"token":"abc"}` {
			t.Errorf("Open = %q, %v", got, err)
		}
	}
	next, changed, err := k.Rewrap("credential|1", text)
	if err != nil || !changed || k.Version(next) != "v2" {
		t.Fatalf("Rewrap = %s, %v, %v", next, changed, err)
	}
	if got, err := load(t, "v2:"+b64(2)).Open("", next); err != nil || string(got) != `{"token":"abc"}` {
		t.Errorf("after the rotation: %q, %v", got, err)
	}
}

func TestWhatWasChangedIsRefused(t *testing.T) {
	t.Parallel()
	k := load(t, "v1:"+b64(5))
	text := seal(t, k, "r", `{"a":1}`)
	edit := func(change func(doc, dek map[string]any)) string {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}
		change(doc, doc["dek"].(map[string]any))
		out, _ := json.Marshal(doc)
		return string(out)
	}
	flip := func(v any) string {
		raw, _ := base64.StdEncoding.DecodeString(v.(string))
		raw[len(raw)-1] ^= 1
		return base64.StdEncoding.EncodeToString(raw)
	}
	for what, changed := range map[string]string{
		"ciphertext":       edit(func(doc, _ map[string]any) { doc["ct"] = flip(doc["ct"]) }),
		"wrapped key":      edit(func(_, dek map[string]any) { dek["ct"] = flip(dek["ct"]) }),
		"lowered version":  edit(func(doc, _ map[string]any) { doc["v"] = 1 }),
		"unknown version":  edit(func(doc, _ map[string]any) { doc["v"] = 3 }),
		"algorithm":        edit(func(doc, _ map[string]any) { doc["alg"] = "none" }),
		"short ciphertext": edit(func(doc, _ map[string]any) { doc["ct"] = "AAAA" }),
		"plain JSON":       `{"password":"geheim"}`,
		"plain text":       `geheim`,
		"empty":            ``,
		"null":             `null`,
	} {
		got, err := k.Open("r", changed)
		if err == nil {
			t.Errorf("%s: opened as %q", what, got)
			continue
		}
		if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: the error quotes what is stored: %v", what, err)
		}
	}
}

func TestAMissingKeyIsNamed(t *testing.T) {
	t.Parallel()
	text := seal(t, load(t, "v2:"+b64(2)), "r", "x")
	_, err := load(t, "v1:"+b64(1)).Open("r", text)
	if reason(err) != "key_missing" || !strings.Contains(err.Error(), "version v2") {
		t.Errorf("without the key: %v", err)
	}
	other := load(t, "v2:"+b64(3))
	if _, err := other.Open("r", text); reason(err) != "key_wrong" {
		t.Errorf("with another key of the same name: %v", err)
	}
	if _, _, err := other.Rewrap("r", text); reason(err) != "key_wrong" {
		t.Errorf("rewrapping under another key of the same name: %v", err)
	}
	foreign := strings.Replace(text, `"p":"local"`, `"p":"gcp-kms"`, 1)
	if _, err := other.Open("r", foreign); reason(err) != "key_missing" || !strings.Contains(err.Error(), "gcp-kms") {
		t.Errorf("of another provider: %v", err)
	}
}

func TestRewrappingLeavesTheCiphertext(t *testing.T) {
	t.Parallel()
	old, both := load(t, "v1:"+b64(1)), load(t, "v2:"+b64(2)+",v1:"+b64(1))
	text := seal(t, old, "r", "value")
	next, changed, err := both.Rewrap("r", text)
	if err != nil || !changed {
		t.Fatalf("Rewrap = %v, %v", changed, err)
	}
	data := func(text string) string {
		var doc struct {
			CT string `json:"ct"`
		}
		_ = json.Unmarshal([]byte(text), &doc)
		return doc.CT
	}
	if data(text) != data(next) || both.Version(next) != "v2" {
		t.Errorf("before %s\nafter %s", text, next)
	}
	if same, changed, err := both.Rewrap("r", next); err != nil || changed || same != next {
		t.Errorf("a second time: %v, %v", changed, err)
	}
	if got, err := both.Open("r", next); err != nil || string(got) != "value" {
		t.Errorf("Open = %q, %v", got, err)
	}
	if _, err := both.Open("s", next); err == nil {
		t.Error("the new record opens for another row")
	}
	if _, _, err := both.Rewrap("r", "junk"); err == nil {
		t.Error("junk was rewrapped")
	}
}

func TestBadKeysStopTheStart(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for what, s := range map[string]envelope.Settings{
		"no source":        {},
		"two sources":      {Key: b64(1), Keys: "v1:" + b64(1)},
		"not base64":       {Key: "geheim!"},
		"short":            {Key: base64.StdEncoding.EncodeToString([]byte("geheim"))},
		"blank":            {Key: "  "},
		"zero":             {Key: b64(0)},
		"no version":       {Keys: b64(1)},
		"empty item":       {Keys: "v1:" + b64(1) + ","},
		"double version":   {Keys: "v1:" + b64(1) + ",v1:" + b64(2)},
		"one key twice":    {Keys: "v1:" + b64(1) + ",v2:" + b64(1)},
		"no file":          {File: filepath.Join(t.TempDir(), "none")},
		"directory":        {File: t.TempDir()},
		"blank file":       {File: file("\n \n")},
		"short key file":   {File: file("YWJj\n")},
		"broken list file": {File: file("v1:" + b64(1) + "\nv2\n")},
	} {
		keys, err := envelope.Load(s)
		if err == nil || keys != nil || event.CodeOf(err) != event.Invalid {
			t.Errorf("%s: Load = %v, want invalid", what, err)
			continue
		}
		if strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), b64(1)) {
			t.Errorf("%s: the error quotes the key: %v", what, err)
		}
	}
}

func TestKeysComeFromSettingsAndFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("# current\nv2:"+b64(2)+"\nv1:"+b64(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	single := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(single, []byte(b64(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := seal(t, load(t, "v1:"+b64(1)), "r", "x")
	for what, s := range map[string]envelope.Settings{
		"one key": {Key: " " + b64(1) + "\n"}, "list": {Keys: "v2:" + b64(2) + ", v1:" + b64(1)}, "file of lines": {File: path}, "file of one": {File: single},
	} {
		keys, err := envelope.Load(s)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if got, err := keys.Open("r", text); err != nil || string(got) != "x" {
			t.Errorf("%s: Open = %q, %v", what, got, err)
		}
	}
}

func TestAKeyFileIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "encryption.key")
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		makes int
		all   []*envelope.Keys
	)
	for range 8 {
		wg.Go(func() {
			keys, made, err := envelope.LoadOrMake(path)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, keys)
			if made {
				makes++
			}
		})
	}
	wg.Wait()
	if makes != 1 {
		t.Errorf("the file was made %d times", makes)
	}
	text := seal(t, all[0], "r", "x")
	for _, keys := range all {
		if _, err := keys.Open("r", text); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := envelope.LoadOrMake(path); err == nil {
		t.Error("a blank key file was replaced")
	}
}

func TestEphemeralKeysDiffer(t *testing.T) {
	t.Parallel()
	a, errA := envelope.Ephemeral()
	b, errB := envelope.Ephemeral()
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if _, err := b.Open("r", seal(t, a, "r", "x")); reason(err) != "key_wrong" {
		t.Errorf("another process opens it: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	keys, err := envelope.Load(envelope.Settings{Key: b64(1)})
	if err != nil {
		f.Fatal(err)
	}
	text, _ := keys.Seal("r", []byte("x"))
	f.Add(text)
	f.Add(`{"v":1,"alg":"AES-256-GCM","ct":"AAAA","dek":{"p":"local","kid":"env:NOETL_ENCRYPTION_KEY","kv":"v1","ct":"AAAA"}}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, s string) {
		if plain, err := keys.Open("r", s); err == nil && string(plain) != "x" {
			t.Errorf("opened %q as %q", s, plain)
		}
		_ = keys.Version(s)
		_, _, _ = keys.Rewrap("r", s)
	})
}
