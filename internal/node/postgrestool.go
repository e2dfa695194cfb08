package node

import (
	"fmt"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/tool/postgres"
)

// readPostgresOptions reads the settings of the postgres tool from the
// environment. A wrong or blank one is an error.
func readPostgresOptions() (o postgres.Options, err error) {
	for name, read := range map[string]func(string) error{
		"NOETL_POSTGRES_POOL_MIN_SIZE":                          between(&o.Pool.Min, 1, 100, 1),
		"NOETL_POSTGRES_POOL_MAX_SIZE":                          between(&o.Pool.Max, 1, 1000, 1),
		"NOETL_POSTGRES_POOL_MAX_WAITING":                       between(&o.Pool.Waiting, 1, 100_000, 1),
		"NOETL_POSTGRES_POOL_TIMEOUT_SECONDS":                   between(&o.Pool.Timeout, 1, 86_400, time.Second),
		"NOETL_POSTGRES_POOL_MAX_LIFETIME_SECONDS":              between(&o.Pool.Lifetime, 1, 30*86_400, time.Second),
		"NOETL_POSTGRES_POOL_MAX_IDLE_SECONDS":                  between(&o.Pool.Idle, 1, 86_400, time.Second),
		"NOETL_POSTGRES_MAX_CONNECTIONS":                        between(&o.MaxConnections, 1, 10_000, 1),
		"NOETL_POSTGRES_CONNECT_ATTEMPTS":                       between(&o.Attempts, 1, 100, 1),
		"NOETL_POSTGRES_MAX_RESULT_ROWS":                        between(&o.MaxRows, 1, 10_000_000, 1),
		"NOETL_POSTGRES_MAX_RESULT_BYTES":                       between(&o.MaxBytes, 1024, 1<<30, 1),
		"NOETL_POSTGRES_MAX_SPILL_BYTES":                        between(&o.MaxSpill, 1024, 1<<40, 1),
		"NOETL_POSTGRES_STATEMENT_TIMEOUT_MS":                   between(&o.Statement, 0, 1<<31-1, time.Millisecond),
		"NOETL_POSTGRES_IDLE_IN_TRANSACTION_SESSION_TIMEOUT_MS": between(&o.IdleInTx, 1, 1<<31-1, time.Millisecond),
	} {
		if err := readSetting(name, read); err != nil {
			return o, err
		}
	}
	most := o.Pool.Max
	if most == 0 {
		most = postgres.DefaultPoolSize
	}
	if o.Pool.Min > most {
		return o, fmt.Errorf("NOETL_POSTGRES_POOL_MIN_SIZE: %d is above NOETL_POSTGRES_POOL_MAX_SIZE, which is %d", o.Pool.Min, most)
	}
	return o, nil
}

// between reads a whole number of units within bounds.
func between[N int | int64 | time.Duration](to *N, least, most int64, unit N) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is not a whole number from %d to %d", text, least, most)
		}
		*to = N(n) * unit
		return nil
	}
}
