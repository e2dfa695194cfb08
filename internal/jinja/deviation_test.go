package jinja_test

import (
	"strings"
	"testing"
)

// deviations are the places where this package differs from Python's Jinja2 on
// purpose. ours and theirs are texts over differentialScope, or the part of an
// error behind an exclamation mark. Where Python is installed both columns are
// checked, elsewhere only ours.
var deviations = []struct{ why, src, ours, theirs string }{
	{"JSON is compact", "{{ d|tojson }}", `{"a":2,"b":1,"c":{"x":[1,2,{"y":"deep"}]}}`, `{"a": 2, "b": 1, "c": {"x": [1, 2, {"y": "deep"}]}}`},
	{"JSON is not escaped for HTML", "{{ html|tojson }}", `"<b>it's \"1 & 2\"</b>"`, `"\u003cb\u003eit\u0027s \"1 \u0026 2\"\u003c/b\u003e"`},
	{"JSON of undefined is null", "{{ missing|tojson }}", "null", "!Undefined"},
	{"default replaces none", "{{ nil|default('x') }}", "x", "None"},
	{"int of undefined is 0", "{{ missing|int }}", "0", "!is undefined"},
	{"float of undefined is 0.0", "{{ missing|float }}", "0.0", "!is undefined"},
	{"none has length 0", "{{ nil|length }}", "0", "!has no len"},
	{"a key comes before a method that is not called", "{{ {'items': 1}.items }}", "1", "<built-in method items of dict object"},
	{"integers have 64 bits", "{{ 9223372036854775807 + 1 }}", "!does not fit 64 bits", "9223372036854775808"},
	{"a larger literal is a float", "{{ 100000000000000000000 }}", "1e+20", "100000000000000000000"},
	{"keys are texts", "{{ {1: 2} }}", "{'1': 2}", "{1: 2}"},
	{"a list cannot be a key", "{{ {(1, 2): 3} }}", "!cannot be a key", "{(1, 2): 3}"},
	{"mappings need no hash to be unique", "{{ [d, d]|unique|list|length }}", "1", "!unhashable type"},
	{"slicing a number is an error", "{{ (1)[1:2] }}", "!cannot be sliced", ""},
	{"a list for one place of a format is an error", "{{ '' % [1] }}", "!has no place", ""},
	{"a layout fits every value", "{{ '{:>6}'.format(nil) }}", "  None", "!unsupported format string"},
	{"filters make lists", "{{ ints|map('abs') }}", "[3, 1, 2, 3, 5]", "<generator object"},
	{"keys and items are lists", "{{ counts.keys() }}", "['pear', 'Fig', 'apple']", "dict_keys(["},
	{"range is a list", "{{ range(2) }}", "[0, 1]", "range(0, 2)"},
	{"escape makes plain text", "{{ ['<'|escape] }}", "['&lt;']", "[Markup('&lt;')]"},
	{"wordwrap breaks only at space", "{{ 'ab-cd ef'|wordwrap(4) }}", "ab-c\nd ef", "ab-\ncd\nef"},
	{"a default sees the name outside of its own parameter", "{% set x = 5 %}{% macro m(x=x) %}{{ x }}{% endmacro %}{{ m() }}", "5", ""},
	{"a macro takes no further arguments", "{% macro m(a) %}{{ varargs }}{% endmacro %}{{ m(1, 2) }}", "!at most 1", "(2,)"},
	{"values cannot be changed", "{% set l = [1] %}{% set x = l.append(2) %}{{ l }}", "!no method 'append'", "[1, 2]"},
	{"there is no chance", "{{ [1]|random }}", "!not available", "1"},
	{"the operands of a power are grouped as parsed", "{{ -2 ** (n - 1) }}", "4", "-4"},
}

func TestDeviationsFromPythonAreTheIntendedOnes(t *testing.T) {
	t.Parallel()
	scope := scopeOf(t, differentialScope)
	for _, d := range deviations {
		got, err := render(d.src, scope)
		if want, refused := strings.CutPrefix(d.ours, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s\n got %q, %v\nwant the error %q", d.why, d.src, got, err, want)
			}
		} else if err != nil || got != d.ours {
			t.Errorf("%s: %s\n got %q, %v\nwant %q", d.why, d.src, got, err, d.ours)
		}
	}
}

func TestDeviationsFromPythonAreDeviations(t *testing.T) {
	t.Parallel()
	templates := make([]string, len(deviations))
	for i, d := range deviations {
		templates[i] = d.src
	}
	for i, got := range renderInPython(t, plainPython, templates) {
		d := deviations[i]
		want, refused := strings.CutPrefix(d.theirs, "!")
		if got.ok == refused || !strings.HasPrefix(got.text, want) && !(refused && strings.Contains(got.text, want)) {
			t.Errorf("%s: %s\n Python says %v %q\n the table %q", d.why, d.src, got.ok, got.text, d.theirs)
		}
	}
}
