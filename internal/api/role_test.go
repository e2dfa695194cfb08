package api_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
)

var updateRoles = flag.Bool("update-roles", false, "write testdata/roles.golden anew")

func readAll(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// samples are bodies and queries of routes whose handlers decide by the path
// in them.
var samples = map[string]string{
	"POST /api/catalog/register":               `{"content": PLAYBOOK}`,
	"POST /api/catalog/resource":               `{"path": "PATH"}`,
	"GET /api/catalog/versions":                `?path=PATH`,
	"POST /api/execute":                        `{"path": "PATH"}`,
	"POST /api/execute/batch":                  `{"executions": [{"path": "PATH"}]}`,
	"POST /api/events":                         `{"execution_id": EXECUTION, "step": "s", "event_type": "note.made"}`,
	"POST /api/events/batch":                   `{"execution_id": EXECUTION, "events": [{"step": "s", "event_type": "note.made"}]}`,
	"POST /api/commands/{event_id}/claim":      `{"worker_id": "w"}`,
	"POST /api/commands/claim":                 `{"worker_id": "w", "commands": [{"event_id": EVENT}]}`,
	"POST /api/commands/{event_id}/heartbeat":  `{"worker_id": "w", "execution_id": EXECUTION}`,
	"POST /api/commands/{event_id}/release":    `{"worker_id": "w", "execution_id": EXECUTION}`,
	"POST /api/commands/heartbeat":             `{"worker_id": "w", "commands": [{"event_id": EVENT, "execution_id": EXECUTION}]}`,
	"GET /api/result/resolve":                  `?ref=noetl://execution/EXECUTION/result/x/1`,
	"GET /api/replay/state":                    `?execution_id=EXECUTION`,
	"POST /api/secrets/resolve":                `{"execution_id": EXECUTION, "event_id": EVENT, "worker_id": "w", "attempt": 1, "aliases": ["x"]}`,
	"GET /api/credentials/{identifier}/sealed": `?worker_id=w&execution_id=EXECUTION`,
	"GET /api/keychain/catalog/{catalog_id}":   ``,
	"GET /api/keychain/{catalog_id}/{name}":    ``,
	"GET /api/commands/{event_id}":             ``,
	"GET /api/catalog/{path...}":               ``,
	"POST /api/schedules":                      `{"path": "PATH", "every": "2h"}`,
	"PUT /api/schedules/{ref}":                 `{"path": "PATH", "every": "2h"}`,
	"POST /api/schedules/{ref}/backfill":       `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"}`,
	"GET /api/schedules/{ref}":                 ``,
	"DELETE /api/schedules/{ref}":              ``,
	"POST /api/schedules/{ref}/pause":          ``,
	"POST /api/schedules/{ref}/resume":         ``,
	"POST /api/schedules/{ref}/run":            ``,
	"GET /api/schedules/{ref}/runs":            ``,
	"GET /api/schedules/{ref}/next":            ``,
	"POST /api/tokens":                         `{"name": "n", "role": "viewer", "prefix": "PATH"}`,
	"DELETE /api/tokens/{id}":                  ``,
}

var placeholder = regexp.MustCompile(`\{([a-z_]+)(\.\.\.)?\}`)

// request is an address and a body for a route, about what lies at a path.
func (g *guarded) request(rt api.Route, path string) (url, body string) {
	fill := strings.NewReplacer("PATH", path, "EXECUTION", g.execution[path].String(), "EVENT", g.command[path].String(), "PLAYBOOK", fmt.Sprintf("%q", playbookAt(path)))
	url = placeholder.ReplaceAllStringFunc(rt.Pattern, func(p string) string {
		switch strings.Trim(p, "{}.") {
		case "id", "execution_id":
			return g.execution[path].String()
		case "event_id":
			return g.command[path].String()
		case "catalog_id":
			return g.catalog[path].String()
		case "path":
			return path + "/ui_schema"
		case "ref":
			return scheduleOf(path)
		case "kind":
			return "playbook"
		}
		return "x"
	})
	sample := fill.Replace(samples[rt.Method+" "+rt.Pattern])
	if strings.HasPrefix(sample, "?") {
		return url + sample, ""
	}
	if sample == "" && rt.Method != "GET" {
		sample = "{}"
	}
	return url, sample
}

func verdict(a answer) string {
	switch {
	case a.status == 401:
		return "401"
	case a.status == 403 && !strings.Contains(a.body, `"console_closed"`) && !strings.Contains(a.body, `"include_data"`):
		return "403"
	case strings.Contains(a.body, "Forbidden: "):
		return "403"
	case a.status >= 500 && a.status != 503:
		return fmt.Sprint(a.status)
	}
	return "yes"
}

// foreign is the verdict of a narrowed caller about what is not theirs: hidden
// when it looks as if it were not there.
func foreign(a answer) string {
	if a.status == 404 || strings.Contains(a.body, `"status":"not_found"`) {
		return "hidden"
	}
	return verdict(a)
}

// TestEveryRouteIsOpenToItsRolesAlone holds all routes and callers against
// testdata/roles.golden: whoever changes who may do what changes that file.
func TestEveryRouteIsOpenToItsRolesAlone(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, nil)
	callers := []string{"", "wrong", "viewer", "operator", "worker", "admin", "internal"}
	lines := []string{fmt.Sprintf("%-6s %-58s %-9s %-11s %s", "", "route", "role", "scope", "none wrong viewer operator worker admin internal narrowed elsewhere")}
	for _, rt := range routesOf(t) {
		cells := []string{}
		for _, c := range callers {
			url, body := g.request(rt, "team/a/etl")
			cells = append(cells, verdict(g.as(c, rt.Method, url, body)))
		}
		url, body := g.request(rt, "team/a/etl")
		cells = append(cells, verdict(g.as("narrowed", rt.Method, url, body)))
		url, body = g.request(rt, "team/b/etl")
		cells = append(cells, foreign(g.as("narrowed", rt.Method, url, body)))
		lines = append(lines, fmt.Sprintf("%-6s %-58s %-9s %-11s %s", rt.Method, rt.Pattern, rt.Role, rt.Scope, strings.Join(cells, " ")))
	}
	got := strings.Join(lines, "\n") + "\n"
	file := filepath.Join("testdata", "roles.golden")
	if *updateRoles {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	old := strings.Split(string(want), "\n")
	for _, line := range lines {
		if !slices.Contains(old, line) {
			t.Errorf("is:  %s", line)
		}
	}
	for _, line := range old {
		if !slices.Contains(lines, line) && line != "" {
			t.Errorf("was: %s", line)
		}
	}
	t.Error("who may do what has changed; if that is meant: go test ./internal/api -run EveryRouteIsOpen -update-roles")
}

func routesOf(t *testing.T) []api.Route {
	t.Helper()
	s, err := api.New(api.Options{Plane: &apitest.Plane{}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Routes()
}

// TestEveryRouteSaysWhomAndWhatItConcerns is what a new route runs into first.
func TestEveryRouteSaysWhomAndWhatItConcerns(t *testing.T) {
	t.Parallel()
	roles := []api.Role{api.Anyone, api.Viewer, api.Operator, api.Worker, api.Admin, api.Internal}
	scopes := []api.Scope{api.Everywhere, api.Pathless, api.ByExecution, api.Permitted, api.Filtered}
	for _, rt := range routesOf(t) {
		name := rt.Method + " " + rt.Pattern
		switch inside := strings.Contains(rt.Pattern, "/internal/"); {
		case !slices.Contains(roles, rt.Role):
			t.Errorf("%s has no role: give entry one", name)
		case !slices.Contains(scopes, rt.Scope):
			t.Errorf("%s does not say how it concerns paths: add .within(Everywhere), or another scope", name)
		case inside && rt.Role != api.Internal:
			t.Errorf("%s is internal and must need the role Internal", name)
		case rt.Role == api.Internal && rt.Scope != api.Everywhere:
			t.Errorf("%s is internal: it concerns everything", name)
		case rt.Method != "GET" && rt.Noted == "":
			t.Errorf("%s does not say what is written down about it: add .noted(…)", name)
		}
		if _, ok := samples[name]; rt.Scope == api.Permitted && !ok {
			t.Errorf("%s decides by a path: add a sample request to the test", name)
		}
		if rt.Scope == api.ByExecution && !strings.Contains(rt.Pattern, "{id}") && !strings.Contains(rt.Pattern, "{execution_id}") {
			t.Errorf("%s has no execution in its address", name)
		}
	}
}
