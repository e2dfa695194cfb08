package envelope

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	localProvider = "local"
	// localID is the id that local keys have always had, whatever they are read from.
	localID      = "env:NOETL_ENCRYPTION_KEY"
	firstVersion = "v1"
	// ephemeralVersion marks records that no later process can open.
	ephemeralVersion = "ephemeral"
)

// local is a family of keys in memory. The first is current.
type local struct {
	versions []string
	keys     map[string][]byte
}

func newLocal() *local { return &local{keys: map[string][]byte{}} }

func (l *local) add(version string, key []byte) error {
	if _, exists := l.keys[version]; exists {
		return fmt.Errorf("two keys of version %s", version)
	}
	for other, have := range l.keys {
		if subtle.ConstantTimeCompare(have, key) == 1 {
			return fmt.Errorf("versions %s and %s are the same key", other, version)
		}
	}
	l.versions = append(l.versions, version)
	l.keys[version] = key
	return nil
}

func (l *local) Current() Ref { return Ref{localProvider, localID, l.versions[0]} }

func (l *local) Wrap(_ context.Context, dek []byte) (Ref, []byte, error) {
	ref := l.Current()
	wrapped, err := seal(l.keys[ref.Version], dek, nil)
	return ref, wrapped, err
}

func (l *local) Unwrap(_ context.Context, ref Ref, wrapped []byte) ([]byte, error) {
	key, ok := l.keys[ref.Version]
	if !ok || ref.Provider != localProvider || ref.ID != localID {
		return nil, &event.Error{
			Code: event.Internal, Message: "the record needs " + ref.String() + ", which this server does not have",
			Remedy: "give the server that key too, in NOETL_ENCRYPTION_KEYS, or register the secret again", Reason: "key_missing",
		}
	}
	dek, err := open(key, wrapped, nil)
	if err != nil {
		return nil, &event.Error{
			Code: event.Internal, Message: "the record was made with another " + ref.String() + " than this server has",
			Remedy: "give the server the key the record was made with, or register the secret again", Reason: "key_wrong",
		}
	}
	return dek, nil
}

// Settings say where the keys come from; the first that is given counts.
type Settings struct {
	Keys string // "v2:<base64>,v1:<base64>", the first is current
	Key  string // base64 of 32 bytes; version v1
	File string // a file that holds either
}

// Given tells whether any source of keys is named.
func (s Settings) Given() bool { return s.Keys != "" || s.Key != "" || s.File != "" }

// Load reads the keys that s names. Two sources, a blank one or a key of the
// wrong length is an error: which key counts must not be a guess.
func Load(s Settings) (*Keys, error) {
	named := 0
	for _, v := range []string{s.Keys, s.Key, s.File} {
		if v != "" {
			named++
		}
	}
	switch {
	case named > 1:
		return nil, keyErrorf("set only one of NOETL_ENCRYPTION_KEYS, NOETL_ENCRYPTION_KEY and NOETL_ENCRYPTION_KEY_FILE", "more than one source of encryption keys is set")
	case s.Keys != "":
		return parseKeys("NOETL_ENCRYPTION_KEYS", s.Keys)
	case s.Key != "":
		return parseKeys("NOETL_ENCRYPTION_KEY", firstVersion+":"+strings.TrimSpace(s.Key))
	case s.File != "":
		return loadFile(s.File)
	}
	return nil, keyErrorf(remedyMake, "there is no encryption key")
}

const remedyMake = "make one with: openssl rand -base64 32"

func keyErrorf(remedy, format string, args ...any) *event.Error {
	err := event.Errorf(event.Invalid, format, args...)
	err.Remedy, err.Reason = remedy, "encryption_key"
	return err
}

var versionLabel = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// parseKeys reads a list of version:key.
func parseKeys(source, list string) (*Keys, error) {
	l := newLocal()
	for i, item := range strings.Split(list, ",") {
		version, text, ok := strings.Cut(strings.TrimSpace(item), ":")
		version = strings.TrimSpace(version)
		if !ok || !versionLabel.MatchString(version) {
			return nil, keyErrorf("write them as version:base64, separated by commas, the current one first", "key %d of %s has no version", i+1, source)
		}
		key, err := decodeKey(text)
		if err != nil {
			return nil, keyErrorf(remedyMake, "%s: key %s %s", source, version, err.Error())
		}
		if err := l.add(version, key); err != nil {
			return nil, keyErrorf("give every key a version of its own", "%s: %s", source, err.Error())
		}
	}
	return New(l), nil
}

func decodeKey(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, fmt.Errorf("is blank")
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("is not base64") // the cause would quote the key
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("has %d bytes and must have %d", len(key), keyBytes)
	}
	if bytes.Equal(key, make([]byte, keyBytes)) {
		return nil, fmt.Errorf("is all zero")
	}
	return key, nil
}

// loadFile reads a file of one key, or of lines of version:key.
func loadFile(path string) (*Keys, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		e := keyErrorf("check the path and its rights", "the encryption key file cannot be read: %v", err)
		e.Err = err
		return nil, e
	}
	var items []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			items = append(items, line)
		}
	}
	if len(items) == 0 {
		return nil, keyErrorf("restore it from its backup; "+remedyMake, "the encryption key file %s is blank", path)
	}
	list := strings.Join(items, ",")
	if !strings.Contains(list, ":") {
		list = firstVersion + ":" + list
	}
	return parseKeys(path, list)
}

// Ephemeral is a random key that ends with the process, and with it everything
// that was sealed.
func Ephemeral() (*Keys, error) {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	l := newLocal()
	return New(l), l.add(ephemeralVersion, key)
}

// LoadOrMake reads the key file at path, and makes it with a random key when
// there is none; made tells which. Of several that make it at once one wins,
// and all use its key.
func LoadOrMake(path string) (keys *Keys, made bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		keys, err := loadFile(path)
		return keys, false, err
	}
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, false, fmt.Errorf("make a key: %w", err)
	}
	made, err = writeOnce(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	if err != nil {
		return nil, false, fmt.Errorf("make the encryption key file: %w", err)
	}
	keys, err = loadFile(path)
	return keys, made, err
}

// writeOnce makes a file with its whole content, or leaves the one that exists:
// a crash in between leaves no half of a key.
func writeOnce(path string, content []byte) (made bool, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".encryption-key-*") // 0600
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return false, err
	}
	if err := os.Link(f.Name(), path); os.IsExist(err) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// syncDir makes a new name in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closing := d.Close(); err == nil {
		err = closing
	}
	return err
}
