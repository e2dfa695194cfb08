package jinja_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/jinja"
)

// intended lists the templates whose text differs from Python's on purpose. An
// empty text means that this package accepts what Python refuses and prints
// nothing.
var intended = map[string]string{
	// JSON is compact, and HTML is not escaped: templates make requests, not pages.
	"{{ d|tojson }}":                `{"a":2,"b":1,"c":{"x":[1,2,{"y":"deep"}]}}`,
	"{{ users|tojson }}":            `[{"active":true,"age":30,"name":"ann","tags":["x"]},{"active":false,"age":25,"name":"bob","tags":[]},{"active":true,"age":41,"name":"cy","tags":["y","z"]}]`,
	"{{ html|tojson }}":             `"<a href=\"x\">'q'&</a>"`,
	"{{ {'k': name}|tojson }}":      `{"k":"World"}`,
	"{{ [3,[1,2]]|tojson }}":        `[3,[1,2]]`,
	"{{ dict(a=1, b='x')|tojson }}": `{"a":1,"b":"x"}`,
	"{{ users|map(attribute='name')|map('upper')|list|tojson }}": `["ANN","BOB","CY"]`,
	// A key comes before a method that is not called.
	"{{ items_map.items }}": `[1, 2]`,
	// Integers have 64 bits; a larger literal is a float.
	"{{ 100000000000000000000 }}": `1e+20`,
	// default replaces none too.
	"{{ nil|default('dd') }}": `dd`,
	// Undefined can be chained.
	"{{ d.missing.deeper }}": ``,
	"{{ missing.deeper }}":   ``,
}

func TestTextIsThatOfPythonButForIntendedDifferences(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "shared", "design", "probes")
	var cases struct {
		Ctx  json.RawMessage `json:"ctx"`
		Tpls []string        `json:"tpls"`
	}
	var want [][2]string
	readJSON(t, filepath.Join(dir, "jinja_cases.json"), &cases)
	readJSON(t, filepath.Join(dir, "jinja_ref_python3.1.2.json"), &want)
	ctx := scopeOf(t, string(cases.Ctx))
	for i, src := range cases.Tpls {
		got, err := render(src, ctx)
		if text, ok := intended[src]; ok {
			if err != nil || got != text {
				t.Errorf("%s\n got %q, %v\nwant %q (an intended difference)", src, got, err, text)
			}
			continue
		}
		if want[i][0] == "err" {
			if err == nil {
				t.Errorf("%s\n got %q\nwant an error like %s", src, got, want[i][1])
			}
			continue
		}
		if diff := cmp.Diff(want[i][1], got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", src, err, diff)
		}
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		t.Skipf("the reference cases are not here: %v; testdata/render.txt covers the same ground", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// scopeOf makes a scope of a JSON object.
func scopeOf(t testing.TB, object string) jinja.Scope {
	t.Helper()
	v, err := jinja.FromJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*jinja.Dict)
}

func render(src string, s jinja.Scope) (string, error) {
	tmpl, err := jinja.Compile(src)
	if err != nil {
		return "", err
	}
	return tmpl.Render(s)
}
