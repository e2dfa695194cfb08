package jinja_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
)

// result is a step's result: it answers .result with itself.
type result struct{ data any }

func (r result) Attr(name string) (any, bool) {
	if name == "result" {
		return r, true
	}
	return nil, false
}

func (r result) Unwrap() any { return r.data }

// loopy wraps itself, which only a broken Wrapper does.
type loopy struct{}

func (l loopy) Attr(string) (any, bool) { return nil, false }
func (l loopy) Unwrap() any             { return l }

func TestGoValuesAreUsableAsTheyAre(t *testing.T) {
	t.Parallel()
	rows := []any{map[string]any{"id": 1}, map[string]any{"id": 2}}
	s := jinja.Vars{
		"int": 7, "u8": uint8(8), "huge": uint64(math.MaxUint64), "f32": float32(0.5),
		"num": json.Number("12"), "strs": []string{"a", "b"}, "m": map[string]string{"k": "v"},
		"raw":   json.RawMessage(`{"b": [1, 2.5], "a": null}`),
		"mixed": map[string]any{"z": json.RawMessage(`{"deep": true}`), "a": 1},
		"fetch": result{map[string]any{"rows": rows}},
		"list":  result{rows},
		"label": result{"step one"},
		"word":  jinja.Word{Text: "call.done", Same: []string{"step.done"}},
		"bad":   json.RawMessage(`{oops`),
		"loopy": loopy{},
		"typed": struct {
			Name string `json:"name"`
		}{"x"},
	}
	for src, want := range map[string]string{
		"{{ int + u8 }} {{ huge }} {{ f32 }} {{ num + 1 }}":                    "15 1.8446744073709552e+19 0.5 13",
		"{{ strs }} {{ strs|join }} {{ m.k }} {{ m }}":                         "['a', 'b'] ab v {'k': 'v'}",
		"{{ raw.b[1] }} {{ raw }} {{ raw.a is none }}":                         "2.5 {'b': [1, 2.5], 'a': None} True",
		"{{ mixed.z.deep }} {{ mixed }} {{ mixed|tojson }}":                    `True {'a': 1, 'z': {'deep': True}} {"a":1,"z":{"deep":true}}`,
		"{% for k in mixed %}{{ k }}{% endfor %}":                              "az",
		"{{ fetch.result.rows[0].id }} {{ fetch.result.result.rows|length }}":  "1 2",
		"{{ fetch.rows|map(attribute='id')|list }} {{ fetch.keys()|list }}":    "[1, 2] ['rows']",
		"{{ list|length }} {{ list[1].id }} {{ list.result[0].id }}":           "2 2 1",
		"{% for r in list %}{{ r.id }}{% endfor %} {{ list == list.result }}":  "12 True",
		"{{ label }} {{ label.upper() }} {{ label ~ '!' }} {{ label|length }}": "step one STEP ONE step one! 8",
		"{{ word }} {{ word == 'step.done' }} {{ 'call.done' == word }}":       "call.done True True",
		"{{ word != 'x' }} {{ word in ['step.done'] }} {{ word|upper }}":       "True True CALL.DONE",
		"{{ word is string }} {{ word.startswith('call') }} {{ [word] }}":      "True True ['call.done']",
		"{{ typed.name }}": "x",
	} {
		got, err := render(src, s)
		if err != nil || got != want {
			t.Errorf("%s\n got %q, %v\nwant %q", src, got, err, want)
		}
	}
	for _, src := range []string{"{{ bad.x }}", "{{ bad }}", "{{ loopy.x }}", "{{ loopy + 1 }}"} {
		if got, err := render(src, s); err == nil {
			t.Errorf("%s: got %q, want an error", src, got)
		}
	}
}

func TestWrappersAndWordsLeaveTheTemplateAsWhatTheyStandFor(t *testing.T) {
	t.Parallel()
	s := jinja.Vars{
		"fetch": result{[]any{int64(1)}},
		"word":  jinja.Word{Text: "done", Same: []string{"finished"}},
		"raw":   json.RawMessage(`[1]`),
	}
	for src, want := range map[string]any{
		"{{ fetch }}":         []any{int64(1)},
		"{{ [fetch, word] }}": []any{[]any{int64(1)}, "done"},
		"{{ word }}":          "done",
		"{{ raw }}":           []any{int64(1)},
	} {
		tmpl, err := jinja.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Value(s)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", src, err, diff)
		}
	}
}

