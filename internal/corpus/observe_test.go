package corpus_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/cli"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// printedOutcome is what `noetl run --json` ends with.
type printedOutcome struct {
	ExecutionID event.StringID                `json:"execution_id"`
	Status      string                        `json:"status"`
	Error       string                        `json:"error"`
	Steps       map[string]engine.StepOutcome `json:"steps"`
}

func (e *entry) file() string {
	return filepath.Join(fixtures, "playbooks", filepath.FromSlash(e.Path))
}

// observe runs an entry as a person would and looks at what it left behind. A
// refusal is a history; an error is a run that could not be watched to its end.
func observe(ctx context.Context, noetl string, e *entry, payload []byte, dir string) (*history, error) {
	if e.Expect.Status[0] == registered {
		return observeCatalog(ctx, e, dir)
	}
	args := []string{"run", "--json", "--data-dir", dir, "--timeout", bound.String()}
	if payload != nil {
		args = append(args, "--payload", string(payload))
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, noetl, append(args, e.file())...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return nil, err
	}
	code := cmd.ProcessState.ExitCode()
	if code == cli.ExitInvalid {
		return &history{status: rejected, err: errs.String()}, nil
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var o printedOutcome
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &o); err != nil {
		return nil, fmt.Errorf("%w: exit code %d, %s%s", errNoOutcome, code, out.String(), errs.String())
	}
	if (code == cli.ExitOK) != (o.Status == event.StatusCompleted) {
		return nil, fmt.Errorf("exit code %d for an execution that is %s", code, o.Status)
	}
	return look(ctx, e, &o, dir)
}

// look reads the log and the children of an execution from the data directory
// that `noetl run` kept.
func look(ctx context.Context, e *entry, o *printedOutcome, dir string) (_ *history, err error) {
	n, err := node.Start(ctx, node.Options{DataDir: dir, InProcess: true, NoWorker: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	h := &history{status: o.Status, err: o.Error, steps: o.Steps}
	if h.events, err = n.Plane.Events(ctx, event.ID(o.ExecutionID), 0, 0); err != nil {
		return nil, err
	}
	row, err := n.Plane.Execution(ctx, event.ID(o.ExecutionID))
	if err != nil {
		return nil, err
	}
	// Slashes around a path are not part of it.
	if row.Path != strings.Trim(e.CatalogPath, "/") {
		return nil, fmt.Errorf("registered as %q, want %q", row.Path, e.CatalogPath)
	}
	if h.children, err = childrenOf(ctx, n.Plane, row.ExecutionID); err != nil {
		return nil, err
	}
	if err := proven(ctx, n.Plane); err != nil {
		return nil, err
	}
	src, err := os.ReadFile(e.file())
	if err != nil {
		return nil, err
	}
	h.playbook, _ = playbook.Parse(e.Path, src)
	return h, nil
}

// proven holds everything that was stored against the log.
func proven(ctx context.Context, plane *control.Plane) error {
	r, err := plane.Verify(ctx, control.VerifyOptions{})
	if err == nil && !r.Clean {
		err = fmt.Errorf("the store is not what its log says: %s", r.Differences[0])
	}
	return err
}

// childrenOf are the executions that one started, in their order.
func childrenOf(ctx context.Context, plane *control.Plane, id event.ID) ([]childRun, error) {
	rows, err := plane.Executions(ctx, store.ExecutionFilter{ParentID: id})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b store.Execution) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) })
	var children []childRun
	for _, row := range rows {
		of, err := plane.Entry(ctx, control.EntryRef{CatalogID: row.CatalogID})
		if err != nil {
			return nil, err
		}
		pb, problems := playbook.Parse(of.Path, []byte(of.Content))
		if err := problems.Err(); err != nil {
			return nil, err
		}
		c := childRun{path: pb.Metadata.Path, status: row.Status}
		raw, err := plane.Workload(ctx, row.ExecutionID)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &c.workload); err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return children, nil
}

// observeCatalog registers a document that is no playbook: the catalog takes
// it, and nothing executes it.
func observeCatalog(ctx context.Context, e *entry, dir string) (_ *history, err error) {
	src, err := os.ReadFile(e.file())
	if err != nil {
		return nil, err
	}
	n, err := node.Start(ctx, node.Options{DataDir: dir, InProcess: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	reg, err := n.Plane.Register(ctx, control.RegisterRequest{Content: string(src)})
	if err != nil {
		return &history{status: rejected, err: err.Error()}, nil
	}
	if reg.Entry.Path != e.CatalogPath {
		return nil, fmt.Errorf("registered as %q, want %q", reg.Entry.Path, e.CatalogPath)
	}
	if _, err := n.Plane.Execute(ctx, control.ExecuteRequest{CatalogID: reg.Entry.CatalogID}); event.CodeOf(err) != event.Invalid {
		return nil, fmt.Errorf("it must not be executable, got %w", err)
	}
	return &history{status: registered}, nil
}
