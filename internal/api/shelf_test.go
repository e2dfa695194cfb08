package api_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const agentDoc = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: clerk
  path: agents/clerk
  agent: true
  capabilities: [read, write]
workflow:
  - {step: start, tool: {kind: noop}}
`

func TestConcurrentRegistrationsGetVersionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	const n = 20
	versions := make([]any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			versions[i] = ask(t, l.Server, "POST", "/api/catalog/register", object(t, "content", twoSteps)).field(t, "version")
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, v := range versions {
		seen[fmt.Sprint(v)] = true
	}
	if len(seen) != n {
		t.Errorf("%d registrations got the versions %v", n, versions)
	}
}

func TestContentIsBase64OnlyWhenThatMakesSense(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	id := l.register(t, base64.StdEncoding.EncodeToString([]byte(twoSteps)))
	e := ask(t, l.Server, "POST", "/api/catalog/resource", object(t, "catalog_id", id))
	if e.field(t, "content") != twoSteps {
		t.Errorf("base64 was not decoded: %s", e.body)
	}
	layout, _ := e.field(t, "layout").([]any)
	payload, _ := e.field(t, "payload").(map[string]any)
	if len(layout) != 2 || payload["metadata"] == nil || payload["workload"] == nil {
		t.Errorf("layout and payload: %s", e.body)
	}
	ask(t, l.Server, "POST", "/api/catalog/register", `{"content":"YWJj"}`).wantError(t, 422, "not a YAML document")
}

func TestCatalogListFilters(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	l.register(t, twoSteps)
	l.register(t, agentDoc)
	for _, tc := range []struct {
		route, body string
		want        string // paths and versions
	}{
		{"list", ``, "agents/clerk@1 demo/two@2 demo/two@1"},
		{"list", `{"resource_type":"Playbook","path":"demo/two"}`, "demo/two@2 demo/two@1"},
		{"list", `{"resource_type":"PLAYBOOK","path":"/demo/two/","limit":1,"offset":1}`, "demo/two@1"},
		{"list", `{"agent_only":true}`, "agents/clerk@1"},
		{"list", `{"capability":"read","capabilities":["write"]}`, "agents/clerk@1"},
		{"list", `{"capabilities":["read","fly"]}`, ""},
		{"list", `{"agent_only":true,"offset":5,"limit":3}`, ""},
		{"agents/list", `{}`, "agents/clerk@1"},
		{"agents/list", `{"capability":"fly"}`, ""},
	} {
		a := ask(t, l.Server, "POST", "/api/catalog/"+tc.route, tc.body)
		if got := named(t, a, "entries"); got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.route, tc.body, got, tc.want)
		}
	}
	ask(t, l.Server, "POST", "/api/catalog/list", `{"limit":-1}`).wantError(t, 422, "negative")
	ask(t, l.Server, "POST", "/api/catalog/list", `{"capabilities":"read"}`).wantError(t, 422, "capabilities")
	ask(t, l.Server, "GET", "/api/catalog/list/PlayBook", "").want(t, 200, `["agents/clerk","demo/two"]`)
}

// named is the paths and versions of entries in an answer.
func named(t *testing.T, a answer, member string) string {
	t.Helper()
	list, ok := a.field(t, member).([]any)
	if !ok {
		t.Fatalf("no list in %s", a.body)
	}
	words := make([]string, len(list))
	for i, e := range list {
		m := e.(map[string]any)
		words[i] = strings.TrimPrefix(fmt.Sprintf("%v@%v", m["path"], m["version"]), "<nil>@")
	}
	return strings.Join(words, " ")
}

func TestRemovedResourcesAreOutOfSightAndRunningOnesGoOn(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	used := l.register(t, twoSteps)
	run := l.execute(t, "demo/two")
	unused := l.register(t, twoSteps)

	ask(t, l.Server, "POST", "/api/catalog/delete", `{"path":"demo/two"}`).wantError(t, 403, "")
	a := l.internal(t, "/api/catalog/delete", `{"path":"demo/two"}`)
	if a.status != 200 || a.field(t, "status") != "success" || fmt.Sprint(a.field(t, "count")) != "2" || named(t, a, "deleted") == "" {
		t.Fatalf("delete: %s", a.body)
	}
	if again := l.internal(t, "/api/catalog/delete", `{"path":"demo/two"}`); fmt.Sprint(again.field(t, "count")) != "0" {
		t.Errorf("delete again: %s", again.body)
	}
	l.internal(t, "/api/catalog/delete", `{}`).wantError(t, 422, "path")
	l.internal(t, "/api/catalog/delete", `{"path":"a","version":"new"}`).wantError(t, 422, "version")

	ask(t, l.Server, "POST", "/api/catalog/list", ``).want(t, 200, `{"entries":[]}`)
	ask(t, l.Server, "POST", "/api/catalog/resource", `{"path":"demo/two"}`).wantError(t, 404, "demo/two")
	ask(t, l.Server, "POST", "/api/execute", `{"path":"demo/two"}`).wantError(t, 404, "demo/two")
	for _, id := range []string{used, unused} {
		if e := ask(t, l.Server, "POST", "/api/catalog/resource", object(t, "catalog_id", id)); e.status != 200 {
			t.Errorf("an archived version is not found by its id: %s", e.body)
		}
	}
	if a := ask(t, l.Server, "POST", "/api/catalog/list", `{"include_archived":true}`); named(t, a, "entries") != "demo/two@2 demo/two@1" {
		t.Errorf("archived entries: %s", a.body)
	}
	claim := fmt.Sprintf("/api/commands/%d/claim", l.command(t, run))
	if a := ask(t, l.Server, "POST", claim, `{"worker_id":"w1"}`); a.status != 200 {
		t.Errorf("the execution does not go on: %s", a.body)
	}

	back := l.internal(t, "/api/catalog/restore", `{"path":"demo/two","version":"1"}`)
	back.want(t, 200, fmt.Sprintf(`{"status":"success","message":"1 of 'demo/two' restored.","path":"demo/two",
		"restored":[{"catalog_id":%q,"version":1}],"count":1}`, used))
	l.execute(t, "demo/two")
	if rest := l.internal(t, "/api/catalog/restore", `{"path":"demo/two"}`); fmt.Sprint(rest.field(t, "count")) != "1" {
		t.Errorf("restore the rest: %s", rest.body)
	}
	l.internal(t, "/api/catalog/restore", `{"path":"demo/two"}`).want(t, 200,
		`{"status":"success","message":"0 of 'demo/two' restored.","path":"demo/two","restored":[],"count":0}`)
}

func TestVersionsOfAPath(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	l.register(t, twoSteps)
	a := ask(t, l.Server, "GET", "/api/catalog/versions?path=demo/two", "")
	if named(t, a, "versions") != "2 1" || a.field(t, "path") != "demo/two" || strings.Contains(a.body, "content") {
		t.Error(a.body)
	}
	ask(t, l.Server, "GET", "/api/catalog/versions", "").wantError(t, 422, "path")
	ask(t, l.Server, "GET", "/api/catalog/versions?path=no", "").wantError(t, 404, "no")
}

func TestUISchemaDescribesTheInputs(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	l.register(t, strings.Replace(twoSteps, "  who: nobody", "  who: nobody # ui:enum=[nobody,me]\n  # ui:secret\n  key: x", 1))
	for _, path := range []string{"/api/catalog/demo/two/ui_schema", "/api/catalog/demo%2Ftwo/ui_schema?version=latest"} {
		a := ask(t, l.Server, "GET", path, "")
		fields, _ := a.field(t, "fields").([]any)
		if a.status != 200 || len(fields) != 2 || fmt.Sprint(a.field(t, "version")) != "2" || a.field(t, "title") != "two" {
			t.Fatalf("%s: %s", path, a.body)
		}
		who := fields[0].(map[string]any)
		if who["kind"] != "enum" || fmt.Sprint(who["options"]) != "[nobody me]" || who["default"] != "nobody" {
			t.Errorf("%s: %v", path, who)
		}
	}
	if a := ask(t, l.Server, "GET", "/api/catalog/demo/two/ui_schema?version=1", ""); fmt.Sprint(a.field(t, "version")) != "1" {
		t.Error(a.body)
	}
	ask(t, l.Server, "GET", "/api/catalog/no/ui_schema", "").wantError(t, 404, "no")
	ask(t, l.Server, "GET", "/api/catalog/demo/two/ui_schema?version=x", "").wantError(t, 422, "version")
	ask(t, l.Server, "GET", "/api/catalog/demo/two/schema", "").wantError(t, 404, "no such route")
	ask(t, l.Server, "GET", "/api/catalog/ui_schema", "").wantError(t, 404, "no such route")
	a := ask(t, l.Server, "GET", "/api/catalog/register", "")
	a.wantError(t, 405, "use POST")
	ask(t, l.Server, "POST", "/api/catalog/demo/two/ui_schema", "").wantError(t, 405, "use GET")
}

func TestValidationListsProblemsWithTheirPlaces(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	ask(t, l.Server, "POST", "/api/catalog/playbooks/validate", object(t, "content", twoSteps)).want(t, 200,
		`{"valid":true,"errors":[],"warnings":[],"problems":[]}`)
	for name, doc := range map[string]string{
		"an unknown target": strings.Replace(twoSteps, "- step: finish\n    tool", "- step: end\n    tool", 1),
		"no YAML":           "a: [",
		"no metadata":       "kind: Playbook\n",
		"an unknown kind":   "kind: Poem\nmetadata: {name: x}\n",
		"nothing":           "",
	} {
		a := ask(t, l.Server, "POST", "/api/catalog/playbooks/validate", object(t, "content", doc))
		errs, _ := a.field(t, "errors").([]any)
		problems, _ := a.field(t, "problems").([]any)
		if a.status != 200 || a.field(t, "valid") != false || len(errs) == 0 || len(problems) == 0 {
			t.Errorf("%s: %s", name, a.body)
			continue
		}
		if line, ok := problems[0].(map[string]any)["line"]; !ok || fmt.Sprint(line) == "0" {
			t.Errorf("%s has no place: %s", name, a.body)
		}
	}
	if a := ask(t, l.Server, "POST", "/api/catalog/list", ``); named(t, a, "entries") != "" {
		t.Errorf("validation stored something: %s", a.body)
	}
}
