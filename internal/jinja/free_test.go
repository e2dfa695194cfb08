package jinja_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

// recorder is a scope that writes down what is read of it.
type recorder struct {
	scope jinja.Scope
	paths [][]string
}

func (r *recorder) Lookup(name string) (any, bool) {
	r.paths = append(r.paths, []string{name})
	v, ok := r.scope.Lookup(name)
	if _, isMap := v.(*jinja.Dict); isMap {
		return recorded{r, []string{name}, v}, true
	}
	return v, ok
}

// recorded is a mapping that writes down the attributes that are read of it.
type recorded struct {
	in   *recorder
	path []string
	data any
}

func (r recorded) Attr(name string) (any, bool) {
	path := append(slices.Clone(r.path), name)
	v, ok := r.data.(*jinja.Dict).Get(name)
	if !ok {
		return nil, false // it may be a method
	}
	r.in.paths = append(r.in.paths, path)
	if _, isMap := v.(*jinja.Dict); isMap {
		return recorded{r.in, path, v}, true
	}
	return v, true
}

func (r recorded) Unwrap() any { return r.data }

// covers reports whether what was read is part of what was announced: a path
// announces everything below it, and reading it passes all above it.
func covers(free [][]string, read []string) bool {
	return slices.ContainsFunc(free, func(p []string) bool {
		n := min(len(p), len(read))
		return slices.Equal(p[:n], read[:n])
	})
}

// TestTemplatesReadOnlyWhatFreeSays is what commands rely on: they carry the
// free names of their templates and nothing else.
func TestTemplatesReadOnlyWhatFreeSays(t *testing.T) {
	t.Parallel()
	templates := []string{
		"{% if u %}{% set n = 1 %}{% endif %}{{ n }}",
		"{% if u %}{% set n = 1 %}{% else %}{% set n = 2 %}{% endif %}{{ n }}",
		"{% if u %}{% set n = 1 %}{% elif t %}{{ s }}{% else %}{% set n = 2 %}{% endif %}{{ n }}",
		"{% if u %}{% macro s() %}{% endmacro %}{% endif %}{{ s }}",
		"{% macro a() %}{{ n }}{% endmacro %}{{ a() }}{% set n = 1 %}",
		"{% macro a() %}{{ b() if t }}{% endmacro %}{% macro b() %}{{ s }}{% endmacro %}{{ a() }}",
		"{% for i in ints %}{{ n }}{% set n = i %}{% endfor %}",
		"{% set ns = namespace(f=none) %}{% for i in ints %}{% if ns.f %}{{ ns.f() }}{% endif %}{% set s = i %}{% macro m() %}{{ s }}{% endmacro %}{% set ns.f = m %}{% endfor %}",
		"{% macro m(s=s, n=s) %}{{ s }}{{ n }}{% endmacro %}{{ m() }}",
		"{% for s in words if s != word %}{{ loop.index }}{{ s }}{% else %}{{ s }}{% endfor %}{{ s }}",
		"{% for i in [loop] if loop %}{{ loop.index }}{% endfor %}",
		"{% with s = word, n = s %}{{ s }}{{ n }}{% endwith %}{{ n }}",
		"{% set s %}{{ s }}{% endset %}{{ s }}",
		"{{ d.c.x[0] }}{{ d['b'] }}{{ d.get('a') }}{{ d[word] }}{{ (d if t else counts).pear }}{{ d|attr('b') }}",
		"{% set e = d %}{{ e.c.x }}{% for k in d %}{{ d[k] }}{% endfor %}",
		"{{ range }}{{ range(n) }}{{ dict }}{{ token }}",
	}
	g := newGenerator(7)
	for range 3000 {
		templates = append(templates, g.template())
	}
	reads := 0
	for _, src := range templates {
		tmpl, err := jinja.Compile(src)
		if err != nil {
			continue // a template that is refused reads nothing
		}
		r := &recorder{scope: scopeOf(t, differentialScope)}
		_, _ = tmpl.Render(r) // also up to an error it must keep its word
		_, _ = tmpl.Truth(r)
		for _, read := range r.paths {
			reads++
			if !covers(tmpl.Free(), read) {
				t.Errorf("%s\nreads %s\nfree is %v", src, strings.Join(read, "."), tmpl.Free())
			}
			if !tmpl.Mentions(read[0]) {
				t.Errorf("%s\ndoes not mention %s", src, read[0])
			}
		}
	}
	if reads < 3000 {
		t.Errorf("the templates read only %d names", reads)
	}
}

func TestATemplateWithItsFreeNamesIsAsGoodAsWithAll(t *testing.T) {
	t.Parallel()
	all := scopeOf(t, differentialScope)
	g := newGenerator(8)
	for range 1000 {
		src := g.template()
		tmpl, err := jinja.Compile(src)
		if err != nil {
			continue
		}
		some := jinja.Vars{}
		for _, p := range tmpl.Free() {
			if v, ok := all.Lookup(p[0]); ok {
				some[p[0]] = v
			}
		}
		want, wantErr := tmpl.Render(all)
		got, err := tmpl.Render(some)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("%s\n got %q, %v\nwant %q, %v", src, got, err, want, wantErr)
		}
	}
}
