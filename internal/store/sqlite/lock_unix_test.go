//go:build unix

package sqlite

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that is being started holds copies of all open files for a moment.
func TestALockEndsAlthoughAProcessBeingStartedHoldsItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	f, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	held, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)
	if err := unlockFile(f); err != nil {
		t.Fatal(err)
	}
	again, err := lockFile(t.Context(), path)
	if err != nil {
		t.Fatalf("the lock did not end: %v", err)
	}
	if err := unlockFile(again); err != nil {
		t.Fatal(err)
	}
}
