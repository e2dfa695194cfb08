package api

import (
	"net/http"
	"slices"
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
	Admin    Role = "admin"
	// Internal callers carry the internal token; without one in the server's
	// settings their routes are closed.
	Internal Role = "internal"
)

// Route describes one entry of the API for documentation and tests.
type Route struct {
	Method  string
	Pattern string // in the syntax of http.ServeMux
	Role    Role
	Scope   Scope  // how it concerns the paths of playbooks
	Noted   string // what is written down about it: the type of an action, or why there is none
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
	shown   bool  // its answers pass the filter for secrets
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
	return slices.Concat(
		s.healthRoutes(), s.docsRoutes(), s.catalogRoutes(), s.executeRoutes(), s.eventRoutes(), s.commandRoutes(), s.resultRoutes(),
		shown(s.executionRoutes()), shown(s.replayRoutes()), s.variableRoutes(), s.poolRoutes(), s.callbackRoutes(), shown(s.signalRoutes()), shown(s.logRoutes()), s.outboxRoutes(),
		s.databaseRoutes(), s.retentionRoutes(), shown(s.dashboardRoutes()), s.credentialRoutes(), s.keychainRoutes(),
		s.tokenRoutes(), s.scheduleRoutes(), s.authRoutes(), s.consoleRoutes(),
	)
}

// entry is a route with the usual limits.
func entry(method, pattern string, role Role, h handler, summary, request, answer string) route {
	return route{Route: Route{Method: method, Pattern: pattern, Role: role, Summary: summary, Request: request, Answer: answer}, handle: h}
}

// unrouted answers what no pattern matched: the page outside /api, and inside
// it a JSON 404, or a 405 when the path exists under another method.
func (s *Server) unrouted(w http.ResponseWriter, r *http.Request) error {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	if p := r.URL.Path; read && p != "/api" && !strings.HasPrefix(p, "/api/") {
		if s.opt.Page != nil {
			w.Header().Set("Content-Security-Policy", pagePolicy)
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
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := *r
		probe.Method = m
		_, pattern := s.mux.Handler(&probe)
		if _, ok := uiSchemaPath(r.URL.Path); pattern == "GET "+uiSchemaPattern && !ok {
			continue // it matches what means nothing
		}
		if pattern != "/" && pattern != "" {
			list = append(list, m)
		}
	}
	return list
}
