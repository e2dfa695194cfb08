package storetest_test

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/store/storetest"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestRawBaselinesMeasureSomething(t *testing.T) {
	t.Parallel()
	for name, measure := range map[string]func() (float64, float64, error){
		"sqlite": func() (float64, float64, error) { return storetest.RawSQLite(t.TempDir(), 50*time.Millisecond) },
		"postgres": func() (float64, float64, error) {
			return storetest.RawPostgres(testkit.Postgres(t), 50*time.Millisecond)
		},
	} {
		commits, rows, err := measure()
		if err != nil || commits <= 0 || rows < rawFloor {
			t.Errorf("%s: %.0f commits/s, %.0f rows/s, %v", name, commits, rows, err)
		}
		t.Logf("%s: %.0f commits/s, %.0f rows/s", name, commits, rows)
	}
}

// rawFloor is one batch in two seconds: even a busy machine manages that.
const rawFloor = 50
