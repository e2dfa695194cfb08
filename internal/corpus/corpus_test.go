package corpus_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/noetl/noetl-go/internal/testkit"
)

const (
	lanes = 5               // servers that run entries at the same time
	bound = 5 * time.Minute // for one entry; the slowest sleeps for 18 s
)

// stand-ins for files that lie beside the playbooks but not among the fixtures:
// what the workload says instead, relative to this directory.
var standIns = map[string]map[string]string{
	"e2e/fixtures/playbooks/script_execution/python_file_example.yaml":   {"script_path": "testdata/greet.py"},
	"e2e/fixtures/playbooks/script_execution/postgres_file_example.yaml": {"script_path": "testdata/create_test_table.sql"},
}

// verdict is what became of one line of a table.
type verdict struct{ name, text string }

// TestCorpusRuns runs every entry on a server with its worker and compares what
// happened with what should have.
func TestCorpusRuns(t *testing.T) {
	entries := load(t)
	docs, err := fillShelf()
	if err != nil {
		t.Fatal(err)
	}
	s := surround(t)
	noetl := s.program(t)
	pool := make([]*lane, lanes)
	for i := range pool {
		dsn := ""
		if i == 0 {
			dsn = testkit.Postgres(t)
		}
		pool[i] = openLane(t, noetl, s, dsn)
	}
	runnable, skipped := s.runnable(entries, docs)
	said := make(map[*entry]outcome, len(runnable))
	queue := plan(runnable)
	results := make(chan outcome, len(runnable))
	for _, l := range pool {
		l.ready(t)
	}
	var all sync.WaitGroup
	for _, l := range pool {
		all.Go(func() {
			for e := queue.next(l); e != nil; e = queue.next(l) {
				results <- judge(t.Context(), s, &stage{lane: l, shelf: docs, entries: entries, entry: e})
			}
		})
	}
	all.Wait()
	close(results)
	for r := range results {
		said[r.entry] = r
	}
	var failed, otherwise []verdict
	subscriptions := 0
	for _, e := range runnable {
		if diff := said[e].diff; diff != "" {
			failed = append(failed, verdict{e.name(), diff})
		}
		if instead := said[e].instead; instead != "" {
			otherwise = append(otherwise, verdict{e.name(), instead})
		}
		if e.Expect.Scenario != nil {
			subscriptions++
		}
	}
	for _, l := range pool {
		l.shut(t)
	}
	table("not run", skipped)
	table("as an acceptable alternative or our own decision says, not as stated", otherwise)
	table("failed", failed)
	fmt.Printf("corpus: %d subscriptions are registered and looked at; their messages are not sent yet\n", subscriptions)
	fmt.Printf("corpus: %d passed, %d failed, %d skipped\n", len(runnable)-len(failed), len(failed), len(skipped))
	conclude(t, failed)
}

// outcome is what became of an entry.
type outcome struct {
	entry         *entry
	diff, instead string
}

// judge is the first difference between what an entry does and what it should.
func judge(ctx context.Context, s *surroundings, st *stage) outcome {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	h, err := observe(ctx, s, st)
	if err != nil {
		return outcome{st.entry, "it could not be watched: " + err.Error(), ""}
	}
	diff, instead := compare(st.entry, h)
	return outcome{st.entry, diff, instead}
}

// runnable parts the entries from those that need what this machine lacks.
func (s *surroundings) runnable(entries []*entry, docs *shelf) (run []*entry, skipped []verdict) {
	for _, e := range entries {
		doc := docs.byFile[e.Path]
		switch {
		case s.noDuckDB != nil && doc != nil && strings.Contains(doc.src, "kind: duckdb"):
			skipped = append(skipped, verdict{e.name(), "no DuckDB: " + s.noDuckDB.Error()})
		case s.python == "" && e.needs("psycopg"):
			skipped = append(skipped, verdict{e.name(), "no psycopg: " + s.noPython.Error()})
		default:
			run = append(run, e)
		}
	}
	return run, skipped
}

// order hands out entries, the long ones first.
type order struct{ engine, any chan *entry }

// plan sorts the entries. Those that look into the engine's own database need a
// lane that has one.
func plan(entries []*entry) *order {
	o := &order{engine: make(chan *entry, len(entries)), any: make(chan *entry, len(entries))}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return weight(b) - weight(a) })
	for _, e := range sorted {
		if e.needs("engine database") {
			o.engine <- e
		} else {
			o.any <- e
		}
	}
	close(o.engine)
	close(o.any)
	return o
}

func weight(e *entry) int {
	n := 0
	if e.Expect.Duration != "" || e.needs("noetl.frame") {
		n += 1000
	}
	if e.Expect.Steps != nil {
		n += len(*e.Expect.Steps)
	}
	return n
}

func (o *order) next(l *lane) *entry {
	if l.engine != nil {
		if e := <-o.engine; e != nil {
			return e
		}
	}
	return <-o.any
}

// table prints lines under a title, and nothing when there are none.
func table(title string, lines []verdict) {
	if len(lines) == 0 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s:\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "  %s\t%s\n", l.name, l.text)
	}
	_ = w.Flush()
}

// conclude fails the test for each line of its table of failures.
func conclude(t *testing.T, failed []verdict) {
	t.Helper()
	for _, f := range failed {
		t.Errorf("%s\n\t%s", f.name, f.text)
	}
}
