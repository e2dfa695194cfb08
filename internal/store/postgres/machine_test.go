package postgres_test

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestProcessesOnOneDatabaseGetMachineNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	var leased []int
	var releases []func()
	for range 3 {
		s, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		n, release, err := s.LeaseMachine(t.Context(), 1023)
		if err != nil {
			t.Fatal(err)
		}
		leased, releases = append(leased, n), append(releases, release)
	}
	if leased[0] != 1023 || leased[1] != 0 || leased[2] != 1 {
		t.Errorf("leased %v, want the preferred number and its successors", leased)
	}
	for _, release := range releases {
		release()
	}
	s, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	testkit.Eventually(t, func() bool { // the server notices a closed connection in its own time
		n, release, err := s.LeaseMachine(t.Context(), 1023)
		if err != nil {
			return false
		}
		release()
		return n == 1023
	}, 10*time.Second)
}
