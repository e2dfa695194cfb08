// Package testapi is the HTTP server that real playbooks are tested against:
// lists in all ways of paging, large answers, failures on request, rate limits,
// and a probe that measures how many calls overlap. All state is in memory and
// belongs to one Server; what it serves is the same on every run.
package testapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Options change what would make tests slow.
type Options struct {
	// PatientDelay is how long patient records take to be found; 0 = no time.
	PatientDelay time.Duration
	// RateLimit is how many calls a second the routes of patients take; 0 = 50,
	// negative = any number.
	RateLimit int
	// Company is how long a probe without a delay stays for another one to
	// overlap with, so that a busy machine does not look like a serial caller;
	// 0 = not at all.
	Company time.Duration
}

// Server serves and remembers.
type Server struct {
	URL     string
	options Options

	mu       sync.Mutex // guards everything below
	requests []Request
	flaky    map[int]int // calls so far, by page
	windows  map[string]*window
	probes   probes
}

// Request is a call that was answered.
type Request struct {
	Method string
	Path   string
	Query  string
	Status int
}

// Start serves until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := New(o)
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// New makes a server that is not listening.
func New(o Options) *Server {
	if o.RateLimit == 0 {
		o.RateLimit = 50
	}
	s := &Server{options: o, windows: map[string]*window{}}
	s.reset()
	return s
}

func (s *Server) reset() {
	s.flaky = map[int]int{}
	s.probes = newProbes()
}

// Requests are the calls so far, in the order in which they were answered.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.routes().ServeHTTP(&recorder{ResponseWriter: w, server: s, request: r}, r)
}

// recorder notes a call before its answer goes out, so that whoever has the
// answer also sees the note.
type recorder struct {
	http.ResponseWriter
	server  *Server
	request *http.Request
}

func (r *recorder) WriteHeader(status int) {
	u := r.request.URL
	r.server.mu.Lock()
	r.server.requests = append(r.server.requests, Request{Method: r.request.Method, Path: u.Path, Query: u.RawQuery, Status: status})
	r.server.mu.Unlock()
	r.ResponseWriter.WriteHeader(status)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(*call){
		"GET /health":                             func(c *call) { c.answer(object{"status": "ok"}) },
		"GET /api/v1/assessments":                 s.assessments,
		"GET /api/v1/users":                       s.users,
		"GET /api/v1/events":                      s.events,
		"GET /api/v1/flaky":                       s.flakyPage,
		"POST /api/v1/flaky/reset":                s.flakyReset,
		"GET /api/v1/heavy":                       s.heavy,
		"GET /api/v1/heavy/stats":                 s.heavyStats,
		"GET /api/v1/reference-chain/items":       s.chain,
		"GET /api/v1/reference-chain/detail/{id}": s.chainDetail,
		"GET /api/v1/errors":                      s.errors,
		"GET /api/v1/rate-limited":                s.rateLimited,
		"GET /api/v1/patient-records":             s.patientRecords,
		"GET /api/v1/patient/demographics":        s.limited(s.demographics),
		"GET /api/v1/patient/{type}":              s.limited(s.patientPage),
		"GET /api/v1/mds/assessment_ids":          s.limited(s.mdsIDs),
		"GET /api/v1/mds/assessment/{id}":         s.limited(s.mdsAssessment),
		"GET /api/v1/pft/mds/details":             s.limited(s.mdsDetails),
		"GET /api/v1/pft/batch/{type}":            s.batch,
		"POST /api/v1/concurrency/reset":          s.probesReset,
		"GET /api/v1/concurrency/probe":           s.probe,
		"GET /api/v1/concurrency/stats":           s.probeStats,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { h(&call{w: w, r: r}) })
	}
	return mux
}

type object = map[string]any

// call is one request on its way to its answer.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	failed bool
}

func (c *call) answer(v any) { c.respond(http.StatusOK, v) }

func (c *call) fail(status int, detail any) { c.respond(status, object{"detail": detail}) }

// respond answers, unless the call was refused for its parameters.
func (c *call) respond(status int, v any) {
	if c.failed {
		return
	}
	c.failed = true
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_ = json.NewEncoder(c.w).Encode(v)
}

// text is a parameter as it was sent.
func (c *call) text(name string) string { return c.r.URL.Query().Get(name) }

// whole is a parameter that must be a whole number.
func (c *call) whole(name string, def int) int {
	if !c.r.URL.Query().Has(name) {
		return def
	}
	n, err := strconv.Atoi(c.text(name))
	if err != nil {
		c.fail(http.StatusUnprocessableEntity, []object{{
			"type": "int_parsing", "loc": []string{"query", name},
			"msg": "Input should be a valid integer, unable to parse string as an integer", "input": c.text(name),
		}})
	}
	return n
}

// number is a parameter that must be a number.
func (c *call) number(name string, def float64) float64 {
	if !c.r.URL.Query().Has(name) {
		return def
	}
	n, err := strconv.ParseFloat(c.text(name), 64)
	if err != nil {
		c.fail(http.StatusUnprocessableEntity, []object{{
			"type": "float_parsing", "loc": []string{"query", name},
			"msg": "Input should be a valid number, unable to parse string as a number", "input": c.text(name),
		}})
	}
	return n
}

// wait passes time unless the caller goes away first.
func (c *call) wait(d time.Duration) { c.await(nil, d) }

// await is wait that ends early when done is closed.
func (c *call) await(done <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-c.r.Context().Done():
	}
}
