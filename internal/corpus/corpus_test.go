package corpus_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/playbook"
)

const (
	atOnce = 6               // entries that run at the same time
	bound  = 5 * time.Minute // for one entry; the slowest sleeps for 18 s, and the race detector makes all slow
)

// waiting are the entries that need what is not there yet, or what this test
// cannot give them. One that starts to hold has to leave the table.
var waiting = map[string]string{
	"e2e/fixtures/playbooks/script_execution/python_file_example.yaml":                         "its script lies in the working directory of another worker and is not among the fixtures",
	"e2e/fixtures/playbooks/test_large_result_extraction.yaml":                                 "large results have no store of their own, so no _ref",
	"e2e/fixtures/playbooks/test_storage_tiers.yaml":                                           "tools of kind artifact, and storage tiers",
	"e2e/fixtures/playbooks/api_integration/quantum_networking/quantum_networking_runner.yaml": "templates over env in the workload",
	"ops/automation/examples/parent_playbook.yaml":                                             "tools of kind playbook",
	"ops/automation/infrastructure/gateway.yaml":                                               needsBash,
	"ops/automation/setup/prepare_workspace_links.yaml (help)":                                 needsBash,
}

// needsBash is the reason of scripts that begin with set -o pipefail. Where sh
// knows that, they do not wait.
const needsBash = "its commands are for bash, and commands run in sh"

func TestCorpusClassA(t *testing.T) {
	entries := load(t)
	n, err := node.Start(t.Context(), node.Options{DataDir: t.TempDir(), InProcess: true, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	diffs := make([]string, len(entries))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, e := range entries {
		payload := e.payload(t)
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			h, err := run(ctx, n.Plane, e, payload)
			if err != nil {
				return fmt.Errorf("%s: %w", e.name(), err)
			}
			diffs[i] = compare(e, h)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if err := n.Stop(); err != nil {
		t.Errorf("stop the node: %v", err)
	}
	if !t.Failed() {
		conclude(t, entries, diffs, waitingHere(t))
	}
}

// waitingHere is the table as it is on this machine.
func waitingHere(t *testing.T) map[string]string {
	t.Helper()
	table := maps.Clone(waiting)
	if exec.CommandContext(t.Context(), "sh", "-c", "set -o pipefail").Run() == nil {
		maps.DeleteFunc(table, func(_, reason string) bool { return reason == needsBash })
	}
	return table
}

// conclude holds the differences against the table.
func conclude(t *testing.T, entries []*entry, diffs []string, table map[string]string) {
	t.Helper()
	var hold, wait, failed int
	for i, e := range entries {
		name, diff := e.name(), diffs[i]
		reason, isWaiting := table[name]
		delete(table, name)
		switch {
		case diff == "" && !isWaiting:
			hold++
		case diff == "":
			failed++
			t.Errorf("%s holds now; take it out of the table of those that wait (%s)", name, reason)
		case isWaiting:
			wait++
			t.Logf("%s waits for features: %s\n\t%s", name, reason, diff)
		default:
			failed++
			t.Errorf("%s does not hold\n\t%s", name, diff)
		}
	}
	for name := range table {
		t.Errorf("%s is in the table of those that wait, but not among the entries", name)
	}
	fmt.Printf("corpus: %d hold, %d wait for features, %d failed\n", hold, wait, failed)
}

// run registers and executes an entry and waits for its end. A refusal is a
// history; an error is a run that could not be watched to its end.
func run(ctx context.Context, plane *control.Plane, e *entry, payload []byte) (*history, error) {
	src, err := os.ReadFile(filepath.Join(fixtures, "playbooks", filepath.FromSlash(e.Path)))
	if err != nil {
		return nil, err
	}
	reg, err := plane.Register(ctx, control.RegisterRequest{Content: string(src)})
	if err != nil {
		return refusal(err)
	}
	// Slashes around a path are not part of it.
	if reg.Entry.Path != strings.Trim(e.CatalogPath, "/") {
		return nil, fmt.Errorf("registered as %q, want %q", reg.Entry.Path, e.CatalogPath)
	}
	answer, err := plane.Execute(ctx, control.ExecuteRequest{CatalogID: reg.Entry.CatalogID, Payload: payload})
	if err != nil && e.Expect.Status[0] == registered {
		return &history{status: registered}, nil
	}
	if err != nil {
		return refusal(err)
	}
	events, err := follow(ctx, plane, answer.ExecutionID)
	if err != nil {
		return nil, err
	}
	row, err := plane.Execution(ctx, answer.ExecutionID)
	if err != nil {
		return nil, err
	}
	outcome, err := plane.Outcome(ctx, answer.ExecutionID)
	if err != nil {
		return nil, err
	}
	h := &history{status: row.Status, err: row.Error, events: events, steps: make(map[string]engine.StepOutcome, len(outcome))}
	for _, s := range outcome {
		h.steps[s.Name] = s
	}
	h.playbook, _ = playbook.Parse(e.Path, src)
	return h, nil
}

// refusal tells a document or an input that was refused from a broken server.
func refusal(err error) (*history, error) {
	if event.CodeOf(err) != event.Invalid {
		return nil, err
	}
	return &history{status: rejected, err: err.Error()}, nil
}

// follow returns the log of an execution that has ended.
func follow(ctx context.Context, plane *control.Plane, id event.ID) ([]event.Event, error) {
	wake, stop := plane.Watch(id)
	defer stop()
	var log []event.Event
	for {
		events, err := plane.Events(ctx, id, int64(len(log)), 0)
		if err != nil {
			return nil, err
		}
		log = append(log, events...)
		if n := len(log); n > 0 && log[n-1].Type.IsTerminal() {
			return log, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the end after %d events: %w", len(log), ctx.Err())
		case <-wake:
		}
	}
}
