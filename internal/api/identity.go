package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

// passage is what the guard knows of one request.
type passage struct {
	who       *auth.Principal
	need      Role
	remote    string // address without port
	requestID string
	target    string // what it is about, for the record
	detail    map[string]any
	permitted bool // the handler asked for the paths it is about
	denied    bool // it was refused for lack of rights
	noted     bool // the handler wrote its own note
}

type passageKey struct{}

// passageOf is the passage of a request; outside of one everything is allowed,
// as for whoever calls within the process.
func passageOf(ctx context.Context) *passage {
	if p, ok := ctx.Value(passageKey{}).(*passage); ok {
		return p
	}
	return &passage{who: &auth.Local, need: Viewer}
}

// concerning names what a request changes, for the record.
func concerning(ctx context.Context, target string) { passageOf(ctx).target = target }

// detail adds to what the record says about a request. Never a secret.
func detail(ctx context.Context, name string, v any) {
	p := passageOf(ctx)
	if p.detail == nil {
		p.detail = map[string]any{}
	}
	p.detail[name] = v
}

// forbidden refuses a caller who is known.
func (p *passage) forbidden(message string) error {
	p.denied = true
	return &event.Error{Code: event.Forbidden, Message: message, Remedy: "ask an admin for a token with this role", Reason: "role"}
}

// unauthorized is the one answer to wrong and missing evidence, so that nothing
// tells which tokens exist.
var unauthorized = &event.Error{
	Code: event.Unauthorized, Message: "this needs a valid token or session", Reason: "unauthorized",
	Remedy: "send the header Authorization: Bearer <token>, or sign in",
}

// internalCaller is who has the internal token: it may do what workers may, and
// use the internal routes.
var internalCaller = auth.Principal{ID: "internal", Name: "internal token", By: auth.ByInternal, Grants: []auth.Grant{{Role: auth.Worker}}}

func (s *Server) required() bool { return s.opt.Access != nil && s.opt.Access.Required() }

// nobody is a caller who has not shown who they are.
var nobody = auth.Principal{ID: "unknown", Name: "unknown", By: auth.ByNothing}

// pass begins the passage of a request.
func (s *Server) pass(rt route, r *http.Request) (*passage, *http.Request) {
	p := &passage{who: &auth.Local, need: rt.Role, remote: s.remote(r), requestID: requestID(r)}
	if s.required() {
		p.who = &nobody
	}
	return p, r.WithContext(context.WithValue(r.Context(), passageKey{}, p))
}

// narrowed tells whether the caller has the role it needs only for some paths.
func (p *passage) narrowed() bool { return !p.who.May(p.need.authRole()) }

// admit finds out who calls and whether the route is open to them.
func (s *Server) admit(rt route, r *http.Request) error {
	p := passageOf(r.Context())
	if !s.required() {
		return s.admitAnybody(rt, r)
	}
	if rt.Role == "" || rt.Role == Anyone {
		return nil
	}
	who, err := s.identify(r)
	if err != nil {
		p.denied = true
		return err
	}
	p.who = who
	if rt.Role == Internal {
		if who.By == auth.ByInternal || who.May(auth.Admin) {
			p.permitted = true
			return nil
		}
		return p.forbidden("internal routes need the internal token or the role admin")
	}
	role := rt.Role.authRole()
	switch {
	case who.May(role):
		return nil
	case !who.MaySomewhere(role) || rt.Scope == Everywhere || rt.Scope == "":
		return p.forbidden("this needs the role " + string(rt.Role))
	case rt.Scope == ByExecution:
		return s.permitByURL(r)
	}
	return nil
}

// admitAnybody is for servers without authentication. The internal routes need
// the internal token all the same.
func (s *Server) admitAnybody(rt route, r *http.Request) error {
	if rt.Role == Internal {
		return s.authorizeInternal(r)
	}
	return nil
}

// identify checks what a request brings.
func (s *Server) identify(r *http.Request) (*auth.Principal, error) {
	if s.opt.InternalToken != "" && s.hasInternalToken(r) {
		return &internalCaller, nil
	}
	e, byCookie := s.evidence(r)
	who, err := s.opt.Access.Identify(r.Context(), e)
	if errors.Is(err, auth.ErrNoEvidence) {
		return nil, unauthorized
	}
	if err != nil {
		return nil, uniform(err)
	}
	if byCookie && !safeMethod(r.Method) && !sameOrigin(r) {
		return nil, event.Errorf(event.Forbidden, "a session cookie changes things only from our own page")
	}
	return who, nil
}

// uniform makes every refusal of evidence look the same.
func uniform(err error) error {
	if event.CodeOf(err) == event.Unauthorized || event.CodeOf(err) == event.NotFound {
		e := *unauthorized
		e.Err = err
		return &e
	}
	return err
}

// evidence gathers what a request brings. Whoever sends a header means it, so
// that the cookie, which browsers send by themselves, counts last.
func (s *Server) evidence(r *http.Request) (e auth.Evidence, byCookie bool) {
	e.Remote = s.remote(r)
	e.Bearer = bearer(r)
	if e.Bearer == "" {
		e.Session = strings.TrimSpace(r.Header.Get("X-Session-Token"))
	}
	if e.Bearer == "" && e.Session == "" {
		if c, err := r.Cookie(sessionCookie); err == nil && c.Value != "" {
			e.Session, byCookie = c.Value, true
		}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && len(r.TLS.PeerCertificates) > 0 {
		e.Certificate = r.TLS.PeerCertificates[0]
	}
	return e, byCookie
}

// bearer is the token of the Authorization header; two such headers are none.
func bearer(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(strings.TrimSpace(values[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// hasInternalToken compares digests, so that the time it takes tells neither
// the content nor the length.
func (s *Server) hasInternalToken(r *http.Request) bool {
	got, want := sha256.Sum256([]byte(bearer(r))), sha256.Sum256([]byte(strings.TrimSpace(s.opt.InternalToken)))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func safeMethod(m string) bool {
	return m == http.MethodGet || m == http.MethodHead || m == http.MethodOptions
}

// sameOrigin tells whether a browser says that its own page of ours sent the
// request. Who says nothing is no browser of today and has other evidence.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && u.Host != "" && u.Host == r.Host
}

// remote is the address a request comes from. Only proxies we know may say it
// comes from somebody else.
func (s *Server) remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if !s.trusted(host) {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		if _, err := netip.ParseAddr(hop); err != nil {
			return host
		}
		if host = hop; !s.trusted(hop) {
			return host
		}
	}
	return host
}

func (s *Server) trusted(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(s.opt.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a.Unmap()) })
}

// encrypted tells whether the browser talks TLS, to us or to a proxy we know.
func (s *Server) encrypted(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return s.trusted(host) && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

const maxRequestID = 64

// requestID is the id the caller gave the request when it can stand in logs, or
// a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-ID")
	odd := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune("-_.:", c)
	}
	if id == "" || len(id) > maxRequestID || strings.ContainsFunc(id, odd) {
		return rand.Text()[:16]
	}
	return id
}
