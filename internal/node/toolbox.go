package node

import (
	"context"
	"errors"
	"log/slog"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/artifact"
	"github.com/noetl/noetl-go/internal/tool/container"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
	"github.com/noetl/noetl-go/internal/tool/httptool"
	"github.com/noetl/noetl-go/internal/tool/mcp"
	"github.com/noetl/noetl-go/internal/tool/natstool"
	"github.com/noetl/noetl-go/internal/tool/noop"
	"github.com/noetl/noetl-go/internal/tool/playbooktool"
	"github.com/noetl/noetl-go/internal/tool/postgres"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/script"
	"github.com/noetl/noetl-go/internal/tool/shell"
	"github.com/noetl/noetl-go/internal/tool/source"
	"github.com/noetl/noetl-go/internal/tool/transfer"
	"github.com/noetl/noetl-go/internal/tool/wait"
)

// toolbox is the set of tools this process can run.
type toolbox struct {
	set   tool.Set
	py    *python.Tool // nil without an interpreter
	clean closers
}

// newToolbox makes the tools. A machine without python serves everything else:
// only the steps that need it fail, and say so. Results are where stored data
// is read from; net bounds where tools connect to.
func newToolbox(results artifact.Fetcher, o processOptions, net Outbound) (*toolbox, error) {
	pool, err := net.open()
	if err != nil {
		return nil, err
	}
	t := &toolbox{}
	source.SetDefault(source.New(pool))
	web := httptool.New(httptool.Options{Pool: pool, Timeout: net.RequestTimeout, MaxResponseBytes: net.MaxResponse, MaxDownloadBytes: net.MaxDownload})
	servers := mcp.New(mcp.Options{Pool: pool})
	t.clean = append(t.clean, web.Close, servers.Close)
	sql := postgres.New(o.postgres)
	t.clean = append(t.clean, sql.Close)
	files := duckdb.NewFiles(o.duckdb)
	rows := transfer.New(transfer.Options{Pool: pool, DuckDB: files, Scratch: files.Scratch()})
	t.clean = append(t.clean, rows.Close)
	streams := natstool.New()
	t.clean = append(t.clean, streams.Close)
	jobs, err := container.New(o.jobs)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.clean = append(t.clean, jobs.Close)
	t.set = tool.NewSet(
		noop.New(),
		web,
		servers,
		shell.New(o.shell),
		t.python(o.python),
		playbooktool.New(),
		wait.New(),
		sql,
		duckdb.New(files),
		rows,
		streams,
		jobs,
		script.New(jobs),
		artifact.New(results),
		artifact.NewFetch(results),
	)
	return t, nil
}

func (t *toolbox) python(o python.Options) tool.Tool {
	py, err := python.New(o)
	if err != nil {
		return tool.Unavailable("python", err)
	}
	t.py, t.clean = py, append(t.clean, py.Close)
	return py
}

// warm starts ahead of need what the first commands would wait for.
func (t *toolbox) warm(ctx context.Context, log *slog.Logger) {
	if t.py == nil {
		return
	}
	if err := t.py.Warm(ctx); err != nil && ctx.Err() == nil {
		log.Warn("python is not ready; steps that need it will fail", "error", err)
	}
}

func (t *toolbox) close() error { return t.clean.close() }
