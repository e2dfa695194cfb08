package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// Lines about a command say of which execution and step it is: they name it
// through about, or through a log that names the execution.
func TestLinesAboutACommandNameItsExecution(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			said := map[string]bool{}
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.BasicLit); ok {
					said[strings.Trim(lit.Value, `"`)] = true
				}
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && said["command_id"] && !said["execution_id"] &&
				(strings.HasPrefix(method.Sel.Name, "Warn") || strings.HasPrefix(method.Sel.Name, "Error") || method.Sel.Name == "With") {
				t.Errorf("%s: a line names a command and not its execution: use about", set.Position(call.Pos()))
			}
			return true
		})
	}
}

func TestAPanicIsLoggedWithItsExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written bytes.Buffer
		f := start(t, &plane{}, func(context.Context, *event.Command) event.Incoming { panic("boom") }, func(o *worker.Options) {
			o.Slots, o.Logger = 1, slog.New(slog.NewJSONHandler(&written, nil))
		})
		f.publish(t, 11)
		synctest.Wait()
		f.stop()
		for _, line := range lines(t, &written) {
			if line["msg"] == "a tool panicked" {
				if line["execution_id"] == nil || line["step"] == nil || line["command_id"] != commandID(11) {
					t.Errorf("the line does not say what it is about: %v", line)
				}
				return
			}
		}
		t.Error("a panic left no line")
	})
}

// lines reads what a JSON handler wrote.
func lines(t *testing.T, b *bytes.Buffer) (list []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(b.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}
