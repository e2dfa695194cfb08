package postgres_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/storetest"
	"github.com/noetl/noetl-go/internal/testkit"
)

// BenchmarkAppend says something about durability only with
// NOETL_TEST_PG_FSYNC=on.
func BenchmarkAppend(b *testing.B) {
	b.Run("postgres", func(b *testing.B) {
		storetest.BenchmarkAppend(b, func(b *testing.B) storetest.Counted {
			return open(b, postgres.Options{DSN: testkit.Postgres(b)})
		})
	})
}
