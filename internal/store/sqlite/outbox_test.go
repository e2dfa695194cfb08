package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestRecalledOutboxRowsCanBeClaimedAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "noetl.db"))
	b := store.Batch{
		Execution: store.Execution{ExecutionID: 7, CatalogID: 1, Path: "p", Status: event.StatusRunning, LastSeq: 2, LastEventID: 9},
		Events: []event.Event{
			{ExecutionID: 7, Seq: 1, EventID: 8, CatalogID: 1, Type: event.PlaybookStarted},
			{ExecutionID: 7, Seq: 2, EventID: 9, CatalogID: 1, Type: event.StepEnter},
		},
		Publish: true,
	}
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claim := func(token string) int {
		rows, err := s.ClaimOutbox(t.Context(), store.OutboxClaim{Token: token, Now: now, Lease: time.Minute, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return len(rows)
	}
	if n := claim("dead"); n != 2 {
		t.Fatalf("%d rows claimed, want 2", n)
	}
	if n := claim("heir"); n != 0 {
		t.Fatalf("%d rows claimed twice", n)
	}
	if n, err := s.RecallOutbox(t.Context()); err != nil || n != 2 {
		t.Fatalf("RecallOutbox = %d, %v", n, err)
	}
	if n := claim("heir"); n != 2 {
		t.Errorf("%d rows claimed after the recall, want 2", n)
	}
	if n, err := s.MarkPublished(t.Context(), "dead", []int64{1, 2}, now); err != nil || n != 0 {
		t.Errorf("the dead marked %d rows, %v", n, err)
	}
}
