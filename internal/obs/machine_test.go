package obs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/obs"
)

func TestUsageIsMeasuredBetweenReadings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Unix(1000, 0)
	m := obs.NewMachine(dir, func() time.Time { return now })
	if got := m.Read(); got != (obs.Usage{}) {
		t.Errorf("a system that tells nothing: %+v", got)
	}
	write("stat", "cpu 50 0 50 80 20 0 0 0 9 9\ncpu0 1 1 1 1 1\n")
	write("meminfo", "MemTotal: 2048 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n")
	write("self/stat", "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 9 0 1 2 3")
	write("self/statm", "20 10 1 1 0 1 0")
	now = now.Add(3 * time.Second)
	page := uint64(os.Getpagesize())
	want := obs.Usage{CPUPercent: 50, MemTotal: 2 << 20, MemFree: 1 << 20, ProcessCPUPercent: 50, RSS: 10 * page, VMS: 20 * page, Threads: 9}
	if got := m.Read(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	now = now.Add(time.Second)
	if got := m.Read(); got.CPUPercent != 0 || got.ProcessCPUPercent != 0 {
		t.Errorf("nothing was used since: %+v", got)
	}
	write("stat", "garbage")
	write("self/stat", ")")
	write("self/statm", "x")
	if got := m.Read(); got.CPUPercent != 0 || got.RSS != 0 || got.Threads != 0 {
		t.Errorf("nonsense was read as %+v", got)
	}
}
