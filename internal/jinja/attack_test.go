package jinja_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

// TestHostileTemplatesRunIntoALimit lists ways to make a template work or grow
// without bound. A hole shows as a test that does not end or runs out of memory.
// Each must end in the named one of the limits below, a quarter of the default.
func TestHostileTemplatesRunIntoALimit(t *testing.T) {
	t.Parallel()
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", strconv.Itoa(i)))
		}
		return b.String()
	}
	loop := func(body string) string { return "{% for i in range(80000) %}" + body + "{% endfor %}" }
	const (
		steps  = "steps"
		value  = "a value of more than"
		values = "bytes of values"
		prints = "prints more than"
	)
	scope := jinja.Vars{
		"raw":   json.RawMessage(`{"x": "` + strings.Repeat("a", 1<<20) + `"}`),
		"box":   map[string]any{"raw": json.RawMessage(`["` + strings.Repeat("a", 1<<20) + `"]`)},
		"big":   strings.Repeat("é", 1<<20),
		"blank": strings.Repeat(" ", 1<<20),
	}
	for name, c := range map[string]struct{ src, limit string }{
		"range":                      {"{{ range(99999999999) }}", steps},
		"text times number":          {"{{ 'x' * 99999999999 }}", value},
		"list times number":          {"{{ [1] * 99999999999 }}", steps},
		"doubling text":              {"{% set ns = namespace(x='ab') %}" + loop("{% set ns.x = ns.x ~ ns.x %}"), values},
		"doubling list":              {"{% set ns = namespace(x=[1]) %}" + loop("{% set ns.x = ns.x + ns.x %}"), steps},
		"nested loops":               {loop(loop("")), steps},
		"endless recursion":          {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels deep"},
		"fanning recursion":          {"{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}", steps},
		"wide macro":                 {"{% macro m() %}{% if 0 %}" + many(9000, "{% set v# = 1 %}") + "{% endif %}{% endmacro %}" + loop("{{ m() }}"), steps},
		"wide loop":                  {loop("{% if 0 %}" + many(9000, "{% set v# = 1 %}") + "{% endif %}"), steps},
		"long output":                {loop(strings.Repeat("x", 1000)), prints},
		"long concatenation":         {loop("{% set x = ''" + many(50000, " ~ ''") + " %}"), steps},
		"long chain of comparisons":  {loop("{% if 1" + many(50000, " <= 1") + " %}{% endif %}"), steps},
		"many branches":              {loop("{% if 0 %}" + many(40000, "{% elif 0 %}") + "{% endif %}"), steps},
		"long loop filter":           {"{% for i in range(40000) if 1" + many(50000, " <= 1") + " %}{% endfor %}", steps},
		"replace":                    {"{{ ('x' * 100000)|replace('x', 'y' * 100000) }}", value},
		"replace nothing":            {"{{ ('x' * 100000)|replace('', 'y' * 100000) }}", value},
		"join":                       {"{{ range(40000)|join('x' * 1000) }}", value},
		"join method":                {"{{ ('x' * 1000).join(range(40000)|map('string')) }}", value},
		"center":                     {"{{ 'x'|center(99999999999) }}", value},
		"ljust":                      {"{{ 'x'.ljust(9223372036854775807) }}", value},
		"zfill":                      {"{{ '-1'.zfill(9223372036854775807) }}", value},
		"indent":                     {"{{ ('a\n' * 50000)|indent(100000) }}", value},
		"indent of line breaks":      {"{{ ('\n' * 3000000)|indent }}", steps},
		"lines":                      {"{{ ('\n' * 3000000)|lines }}", steps},
		"wordwrap":                   {"{{ ('a' * 3000000)|wordwrap(1) }}", steps},
		"wordwrap of words":          {"{{ ('a ' * 1500000)|wordwrap(1, true, 'x' * 1000) }}", value},
		"format width":               {loop("{% set x = '%1000000s' % 1 %}"), values},
		"brace format width":         {loop("{% set x = '{:>1000000}'.format(1) %}"), values},
		"format precision":           {loop("{% set x = '%.1000000f' % 1.5 %}"), values},
		"grouped digits":             {loop("{% set x = '{:,.1000000f}'.format(1.5e300) %}"), values},
		"tojson of shared lists":     {"{% set ns = namespace(x=1) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}", value},
		"tojson indentation":         {"{% set ns = namespace(x=1) %}{% for i in range(900) %}{% set ns.x = [ns.x] * 4 %}{% endfor %}{{ ns.x|tojson(indent=16) }}", value},
		"comparing shared lists":     {"{% set ns = namespace(x=1, y=1) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}", steps},
		"a value inside itself":      {"{% set ns = namespace() %}{% set ns.x = ns %}{{ ns|tojson }}", "nested more than"},
		"a very deep value":          {"{% set ns = namespace(x=1) %}" + "{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "nested more than"},
		"batch":                      {"{{ [1]|batch(99999999999, 0) }}", steps},
		"slice":                      {"{{ [1]|slice(99999999999) }}", steps},
		"sort of one long text":      {"{{ (['A' * 3000000] * 100000)|sort }}", values},
		"unique of one long text":    {"{{ (['A' * 3000000] * 100000)|unique }}", values},
		"max over one long text":     {"{{ (['a' * 3000000] + range(20000)|map('string')|list)|max|length }}", ""},
		"groupby of one long text":   {"{{ ([{'k': 'A' * 3000000}] * 20000)|groupby('k') }}", values},
		"sum of texts":               {"{{ (['x' * 10000] * 9000)|sum(start='') }}", values},
		"strip of many characters":   {loop("{% set x = big.strip(big ~ 'x') %}"), steps},
		"last character":             {loop("{% set x = big[-1] %}"), steps},
		"length of a text":           {loop("{% set x = big|length %}"), steps},
		"int of a text":              {loop("{% set x = blank|int %}"), steps},
		"float of a text":            {loop("{% set x = blank|float %}"), steps},
		"truth of a text":            {loop("{% set x = blank|bool %}"), steps},
		"search in a text":           {loop("{% set x = 'x' in big %}"), steps},
		"count in a text":            {loop("{% set x = big.count('x') %}"), steps},
		"slice of a text":            {loop("{% set x = big[1:] %}"), steps},
		"a long key":                 {loop("{% set x = box[big] %}"), steps},
		"a long list":                {loop("{% set x = range(1000) %}"), steps},
		"in a long list":             {"{% set l = range(1000) %}" + loop("{% set x = 'x' in l %}"), steps},
		"decoding lazy JSON":         {loop("{% set x = raw.x is defined %}"), steps},
		"decoding nested lazy JSON":  {loop("{% set x = box.raw[0] is defined %}"), steps},
		"hash":                       {loop("{% set x = big|hash %}"), values},
		"urlencode":                  {loop("{% set x = big|urlencode %}"), value},
		"escape":                     {"{{ ('&' * 3500000)|escape|length }}", value},
		"upper":                      {loop("{% set x = big|upper %}"), values},
		"captured text":              {loop("{% set x %}" + strings.Repeat("x", 1000) + "{% endset %}"), values},
		"many tokens":                {"{{ [" + many(200000, "#,") + "] }}", "words and signs"},
		"many adjacent texts":        {"{{ " + many(150000, "'a'") + " }}{{ range(99999999) }}", steps},
		"many arguments":             {"{{ dict(" + many(2000, "a#=1,") + ") }}", "arguments"},
		"many parameters":            {"{% macro m(" + many(2000, "a#,") + ") %}{% endmacro %}", "parameters"},
		"many names":                 {"{% with " + many(2000, "a#=1,") + "b=1 %}{% endwith %}", "names"},
		"a long name":                {"{{ " + strings.Repeat("a", 5000) + " }}", "the name is longer"},
		"deep brackets":              {"{{ " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " }}", "nested too deeply"},
		"deep minus":                 {"{{ " + strings.Repeat("-", 5000) + "1 }}", "nested too deeply"},
		"deep not":                   {"{{ " + strings.Repeat("not ", 5000) + "1 }}", "nested too deeply"},
		"deep tags":                  {strings.Repeat("{% if 1 %}", 5000) + strings.Repeat("{% endif %}", 5000), "nested too deeply"},
		"a long sum":                 {"{{ 1" + strings.Repeat("+1", 5000) + " }}", "nested too deeply"},
		"a long chain of attributes": {"{{ a" + strings.Repeat(".a", 5000) + " }}", "nested too deeply"},
		"a long chain of filters":    {"{{ a" + strings.Repeat("|abs", 5000) + " }}", "nested too deeply"},
		"a long source":              {strings.Repeat("x", 5<<20) + "{{ 1 }}", "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := firstError(c.src, scope)
			if c.limit == "" { // it takes long, but not too long
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *jinja.Error
			if !errors.As(err, &e) || e.Kind != "limit" || !strings.Contains(e.Message, c.limit) {
				t.Fatalf("got %v, want the limit %q", err, c.limit)
			}
			if e.Remedy == "" && !strings.Contains(e.Message, "nested too deeply") {
				t.Errorf("%v has no remedy", e)
			}
		})
	}
}

// TestBigNumbersAreRefused are attacks that end in another error than a limit.
func TestBigNumbersAreRefused(t *testing.T) {
	t.Parallel()
	for src, kind := range map[string]string{
		"{{ 10 ** 300000000 }}":                   "value",
		"{{ 2 ** 63 }}":                           "value",
		"{{ 2.0 ** 99999 }}":                      "value",
		"{{ 9223372036854775807 + 1 }}":           "value",
		"{{ 9223372036854775807 * 2 }}":           "value",
		"{{ -9223372036854775807 - 2 }}":          "value",
		"{{ '%d' % 1e300 }}":                      "type",
		"{{ range(0, 10, 0) }}":                   "value",
		"{{ [1][::0] }}":                          "value",
		"{{ 1 // 0 }}":                            "value",
		"{{ 1 % 0.0 }}":                           "value",
		"{{ 99999999999999999999999e999 }}":       "syntax",
		"{{ [1, 2, 3]|batch(0) }}":                "value",
		"{{ 'x'|wordwrap(0) }}":                   "value",
		"{{ 'x'|truncate(-5) }}":                  "value",
		"{{ (-9223372036854775807 - 1) // -1 }}":  "value",
		"{{ (-9223372036854775807 - 1)|abs }}":    "value",
		"{{ '{:,.9999999d}'.format(123456789) }}": "value",
	} {
		var e *jinja.Error
		if err := firstError(src, nil); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%s: got %v, want an error of kind %s", src, err, kind)
		}
	}
}

func firstError(src string, s jinja.Scope) error {
	tmpl, err := jinja.Compile(src)
	if err == nil {
		_, err = tmpl.WithLimits(jinja.Limits{Steps: 250_000, Bytes: 4 << 20}).Value(s)
	}
	return err
}
