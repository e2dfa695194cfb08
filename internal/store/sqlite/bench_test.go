package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/noetl/noetl-go/internal/store/storetest"
)

func BenchmarkAppend(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		storetest.BenchmarkAppend(b, func(b *testing.B) storetest.Counted { return open(b, filepath.Join(b.TempDir(), "noetl.db")) })
	})
}
