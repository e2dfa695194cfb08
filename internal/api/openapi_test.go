package api_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/testkit/apicheck"
)

var update = flag.Bool("update", false, "write the golden files")

// checked is a server whose every answer is held against its own description;
// not while the race detector watches, which makes reading schemas slow.
func checked(t *testing.T, s *api.Server) http.Handler {
	t.Helper()
	if underRace {
		return s.Handler()
	}
	check, err := apicheck.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	return check.Handler(t, s.Handler())
}

// document asks a server what it says of itself.
func document(t *testing.T, change func(*api.Options)) []byte {
	t.Helper()
	a := ask(t, newServer(t, &apitest.Plane{}, change), "GET", "/api/openapi.json", "")
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return []byte(a.body)
}

func TestEveryRouteIsDescribedAndEveryDescriptionHasARoute(t *testing.T) {
	t.Parallel()
	s, err := api.New(api.Options{Plane: struct{ api.Plane }{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Describe(); err != nil {
		t.Errorf("the description of the API is not complete:\n%v", err)
	}
}

// TestTheDescriptionChangesOnlyKnowingly makes a change of the API visible.
func TestTheDescriptionChangesOnlyKnowingly(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "openapi.json")
	got := document(t, nil)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("the API has changed; when that is meant, run go test ./internal/api -run Description -update\n%s", diff)
	}
}

// TestTheDescriptionIsAnOpenAPIDocument checks what the specification asks of
// the parts we use, for there is no official schema at hand: references lead
// somewhere, ids are unique, every parameter of a path is declared once, and
// every schema is one of draft 2020-12.
func TestTheDescriptionIsAnOpenAPIDocument(t *testing.T) {
	t.Parallel()
	raw := document(t, nil)
	doc := tree(t, string(raw)).(map[string]any)
	if v := doc["openapi"]; !strings.HasPrefix(fmt.Sprint(v), "3.1.") {
		t.Errorf("version %v", v)
	}
	for _, ref := range references(doc) {
		if at(doc, ref) == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	}
	c := jsonschema.NewCompiler()
	plain, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("openapi.json", plain); err != nil {
		t.Fatal(err)
	}
	for _, place := range schemas("#", doc) {
		if _, err := c.Compile("openapi.json" + place); err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
	ids, tags := map[string]bool{}, map[string]bool{}
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(map[string]any)["name"].(string)] = true
	}
	used := map[string]bool{}
	schemes := at(doc, "#/components/securitySchemes").(map[string]any)
	for path, item := range doc["paths"].(map[string]any) {
		for method, o := range item.(map[string]any) {
			op, what := o.(map[string]any), method+" "+path
			id := fmt.Sprint(op["operationId"])
			if ids[id] {
				t.Errorf("%s: the id %s is taken", what, id)
			}
			ids[id] = true
			if !regexp.MustCompile(`^[a-z][A-Za-z]+$`).MatchString(id) {
				t.Errorf("%s: id %q", what, id)
			}
			checkParameters(t, what, path, op)
			checkAnswers(t, what, op)
			for _, tag := range op["tags"].([]any) {
				if used[tag.(string)] = true; !tags[tag.(string)] {
					t.Errorf("%s: unknown tag %s", what, tag)
				}
			}
			for _, need := range op["security"].([]any) {
				for name := range need.(map[string]any) {
					if schemes[name] == nil {
						t.Errorf("%s: unknown security scheme %s", what, name)
					}
				}
			}
			if method == "get" && op["requestBody"] != nil {
				t.Errorf("%s has a body", what)
			}
			if role := op["x-noetl-role"]; role == "" || (role == "anyone") != (len(op["security"].([]any)) == 0) {
				t.Errorf("%s: role %v does not go with %v", what, role, op["security"])
			}
		}
	}
	for tag := range tags {
		if !used[tag] {
			t.Errorf("nothing has the tag %s", tag)
		}
	}
}

