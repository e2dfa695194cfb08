package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

const maxLines = 800

// vague names say nothing about what is inside.
var vague = []string{"util", "utils", "common", "helper", "helpers", "misc"}

// source is one Go file.
type source struct {
	path string // from the root, with slashes
	text []byte
	// fakeTime tells that the tests of its package run in synctest bubbles,
	// where sleeping costs nothing: it is how time moves there.
	fakeTime bool
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

func TestHouseRules(t *testing.T) {
	t.Parallel()
	files := sources(t)
	if len(files) < 10 {
		t.Fatalf("only %d Go files found; the rules would hold for nothing", len(files))
	}
	for _, f := range files {
		for _, complaint := range checkHouse(t, f) {
			t.Error(complaint)
		}
	}
}

func TestHouseRulesCatchOffences(t *testing.T) {
	t.Parallel()
	long := "package x\n" + strings.Repeat("\n", maxLines)
	for _, c := range []struct{ name, path, text, want string }{
		{"a vague file", "internal/api/utils.go", "package api\n", "says nothing"},
		{"a vague package", "internal/common/code.go", "package common\n", "says nothing"},
		{"a long file", "internal/api/routes.go", long, "lines long"},
		{"a sleep", "internal/api/x_test.go", "package api\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "sleeps"},
		{"a clock in a pure package", "internal/engine/x.go", "package engine\nimport \"time\"\nvar f = time.Now\n", "reads the clock"},
		{"a goroutine in a pure package", "internal/engine/x.go", "package engine\nfunc f() { go f() }\n", "starts a goroutine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(checkHouse(t, &source{path: c.path, text: []byte(c.text)}), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("complaints %q do not say %q", got, c.want)
			}
		})
	}
	for _, f := range []*source{
		{path: "internal/testkit/wait.go", text: []byte("package testkit\nimport \"time\"\nfunc f() { time.Sleep(1) }\n")},
		{path: "internal/control/x_test.go", text: []byte("package x\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"), fakeTime: true},
		{path: "internal/control/clock.go", text: []byte("package control\nimport \"time\"\nvar f = time.Now\n")},
		{path: "internal/engine/long_test.go", text: []byte(long)},
	} {
		if got := checkHouse(t, f); len(got) > 0 {
			t.Errorf("%s is allowed and refused: %q", f.path, got)
		}
	}
}

func checkHouse(t *testing.T, f *source) (complaints []string) {
	t.Helper()
	complain := func(format string, args ...any) {
		complaints = append(complaints, f.path+": "+fmt.Sprintf(format, args...))
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(f.path, ".go"), "/") {
		if slices.Contains(vague, strings.TrimSuffix(part, "_test")) {
			complain("the name %q says nothing; name it after what it does", part)
		}
	}
	if n := bytes.Count(f.text, []byte("\n")); n > maxLines && !f.isTest() {
		complain("%d lines long, the ceiling is %d; split it by concept", n, maxLines)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, f.path, f.text, parser.SkipObjectResolution)
	if err != nil {
		complain("cannot be parsed: %v", err)
		return complaints
	}
	maySleep := strings.HasPrefix(f.path, "internal/testkit/") || f.isTest() && f.fakeTime
	isPure := slices.Contains(pure, filepath.ToSlash(filepath.Dir(f.path))) && !f.isTest()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if isPure {
				complain("line %d starts a goroutine in a pure package; leave that to its caller", set.Position(n.Pos()).Line)
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); !ok || x.Name != "time" {
				return true
			}
			line := set.Position(n.Pos()).Line
			switch n.Sel.Name {
			case "Sleep":
				if !maySleep {
					complain("line %d sleeps; wait for a signal, a channel or a context instead", line)
				}
			case "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
				if isPure {
					complain("line %d reads the clock in a pure package; take the time as an argument", line)
				}
			}
		}
		return true
	})
	return complaints
}

func sources(t *testing.T) (files []*source) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "bin", "node_modules", "testdata", ".noetl":
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".go" {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files = append(files, &source{path: filepath.ToSlash(rel), text: text})
		return nil
	})
	if err != nil {
		t.Fatalf("walk the repository: %v", err)
	}
	for _, f := range files {
		f.fakeTime = slices.ContainsFunc(files, func(g *source) bool {
			return path.Dir(f.path) == path.Dir(g.path) && bytes.Contains(g.text, []byte(`"testing/synctest"`))
		})
	}
	return files
}