func TestTemplatesDoNotChangeTheirScope(t *testing.T) {
	t.Parallel()
	const object = `{"l": [3, 1, 2], "e": [], "d": {"b": [1], "a": {}}}`
	s := scopeOf(t, object)
	for _, src := range []string{
		"{{ l|sort }}{{ l|reverse|list }}{{ l + [9] }}{{ e + l }}{{ l|batch(2, 0) }}{{ l|slice(2, 0) }}",
		"{{ [(1, missing), l, d] }}{{ d|dictsort }}{{ l|groupby('x', default=0) }}{{ e|indent }}",
	} {
		if _, err := render(src, s); err != nil {
			t.Fatal(err)
		}
		tmpl, _ := jinja.Compile("{{ [(1, missing), l, d, e, l|list] }}")
		if _, err := tmpl.Value(s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := jinja.ToJSON(s)
	if want := `{"l":[3,1,2],"e":[],"d":{"b":[1],"a":{}}}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

func TestTruthAndConditionDifferInTheWordsForFalse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v                 any
		truthy, condition bool
	}{
		{nil, false, false},
		{jinja.Undefined{}, false, false},
		{false, false, false},
		{true, true, true},
		{int64(0), false, false},
		{0, false, false},
		{0.0, false, false},
		{-1, true, true},
		{"", false, false},
		{"x", true, true},
		{" ", true, false},
		{"False", true, false},
		{" no ", true, false},
		{"OFF", true, false},
		{"null", true, false},
		{"None", true, false},
		{"0", true, false},
		{"0.0", true, true},
		{"{}", true, false},
		{"undefined", true, true},
		{[]any{}, false, false},
		{[]any{nil}, true, true},
		{jinja.NewDict(0), false, false},
		{map[string]any{}, false, false},
		{result{"false"}, true, false},
		{json.RawMessage("[]"), false, false},
		{jinja.Word{Text: "off"}, true, false},
	} {
		if got := jinja.Truthy(c.v); got != c.truthy {
			t.Errorf("Truthy(%#v) = %v", c.v, got)
		}
		if got := jinja.Condition(c.v); got != c.condition {
			t.Errorf("Condition(%#v) = %v", c.v, got)
		}
	}
}

func TestPlainHoldsNothingOfThePackage(t *testing.T) {
	t.Parallel()
	d := jinja.NewDict(2)
	d.Set("z", result{[]any{jinja.Word{Text: "w"}, json.RawMessage(`{"k": 1}`)}})
	d.Set("a", jinja.Undefined{Name: "x"})
	want := map[string]any{"z": []any{"w", map[string]any{"k": int64(1)}}, "a": nil}
	if diff := cmp.Diff(want, jinja.Plain(d)); diff != "" {
		t.Error(diff)
	}
}

func TestLayersAnswerFromTheInside(t *testing.T) {
	t.Parallel()
	s := jinja.Layer(jinja.Vars{"a": 1}, jinja.Layer(nil, jinja.Vars{"a": 2, "b": 3}))
	got, err := render("{{ a }}{{ b }}{{ c is defined }}", s)
	if got != "13False" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, ok := jinja.Layer(nil, nil).Lookup("a"); ok {
		t.Error("an empty layer knows a name")
	}
}

func TestHasSyntaxFindsOpenersOnly(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"": false, "{": false, "a{b}": false, "}}": false, "{ {": false, "{{": true, "x{%": true, "${#a}": true, "{a{{b": true,
	} {
		if got := jinja.HasSyntax(s); got != want {
			t.Errorf("HasSyntax(%q) = %v", s, got)
		}
	}
}

func TestLimitsCanBeTightened(t *testing.T) {
	t.Parallel()
	tmpl, err := jinja.Compile("{% for i in range(50) %}0123456789{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tmpl.Render(nil); err != nil {
		t.Errorf("within the default limits: %v", err)
	}
	for _, l := range []jinja.Limits{{Steps: 40}, {Bytes: 400}} {
		_, err := tmpl.WithLimits(l).Render(nil)
		if err == nil || !strings.Contains(err.Error(), "more than 40") {
			t.Errorf("%+v: %v", l, err)
		}
	}
}
