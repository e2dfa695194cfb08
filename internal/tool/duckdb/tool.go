// Package duckdb runs SQL on DuckDB, by default in a file that belongs to the
// execution. The library is C++ and needs cgo, so it is in the program only
// with the build tag duckdb; without it the kind says how to get it. It must
// not know workflows, and nothing outside this package touches the library.
package duckdb

import (
	"context"
	"errors"

	"github.com/noetl/noetl-go/internal/tool"
)

// Tool is the kind duckdb.
type Tool struct{ files *Files }

// New makes the tool. Files says where database files are and who uses them;
// it is shared with whatever else opens them.
func New(files *Files) *Tool { return &Tool{files: files} }

// Kind is the name of the tool in playbooks.
func (*Tool) Kind() string { return "duckdb" }

// Run runs the statements one after the other and stops at the first that
// fails. Each is a transaction of its own unless the author writes BEGIN.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p, err := readPlan(ctx, call)
	if err != nil {
		return nil, err
	}
	res, err := t.run(ctx, call, p)
	if err != nil && ctx.Err() != nil {
		return nil, tool.Ended(ctx, "the DuckDB query", limit)
	}
	return res, err
}

func (t *Tool) run(ctx context.Context, call *tool.Call, p *plan) (_ *tool.Result, err error) {
	path, err := t.files.Path(p.database, call.ExecutionID)
	if err != nil {
		return nil, err
	}
	secrets, err := p.secrets(ctx, call)
	if err != nil {
		return nil, err
	}
	hold, err := t.files.Acquire(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hold.Release()) }()
	conn, err := hold.Connect(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := makeSecrets(ctx, conn, secrets); err != nil {
		return nil, err
	}
	return p.execute(ctx, call, conn, path, t.files.Scratch())
}

// Available is nil when DuckDB is in this program, else the error that every
// call of the kind ends with.
func Available() error {
	if library == nil {
		return &tool.Error{
			Kind: tool.KindConfig, Code: "NOT_COMPILED_IN",
			Message: "this noetl was built without DuckDB; build it with `make build` on a machine with a C compiler (go build -tags duckdb)",
		}
	}
	return nil
}