func checkParameters(t *testing.T, what, path string, op map[string]any) {
	t.Helper()
	var inPath, declared []string
	for _, m := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(path, -1) {
		inPath = append(inPath, m[1])
	}
	seen := map[string]bool{}
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		p := p.(map[string]any)
		name := fmt.Sprint(p["in"], " ", p["name"])
		if seen[name] {
			t.Errorf("%s: %s is declared twice", what, name)
		}
		seen[name] = true
		switch p["in"] {
		case "path":
			declared = append(declared, p["name"].(string))
			if p["required"] != true {
				t.Errorf("%s: %s must be required", what, name)
			}
		case "query", "header":
		default:
			t.Errorf("%s: a parameter in %v", what, p["in"])
		}
		if p["schema"] == nil || p["description"] == "" {
			t.Errorf("%s: %s has no schema or description", what, name)
		}
	}
	if !slices.Equal(inPath, declared) {
		t.Errorf("%s declares the parameters %v", what, declared)
	}
}

func checkAnswers(t *testing.T, what string, op map[string]any) {
	t.Helper()
	answers, _ := op["responses"].(map[string]any)
	ok := false
	for status, a := range answers {
		ok = ok || strings.HasPrefix(status, "2") || strings.HasPrefix(status, "3")
		if a := a.(map[string]any); a["$ref"] == nil && a["description"] == nil {
			t.Errorf("%s: the answer %s has no description", what, status)
		}
	}
	if !ok || answers["default"] == nil {
		t.Errorf("%s: no success or no error is described", what)
	}
}

func references(v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if ref, ok := member.(string); ok && key == "$ref" {
				list = append(list, ref)
			}
			list = append(list, references(member)...)
		}
	case []any:
		for _, item := range v {
			list = append(list, references(item)...)
		}
	}
	return list
}

// schemas are the places of all schemas outside of others.
func schemas(place string, v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			below := place + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
			if key == "schema" || strings.HasSuffix(place, "/components/schemas") || strings.HasSuffix(place, "/x-noetl-events") {
				list = append(list, below)
				continue
			}
			list = append(list, schemas(below, member)...)
		}
	case []any:
		for i, item := range v {
			list = append(list, schemas(fmt.Sprintf("%s/%d", place, i), item)...)
		}
	}
	return list
}

func at(doc any, ref string) any {
	for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		m, ok := doc.(map[string]any)
		if !ok {
			return nil
		}
		doc = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return doc
}

func TestTheDescriptionSaysHowThisServerWritesIds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text bool
		want string
	}{{false, "integer"}, {true, "string"}} {
		doc := tree(t, string(document(t, func(o *api.Options) { o.StringIDs = c.text })))
		execution := at(doc, "#/components/schemas/Execution/properties/execution_id/type")
		if str := at(doc, "#/components/schemas/Execution/properties/execution_id_str/type"); execution != c.want || str != "string" {
			t.Errorf("string ids %v: execution_id is %v, execution_id_str is %v", c.text, execution, str)
		}
	}
}

func TestTheDescriptionAndItsPageAreCached(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	for path, kind := range map[string]string{
		"/api/openapi.json": "application/json", "/api/docs": "text/html; charset=utf-8",
		"/api/docs/docs.css": "text/css; charset=utf-8", "/api/docs/docs.js": "text/javascript; charset=utf-8",
	} {
		first := ask(t, srv, "GET", path, "")
		tag := first.header.Get("ETag")
		if first.status != http.StatusOK || first.header.Get("Content-Type") != kind || tag == "" || first.body == "" {
			t.Errorf("%s: %d %v", path, first.status, first.header)
		}
		for match, want := range map[string]int{tag: 304, `"other", W/` + tag: 304, "*": 304, `"other"`: 200} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("If-None-Match", match)
			if a := do(t, srv, req); a.status != want || want == 304 && a.body != "" || want == 200 && a.body != first.body {
				t.Errorf("%s with %s: %d, %d bytes", path, match, a.status, len(a.body))
			}
		}
	}
	ask(t, srv, "GET", "/api/docs/passwd", "").wantError(t, http.StatusNotFound, "no such file")
}

// TestTheExamplesFitTheDescription holds what the page shows against the schemas.
func TestTheExamplesFitTheDescription(t *testing.T) {
	t.Parallel()
	check, err := apicheck.New(document(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("examples.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	var examples map[string]apicheck.Example
	if err := json.Unmarshal(raw, &examples); err != nil {
		t.Fatal(err)
	}
	for id, e := range examples {
		for _, complaint := range check.Judge(id, e) {
			t.Errorf("%s: %s; go test ./internal/wire -run EveryRoute -update writes the examples anew", id, complaint)
		}
	}
	if len(examples) < len(check.Operations())/2 {
		t.Errorf("%d operations have %d examples", len(check.Operations()), len(examples))
	}
}
