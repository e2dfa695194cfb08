// Package transfer copies rows from one system to another without holding them
// all: from and to databases, files, HTTP services and stored results. Each end
// is a small driver in a table; a pair needs no code of its own. It must not
// know workflows.
package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// Options are what the ends need of the process.
type Options struct {
	Pool    *egress.Pool  // reaches HTTP services; nil = nothing is out of bounds
	DuckDB  *duckdb.Files // database files of this process
	Scratch string        // for data that must be a file for a while; "" = the system's
}

// Tool is the kind transfer.
type Tool struct {
	opts   Options
	prover *outbound.Prover
	own    *egress.Pool // made here and closed here
}

// New makes the tool.
func New(opts Options) *Tool {
	t := &Tool{opts: opts}
	if opts.Pool == nil {
		t.own = egress.NewPool(nil, egress.PoolOptions{})
		t.opts.Pool = t.own
	}
	if opts.DuckDB == nil {
		t.opts.DuckDB = duckdb.NewFiles(duckdb.Options{Dir: opts.Scratch})
	}
	if opts.Scratch == "" {
		t.opts.Scratch = os.TempDir()
	}
	t.prover = outbound.NewProver(t.opts.Pool)
	return t
}

// Close ends what the tool keeps open.
func (t *Tool) Close() error {
	if t.own == nil {
		return nil
	}
	return t.own.Close()
}

// Kind is the name of the tool in playbooks.
func (*Tool) Kind() string { return "transfer" }

// Run copies all rows of the source into the target.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	p, err := readPlan(call)
	if err != nil {
		return nil, err
	}
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	done, err := t.run(ctx, call, p)
	if err == nil {
		return p.result(done)
	}
	if ctx.Err() != nil {
		err = tool.Ended(ctx, "the transfer", limit)
	}
	return nil, done.kept(err)
}

// session is one run of the tool.
type session struct {
	*Tool
	call *tool.Call
	hold *duckdb.Hold // of the DuckDB files of both ends
}

func (t *Tool) run(ctx context.Context, call *tool.Call, p *plan) (done *progress, err error) {
	done = &progress{log: call.Log}
	if err := ctx.Err(); err != nil {
		return done, err
	}
	s := &session{Tool: t, call: call}
	if err := s.takeFiles(ctx, p); err != nil {
		return done, err
	}
	defer func() {
		if s.hold != nil {
			err = errors.Join(err, s.hold.Release())
		}
	}()
	dst, err := targets[p.target.kind](ctx, s, p)
	if err != nil {
		return done, during("open the target", err)
	}
	defer func() {
		if closeErr := dst.close(); err == nil && closeErr != nil {
			err = during("close the target", closeErr)
		}
	}()
	src, err := sources[p.source.kind](ctx, s, p)
	if err != nil {
		return done, during("open the source", err)
	}
	defer func() {
		if closeErr := src.close(); err == nil && closeErr != nil {
			err = during("close the source", closeErr)
		}
	}()
	return done, copyRows(ctx, p, src, dst, done)
}

// takeFiles reserves the DuckDB files of both ends at once, so that two
// transfers in opposite directions do not wait for each other.
func (s *session) takeFiles(ctx context.Context, p *plan) (err error) {
	var paths []string
	for _, e := range []*end{p.source, p.target} {
		if e.kind != "duckdb" {
			continue
		}
		if e.database, err = s.databaseOf(e); err != nil {
			return err
		}
		paths = append(paths, e.database)
	}
	if len(paths) == 0 {
		return nil
	}
	s.hold, err = s.opts.DuckDB.Acquire(ctx, paths...)
	return err
}

// during says what was under way. The kind and code of an error stay.
func during(what string, err error) error {
	if known, ok := errors.AsType[*tool.Error](err); ok {
		out := *known
		out.Message = what + ": " + strings.TrimPrefix(known.Message, what+": ")
		return &out
	}
	return fmt.Errorf("%s: %w", what, err)
}

// result is the data of a successful transfer.
func (p *plan) result(done *progress) (*tool.Result, error) {
	data := map[string]any{
		"direction": p.source.kind + "_to_" + p.target.kind, "source_type": p.source.kind, "target_type": p.target.kind, "mode": p.mode,
		"rows_transferred": done.rows, "chunks_processed": done.chunks, "target_table": done.target, "columns": done.columns,
	}
	if done.stored != nil {
		ref, err := json.Marshal(done.stored)
		if err != nil {
			return nil, fmt.Errorf("describe the stored rows: %w", err)
		}
		var fields map[string]any
		if err := json.Unmarshal(ref, &fields); err != nil {
			return nil, fmt.Errorf("describe the stored rows: %w", err)
		}
		data["stored"] = fields
		data["ref"] = done.stored.Ref
	}
	encoded, err := tool.Encode(data)
	return &tool.Result{Data: encoded}, err
}
