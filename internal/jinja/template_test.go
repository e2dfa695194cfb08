package jinja_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
)

func TestTemplatesKnowTheirShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src          string
		static, lone bool
	}{
		{"plain\n", true, false},
		{"", true, false},
		{"{{ x }}", false, true},
		{" {{ x }}\n", false, true},
		{"{{- x -}}", false, true},
		{"{{ x }}{{ y }}", false, false},
		{"a{{ x }}", false, false},
		{"{% if x %}{{ x }}{% endif %}", false, false},
		{"{{ '}}{{' }}", false, true},
		{"{{ x }}{# c #}", false, false},
	} {
		tmpl, err := jinja.Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		if tmpl.Static() != c.static || tmpl.Lone() != c.lone || tmpl.Source() != c.src {
			t.Errorf("%q: static %v, lone %v", c.src, tmpl.Static(), tmpl.Lone())
		}
	}
}

func TestStaticTextIsReturnedUntouched(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"", "x\n", " 42 ", "true", "a\r\nb\n"} {
		tmpl, _ := jinja.Compile(src)
		text, err := tmpl.Render(nil)
		value, verr := tmpl.Value(nil)
		if text != src || value != src || err != nil || verr != nil {
			t.Errorf("%q: %q %v %v %v", src, text, value, err, verr)
		}
	}
}

func TestMentionsAsksForTheRootOnly(t *testing.T) {
	t.Parallel()
	tmpl, err := jinja.Compile("{{ keychain.api.token }}{% set other = 1 %}{{ other }}")
	if err != nil {
		t.Fatal(err)
	}
	if !tmpl.Mentions("keychain") || tmpl.Mentions("api") || tmpl.Mentions("other") {
		t.Errorf("free names are %v", tmpl.Free())
	}
}

func TestErrorsHaveKindAndPlace(t *testing.T) {
	t.Parallel()
	_, err := jinja.Compile("line one\n  {{ x | }}")
	var e *jinja.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T", err)
	}
	want := "  {{ x | }}\n         ^"
	if diff := cmp.Diff(want, e.Excerpt()); diff != "" || e.Kind != "syntax" || e.Line != 2 || e.Col != 10 {
		t.Errorf("%s %d:%d\n%s", e.Kind, e.Line, e.Col, diff)
	}
	if (&jinja.Error{Message: "m"}).Excerpt() != "" {
		t.Error("an error without a place has an excerpt")
	}
}

func TestAnEmptyConditionIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := jinja.CompileCondition("  "); err == nil {
		t.Error("it compiled")
	}
}

func TestQuotingFiltersKeepDataOutOfTheLanguage(t *testing.T) {
	t.Parallel()
	s := jinja.Vars{"q": "it's", "dq": `a"b`, "l": []any{1, "a'b", nil, true}, "d": map[string]any{"k": "v'"}}
	for src, want := range map[string]string{
		"{{ q|sql }}":                     `'it''s'`,
		"{{ l|sql }}":                     `(1, 'a''b', NULL, TRUE)`,
		"{{ []|sql }}":                    `(NULL)`,
		"{{ d|sql }}":                     `'{"k":"v''"}'`,
		"{{ 2.5|sql }} {{ x|sql }}":       `2.5 NULL`,
		"{{ dq|sqlident }}":               `"a""b"`,
		"{{ ['s', 't']|sqlident }}":       `"s"."t"`,
		"{{ q|shq }}":                     `'it'\''s'`,
		"{{ ['a b', 1, none]|shq }}":      `'a b' '1' ''`,
		"{{ ''|shq }}":                    `''`,
		"{{ 'abc'|hash }}":                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		"{{ 'abc'|hash('md5') }}":         "900150983cd24fb0d6963f7d28e17f72",
		"{{ '_-8'|b64decode|b64encode }}": "/+8=",
		"{{ d|tojson(indent=2) }}":        "{\n  \"k\": \"v'\"\n}",
	} {
		got, err := render(src, s)
		if got != want || err != nil {
			t.Errorf("%s\n got %q, %v\nwant %q", src, got, err, want)
		}
	}
	for _, src := range []string{`{{ "a\x00b"|sql }}`, `{{ "a\x00b"|shq }}`, "{{ ''|sqlident }}", "{{ 1|sqlident }}", "{{ [[1]]|sql }}", "{{ 'x'|hash('crc') }}"} {
		if got, err := render(src, s); err == nil {
			t.Errorf("%s: got %q, want an error", src, got)
		}
	}
}

func TestOneTemplateServesManyGoroutines(t *testing.T) {
	t.Parallel()
	tmpl, err := jinja.Compile("{% set ns = namespace(t=0) %}{% for r in rows|sort %}{% set ns.t = ns.t + r * k %}{% endfor %}{{ ns.t }}{{ ['a']|first }}")
	if err != nil {
		t.Fatal(err)
	}
	s := scopeOf(t, `{"rows": [3, 1, 2], "k": 2}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got, err := tmpl.Render(s); got != "12a" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

const condition = "result.data.status == 'ok' and n > 2"

func conditionScope() jinja.Scope {
	return jinja.Vars{"n": int64(3), "result": map[string]any{"data": map[string]any{"status": "ok"}}}
}

func TestASimpleConditionAllocatesNothing(t *testing.T) {
	tmpl, err := jinja.CompileCondition(condition)
	if err != nil {
		t.Fatal(err)
	}
	s := conditionScope()
	for _, scope := range []jinja.Scope{s, jinja.Vars{}} {
		if n := testing.AllocsPerRun(100, func() { _, _ = tmpl.Truth(scope) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jinja.Compile("Hello {{ user.name|upper }}, {{ n + 1 }}"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromJSON(b *testing.B) {
	text := []byte(`{"rows":[{"id":1,"name":"ann","score":2.5,"tags":["a","b"]},{"id":2,"name":"bob","score":3.5,"tags":[]}],"status":"ok"}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jinja.FromJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
