package obs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/obs"
)

var (
	metricTypes = []string{"Counter", "Gauge", "Histogram", "Table"}
	writes      = []string{"Inc", "Add", "Reach", "Set", "Observe", "Replace"}
)

// A metric nobody writes must not exist: every field that holds one is written
// somewhere in the program, or handed to something that writes it.
func TestEveryMetricHasAWriter(t *testing.T) {
	t.Parallel()
	declared, written := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && file.Name.Name == "obs" {
					declare(declared, n.Name.Name, s)
				}
			case *ast.CallExpr:
				use(written, n)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(declared) < 50 {
		t.Fatalf("only %d metrics found: the test looks in the wrong place", len(declared))
	}
	for field, owner := range declared {
		if !written[field] {
			t.Errorf("%s.%s is written by nothing: write it or remove it", owner, field)
		}
	}
}

func declare(declared map[string]string, owner string, s *ast.StructType) {
	for _, f := range s.Fields.List {
		if kind, ok := f.Type.(*ast.Ident); ok && slices.Contains(metricTypes, kind.Name) {
			for _, name := range f.Names {
				declared[name.Name] = owner
			}
		}
	}
}

// use notes the metrics of a call: m.Field.Inc(…), or f(m.Field).
func use(written map[string]bool, call *ast.CallExpr) {
	if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(writes, method.Sel.Name) {
		if field, ok := method.X.(*ast.SelectorExpr); ok {
			written[field.Sel.Name] = true
		}
	}
	for _, arg := range call.Args {
		if field, ok := arg.(*ast.SelectorExpr); ok {
			written[field.Sel.Name] = true
		}
	}
}

func TestATableHasABoundAndIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	table := r.Table("waiting", "Waiting.", "pool")
	if got := scrape(t, &r); strings.Contains(got, "waiting{") {
		t.Errorf("series before anything is known:\n%s", got)
	}
	rows := []obs.Row{{Labels: []string{"a\"b"}, Value: 1000}, {Labels: []string{"two", "labels"}, Value: 1}}
	for i := range 100 {
		rows = append(rows, obs.Row{Labels: []string{string(rune('A' + i))}, Value: float64(i)})
	}
	table.Replace(rows)
	got := scrape(t, &r)
	if n := strings.Count(got, "waiting{"); n != 64 {
		t.Errorf("%d series, want 64", n)
	}
	if !strings.Contains(got, `waiting{pool="a\"b"} 1000`) || !strings.Contains(got, `waiting{pool="other"}`) {
		t.Errorf("the largest or the rest is missing:\n%s", got)
	}
	table.Replace([]obs.Row{{Labels: []string{"x"}, Value: 1}})
	if got := scrape(t, &r); !strings.Contains(got, "waiting{pool=\"x\"} 1\n") || strings.Count(got, "waiting{") != 1 {
		t.Errorf("what was there before stayed:\n%s", got)
	}
}

func TestProcessFigures(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	r.Process()
	r.Process() // an embedded worker shares the registry of its server
	got := scrape(t, &r)
	for _, name := range []string{"go_goroutines", "go_memstats_heap_alloc_bytes", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds"} {
		if strings.Contains(got, "\n"+name+" 0\n") || !strings.Contains(got, "\n"+name+" ") {
			t.Errorf("%s is not told", name)
		}
		if strings.Count(got, "# TYPE "+name+" ") != 1 {
			t.Errorf("%s is told more than once", name)
		}
	}
}
