package schema_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

// Every tool's code is read for the fields that it looks up in its config:
// they are the declared ones, no more and no fewer.
func TestToolsReadExactlyTheDeclaredFields(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../*")
	if err != nil {
		t.Fatal(err)
	}
	tools := 0
	for _, dir := range dirs {
		src := readTool(t, dir)
		for _, kind := range src.kinds {
			tools++
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				src.compare(t, kind)
			})
		}
	}
	if tools < 4 {
		t.Errorf("found %d tools, there are more", tools)
	}
}

func (s *toolSource) compare(t *testing.T, kind string) {
	k, ok := schema.Lookup(kind)
	if !ok {
		t.Fatalf("no schema declares the kind %s", kind)
	}
	if len(s.offences) > 0 {
		t.Errorf("call the config f in these functions, so that what they read of it is seen: %s", strings.Join(s.offences, ", "))
	}
	var declared, unavailable []string
	for i := range k.Fields {
		if f := &k.Fields[i]; f.Unavailable == "" {
			declared = append(declared, f.Names()...)
		} else {
			unavailable = append(unavailable, f.Names()...)
		}
	}
	read := slices.DeleteFunc(slices.Clone(s.fields), func(f string) bool { return slices.Contains(unavailable, f) })
	read = append(read, "timeout", "timeout_seconds") // a worker bounds every call by them
	slices.Sort(declared)
	slices.Sort(read)
	if diff := cmp.Diff(declared, slices.Compact(read)); diff != "" {
		t.Errorf("declared and read fields differ (-declared +read):\n%s", diff)
	}
}

// toolSource is what the code of a tool says about its config.
type toolSource struct {
	kinds    []string
	fields   []string
	offences []string
}

// readers are the methods of tool.Fields that take names of fields.
var readers = []string{"First", "String", "Bool", "Object", "Texts", "Duration"}

func readTool(t *testing.T, dir string) *toolSource {
	t.Helper()
	src := &toolSource{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*ast.FuncDecl
	funcs := map[string]*ast.FuncDecl{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && len(f.Body.List) > 0 {
				all = append(all, f)
				funcs[f.Name.Name] = f
			}
		}
	}
	for _, f := range all {
		src.kindOf(f)
		if partOfConfig(f) {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			src.node(f.Name.Name, n, funcs)
			return true
		})
	}
	return src
}

// kindOf finds the kinds of a tool: what Kind returns, or what constructors
// of one type name.
func (s *toolSource) kindOf(f *ast.FuncDecl) {
	if f.Name.Name != "Kind" && !strings.HasPrefix(f.Name.Name, "New") {
		return
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			for _, text := range literals([]ast.Expr{lit}) {
				if _, known := schema.Lookup(text); known || f.Name.Name == "Kind" {
					s.kinds = append(s.kinds, text)
				}
			}
		}
		return true
	})
}

// partOfConfig tells that f in a function is a map inside the config.
func partOfConfig(fn *ast.FuncDecl) (part bool) {
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) == 1 && isIdent(a.Lhs[0], "f") && !isConfig(a.Rhs[0]) {
			part = true
		}
		return true
	})
	return part
}

// node notes what one piece of a function reads. The config must be called f
// wherever it goes: by that name it is recognised.
func (s *toolSource) node(within string, n ast.Node, funcs map[string]*ast.FuncDecl) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if len(n.Rhs) == 1 && isConfig(n.Rhs[0]) && !isIdent(n.Lhs[0], "f") {
			s.offences = append(s.offences, within)
		}
	case *ast.IndexExpr:
		sel, isSel := n.X.(*ast.SelectorExpr)
		if isConfig(n.X) || isSel && sel.Sel.Name == "Config" {
			s.fields = append(s.fields, literals([]ast.Expr{n.Index})...)
		}
	case *ast.RangeStmt: // over names of fields
		if list, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil && readsBy(n.Body, n.Value) {
			s.fields = append(s.fields, literals(list.Elts)...)
		}
	case *ast.CallExpr:
		callee := ""
		switch fun := n.Fun.(type) {
		case *ast.Ident:
			callee = fun.Name
		case *ast.SelectorExpr:
			callee = fun.Sel.Name
			if callee == "Encoded" || slices.Contains(readers, callee) && isConfig(fun.X) {
				s.fields = append(s.fields, literals(n.Args)...)
			}
			if (callee == "Login" || callee == "Logins") && slices.ContainsFunc(n.Args, isConfig) {
				s.fields = append(s.fields, "auth", "credential")
			}
		}
		if fn := funcs[callee]; fn != nil && readsForCaller(fn) {
			s.fields = append(s.fields, literals(n.Args)...)
		}
		if slices.ContainsFunc(n.Args, isConfig) && funcs[callee] != nil && !hasParam(funcs[callee], "f") {
			s.offences = append(s.offences, callee)
		}
	}
}

// readsForCaller tells that a function reads the field its caller names.
func readsForCaller(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		return slices.ContainsFunc(p.Names, func(name *ast.Ident) bool { return readsBy(fn.Body, name) })
	})
}

// readsBy tells that a field of the config is read by the name in a variable.
func readsBy(body ast.Node, variable ast.Expr) (reads bool) {
	name, ok := variable.(*ast.Ident)
	ast.Inspect(body, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall || !ok {
			return true
		}
		if sel, isSel := call.Fun.(*ast.SelectorExpr); isSel && slices.Contains(readers, sel.Sel.Name) && isConfig(sel.X) {
			reads = reads || slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return isIdent(e, name.Name) })
		}
		return true
	})
	return reads
}

func hasParam(fn *ast.FuncDecl, name string) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		return slices.ContainsFunc(p.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}

// isConfig tells that an expression is the config of the call: a variable or
// a member f, or call.Fields() itself.
func isConfig(e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); isIdent(e, "f") || ok && sel.Sel.Name == "f" {
		return true
	}
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Fields"
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func literals(list []ast.Expr) (out []string) {
	for _, e := range list {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, text)
			}
		}
	}
	return out
}
