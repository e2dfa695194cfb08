package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool/sqltext"
)

func TestStatementsEndAtTheirSemicolon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"one":                          {"SELECT 1", []string{"SELECT 1"}},
		"two":                          {"SELECT 1; SELECT 2;", []string{"SELECT 1", "SELECT 2"}},
		"nothing":                      {" ;; \n;", nil},
		"only comments":                {"-- a; b\n/* c; */;", nil},
		"a quote":                      {"SELECT ';'';' ; SELECT 2", []string{"SELECT ';'';'", "SELECT 2"}},
		"a backslash is no escape":     {`SELECT '\'; SELECT 2`, []string{`SELECT '\'`, "SELECT 2"}},
		"an escape text":               {`SELECT E'\';'; SELECT 2`, []string{`SELECT E'\';'`, "SELECT 2"}},
		"an escape text on two lines":  {"SELECT E'a'\n'\\';'; SELECT 2", []string{"SELECT E'a'\n'\\';'", "SELECT 2"}},
		"a name that ends in e":        {`SELECT type'\'; SELECT 2`, []string{`SELECT type'\'`, "SELECT 2"}},
		"a quoted name":                {`SELECT 1 AS "a;""b;"; SELECT 2`, []string{`SELECT 1 AS "a;""b;"`, "SELECT 2"}},
		"an apostrophe in a comment":   {"-- it's; here\nSELECT 1; SELECT 2", []string{"-- it's; here\nSELECT 1", "SELECT 2"}},
		"comments in comments":         {"/* a /* ; */ ; */ SELECT 1; SELECT 2", []string{"/* a /* ; */ ; */ SELECT 1", "SELECT 2"}},
		"a dollar quote":               {"DO $$ BEGIN PERFORM 1; END $$; SELECT 2", []string{"DO $$ BEGIN PERFORM 1; END $$", "SELECT 2"}},
		"a tagged dollar quote":        {"DO $a$ x; $$ ; $b$ ; $a$; SELECT 2", []string{"DO $a$ x; $$ ; $b$ ; $a$", "SELECT 2"}},
		"a parameter is no dollar tag": {"SELECT $1; SELECT $1", []string{"SELECT $1", "SELECT $1"}},
		"a dollar in a name":           {"SELECT a$b$; SELECT c$b$", []string{"SELECT a$b$", "SELECT c$b$"}},
		"brackets":                     {"CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a; DELETE FROM b); SELECT 2", []string{"CREATE RULE r AS ON INSERT TO t DO ALSO (DELETE FROM a; DELETE FROM b)", "SELECT 2"}},
		"an SQL body":                  {"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END; SELECT 2", []string{"CREATE OR REPLACE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END", "SELECT 2"}},
		"a transaction is no SQL body": {"BEGIN; SELECT 1; END", []string{"BEGIN", "SELECT 1", "END"}},
		"an open quote":                {"SELECT 'a; b", []string{"SELECT 'a; b"}},
		"an open comment":              {"SELECT 1 /* a; b", []string{"SELECT 1 /* a; b"}},
		"an open dollar quote":         {"SELECT $$a; b", []string{"SELECT $$a; b"}},
		"a comment after the last":     {"SELECT 1; -- done", []string{"SELECT 1"}},
		"letters beyond ASCII":         {"SELECT 'ä;' AS größe; SELECT 2", []string{"SELECT 'ä;' AS größe", "SELECT 2"}},
		"a case outside of a function": {"SELECT CASE WHEN true THEN 1; SELECT 2", []string{"SELECT CASE WHEN true THEN 1", "SELECT 2"}},
		"windows line ends":            {"SELECT 1; -- x\r\nSELECT 2\r\n", []string{"SELECT 1", "-- x\r\nSELECT 2"}},
		"a column called begin":        {"CREATE FUNCTION f(begin int) RETURNS int LANGUAGE sql AS 'x'; SELECT 2", []string{"CREATE FUNCTION f(begin int) RETURNS int LANGUAGE sql AS 'x'", "SELECT 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range sqltext.Split(c.in) {
				got = append(got, s.Text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatementsKnowTheirLines(t *testing.T) {
	t.Parallel()
	got := sqltext.Split("\n\nSELECT 1;\n\n-- note\n/* more\n */ SELECT\n 2;SELECT 3")
	want := []sqltext.Statement{
		{Text: "SELECT 1", Line: 3, Start: 3},
		{Text: "-- note\n/* more\n */ SELECT\n 2", Line: 7, Start: 5},
		{Text: "SELECT 3", Line: 8, Start: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesBecomeNumbers(t *testing.T) {
	t.Parallel()
	names := map[string]any{"a": 1, "b": 2}
	for name, c := range map[string]struct {
		in, want string
		args     []any
	}{
		"in order of use":    {"SELECT :b, :a, :b", "SELECT $1, $2, $1", []any{2, 1}},
		"casts":              {"SELECT :a::int, x::b", "SELECT $1::int, x::b", []any{1}},
		"quotes":             {`SELECT ':a', ":b", $$:a$$, E'\':b'`, `SELECT ':a', ":b", $$:a$$, E'\':b'`, nil},
		"comments":           {"SELECT 1 -- :a\n/* :b */", "SELECT 1 -- :a\n/* :b */", nil},
		"slices":             {"SELECT x[1:b], x[a:b], x[:a]", "SELECT x[1:b], x[a:b], x[$1]", []any{1}},
		"assignments":        {"CALL f(x := :a)", "CALL f(x := $1)", []any{1}},
		"without space":      {"SELECT 1=:a,(:b)", "SELECT 1=$1,($2)", []any{1, 2}},
		"a struct of DuckDB": {"SELECT {'a':b, c:a, 'd': :a}", "SELECT {'a':b, c:a, 'd': $1}", []any{1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, args, err := sqltext.Named(c.in, names)
			if err != nil || got != c.want {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
			if diff := cmp.Diff(c.args, args); diff != "" {
				t.Error(diff)
			}
		})
	}
	for in, want := range map[string]string{"SELECT :c": "the parameter :c has no value", "SELECT $1, :a": "$1 stands in SQL"} {
		if _, _, err := sqltext.Named(in, names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
	}
}

func TestNumbersCloseTheirGaps(t *testing.T) {
	t.Parallel()
	got, args, err := sqltext.Numbered("SELECT $3, $1, $3, '$2'", []any{"x", "y", "z"})
	if err != nil || got != "SELECT $1, $2, $1, '$2'" {
		t.Fatalf("got %q, %v", got, err)
	}
	if diff := cmp.Diff([]any{"z", "x"}, args); diff != "" {
		t.Error(diff)
	}
	for _, in := range []string{"SELECT $4", "SELECT $0", "SELECT $99999999999999999999"} {
		if _, _, err := sqltext.Numbered(in, []any{1, 2, 3}); err == nil {
			t.Errorf("%s is accepted", in)
		}
	}
	if n := sqltext.Highest("SELECT $2, $7, '$9' -- $8"); n != 7 {
		t.Errorf("highest is %d, want 7", n)
	}
}

func TestWordsOfAStatement(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"CREATE", "TABLE", "A"}, sqltext.Words("/* x */ create -- y\n table a (b)", 4)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SELECT"}, sqltext.Words("((select 1))", 2)); diff != "" {
		t.Error(diff)
	}
	if !sqltext.HasWords("copy t FROM /* x */ stdin", "FROM", "STDIN") || sqltext.HasWords("copy t from 'stdin'", "FROM", "STDIN") {
		t.Error("words are not found outside of quotes only")
	}
}

// Whatever the text, taking it apart loses nothing but semicolons, space and
// comments, and the pieces are whole statements.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"SELECT 1; SELECT ';'", "$a$;$a$;", "/*/*;*/;*/x;", "E'\\';';", "-- ;\n;x", "CREATE FUNCTION f BEGIN ATOMIC a; END; b", "(;);", "\xff;\x00", "a$1;$1$1$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, s := range sqltext.Split(text) {
			i := strings.Index(text[at:], s.Text)
			if s.Text == "" || i < 0 {
				t.Fatalf("%q is no piece of the rest of %q", s.Text, text)
			}
			at += i + len(s.Text)
			if s.Start > s.Line || s.Line > 1+strings.Count(text, "\n") {
				t.Errorf("lines %d and %d of %q", s.Start, s.Line, s.Text)
			}
			again := sqltext.Split(s.Text)
			if len(again) != 1 || again[0].Text != s.Text {
				t.Errorf("%q comes apart again: %+v", s.Text, again)
			}
			if same, args, err := sqltext.Numbered(s.Text, nil); err == nil && (same != s.Text || args != nil) {
				t.Errorf("a statement without parameters changed: %q", same)
			}
		}
	})
}
