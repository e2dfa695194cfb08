package jinja_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

func asError(err error, e **jinja.Error) bool { return errors.As(err, e) }

func TestAProvidedFunctionIsCalledWhereTheScopeHasIt(t *testing.T) {
	t.Parallel()
	tmpl, err := jinja.Compile("Bearer {{ token(google_auth, scopes=['a', name]) }}")
	if err != nil {
		t.Fatal(err)
	}
	if calls := tmpl.Calls(); !slices.Equal(calls, []string{"token"}) || !tmpl.Mentions("token") || !tmpl.Mentions("google_auth") {
		t.Errorf("calls %v, free names %v", calls, tmpl.Free())
	}
	scope := jinja.Vars{
		"google_auth": jinja.Word{Text: "google_oauth"}, "name": "b",
		"token": jinja.Func(func(args []any, named *jinja.Dict) (any, error) {
			scopes, _ := named.Get("scopes")
			return fmt.Sprintf("%T %v %v", args[0], args, scopes), nil
		}),
	}
	if got, err := tmpl.Render(scope); got != "Bearer string [google_oauth] [a b]" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAProvidedFunctionThatIsNotThereSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	refuse := jinja.Func(func([]any, *jinja.Dict) (any, error) { return nil, errors.New("no credential named 'g'") })
	for _, c := range []struct {
		src         string
		scope       jinja.Vars
		kind, wants string
	}{
		{"{{ token('g') }}", nil, "undefined", "token() is resolved by the worker's keychain and is not available here (1:4)"},
		{"x\n {{ token('g') }}", jinja.Vars{"token": "abc"}, "type", "'token' is a string here and cannot be called (2:5)"},
		{"{{ token('g') }}", jinja.Vars{"token": refuse}, "value", "no credential named 'g' (1:4)"},
		{"{{ token(nope) }}", jinja.Vars{"token": refuse}, "undefined", "'nope' is undefined (1:4)"},
		{"{{ tokens('g') }}", jinja.Vars{"tokens": refuse}, "name", "there is no function 'tokens' (1:4)"},
	} {
		var e *jinja.Error
		if _, err := render(c.src, c.scope); !errors.As(err, &e) || e.Kind != c.kind || e.Error() != c.wants {
			t.Errorf("%s: %v", c.src, err)
		}
		if c.kind != "value" && e.Remedy == "" {
			t.Errorf("%s: there is no remedy", c.src)
		}
	}
}

func TestAFunctionIsNoData(t *testing.T) {
	t.Parallel()
	scope := jinja.Vars{"token": jinja.Func(func([]any, *jinja.Dict) (any, error) { return "secret", nil })}
	if got, err := render("{{ token }} {{ token is callable }} {{ token == token }}", scope); strings.Contains(got, "secret") || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := render("{{ token|tojson }}", scope); err == nil {
		t.Errorf("got %q", got)
	}
	tmpl, _ := jinja.Compile("{{ {'t': token} }}")
	v, err := tmpl.Value(scope)
	if b, _ := jinja.ToJSON(v); string(b) != `{"t":null}` || err != nil {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestATreeCollectsTheFunctionsItCalls(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, fromJSON(t, `{"headers": {"a": "Bearer {{ token('g') }}", "b": "{{ token('h') }}"}, "n": "{{ range(3) }}"}`), jinja.TreeOptions{})
	if calls := tree.Calls(); !slices.Equal(calls, []string{"token"}) {
		t.Errorf("calls %v", calls)
	}
	if calls := mustTree(t, "{{ token }}", jinja.TreeOptions{}).Calls(); len(calls) > 0 {
		t.Errorf("a name that is not called is no call: %v", calls)
	}
}
