package corpus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/testkit"
)

const (
	atOnce = 6               // entries that run at the same time
	bound  = 5 * time.Minute // for one entry; the slowest sleeps for 18 s, and the race detector makes all slow
)

// stand-ins for files that lie beside the playbooks but not among the fixtures:
// what the workload says instead, relative to this directory.
var standIns = map[string]map[string]string{
	"e2e/fixtures/playbooks/script_execution/python_file_example.yaml": {"script_path": "testdata/greet.py"},
}

// verdict is what became of one line of a table.
type verdict struct{ name, text string }

// TestCorpusRuns runs every entry that needs no service with `noetl run` and
// compares what happened with what should have.
func TestCorpusRuns(t *testing.T) {
	entries, skipped := load(t)
	noetl := testkit.BuildNoetl(t)
	diffs := make([]string, len(entries))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, e := range entries {
		dir, payload := t.TempDir(), e.payload(t)
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			h, err := observe(ctx, noetl, e, payload, dir)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name(), err)
			}
			diffs[i] = compare(e, h)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	var failed []verdict
	for i, e := range entries {
		if diffs[i] != "" {
			failed = append(failed, verdict{e.name(), diffs[i]})
		}
	}
	table("not run", skipped)
	table("failed", failed)
	fmt.Printf("corpus: %d passed, %d failed, %d skipped\n", len(entries)-len(failed), len(failed), len(skipped))
	conclude(t, failed)
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

// errNoOutcome tells that `noetl run` ended without saying how the run went.
var errNoOutcome = errors.New("noetl run printed no outcome")
