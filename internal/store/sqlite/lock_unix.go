//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noetl/noetl-go/internal/event"
)

// lockFile takes the exclusive lock that keeps a second process away from the
// data file. The kernel releases it with the process, however that ends.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	err = flock(ctx, f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		_ = f.Close()
		return nil, &event.Error{
			Code:    event.Conflict,
			Message: fmt.Sprintf("%s is locked by process %s", path, strings.TrimSpace(string(holder))),
			Remedy:  "stop that process, or choose another data directory",
			Reason:  "locked",
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The number is for the error message above only.
	_ = f.Truncate(0)
	_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return f, nil
}

// lockPatience is how long a lock is waited for. A process that was killed may
// have been starting another one, which holds a copy of the file until it runs
// its program.
const lockPatience = time.Second

func flock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	again := time.NewTicker(lockPatience / 40)
	defer again.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}

// unlockFile gives up the lock. Closing alone would not: a process that is
// being started at this moment has a copy of the file until it runs its program.
// The file stays: removing it would race with a process that has just opened it.
func unlockFile(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
