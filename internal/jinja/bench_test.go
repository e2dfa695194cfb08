package jinja_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

func benchScope() jinja.Scope {
	rows := make([]any, 20)
	for i := range rows {
		rows[i] = map[string]any{"id": int64(i), "name": "row", "ok": i%2 == 0}
	}
	return jinja.Vars{
		"n": int64(3), "host": "db.local", "user": map[string]any{"name": "ann"}, "rows": rows,
		"fetch": map[string]any{"result": map[string]any{"status": "ok", "rows": rows}},
	}
}

// BenchmarkRender evaluates the kinds of expression that playbooks are made of,
// each compiled once.
func BenchmarkRender(b *testing.B) {
	scope := benchScope()
	for _, c := range []struct{ name, src string }{
		{"path", "{{ fetch.result.rows }}"},
		{"missing path", "{{ fetch.nope.deep }}"},
		{"condition", "{{ fetch.result.status == 'ok' and n > 2 }}"},
		{"default", "{{ fetch.nope | default('x') }}"},
		{"arithmetic", "{{ n + 1 }}"},
		{"filter chain", "{{ user.name | upper | replace('N', 'm') | length }}"},
		{"mixed text", "https://{{ host }}/users/{{ user.name }}?page={{ n }}"},
		{"list filters", "{{ rows | selectattr('ok') | map(attribute='id') | list }}"},
		{"tojson", "{{ rows | tojson }}"},
		{"loop", "{% for r in rows %}{{ r.id }}={{ r.name }};{% endfor %}"},
		{"macro", "{% macro m(a, b=1) %}{{ a }}-{{ b }}{% endmacro %}{{ m(n) }}{{ m(n, b=2) }}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			tmpl, err := jinja.Compile(c.src)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tmpl.Value(scope); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTruth is a condition, which must allocate nothing.
func BenchmarkTruth(b *testing.B) {
	tmpl, err := jinja.CompileCondition(condition)
	if err != nil {
		b.Fatal(err)
	}
	s := conditionScope()
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := tmpl.Truth(s); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
