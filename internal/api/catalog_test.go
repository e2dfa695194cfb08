package api_test

import (
	"testing"

	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

func TestCatalogRoutesKeepTheirShapes(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	const doc = `{"content":"metadata:\n  path: demo/hello\n"}`
	ask(t, srv, "POST", "/api/catalog/register", doc).want(t, 200,
		`{"status":"success","message":"Resource 'demo/hello' version '1' registered.","path":"demo/hello","version":1,"catalog_id":"1","kind":"playbook"}`)
	if got := ask(t, srv, "POST", "/api/catalog/register", doc).field(t, "message"); got != "Resource 'demo/hello' version '2' registered." {
		t.Errorf("second registration: %v", got)
	}
	entry := `{"catalog_id":"1","path":"demo/hello","kind":"playbook","version":1,"content":"metadata:\n  path: demo/hello\n",
		"layout":null,"payload":{},"meta":null,"created_at":"2026-01-02T03:04:05Z"}`
	for name, body := range map[string]string{
		"by string id":      `{"catalog_id":"1"}`,
		"by number id":      `{"catalog_id":1}`,
		"by string version": `{"path":"demo/hello","version":"1"}`,
		"by number version": `{"path":"demo/hello","version":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, srv, "POST", "/api/catalog/resource", body).want(t, 200, entry)
		})
	}
	latest := ask(t, srv, "POST", "/api/catalog/resource", `{"path":"demo/hello","version":"latest"}`)
	if got := latest.field(t, "catalog_id"); got != "2" {
		t.Errorf("latest: %v", got)
	}
	ask(t, srv, "POST", "/api/catalog/resource", `{"path":"demo/hello","version":9}`).wantError(t, 404, "Resource not found: demo/hello version 9")
	ask(t, srv, "POST", "/api/catalog/resource", `{"catalog_id":"99"}`).wantError(t, 404, "Catalog entry not found: 99")
	ask(t, srv, "POST", "/api/catalog/resource", `{}`).wantError(t, 422, "catalog_id or path")
	ask(t, srv, "POST", "/api/catalog/resource", `{"path":"a","version":"new"}`).wantError(t, 422, "version")

	list := ask(t, srv, "POST", "/api/catalog/list", `{"resource_type":"Playbook"}`)
	if got, _ := list.field(t, "entries").([]any); len(got) != 2 {
		t.Errorf("list: %s", list.body)
	}
	ask(t, srv, "POST", "/api/catalog/list", ``).field(t, "entries")
	ask(t, srv, "POST", "/api/catalog/list", `{"resource_type":"mcp"}`).want(t, 200, `{"entries":[]}`)
	ask(t, srv, "GET", "/api/catalog/list/Playbook", "").want(t, 200, `["demo/hello"]`)
	ask(t, srv, "POST", "/api/catalog/register", `{"content":" "}`).wantError(t, 422, "content")
}

func TestRefusedPlaybookListsItsProblems(t *testing.T) {
	t.Parallel()
	problems := playbook.Problems{{Severity: playbook.SeverityError, Code: "unknown_key", Line: 4, Col: 5, Message: "unknown key"}}
	p := &apitest.Plane{OnRegister: func(control.RegisterRequest) (control.Registration, error) {
		return control.Registration{}, &event.Error{Code: event.Invalid, Message: "the playbook has errors", Err: problems}
	}}
	ask(t, newServer(t, p, nil), "POST", "/api/catalog/register", `{"content":"x"}`).want(t, 422,
		`{"error":"the playbook has errors","status":422,"code":"invalid",
		  "problems":[{"severity":"error","code":"unknown_key","line":4,"col":5,"message":"unknown key"}]}`)
}
