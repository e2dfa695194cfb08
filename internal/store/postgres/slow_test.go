package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestAShardThatHangsKeepsNobodyLongerThanHeWaits(t *testing.T) {
	t.Parallel()
	shards := []string{testkit.Postgres(t), testkit.Postgres(t)}
	s := open(t, postgres.Options{DSN: shards[0], Shards: shards, Writers: 1, MaxConns: 4})
	onFirst, onSecond := event.ID(1), event.ID(1)
	for store.ShardIndex(onFirst, 2) != 0 {
		onFirst++
	}
	for store.ShardIndex(onSecond, 2) != 1 {
		onSecond++
	}
	for _, x := range []event.ID{onFirst, onSecond} {
		b := start(x)
		b.Events[0].EventID = 1000 + x
		b.Commands = []store.Command{{ExecutionID: x, EventID: 1000 + x, Status: event.StatusPending, IterIndex: -1, CreatedAt: time.Now()}}
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	conn := connect(t, shards[1])
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE noetl.command IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Command(t.Context(), 0, 1000+onFirst); err != nil || c.ExecutionID != onFirst {
		t.Errorf("the command of the other shard: %+v, %v", c, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	rows, err := s.PendingCommands(short, time.Now(), 0)
	if !errors.Is(err, context.DeadlineExceeded) || len(rows) != 1 || rows[0].ExecutionID != onFirst {
		t.Errorf("PendingCommands = %+v, %v, want what the first shard has and the end of the wait", rows, err)
	}
	if _, err := s.Command(short, 0, 1000+onSecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Command = %v, want the end of the wait", err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Command(t.Context(), 0, 1000+onSecond); err != nil || c.ExecutionID != onSecond {
		t.Errorf("the command when the shard answers again: %+v, %v", c, err)
	}
	if _, err := s.Command(t.Context(), 0, 5); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown command: %v", err)
	}
}

// One shard that is gone does not hold up what the others have to publish.
func TestOutboxRowsFlowWhileAShardIsGone(t *testing.T) {
	t.Parallel()
	shards := []string{testkit.Postgres(t), testkit.Postgres(t)}
	s := open(t, postgres.Options{DSN: shards[0], Shards: shards, Writers: 1, MaxConns: 4})
	want := 0
	for id := event.ID(10); id < 200; id += 10 {
		b := start(id)
		b.Publish = true
		if err := s.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want += 1 - store.ShardIndex(id, 2)
	}
	run(t, shards[1], "ALTER TABLE noetl.outbox RENAME TO outbox_away")
	claim := store.OutboxClaim{Token: "t", Now: time.Now(), Lease: time.Minute, Limit: 100}
	rows, err := s.ClaimOutbox(t.Context(), claim)
	if err != nil || len(rows) != want {
		t.Errorf("ClaimOutbox = %d rows, %v, want the %d of the other shard", len(rows), err, want)
	}
	if _, err := s.ClaimOutbox(t.Context(), claim); err == nil {
		t.Error("ClaimOutbox with nothing else to give hides that a shard is gone")
	}
}
