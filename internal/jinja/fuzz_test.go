package jinja_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/jinja"
)

// FuzzCompile looks for sources that panic, run without bound, or fail with
// something other than an *Error.
func FuzzCompile(f *testing.F) {
	for _, src := range []string{
		"{{ n + 1 }}", "{% for k, v in d.items() if v %}{{ loop.index }}{{ k|upper }}{% else %}x{% endfor %}",
		"{% macro m(a, b=1) %}{{ m(a) }}{% endmacro %}{{ m(1, b=2) }}", "{%- set x | upper -%}a{% endset %}{{ x[::-1] }}",
		"{{ users|groupby('name')|map(attribute='list')|list|tojson }}", "{% raw %}{{{% endraw %}{# c #}", "{{ 'x' * 99999 }}",
		"{{ '%5.2f|%s'|format(n, s) ~ '{:>9,}'.format(n) }}", "{% with a=1 %}{% set ns = namespace(a=a) %}{% set ns.a = ns %}{{ ns }}{% endwith %}",
		"{{ list|sort|batch(2)|list }}{{ s is string and not n in list }}", "{{ 1 if x else -2 ** 3 // 4 % 5 }}", "{{ \"\\u00e9\\x41\" }}",
	} {
		f.Add(src)
	}
	scope := scopeOf(f, `{"n": 3, "s": "text", "list": [3, 1, 2], "d": {"a": 1, "b": [null]}, "users": [{"name": "ann"}], "nil": null}`)
	limits := jinja.Limits{Steps: 10_000, Bytes: 1 << 16, Depth: 20}
	f.Fuzz(func(t *testing.T, src string) {
		for _, compile := range []func(string) (*jinja.Template, error){jinja.Compile, jinja.CompileCondition} {
			tmpl, err := compile(src)
			if err != nil {
				checkError(t, src, err)
				continue
			}
			tmpl = tmpl.WithLimits(limits)
			text, err := tmpl.Render(scope)
			checkError(t, src, err)
			if len(text) > limits.Bytes && !tmpl.Static() {
				t.Errorf("%q printed %d bytes", src, len(text))
			}
			v, err := tmpl.Value(scope)
			checkError(t, src, err)
			_, _ = jinja.ToJSON(v)
			_, err = tmpl.Truth(scope)
			checkError(t, src, err)
			_ = tmpl.Free()
		}
	})
}

func checkError(t *testing.T, src string, err error) {
	if err == nil {
		return
	}
	var e *jinja.Error
	if !errors.As(err, &e) {
		t.Errorf("%q failed with %T: %v", src, err, err)
		return
	}
	if e.Excerpt(); e.Kind == "" || e.Message == "" || e.Line < 0 {
		t.Errorf("%q: incomplete error %+v", src, e)
	}
}

// FuzzJSON looks for texts that are read but not written back to the same value.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x\u00e9",null,true]}`, `-0.0`, `1e300`, `"\ud800"`, `[[[]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := jinja.FromJSON(b)
		if err != nil {
			return
		}
		once, err := jinja.ToJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := jinja.FromJSON(once)
		if err != nil {
			t.Fatalf("%q became %q: %v", b, once, err)
		}
		if twice, _ := jinja.ToJSON(again); string(twice) != string(once) || !utf8.Valid(once) {
			t.Errorf("%q became %q and then %q", b, once, twice)
		}
	})
}
