//go:build !duckdb

package duckdb_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/duckdb"
)

func TestAProgramWithoutDuckDBSaysHowToGetIt(t *testing.T) {
	t.Parallel()
	files := duckdb.NewFiles(duckdb.Options{Dir: t.TempDir()})
	_, err := duckdb.New(files).Run(t.Context(), &tool.Call{Config: map[string]any{"query": "SELECT 1"}, Log: io.Discard})
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != tool.KindConfig || !strings.Contains(e.Message, "make build") {
		t.Errorf("error is %v", err)
	}
	if _, err := files.Acquire(t.Context(), duckdb.Memory); err == nil {
		t.Error("a file can be opened")
	}
}
