//go:build !unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/noetl/noetl-go/internal/event"
)

// lockFile creates the lock file exclusively, for systems without flock. A
// file left by a crash has to be removed by hand.
func lockFile(_ context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, &event.Error{
			Code:    event.Conflict,
			Message: path + " exists: another process uses the data file",
			Remedy:  "stop that process; if there is none, remove the lock file",
			Reason:  "locked",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	return f, nil
}

func unlockFile(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }
