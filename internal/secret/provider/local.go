package provider

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// envPrefix begins the variables of the environment that are secrets for
// playbooks. Others, above all the server's own keys, are out of their reach.
const envPrefix = "NOETL_SECRET_"

// envProvider reads NAME[#json-key] from the variable NOETL_SECRET_NAME.
type envProvider struct{ getenv func(string) string }

func (p envProvider) Fetch(_ context.Context, ref string, _ Options) (Value, error) {
	name, key := cutKey(ref)
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return Value{}, badRef("env", ref, "want the name of a variable")
	}
	if !strings.HasPrefix(name, envPrefix) {
		name = envPrefix + name
	}
	text := p.getenv(name)
	if text == "" {
		return Value{}, noSecret("env", ref, "the server has no variable "+name)
	}
	return field("env", ref, key, text)
}

// maxFile bounds a secret in a file.
const maxFile = 1 << 20

// fileProvider reads path[#json-key] below the directory NOETL_SECRET_FILES.
// Nothing outside it can be named, also not by links.
type fileProvider struct{ getenv func(string) string }

func (p fileProvider) Fetch(_ context.Context, ref string, _ Options) (Value, error) {
	dir := p.getenv("NOETL_SECRET_FILES")
	if dir == "" {
		return Value{}, missing("file", "no directory of secrets", "set NOETL_SECRET_FILES on the server")
	}
	name, key := cutKey(ref)
	if !filepath.IsLocal(name) {
		return Value{}, badRef("file", ref, "want a path below the directory of secrets")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Value{}, missing("file", "no usable directory of secrets: "+reason(err), "check NOETL_SECRET_FILES on the server")
	}
	defer root.Close()
	text, err := readSecret(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Value{}, noSecret("file", ref, "there is no such file")
	case err != nil:
		return Value{}, badRef("file", ref, reason(err))
	}
	return field("file", ref, key, text)
}

func readSecret(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = &os.PathError{Op: "read", Path: name, Err: errors.New("the file is too large")}
	}
	return strings.TrimRight(string(raw), "\r\n"), err
}
