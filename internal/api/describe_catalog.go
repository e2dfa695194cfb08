package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/api/openapi"
)

type (
	entriesAnswer struct {
		Entries []entryView `json:"entries"`
	}
	versionsAnswer struct {
		Path     string        `json:"path"`
		Versions []versionView `json:"versions"`
	}
	liveAnswer struct {
		Status string `json:"status"`
	}
)

var healthDescriptions = map[string]description{
	"GET /health": {id: "live", tag: tagSystem, gives: gives[liveAnswer]()},
	"GET /api/health": {
		id: "health", tag: tagSystem, text: "Only the database decides: without NATS commands wait, and everything can be read.",
		gives: []content{{media: "application/json", of: typeOf[healthAnswer]()}, givesAs[healthAnswer](http.StatusServiceUnavailable, "The database does not answer.")},
	},
	"GET /metrics": {
		id: "metrics", tag: tagSystem,
		gives: []content{{media: "text/plain", schema: openapi.Of("string"), text: "The text format of Prometheus."}},
		fails: map[int]string{http.StatusNotFound: "Metrics are switched off."},
	},
}

var docsDescriptions = map[string]description{
	"GET /api/openapi.json": {
		id: "openapi", tag: tagDocs, text: "Send If-None-Match with the ETag of an earlier answer to be told that nothing changed.",
		params: []parameter{header("If-None-Match", "ETag of an earlier answer.")},
		gives: []content{
			{media: "application/json", schema: openapi.Of("object"), text: "An OpenAPI 3.1 document.", headers: map[string]string{"ETag": "Changes with the document."}},
			{status: http.StatusNotModified, text: "Nothing changed."},
		},
	},
	"GET /api/docs": {
		id: "docs", tag: tagDocs, params: []parameter{header("If-None-Match", "ETag of an earlier answer.")},
		gives: []content{{media: "text/html", schema: openapi.Of("string"), text: "A page."}, {status: http.StatusNotModified, text: "Nothing changed."}},
	},
	"GET /api/docs/{file}": {
		id: "docsFile", tag: tagDocs, params: []parameter{header("If-None-Match", "ETag of an earlier answer.")},
		gives: []content{
			{media: "text/css", schema: openapi.Of("string"), more: []string{"text/javascript"}, text: "A part of the page."},
			{status: http.StatusNotModified, text: "Nothing changed."},
		},
		fails: map[int]string{http.StatusNotFound: "There is no such file."},
	},
}

var noResource = map[int]string{http.StatusNotFound: "There is no such resource or version."}

var catalogDescriptions = map[string]description{
	"POST /api/catalog/register": {
		id: "registerResource", tag: tagCatalog, text: "Every registration is a new version, also of what has not changed. A playbook with errors is refused with all of them in problems.",
		body: takes[registerBody]("content"), gives: gives[registerAnswer](),
		fails: map[int]string{http.StatusUnprocessableEntity: "The document cannot be used; problems says where and why."},
	},
	"POST /api/catalog/list":        {id: "listResources", tag: tagCatalog, body: mayTake[entriesBody](), gives: gives[entriesAnswer]()},
	"POST /api/catalog/agents/list": {id: "listAgents", tag: tagCatalog, body: mayTake[entriesBody](), gives: gives[entriesAnswer]()},
	"GET /api/catalog/versions": {
		id: "listVersions", tag: tagCatalog, gives: gives[versionsAnswer](), fails: noResource,
		params: []parameter{textParam("path", "Of the resource.").must(), flagParam("include_archived", "Also versions that were taken out and are kept for executions.", false)},
	},
	"GET /api/catalog/list/{kind}": {id: "listPaths", tag: tagCatalog, gives: gives[[]string](), old: true, text: "For older clients that offer names to choose from."},
	"POST /api/catalog/resource": {
		id: "getResource", tag: tagCatalog, text: "Name it by catalog_id, or by path and version.", body: takes[entryBody](), gives: gives[entryView](), fails: noResource,
	},
	"POST /api/catalog/playbooks/validate": {id: "validatePlaybook", tag: tagCatalog, body: takes[validateBody](), gives: gives[validateAnswer]()},
	"POST /api/catalog/delete":             {id: "deleteResource", tag: tagCatalog, text: "May be repeated.", body: takes[shelfBody]("path"), gives: gives[shelfAnswer](), fails: noResource},
	"POST /api/catalog/restore":            {id: "restoreResource", tag: tagCatalog, text: "May be repeated.", body: takes[shelfBody]("path"), gives: gives[shelfAnswer](), fails: noResource},
	"GET " + uiSchemaPattern: {
		id: "getForm", tag: tagCatalog, path: "/api/catalog/{path}/ui_schema", gives: gives[uiSchemaAnswer](), fails: noResource,
		params: []parameter{textParam("version", "A number, or latest.")},
	},
}
