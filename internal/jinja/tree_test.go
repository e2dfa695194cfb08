package jinja_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
)

func mustTree(t *testing.T, v any, o jinja.TreeOptions) *jinja.Tree {
	t.Helper()
	tree, errs := jinja.CompileTree(v, o)
	if errs != nil {
		t.Fatal(errs)
	}
	return tree
}

func fromJSON(t *testing.T, s string) any {
	t.Helper()
	v, err := jinja.FromJSON([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTreeEvaluatesItsLeavesAndKeys(t *testing.T) {
	t.Parallel()
	raw := fromJSON(t, `{
		"url": "http://{{ host }}/x", "n": "{{ n }}", "keep": "02134", "int": 5, "none": null,
		"list": [1, "{{ rows }}", ["{{ missing }}"]], "k-{{ n }}": {"deep": "{{ n + 1 }}"},
		"code": "f\"{{ x }}\""
	}`)
	tree := mustTree(t, raw, jinja.TreeOptions{Literal: func(p []string) bool { return p[len(p)-1] == "code" }})
	got, err := tree.Eval(scopeOf(t, `{"host": "h", "n": 3, "rows": [{"id": 1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := jinja.ToJSON(got)
	want := `{"url":"http://h/x","n":3,"keep":"02134","int":5,"none":null,` +
		`"list":[1,[{"id":1}],[null]],"k-3":{"deep":4},"code":"f\"{{ x }}\""}`
	if string(b) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	if diff := cmp.Diff([][]string{{"host"}, {"n"}, {"rows"}, {"missing"}}, tree.Free()); diff != "" {
		t.Error(diff)
	}
	if tree.Static() || tree.Raw() != raw {
		t.Error("the tree is not static and remembers its source")
	}
}

func TestTreeOfGoMapsIsOrderedByKey(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, map[string]any{"z": 1, "a": map[string]any{"y": []string{"x"}, "b": "{{ n }}"}}, jinja.TreeOptions{})
	got, err := tree.Eval(jinja.Vars{"n": 2})
	b, _ := jinja.ToJSON(got)
	if want := `{"a":{"b":2,"y":["x"]},"z":1}`; string(b) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", b, err, want)
	}
}

func TestTreeWithoutTemplatesIsStatic(t *testing.T) {
	t.Parallel()
	for _, v := range []any{nil, "x", 5, []any{}, map[string]any{}, []any{map[string]any{"a": "b"}}} {
		tree := mustTree(t, v, jinja.TreeOptions{})
		got, err := tree.Eval(nil)
		if !tree.Static() || err != nil {
			t.Errorf("%v: static %v, %v", v, tree.Static(), err)
		}
		wantJSON, _ := jinja.ToJSON(v)
		if b, _ := jinja.ToJSON(got); string(b) != string(wantJSON) {
			t.Errorf("got %s, want %s", b, wantJSON)
		}
	}
}

func TestTreeReportsEveryErrorWithItsPath(t *testing.T) {
	t.Parallel()
	_, errs := jinja.CompileTree(fromJSON(t, `{"a": ["ok", "{{ 1 + }}"], "b": {"c": "{{ x|nope }}"}, "{{ k": 1}`), jinja.TreeOptions{})
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		"a.1: expected an expression, found '}}' (1:8)",
		"b.c: there is no filter 'nope' (1:6)",
		"{{ k: the tag that begins here is not closed with }} (1:1)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTreeEvaluationErrorsCarryThePathOfTheLeaf(t *testing.T) {
	t.Parallel()
	for src, want := range map[string][]string{
		`{"a": [{"b": "{{ missing + 1 }}"}]}`: {"a", "0", "b"},
		`{"a": {"{{ missing + 1 }}": 1}}`:     {"a", "{{ missing + 1 }}"},
		`"{{ missing + 1 }}"`:                 nil,
	} {
		_, err := mustTree(t, fromJSON(t, src), jinja.TreeOptions{}).Eval(nil)
		var at *jinja.EvalError
		var inner *jinja.Error
		if !errors.As(err, &at) || !errors.As(err, &inner) || inner.Kind != "undefined" {
			t.Fatalf("%s: %v", src, err)
		}
		if diff := cmp.Diff(want, at.Path); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
}

func TestTreeHonoursItsLimits(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, []any{"{{ range(100)|list }}"}, jinja.TreeOptions{Limits: jinja.Limits{Steps: 50}})
	if v, err := tree.Eval(nil); err == nil {
		t.Errorf("got %v", v)
	}
}

func TestTreeSharesNothingThatItEvaluates(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, fromJSON(t, `{"x": "{{ n }}", "y": ["{{ n }}"]}`), jinja.TreeOptions{})
	first, _ := tree.Eval(jinja.Vars{"n": 1})
	first.(*jinja.Dict).Set("x", "changed")
	second, _ := tree.Eval(jinja.Vars{"n": 2})
	if b, _ := jinja.ToJSON(second); string(b) != `{"x":2,"y":[2]}` {
		t.Errorf("got %s", b)
	}
}
