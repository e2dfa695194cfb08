package node

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool/postgres"
)

func TestPostgresSettingsAreRead(t *testing.T) {
	t.Setenv("NOETL_POSTGRES_POOL_MAX_SIZE", "12")
	t.Setenv("NOETL_POSTGRES_POOL_MAX_IDLE_SECONDS", "90")
	t.Setenv("NOETL_POSTGRES_MAX_RESULT_BYTES", "4096")
	t.Setenv("NOETL_POSTGRES_STATEMENT_TIMEOUT_MS", "1500")
	got, err := readPostgresOptions()
	want := postgres.Options{Pool: postgres.Pool{Max: 12, Idle: 90 * time.Second}, MaxBytes: 4096, Statement: 1500 * time.Millisecond}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestWrongPostgresSettingsStopTheStart(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"NOETL_POSTGRES_POOL_MAX_SIZE":        {"0", "from 1 to 1000"},
		"NOETL_POSTGRES_MAX_RESULT_ROWS":      {"many", `"many" is not a whole number`},
		"NOETL_POSTGRES_POOL_TIMEOUT_SECONDS": {" ", "is blank"},
		"NOETL_POSTGRES_POOL_MIN_SIZE":        {"7", "is above NOETL_POSTGRES_POOL_MAX_SIZE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, c.text)
			if _, err := readPostgresOptions(); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want one of %s that says %q", err, name, c.says)
			}
		})
	}
}
