package jinja_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/jinja"
)

// fuzzSeeds are templates that together use every part of the grammar.
var fuzzSeeds = []string{
	"{{ n + 1 }}", "{% for k, v in d.items() if v %}{{ loop.index }}{{ k|upper }}{% else %}x{% endfor %}",
	"{% macro m(a, b=1) %}{{ m(a) }}{% endmacro %}{{ m(1, b=2) }}", "{%- set x | upper -%}a{% endset %}{{ x[::-1] }}",
	"{{ users|groupby('name')|map(attribute='list')|list|tojson }}", "{% raw %}{{{% endraw %}{# c #}", "{{ 'x' * 99999 }}",
	"{{ '%5.2f|%s'|format(n, s) ~ '{:>9,}'.format(n) }}", "{% with a=1 %}{% set ns = namespace(a=a) %}{% set ns.a = ns %}{{ ns }}{% endwith %}",
	"{{ list|sort|batch(2)|list }}{{ s is string and not n in list }}", "{{ 1 if x else -2 ** 3 // 4 % 5 }}", "{{ \"\\u00e9\\x41\" }}",
	"{% if n %}{% elif s %}{% set q = 1 %}{% else %}{% endif %}{{ q }}", "{% filter upper|trim %} a {% endfilter %}", "{{ token('g', x=1) }}",
	"{{ s|wordwrap(2)|indent(3)|truncate(5)|center(9) }}{{ s.partition('e') }}", "{{ list|selectattr('a', '>', 1)|sum(attribute='a', start=1) }}",
	"{{ d|dictsort(by='value')|first }}{{ {'a': [1, (2,)]}|pprint }}", "{{ loop.cycle(1) }}{% for x in list %}{{ loop.cycle('a', s) }}{{ loop.changed(x) }}{% endfor %}",
	"{{ '{:*^9.2f}{!r:>4}'.format(1.5, s) }}{{ '%-05d%c%%' % (n, 65) }}", "{{ 0x1F + 1_000 - .5e3 }}", "{{+ n +}}{%+ if n +%}{%- endif -%}",
}

// FuzzParse looks for sources that panic the compiler, that it takes too long
// over, or that it refuses with something other than a complete *Error.
func FuzzParse(f *testing.F) {
	for _, src := range fuzzSeeds {
		f.Add(src)
		f.Add(strings.Trim(src, "{}% "))
		f.Add(src[:len(src)/2])
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, compile := range []func(string) (*jinja.Template, error){jinja.Compile, jinja.CompileCondition} {
			tmpl, err := compile(src)
			if err != nil {
				checkError(t, src, err)
				continue
			}
			for _, path := range tmpl.Free() {
				if len(path) == 0 || !tmpl.Mentions(path[0]) {
					t.Errorf("%q has the free path %q", src, path)
				}
			}
			for _, name := range tmpl.Calls() {
				if !tmpl.Mentions(name) {
					t.Errorf("%q calls %s and does not mention it", src, name)
				}
			}
			if again, err := compile(src); err != nil || !slices.EqualFunc(tmpl.Free(), again.Free(), slices.Equal) {
				t.Errorf("%q compiles differently the second time: %v", src, err)
			}
		}
	})
}

// FuzzRender looks for templates and data that panic, run without bound, read
// what they did not announce, or fail with something other than an *Error.
func FuzzRender(f *testing.F) {
	const data = `{"n": 3, "s": "text", "list": [3, 1, 2], "d": {"a": 1, "b": [null]}, "users": [{"name": "ann"}], "nil": null}`
	for _, src := range fuzzSeeds {
		f.Add(src, data)
		f.Add(src, `{"n": "x", "s": null, "list": {"a": 1}, "d": [1.5], "users": true, "x": "😀é\u0000"}`)
	}
	limits := jinja.Limits{Steps: 10_000, Bytes: 1 << 16, Depth: 20}
	f.Fuzz(func(t *testing.T, src, data string) {
		v, err := jinja.FromJSON([]byte(data))
		d, ok := v.(*jinja.Dict)
		if err != nil || !ok {
			return
		}
		tmpl, err := jinja.Compile(src)
		if err != nil {
			return
		}
		tmpl = tmpl.WithLimits(limits)
		r := &recorder{scope: d}
		text, err := tmpl.Render(r)
		checkError(t, src, err)
		if len(text) > limits.Bytes && !tmpl.Static() {
			t.Errorf("%q printed %d bytes", src, len(text))
		}
		again, _ := tmpl.Render(r)
		if again != text {
			t.Errorf("%q printed %q and then %q", src, text, again)
		}
		value, err := tmpl.Value(r)
		checkError(t, src, err)
		_, _ = jinja.ToJSON(value)
		_, err = tmpl.Truth(r)
		checkError(t, src, err)
		for _, read := range r.paths {
			if !covers(tmpl.Free(), read) {
				t.Errorf("%q reads %q; free is %q", src, read, tmpl.Free())
			}
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
