package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

// reply remembers whether anything was sent, because only an untouched answer
// can still become an error.
type reply struct {
	http.ResponseWriter
	status int
	closed func() bool // when set and true, a success must not leave; nil = never
}

func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		if status < http.StatusMultipleChoices && w.closed != nil && w.closed() {
			panic("a route answered a narrowed caller without asking for its rights")
		}
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serve runs one route: who calls, role and paths, body limit, deadline, error
// body, panic barrier, and the record of what was done.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(hw http.ResponseWriter, r *http.Request) {
		w := &reply{ResponseWriter: hw}
		began := s.opt.Clock()
		p, r := s.pass(rt, traced(r))
		w.Header().Set("X-Request-ID", p.requestID)
		defer func() {
			if v := recover(); v != nil {
				s.recovered(w, r, v)
			}
			took := s.opt.Clock().Sub(began)
			s.count(rt, w.status, took)
			if !rt.quiet() && s.opt.Logger.Enabled(r.Context(), slog.LevelDebug) {
				s.opt.Logger.Debug("request", "method", r.Method, "path", r.URL.Path, "status", w.status, "dur", took, "request_id", p.requestID, "actor", p.who.ID)
			}
		}()
		if !rt.stream {
			ctx, cancel := context.WithTimeout(r.Context(), s.opt.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		r.Body = http.MaxBytesReader(w, r.Body, max(s.opt.MaxBody, rt.maxBody))
		err := s.admit(rt, r)
		r = r.WithContext(auth.With(r.Context(), p.who))
		if err == nil {
			err = wellFormed(r.URL.RawQuery)
		}
		if err == nil {
			w.closed = s.unasked(rt, p)
			stop := func() {}
			if rt.stream {
				r, stop = s.whileAllowed(r)
			}
			err = s.answer(rt, w, r)
			stop()
		}
		if err != nil {
			s.fail(w, r, err)
		}
		s.note(rt, r, w.status)
	})
}

// answer calls the handler of a route.
func (s *Server) answer(rt route, w http.ResponseWriter, r *http.Request) error {
	if !rt.shown {
		return rt.handle(w, r)
	}
	v := newVeil(w)
	defer v.close()
	return rt.handle(v, r)
}

// wellFormed refuses a query that cannot be read. Reading leaves out the
// parameters it cannot, and a list without its filter looks right.
func wellFormed(query string) error {
	if _, err := url.ParseQuery(query); err != nil {
		return event.Errorf(event.BadRequest, "malformed query: %v", err)
	}
	return nil
}

// unasked tells whether a route forgot to ask what a narrowed caller may see.
func (s *Server) unasked(rt route, p *passage) func() bool {
	if !s.required() || rt.Scope != Permitted && rt.Scope != Filtered || !p.narrowed() {
		return nil
	}
	return func() bool { return !p.permitted }
}

// authorizeInternal tells whether a request may use what is internal: with the
// internal token, or, where authentication is on, as an admin.
func (s *Server) authorizeInternal(r *http.Request) error {
	if who := passageOf(r.Context()).who; s.required() && who.May(auth.Admin) {
		return nil
	}
	if s.opt.InternalToken == "" {
		return &event.Error{
			Code: event.Unavailable, Message: "internal routes are closed: this server has no internal token",
			Remedy: "start it with NOETL_INTERNAL_API_TOKEN set and send the same value as a bearer token", Reason: "no_internal_token",
		}
	}
	if !s.hasInternalToken(r) {
		passageOf(r.Context()).denied = true
		return &event.Error{
			Code: event.Forbidden, Message: "internal routes need the internal token",
			Remedy: "send the header Authorization: Bearer <token>",
		}
	}
	return nil
}

func (s *Server) fail(w *reply, r *http.Request, err error) {
	f := failureOf(err)
	if f.Status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		level := slog.LevelError
		if f.Status == http.StatusServiceUnavailable {
			level = slog.LevelWarn // the caller will try again
		}
		s.opt.Logger.Log(r.Context(), level, "request not served", "execution_id", executionIn(r), "method", r.Method, "path", r.URL.Path, "status", f.Status, "id", f.ID, "request_id", passageOf(r.Context()).requestID, "error", err)
	}
	if w.status == 0 {
		if f.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="noetl"`)
		}
		f.write(w)
	}
}

func (s *Server) recovered(w *reply, r *http.Request, v any) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	f := internalFailure()
	s.opt.Logger.Error("handler panicked", "execution_id", executionIn(r), "method", r.Method, "path", r.URL.Path, "id", f.ID, "request_id", passageOf(r.Context()).requestID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if w.status == 0 {
		f.write(w)
	}
}

// guarded puts the checks that concern browsers in front of next: the host
// name, the origin of state-changing requests, and the answers to preflights.
func (s *Server) guarded(next http.Handler) (http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	for _, o := range s.opt.AllowedOrigins {
		if err := protection.AddTrustedOrigin(o); err != nil {
			return nil, event.Errorf(event.Invalid, "allowed origin %q: %w", o, err)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secured(w.Header())
		if !s.hostAllowed(r.Host) {
			refusal("requests must not be addressed to " + r.Host).write(w)
			return
		}
		if s.preflight(w, r) {
			return
		}
		if err := protection.Check(r); err != nil {
			refusal("request from a page of another origin").write(w)
			return
		}
		next.ServeHTTP(w, unaliased(r))
	}), nil
}

// secured sets what every answer tells browsers. Pages loosen the policy for
// themselves; answers of the API are nothing a browser should run or frame.
func secured(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// aliasPrefix is where clients of gateways expect the API.
const aliasPrefix = "/noetl/"

// unaliased is a request for the API under its own address.
func unaliased(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.Path, aliasPrefix)
	if !ok {
		return r
	}
	u := *r.URL
	u.Path = "/api/" + rest
	if raw, ok := strings.CutPrefix(u.RawPath, aliasPrefix); ok {
		u.RawPath = "/api/" + raw
	} else {
		u.RawPath = ""
	}
	own := *r
	own.URL = &u
	return &own
}

func refusal(message string) *failure {
	return &failure{Message: message, Status: http.StatusForbidden, Code: string(event.Forbidden)}
}

func (s *Server) hostAllowed(host string) bool {
	if len(s.opt.AllowedHosts) == 0 {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	return slices.ContainsFunc(s.opt.AllowedHosts, func(a string) bool { return strings.EqualFold(a, host) })
}

// preflight marks answers to allowed origins as readable by their pages, and
// answers the question browsers ask before a request; it tells whether it did.
func (s *Server) preflight(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(s.opt.AllowedOrigins, origin) {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Link, X-Next-Before, Retry-After, X-Request-ID")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, X-Session-Token, X-Request-ID, Last-Event-ID, Idempotency-Key, Traceparent, Tracestate, Baggage")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
