package postgres_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

// quarter is the statement with which older programs cut the log.
func quarter(start time.Time) (name, text string) {
	name = fmt.Sprintf("event_%d_q%d", start.Year(), (int(start.Month())+2)/3)
	return name, fmt.Sprintf("CREATE TABLE noetl.%s PARTITION OF noetl.event FOR VALUES FROM (%d) TO (%d)", name, store.IDAt(start), store.IDAt(start.AddDate(0, 3, 0)))
}

func TestQuartersWithEventsSurviveTheUpgradeToMonths(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	present := time.Date(now.Year(), (now.Month()-1)/3*3+1, 1, 0, 0, 0, 0, time.UTC)
	var statements, names []string
	var ids []event.ID
	for i, start := range []time.Time{present.AddDate(0, -3, 0), present, present.AddDate(0, 3, 0), present.AddDate(0, 6, 0)} {
		name, text := quarter(start)
		statements, names = append(statements, text), append(names, name)
		if i == 2 {
			continue // made ahead, and empty
		}
		id := store.IDAt(start.AddDate(0, 1, 3))
		ids = append(ids, id)
		statements = append(statements,
			fmt.Sprintf("INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, event_type) VALUES (%d, 1, %d, 9, 'playbook_started')", id, id+1),
			strings.Replace(strings.Replace(oldExecution, "(7, 1", fmt.Sprintf("(%d, 1", id), 1), "'RUNNING'", "'COMPLETED'", 1))
	}
	s := open(t, postgres.Options{DSN: oldDatabase(t, 7, statements...)})
	state, err := s.LogState(t.Context())
	if err != nil || state.Strays != 0 {
		t.Fatalf("LogState = %+v, %v", state, err)
	}
	var parts []string
	for i, p := range state.Parts {
		parts = append(parts, p.Name)
		if i > 0 && p.From < state.Parts[i-1].To {
			t.Errorf("%s begins within %s", p.Name, state.Parts[i-1].Name)
		}
	}
	for i, name := range names {
		if there := slices.Contains(parts, name); there != (i != 2) {
			t.Errorf("%s is there: %v, in %v", name, there, parts)
		}
	}
	for m := range 3 { // in its place
		if name := present.AddDate(0, 3+m, 0).Format("event_2006_01"); !slices.Contains(parts, name) {
			t.Errorf("there is no %s in %v", name, parts)
		}
	}
	for _, id := range ids {
		if events, err := s.Events(t.Context(), id, 0, 0); err != nil || len(events) != 1 {
			t.Errorf("%d events of %d, %v", len(events), id, err)
		}
	}
	// A quarter that is over goes as a whole, like a month.
	i := slices.IndexFunc(state.Parts, func(p store.LogPart) bool { return p.Name == names[0] })
	rows, removed, err := s.RemoveRange(t.Context(), store.RangeRemoval{
		Part: state.Parts[i], Members: []store.Removal{{ExecutionID: ids[0], LastSeq: 1}}, RemovalOptions: store.RemovalOptions{Now: now, PinnedSince: now},
	})
	if err != nil || !removed || rows["event"] != 1 || rows["execution"] != 1 {
		t.Errorf("RemoveRange = %v, %v, %v", rows, removed, err)
	}
	if _, err := s.RemovedAt(t.Context(), ids[0]); err != nil {
		t.Errorf("RemovedAt = %v", err)
	}
}

// A server may be given a user that owns nothing: it cannot drop a part of the
// log, says so, and can still remove what is in it.
func TestAUserThatOwnsNothingRemovesRows(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	_ = open(t, postgres.Options{DSN: dsn}).Close()
	address, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	role := strings.Replace(address.Path[1:], "noetl_test_", "guest_", 1)
	run(t, dsn, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'guest'; GRANT CREATE ON DATABASE %[2]s TO %[1]s; GRANT ALL ON SCHEMA noetl TO %[1]s;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA noetl TO %[1]s; GRANT USAGE ON ALL SEQUENCES IN SCHEMA noetl TO %[1]s`, role, address.Path[1:]))
	t.Cleanup(func() { run(t, dsn, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	guest := *address
	guest.User = url.UserPassword(role, "guest")
	s := open(t, postgres.Options{DSN: guest.String()})
	now := time.Now()
	b := start(store.IDAt(now))
	b.Execution.Status, b.Execution.EndedAt = event.StatusCompleted, now
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	id := b.Execution.ExecutionID
	state, err := s.LogState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(state.Parts, func(p store.LogPart) bool { return id >= p.From && id < p.To })
	members := []store.Removal{{ExecutionID: id, LastSeq: 1}}
	o := store.RemovalOptions{Now: now, PinnedSince: now}
	if _, removed, err := s.RemoveRange(t.Context(), store.RangeRemoval{Part: state.Parts[i], Members: members, RemovalOptions: o}); err == nil || removed || !strings.Contains(err.Error(), "owner") {
		t.Errorf("RemoveRange = %v, %v", removed, err)
	}
	if events, err := s.Events(t.Context(), id, 0, 0); err != nil || len(events) != 1 {
		t.Fatalf("a drop that failed left %d events, %v", len(events), err)
	}
	if report, err := s.RemoveExecutions(t.Context(), members, o); err != nil || report.Kept[0] != "" || report.Rows["event"] != 1 {
		t.Errorf("RemoveExecutions = %+v, %v", report, err)
	}
}
