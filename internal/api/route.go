package api

import (
	"net/http"
	"strings"
)

// Role is the kind of caller a route is meant for.
type Role string

// The roles. Operators and workers may also do what viewers may.
const (
	Anyone   Role = "anyone" // probes
	Viewer   Role = "viewer"
	Operator Role = "operator"
	Worker   Role = "worker"
)

// Route describes one entry of the API for documentation and tests.
type Route struct {
	Method  string
	Pattern string // in the syntax of http.ServeMux
	Role    Role
	Summary string
	// Request and Answer sketch the JSON bodies; "" means none.
	Request string
	Answer  string
}

type handler func(w http.ResponseWriter, r *http.Request) error

type route struct {
	Route
	handle  handler
	stream  bool  // no request timeout; the handler sets its own deadlines
	maxBody int64 // bytes of a request body where more than usual is expected
}

// Routes lists the API in table order.
func (s *Server) Routes() []Route {
	table := s.routes()
	list := make([]Route, len(table))
	for i, rt := range table {
		list[i] = rt.Route
	}
	return list
}

func (s *Server) routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	entry := func(method, pattern string, role Role, h handler, summary, request, answer string) route {
		return route{Route: Route{method, pattern, role, summary, request, answer}, handle: h}
	}
	table := []route{
		entry(get, "/health", Anyone, s.live, "tells that the process answers", "", `{status}`),
		entry(get, "/api/health", Anyone, s.health, "tells whether the dependencies answer; 503 when the database does not", "", `{status, database, nats, uptime_seconds, version}`),

		entry(post, "/api/catalog/register", Operator, s.register, "stores a resource as the next version of its path", `{content, resource_type?}`, `{status, message, path, version, catalog_id, kind, warnings?}`),
		entry(post, "/api/catalog/list", Viewer, s.entries, "lists catalog entries, newest first", `{resource_type?, path?, limit?, offset?}`, `{entries}`),
		entry(get, "/api/catalog/list/{kind}", Viewer, s.paths, "lists the paths of one kind of resource", "", `[path]`),
		entry(post, "/api/catalog/resource", Viewer, s.entry, "returns one catalog entry", `{catalog_id | path, version?}`, `entry`),

		entry(post, "/api/execute", Operator, s.execute, "starts an execution", `{path | catalog_id, version?, payload?, parent_execution_id?, execution_pool?, trace?, resource_kind?}`, `{execution_id, status, commands_generated, warnings?}`),

		entry(post, "/api/events", Worker, s.event, "records one event", `{execution_id, step, event_type, payload?, meta?, worker_id?, event_id?, status?, created_at?, eager?}`, `{status, event_id, commands_generated, commands?}`),
		entry(post, "/api/events/batch", Worker, s.events, "records events of one execution as a whole", `{execution_id, worker_id?, events, eager?}`, `{status, event_ids, commands_generated, commands?}`),

		entry(get, "/api/commands/{event_id}", Worker, s.command, "shows a command without claiming it", "?execution_id", `command`),
		entry(post, "/api/commands/{event_id}/claim", Worker, s.claim, "gives a worker the right to run a command", `{worker_id, execution_id?}`, `command`),
		entry(post, "/api/commands/{event_id}/heartbeat", Worker, s.heartbeat, "renews the lease of a claim; 409 when it was lost", `{worker_id, execution_id?, attempt?}`, `{lease_until, cancel}`),
		entry(post, "/api/commands/{event_id}/release", Worker, s.release, "gives a claim back", `{worker_id, execution_id?, attempt?}`, `{status}`),
		entry(post, "/api/commands/heartbeat", Worker, s.heartbeats, "renews many leases at once", `{worker_id, commands}`, `{answers}`),

		entry(get, "/api/result/resolve", Viewer, s.result, "returns a value that was put aside, as it was put", "?ref", `value`),

		entry(post, "/api/internal/container-callback/{execution_id}/{step}", Worker, s.containerCallback, "reports the end of a job to the step that waits for it", `{state, job_name, job_uid?, completed_at?, exit_code?, reason?, stdout_uri?, stderr_uri?}`, `{status, event_id?}`),

		entry(get, "/api/executions", Viewer, s.executions, "lists executions, newest first", "?status&path&catalog_id&parent_execution_id&limit&offset | page&page_size", `[execution]`),
		entry(get, "/api/executions/{id}", Viewer, s.execution, "shows one execution with the end of its log", "?include_events&page&page_size&since_event_id&event_type", `{…, workload, steps, events}`),
		entry(get, "/api/executions/{id}/events", Viewer, s.executionEvents, "reads the log of an execution", "?after&limit | page&page_size&since_event_id&event_type", `{events, …}`),
		entry(get, "/api/executions/{id}/status", Viewer, s.status, "tells how far an execution is", "", `{execution_id, status, current_step, is_cancelled, progress, …}`),
		entry(get, "/api/executions/{id}/explain", Viewer, s.explain, "says how each step stands and why", "?step", `{execution_id, path, status, error?, steps}`),
		entry(get, "/api/executions/{id}/cancellation-check", Worker, s.cancellation, "tells whether an execution was cancelled", "", `{execution_id, is_cancelled, …}`),
		entry(post, "/api/executions/{id}/cancel", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`),
		entry(post, "/api/executions/{id}/stop", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`),
	}
	stream := entry(get, "/api/executions/{id}/stream", Viewer, s.stream, "streams the log of an execution as server-sent events", "?after, or Last-Event-ID", `text/event-stream`)
	stream.stream = true
	put := entry(http.MethodPut, "/api/result/{execution_id}", Worker, s.putResult, "puts a value aside that is too large for the log", `{name, data, scope?}`, `{ref, store, scope, bytes, sha256, expires_at}`)
	put.maxBody = maxResultBody
	return append(table, stream, put)
}

// unrouted answers what no pattern matched: the page outside /api, and inside
// it a JSON 404, or a 405 when the path exists under another method.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request) error {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if p := r.URL.Path; read && p != "/api" && !strings.HasPrefix(p, "/api/") {
		if s.opt.Page != nil {
			s.opt.Page.ServeHTTP(w, r)
			return nil
		}
		if s.builtinPage(w, p) {
			return nil
		}
	}
	if allow := s.allowed(r); len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		return &failure{Status: http.StatusMethodNotAllowed, Message: r.Method + " is not allowed here; use " + strings.Join(allow, " or ")}
	}
	return &failure{Status: http.StatusNotFound, Message: "no such route: " + r.Method + " " + r.URL.Path, Code: "not_found"}
}

func (s *Server) allowed(r *http.Request) []string {
	var list []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		probe := *r
		probe.Method = m
		if _, pattern := s.mux.Handler(&probe); pattern != "/" && pattern != "" {
			list = append(list, m)
		}
	}
	return list
}
