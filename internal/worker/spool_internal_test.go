package worker

import (
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

func TestTheSpoolIsBounded(t *testing.T) {
	t.Parallel()
	s, err := OpenSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(id event.ID) error {
		return s.put(spoolRecord{EventID: id, Report: event.Report{Events: []event.Incoming{{EventID: id}}}})
	}
	s.maxFiles = 2
	for id := range event.ID(2) {
		if err := put(id + 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(3); event.CodeOf(err) != event.Limit {
		t.Errorf("a third report among two: %v", err)
	}
	s.maxFiles, s.maxBytes = 100, s.bytes+10
	if err := put(4); event.CodeOf(err) != event.Limit {
		t.Errorf("a report beyond the bytes: %v", err)
	}
	if err := s.remove(s.names()[0]); err != nil {
		t.Fatal(err)
	}
	if err := put(5); err != nil {
		t.Errorf("a report after room was made: %v", err)
	}
	again, err := OpenSpool(s.dir)
	if err != nil || again.Waiting() != 2 || again.bytes != s.bytes {
		t.Errorf("opened again it holds %d reports of %d bytes, want 2 of %d: %v", again.Waiting(), again.bytes, s.bytes, err)
	}
}
