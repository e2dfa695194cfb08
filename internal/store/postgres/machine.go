package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
)

// machines is how many numbers the id generator's layout has room for, and
// machineClass the class of the advisory locks that stand for them.
const (
	machines     = 1024
	machineClass = 0x6e6f6574
)

// LeaseMachine gives this process a number of the id generator that no other
// process on the database holds, the preferred one if it is free. The lease
// lives with a connection of its own and ends with release. Should that
// connection break, the number may be given away; ids that clash then are
// noticed when they are stored and made anew, so the lease need only be rare
// to fail, not impossible.
//
// Behind a pooler the connection is one transaction that stays open: it has
// its session for as long, and reads nothing that would keep old rows alive.
func (s *Store) LeaseMachine(ctx context.Context, preferred int) (n int, release func(), err error) {
	conn, err := pgx.ConnectConfig(ctx, s.cluster.Config().ConnConfig)
	if err != nil {
		return 0, nil, coded("lease a machine number", err)
	}
	release = func() { _ = conn.Close(context.Background()) }
	take := "SELECT pg_try_advisory_lock($1, $2)"
	if s.pooled {
		if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
			release()
			return 0, nil, coded("lease a machine number", err)
		}
		take = "SELECT pg_try_advisory_xact_lock($1, $2)"
	}
	for i := range machines {
		n := (preferred + i) % machines
		var ok bool
		if err := conn.QueryRow(ctx, take, machineClass, n).Scan(&ok); err != nil {
			release()
			return 0, nil, coded("lease a machine number", err)
		}
		if ok {
			return n, s.holdMachine(conn), nil
		}
	}
	release()
	return 0, nil, event.Errorf(event.Unavailable, "all %d machine numbers of this database are taken by running servers", machines)
}

// HoldsMachine tells whether the connection stands that a machine number of this
// store lives with.
func (s *Store) HoldsMachine() bool { return s.leases.Load() > 0 }

// holdMachine waits for the end of a lease: nothing is ever said on its
// connection, so that the first word is that it broke.
func (s *Store) holdMachine(conn *pgx.Conn) (release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.leases.Add(1)
	go func() {
		defer close(ended)
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				break
			}
		}
		s.leases.Add(-1)
		_ = conn.Close(context.Background())
	}()
	return func() {
		cancel()
		<-ended
	}
}
