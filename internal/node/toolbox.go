package node

import (
	"context"
	"log/slog"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/artifact"
	"github.com/noetl/noetl-go/internal/tool/httptool"
	"github.com/noetl/noetl-go/internal/tool/noop"
	"github.com/noetl/noetl-go/internal/tool/playbooktool"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/shell"
)

// toolbox is the set of tools this process can run.
type toolbox struct {
	set   tool.Set
	py    *python.Tool // nil without an interpreter
	clean closers
}

// newToolbox makes the tools. A machine without python serves everything else:
// only the steps that need it fail, and say so. Results are where stored data
// is read from.
func newToolbox(results artifact.Fetcher) *toolbox {
	t := &toolbox{}
	web := httptool.New(httptool.Options{})
	t.clean = append(t.clean, web.Close)
	t.set = tool.NewSet(
		noop.New(),
		web,
		shell.New(),
		t.python(),
		playbooktool.New(),
		artifact.New(results),
		artifact.NewFetch(results),
	)
	return t
}

func (t *toolbox) python() tool.Tool {
	py, err := python.New(python.Options{})
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
