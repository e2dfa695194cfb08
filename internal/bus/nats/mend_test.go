package nats_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// TestEmbeddedNATSComesBackWhenItsDiskWasFull fills the disk below the server
// until it takes no messages, and frees it again.
func TestEmbeddedNATSComesBackWhenItsDiskWasFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	b, err := natsbus.Embedded(t.Context(), natsbus.EmbeddedOptions{StoreDir: filepath.Join(dir, "nats"), MaxStore: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	n := event.ID(0)
	publish := func() error {
		n++
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return b.Publish(ctx, event.Notification{ExecutionID: 1, EventID: n, CommandID: "c", Step: "s"})
	}
	if err := publish(); err != nil {
		t.Fatal(err)
	}

	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() bool { return publish() != nil }, 20*time.Second)

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, publish, 30*time.Second)
}
