package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) authRoutes() []route {
	const user = `{user_id, email, display_name, roles}`
	return []route{
		entry(http.MethodGet, "/api/auth/methods", Anyone, s.methods, "tells how callers show who they are", "", `{required, token, oidc, issuer?, client_id?}`).within(Pathless),
		entry(http.MethodGet, "/api/auth/me", Viewer, s.me, "tells who the caller is and what they may do", "", `{id, name, by, grants, expires?}`).within(Pathless),
		entry(http.MethodPost, "/api/auth/login", Anyone, s.login, "gives a session for an API token or a token of a configured issuer; always 200", `{auth0_token | token, cookie?}`, `{status, data: {status, session_token, user: `+user+`, expires_at} | {error, message}}`).within(Pathless).noted(selfNoting),
		entry(http.MethodPost, "/api/auth/logout", Anyone, s.logout, "ends the session of the caller", `{session_token?}`, `{status}`).within(Pathless).noted(selfNoting),
		entry(http.MethodPost, "/api/auth/session/validate", Anyone, s.validateSession, "tells whether a session is good; always 200", `{session_token}`, `{status, valid, user?: `+user+`, expires_at?, error?}`).within(Pathless).noted(readsOnly),
		entry(http.MethodPost, "/api/auth/check-playbook-access", Anyone, s.checkAccess, "tells whether a session may do something with a playbook; always 200", `{session_token, playbook_path, action: execute|view|modify}`, `{status, data: {allowed, user?: `+user+`, message}}`).within(Pathless).noted(readsOnly),
		entry(http.MethodGet, "/api/auth/oidc/start", Anyone, s.beginLogin, "sends a browser to the issuer to sign in", "?return_to", "302").within(Pathless),
		entry(http.MethodGet, "/api/auth/oidc/callback", Anyone, s.finishLogin, "takes a browser that comes from the issuer", "?state&code", "303").within(Pathless),
	}
}

func (s *Server) access() (Access, error) {
	if !s.required() {
		return nil, &event.Error{
			Code: event.NotFound, Message: "authentication is off here", Reason: "auth_off",
			Remedy: "start the server with NOETL_AUTH=token or NOETL_AUTH=oidc",
		}
	}
	return s.opt.Access, nil
}

type methodsAnswer struct {
	Required bool `json:"required"`
	Token    bool `json:"token"`
	OIDC     bool `json:"oidc"`
	// Issuer and ClientID are there when people can sign in with a browser.
	Issuer   string `json:"issuer,omitempty"`
	ClientID string `json:"client_id,omitempty"`
}

func (s *Server) methods(w http.ResponseWriter, _ *http.Request) error {
	a := methodsAnswer{Required: s.required(), Token: s.required(), OIDC: s.required() && s.opt.BrowserLogin}
	if a.OIDC {
		a.Issuer, a.ClientID = s.opt.LoginIssuer, s.opt.LoginClient
	}
	return respond(w, a)
}

func (s *Server) me(w http.ResponseWriter, r *http.Request) error {
	return private(w, passageOf(r.Context()).who)
}

// userView is a caller in the words of older clients.
type userView struct {
	ID    string   `json:"user_id"`
	Email string   `json:"email"`
	Name  string   `json:"display_name"`
	Roles []string `json:"roles"`
}

func viewUser(p *auth.Principal) *userView {
	u := &userView{ID: p.ID, Name: p.Name, Roles: []string{}}
	if strings.Contains(p.Name, "@") {
		u.Email = p.Name
	}
	for _, g := range p.Grants {
		if !slices.Contains(u.Roles, string(g.Role)) {
			u.Roles = append(u.Roles, string(g.Role))
		}
	}
	return u
}

// loginBody is what older clients send. Their auth0_domain and credential would
// let a caller choose who vouches for it: they are not read.
type loginBody struct {
	Token  string `json:"token"`
	Auth0  string `json:"auth0_token"`
	Cookie bool   `json:"cookie"` // keep the session in a cookie and do not show it
}

type loginAnswer struct {
	Status string `json:"status"`
	Data   any    `json:"data"`
}

type loginSuccess struct {
	Status  string    `json:"status"`
	Token   string    `json:"session_token,omitempty"`
	User    *userView `json:"user"`
	Expires time.Time `json:"expires_at"`
}

