package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// reply remembers whether anything was sent, because only an untouched answer
// can still become an error.
type reply struct {
	http.ResponseWriter
	status int
}

func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serve runs one route: role, body limit, deadline, error body, panic barrier.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(hw http.ResponseWriter, r *http.Request) {
		w := &reply{ResponseWriter: hw}
		began := s.opt.Clock()
		defer func() {
			if v := recover(); v != nil {
				s.recovered(w, r, v)
			}
			took := s.opt.Clock().Sub(began)
			s.count(rt, w.status, took)
			if s.opt.Logger.Enabled(r.Context(), slog.LevelDebug) {
				s.opt.Logger.Debug("request", "method", r.Method, "path", r.URL.Path, "status", w.status, "dur", took)
			}
		}()
		if !rt.stream {
			ctx, cancel := context.WithTimeout(r.Context(), s.opt.Timeout)
			defer cancel()
			r = r.WithContext(ctx)
		}
		r.Body = http.MaxBytesReader(w, r.Body, max(s.opt.MaxBody, rt.maxBody))
		err := s.authorize(rt, r)
		if err == nil {
			err = wellFormed(r.URL.RawQuery)
		}
		if err == nil {
			err = s.answer(rt, w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
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

func (s *Server) authorize(rt route, r *http.Request) error {
	if rt.Role == Internal {
		return s.authorizeInternal(r)
	}
	if s.opt.Authorize == nil || rt.Role == "" || rt.Role == Anyone {
		return nil
	}
	return s.opt.Authorize(r, rt.Role)
}

// authorizeInternal compares the bearer token with ours. Digests are compared,
// so that the time it takes tells neither the content nor the length.
func (s *Server) authorizeInternal(r *http.Request) error {
	if s.opt.InternalToken == "" {
		return &event.Error{
			Code: event.Unavailable, Message: "internal routes are closed: this server has no internal token",
			Remedy: "start it with NOETL_INTERNAL_API_TOKEN set and send the same value as a bearer token", Reason: "no_internal_token",
		}
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(strings.TrimSpace(s.opt.InternalToken)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
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
		s.opt.Logger.Log(r.Context(), level, "request not served", "method", r.Method, "path", r.URL.Path, "status", f.Status, "id", f.ID, "error", err)
	}
	if w.status == 0 {
		f.write(w)
	}
}

func (s *Server) recovered(w *reply, r *http.Request, v any) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	f := internalFailure()
	s.opt.Logger.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "id", f.ID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
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
		w.Header().Set("X-Content-Type-Options", "nosniff")
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
		next.ServeHTTP(w, r)
	}), nil
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
	h.Set("Access-Control-Expose-Headers", "Link, X-Next-Before, Retry-After")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, Last-Event-ID, Idempotency-Key, Traceparent, Tracestate, Baggage")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
