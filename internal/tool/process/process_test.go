package process_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
)

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[any]int64{int64(7): 7, "7": 7, "1k": 1000, "1Ki": 1024, "1.5 GiB": 3 << 29, "512Mi": 512 << 20, "2GB": 2_000_000_000, 1024.0: 1024} {
		if got, err := process.Bytes(text); err != nil || got != want {
			t.Errorf("%v: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []any{"", "-1", "1x", "Mi", "NaN", "1e30", "99999999999Ti"} {
		if got, err := process.Bytes(text); err == nil {
			t.Errorf("%v: got %d", text, got)
		}
	}
}

func TestAPlaceIsPrivateAndGoes(t *testing.T) {
	t.Parallel()
	s := process.Settings{TempDir: t.TempDir(), Max: process.Limits{Memory: 100, CPU: 1500 * time.Millisecond}}.WithDefaults()
	p, err := s.Prepare(t.Context(), &tool.Call{}, process.Wish{Env: map[string]string{"HOME": "/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(p.Dir)
	if err != nil || info.Mode().Perm() != 0o700 || p.Env["HOME"] != "/mine" || p.Cwd != p.Dir || p.Limits.Memory != 100 || p.Limits.CPUSeconds() != 2 {
		t.Errorf("place %+v, %v, %v", p, info, err)
	}
	locked := filepath.Join(p.Dir, "locked", "inner")
	if err := os.MkdirAll(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(locked), 0); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(s.TempDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAPlaceThatCannotBeLeavesNothing(t *testing.T) {
	t.Parallel()
	s := process.Settings{TempDir: t.TempDir()}.WithDefaults()
	for says, w := range map[string]process.Wish{
		"is not a directory on this worker":     {Cwd: "/no/such"},
		"cannot be the name of a variable":      {Env: map[string]string{"a=b": "1"}},
		"the value of A holds a NUL character":  {Env: map[string]string{"A": "secret\x00"}},
		"this worker has no store":              {Files: map[string]any{"a": "noetl://execution/1/result/a/1"}},
		"resources.disk: must be more than not": {Resources: map[string]any{"disk": int64(0)}},
	} {
		if _, err := s.Prepare(t.Context(), &tool.Call{}, w); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	if left, _ := os.ReadDir(s.TempDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLinksDoNotLeadOut(t *testing.T) {
	t.Parallel()
	p, err := process.Settings{TempDir: t.TempDir()}.WithDefaults().Prepare(t.Context(), &tool.Call{}, process.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Remove() }()
	if err := os.Symlink("/etc", filepath.Join(p.Dir, "etc")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"etc/passwd", "../x", "/etc/passwd", "none"} {
		if f, err := p.Open(path); err == nil {
			f.Close()
			t.Errorf("%s could be opened", path)
		}
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "mine"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := p.Open(filepath.Join(p.Dir, "mine"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "x" {
		t.Errorf("got %q, %v", text, err)
	}
}