type loginFailure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	var body loginBody
	if err := decode(r, &body, false); err != nil {
		return event.Errorf(event.BadRequest, "send {auth0_token} or {token} as a JSON object") // the text may hold the token
	}
	w.Header().Set("Cache-Control", "no-store")
	access, err := s.access()
	if err != nil {
		return respond(w, loginAnswer{"error", loginFailure{"auth_off", err.Error()}})
	}
	p := passageOf(r.Context())
	session, secret, err := access.Login(r.Context(), auth.LoginRequest{
		Token: strings.TrimSpace(cmp.Or(body.Token, body.Auth0)), Remote: p.remote, UserAgent: r.UserAgent(),
	})
	switch code := event.CodeOf(err); {
	case err == nil:
	case code == event.Limit || code == event.Unavailable:
		p.denied = code == event.Limit
		return err
	default:
		p.denied = true
		return respond(w, loginAnswer{"error", loginFailure{"authentication_failed", "the token is not valid here"}})
	}
	p.who = &session.Principal
	s.record(r, route{Route: Route{Pattern: "/api/auth/login"}}, auth.Action{Type: "session.began", Outcome: outcomeOK}, http.StatusOK)
	if body.Cookie {
		s.setSession(w, r, session, secret, http.SameSiteStrictMode)
		secret = ""
	}
	return respond(w, loginAnswer{"success", loginSuccess{"authenticated", secret, viewUser(&session.Principal), session.Expires.UTC()}})
}

type sessionBody struct {
	Token string `json:"session_token"`
}

type accessBody struct {
	Token string `json:"session_token"`
	Path  string `json:"playbook_path"`
	Do    string `json:"action"`
}

type logoutBody struct {
	Token string `json:"session_token"`
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) error {
	var body logoutBody
	if err := decode(r, &body, true); err != nil {
		return event.Errorf(event.BadRequest, "send {session_token} as a JSON object, or nothing")
	}
	access, err := s.access()
	if err != nil {
		return err
	}
	e, byCookie := s.evidence(r)
	if byCookie && !sameOrigin(r) {
		return passageOf(r.Context()).forbidden("a session cookie changes things only from our own page")
	}
	if secret := cmp.Or(body.Token, e.Session); secret != "" {
		if session, err := access.Session(r.Context(), secret); err == nil {
			passageOf(r.Context()).who = &session.Principal
			s.record(r, route{Route: Route{Pattern: "/api/auth/logout"}}, auth.Action{Type: "session.ended", Outcome: outcomeOK}, http.StatusOK)
		}
		if err := access.Logout(r.Context(), secret); err != nil && event.CodeOf(err) == event.Unavailable {
			return err
		}
	}
	s.dropCookie(w, r, sessionCookie, "/")
	return respond(w, map[string]string{"status": "ok"})
}

type sessionAnswer struct {
	Status  string     `json:"status"`
	Valid   bool       `json:"valid"`
	User    *userView  `json:"user,omitempty"`
	Expires *time.Time `json:"expires_at,omitempty"`
	Error   string     `json:"error,omitempty"`
}

func (s *Server) validateSession(w http.ResponseWriter, r *http.Request) error {
	var body sessionBody
	if err := decode(r, &body, false); err != nil {
		return unreadableSession
	}
	session, err := s.sessionOf(r, body.Token)
	if err != nil {
		return private(w, sessionAnswer{Status: "error", Error: "invalid or expired session"})
	}
	return private(w, sessionAnswer{Status: "ok", Valid: true, User: viewUser(&session.Principal), Expires: timeOrNull(session.Expires)})
}

// unreadableSession says nothing of a body, which may hold the session.
var unreadableSession = event.Errorf(event.BadRequest, "send {session_token, …} as a JSON object")

// sessionOf finds a session.
func (s *Server) sessionOf(r *http.Request, secret string) (auth.Session, error) {
	access, err := s.access()
	if err != nil {
		return auth.Session{}, err
	}
	if secret == "" {
		return auth.Session{}, unauthorized
	}
	return access.Session(r.Context(), secret)
}

// actionRoles are what the actions of the access check need.
var actionRoles = map[string]auth.Role{"view": auth.Viewer, "execute": auth.Operator, "modify": auth.Operator}

type allowance struct {
	Allowed bool      `json:"allowed"`
	User    *userView `json:"user,omitempty"`
	Message string    `json:"message"`
}

// checkAccess says no whenever it cannot say yes.
func (s *Server) checkAccess(w http.ResponseWriter, r *http.Request) error {
	var body accessBody
	if err := decode(r, &body, false); err != nil {
		return unreadableSession
	}
	session, err := s.sessionOf(r, body.Token)
	if err != nil {
		return private(w, loginAnswer{"error", allowance{Message: "invalid or expired session"}})
	}
	path := strings.Trim(body.Path, "/ ")
	role, known := actionRoles[strings.ToLower(cmp.Or(body.Do, "execute"))]
	if !known || path == "" {
		return private(w, loginAnswer{"error", allowance{Message: "playbook_path and one of the actions execute, view and modify are needed"}})
	}
	if role != auth.Viewer && ofSystem(path) {
		role = auth.Admin
	}
	a := allowance{Allowed: session.Principal.MayAt(role, path), User: viewUser(&session.Principal), Message: "access granted"}
	if !a.Allowed {
		a.Message = "access denied"
	}
	return private(w, loginAnswer{"success", a})
}
