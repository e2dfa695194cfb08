package jinja_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

// behaviourScope is what the numbered behaviours read.
const behaviourScope = `{
	"obj": {"id": 1, "gone": null}, "items": [1, {"k": "v"}], "flag": true, "one": "1", "zip": "02134", "blank": "", "x": 4, "nothing": null,
	"request_id": "req-7", "evil": "{{ 7*7 }}", "text": "3.9", "amount": 3.5, "empty_list": [], "empty_map": {}
}`

// TestTemplateBehaviours goes through the numbered behaviours of the playbook
// language that templates alone decide. Values are written as JSON.
func TestTemplateBehaviours(t *testing.T) {
	t.Parallel()
	scope := scopeOf(t, behaviourScope)
	for _, c := range []struct{ name, src, want string }{
		{"16 an object with a null field stays an object", "{{ obj }}", `{"id":1,"gone":null}`},
		{"16 space around the expression does not matter", "  {{ obj }}\n", `{"id":1,"gone":null}`},
		{"17 a list stays a list", "{{ items }}", `[1,{"k":"v"}]`},
		{"17 text around an expression makes a string", "n={{ items|length }}", `"n=2"`},
		{"17 so does a second expression", "{{ x }}{{ x }}", `"44"`},
		{"18 a literal with leading zeros is unchanged", "02134", `"02134"`},
		{"18 the empty literal is unchanged", "", `""`},
		{"18 a variable that looks like a number is unchanged", "{{ zip }}", `"02134"`},
		{"18 an empty variable is unchanged", "{{ blank }}", `""`},
		{"19 a boolean stays a boolean", "{{ flag }}", `true`},
		{"19 a string with a digit stays a string", "{{ one }}", `"1"`},
		{"19 a boolean inside text has Python's spelling", "is {{ flag }} {{ nothing }}", `"is True None"`},
		{"20 a missing path is null", "{{ missing.a.b }}", `null`},
		{"20 a missing path has a default", "{{ missing.a | default('x') }}", `"x"`},
		{"20 null has a default too", "{{ nothing | default('x') }}", `"x"`},
		{"20 a missing path is nothing inside text", "[{{ missing.a.b }}]", `"[]"`},
		{"23 null is none", "{{ nothing is none }}", `true`},
		{"23 null is defined", "{{ nothing is defined }}", `true`},
		{"23 what is missing is not none", "{{ missing is none }}", `false`},
		{"24 int of what is missing is 0", "{{ missing | int }}", `0`},
		{"24 int cuts off the fraction of a text", "{{ text | int }}", `3`},
		{"24 int of junk is its default", "{{ 'junk' | int(7) }}", `7`},
		{"24 float of junk is 0.0", "{{ 'junk' | float }}", `0.0`},
		{"25 a float is a number in JSON", "{{ 3.5 | tojson }}", `3.5`},
		{"25 JSON inside text", "v={{ {'b': 3.5, 'a': '<'} | tojson }}", `"v={\"a\":\"<\",\"b\":3.5}"`},
		{"25 JSON alone is read back", "{{ obj | tojson }}", `{"gone":null,"id":1}`},
		{"29 data that looks like a template is data", "{{ evil }}", `"{{ 7*7 }}"`},
		{"29 also inside text", "a {{ evil }} b", `"a {{ 7*7 }} b"`},
		{"29 also through filters", "{{ evil | upper | replace('7', '8') }}", `"{{ 8*8 }}"`},
		{"33 braces of code are literal in raw", "{% raw %}f\"{{x}}\"{% endraw %}", `"f\"{{x}}\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tmpl, err := jinja.Compile(c.src)
			if err != nil {
				t.Fatal(err)
			}
			v, err := tmpl.Value(scope)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := jinja.ToJSON(v); string(b) != c.want || err != nil {
				t.Errorf("%s is %s, %v; want %s", c.src, b, err, c.want)
			}
		})
	}
}

// TestConditionBehaviours is the truth table of conditions. Every condition is
// tried bare and between braces, which must agree.
func TestConditionBehaviours(t *testing.T) {
	t.Parallel()
	scope := scopeOf(t, behaviourScope)
	for name, conditions := range map[string]map[string]bool{
		"21 a bare condition equals one in braces": {
			"x > 3": true, "x > 4": false, "x == 4 and flag": true, "not flag": false, "x in [4, 5]": true, "1 < x <= 4": true,
			"missing is not defined": true, "obj.id == 1 or missing.y > 3": true,
		},
		"22 what is empty is false": {
			"missing": false, "missing.deep": false, "nothing": false, "false": false, "0": false, "0.0": false, "blank": false, "empty_list": false, "empty_map": false, "''": false,
		},
		"22 the words for no are false": {
			"'0'": false, "'no'": false, "'off'": false, "'None'": false, "'null'": false, "'[]'": false, "'{}'": false, "'   '": false, "' False '": false, "'OFF'": false,
		},
		"22 everything else is true": {
			"request_id": true, "flag and request_id": true, "'0.0'": true, "'undefined'": true, "'nope'": true, "[0]": true, "obj": true, "-1": true, "'yes'": true, "0.1": true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for bare, want := range conditions {
				for _, src := range []string{bare, "{{ " + bare + " }}", " {{" + bare + "}} "} {
					tmpl, err := jinja.CompileCondition(src)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := tmpl.Truth(scope); got != want || err != nil {
						t.Errorf("%s is %v, %v", src, got, err)
					}
				}
			}
		})
	}
	t.Run("22 text that is rendered is read as a word", func(t *testing.T) {
		t.Parallel()
		for src, want := range map[string]bool{
			"{% if flag %}yes{% endif %}": true, "{% if not flag %}yes{% endif %}": false, "{% if flag %} no {% endif %}": false, "{{ x }}{{ x }}": true,
			"{# note #}{{ empty_list }}": false, "{# note #}{{ nothing }}": false,
		} {
			tmpl, err := jinja.CompileCondition(src)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := tmpl.Truth(scope); got != want || err != nil {
				t.Errorf("%s is %v, %v", src, got, err)
			}
		}
	})
}

// TestWordsEqualAllTheirSpellings is the comparison of event names and status
// words, which playbooks of different ages spell differently.
func TestWordsEqualAllTheirSpellings(t *testing.T) {
	t.Parallel()
	scope := jinja.Vars{
		"event":  map[string]any{"name": jinja.Word{Text: "call.done", Same: []string{"step.done", "step.exit"}}},
		"output": map[string]any{"status": jinja.Word{Text: "success", Same: []string{"ok", "COMPLETED"}}},
	}
	for _, v := range []struct {
		path            string
		same, different []string
	}{
		{"event.name", []string{"call.done", "step.done", "step.exit"}, []string{"call.error", "step.failed", "loop.done", ""}},
		{"output.status", []string{"success", "ok", "COMPLETED"}, []string{"error", "failed", "OK!", "succes"}},
	} {
		check := func(spelling string, same bool) {
			for format, want := range map[string]bool{
				"%[1]s == '%[2]s'":                        same,
				"'%[2]s' == %[1]s":                        same,
				"%[1]s != '%[2]s'":                        !same,
				"'%[2]s' != %[1]s":                        !same,
				"not %[1]s == '%[2]s'":                    !same,
				"%[1]s in ['%[2]s', 'other']":             same,
				"%[1]s in ('other', '%[2]s')":             same,
				"%[1]s not in ['%[2]s']":                  !same,
				"'%[2]s' in [%[1]s]":                      same,
				"%[1]s is eq('%[2]s')":                    same,
				"%[1]s is ne '%[2]s'":                     !same,
				"%[1]s is in ['%[2]s']":                   same,
				"%[1]s | default('') == '%[2]s'":          same,
				"%[1]s | string == '%[2]s'":               same,
				"%[1]s | lower == '%[2]s' | lower":        same,
				"%[1]s.upper() == '%[2]s'.upper()":        same,
				"(%[1]s if true else '') == '%[2]s'":      same,
				"[%[1]s] == ['%[2]s']":                    same,
				"{'s': %[1]s} == {'s': '%[2]s'}":          same,
				"[%[1]s] | select('eq', '%[2]s') | first": same,
			} {
				src := fmt.Sprintf(format, v.path, spelling)
				tmpl, err := jinja.CompileCondition(src)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := tmpl.Truth(scope); got != want || err != nil {
					t.Errorf("%s is %v, %v", src, got, err)
				}
			}
		}
		for _, s := range v.same {
			check(s, true)
		}
		for _, s := range v.different {
			check(s, false)
		}
	}
	got, err := render("{{ output.status }} {{ event.name|upper }} {{ [output.status] }} {{ output|tojson }}", scope)
	if want := `success CALL.DONE ['success'] {"status":"success"}`; got != want || err != nil {
		t.Errorf("printed %q, %v", got, err)
	}
}

// TestEvaluationErrorsPointAtTheCulprit puts one mistake into a long template.
// The place of «» is where the caret must be.
func TestEvaluationErrorsPointAtTheCulprit(t *testing.T) {
	t.Parallel()
	const before, after = "SELECT *\nFROM t -- für {{ flag }}\n{% for i in [1] %}\n  ", "\n{% endfor %}\nLIMIT {{ x }}\n"
	for _, marked := range []string{
		"{{ x + «missing.a.b * 2 }}",
		"{{ x + (2 * «missing) }}",
		"é {{ 'é' ~ (x «/ 0) }}",
		"{{ «missing | abs }}",
		"{{ «missing.upper() }}",
		"{{ text.«uper() }}",
		"{{ -«missing }}",
		"{{ 1 < x < «missing }}",
		"{{ 1 < x «< 'a' }}",
		"{{ {«items: 1} }}",
		"{{ items | «sum }}",
		"{{ [1, items[0] «+ text] }}",
		"{{ x if flag and text «> 3 else 0 }}",
		"{% for j in «nothing %}{% endfor %}",
		"{% for j in obj.«upper() %}{% endfor %}",
		"{% for «a, b in [[1]] %}{% endfor %}",
		"{% if x «in x %}{% endif %}",
		"{% set y = {'k': [«missing + 1]} %}",
		"{% filter «round %}a{% endfilter %}",
		"{% macro m(a) %}{{ a «+ 'x' }}{% endmacro %}{{ m(1) }}",
		"{{ items|map(«missing)|list }}",
		"{{ «token('google') }}",
		"{{ «range(x, x, 0) }}",
		"{{ range(x, «missing) }}",
		"{{ x|round(precision=«missing) }}",
	} {
		src := before + strings.Replace(marked, "«", "", 1) + after
		upTo := before + marked[:strings.Index(marked, "«")]
		line := strings.Count(upTo, "\n") + 1
		col := len([]rune(upTo[strings.LastIndex(upTo, "\n")+1:])) + 1
		var e *jinja.Error
		if err := firstError(src, scopeOf(t, behaviourScope)); !asError(err, &e) {
			t.Errorf("%s: %v", marked, err)
			continue
		}
		if e.Line != line || e.Col != col {
			t.Errorf("%s: %v, want %d:%d\n%s", marked, e, line, col, e.Excerpt())
		}
	}
}
