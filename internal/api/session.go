package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
)

// The cookies: one holds the session, the other binds a login at the issuer to
// the browser that began it.
const (
	sessionCookie = "noetl_session"
	loginCookie   = "noetl_login"
	loginTime     = 10 * time.Minute
	loginPath     = "/api/auth/oidc"
)

// setSession gives a browser its session. Scripts cannot read it, and other
// sites cannot send it; lax lets the page that an issuer leads to have it.
func (s *Server) setSession(w http.ResponseWriter, r *http.Request, session auth.Session, secret string, mode http.SameSite) {
	http.SetCookie(w, &http.Cookie{
		Name: sessionCookie, Value: secret, Path: "/", Expires: session.Expires,
		HttpOnly: true, Secure: s.encrypted(r), SameSite: mode,
	})
}

func (s *Server) dropCookie(w http.ResponseWriter, r *http.Request, name, path string) {
	http.SetCookie(w, &http.Cookie{Name: name, Path: path, MaxAge: -1, HttpOnly: true, Secure: s.encrypted(r), SameSite: http.SameSiteStrictMode})
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// ownPage is where a login returns to: a page of ours, whatever was asked for.
func ownPage(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

func redirect(w http.ResponseWriter, to string, status int) {
	w.Header().Set("Location", to)
	w.WriteHeader(status)
}

// beginLogin sends a browser to the issuer.
func (s *Server) beginLogin(w http.ResponseWriter, r *http.Request) error {
	access, err := s.access()
	if err != nil {
		return err
	}
	to, state, err := access.BeginLogin(r.Context(), ownPage(r.URL.Query().Get("return_to")))
	if err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{
		Name: loginCookie, Value: state, Path: loginPath, MaxAge: int(loginTime.Seconds()),
		HttpOnly: true, Secure: s.encrypted(r), SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Cache-Control", "no-store")
	redirect(w, to, http.StatusFound)
	return nil
}

// finishLogin takes what a browser brings from the issuer. Only the browser that
// began the login may finish it: nobody can be signed in as somebody else.
func (s *Server) finishLogin(w http.ResponseWriter, r *http.Request) error {
	access, err := s.access()
	if err != nil {
		return err
	}
	q := r.URL.Query()
	begun, err := r.Cookie(loginCookie)
	s.dropCookie(w, r, loginCookie, loginPath)
	w.Header().Set("Cache-Control", "no-store")
	failed := func(err error) error {
		passageOf(r.Context()).denied = true
		s.opt.Logger.Info("sign-in at the issuer failed", "error", err, "request_id", passageOf(r.Context()).requestID)
		redirect(w, "/#sign-in-failed", http.StatusSeeOther)
		return nil
	}
	if err != nil || q.Get("state") == "" || !sameSecret(begun.Value, q.Get("state")) || q.Get("code") == "" {
		return failed(unauthorized)
	}
	session, secret, to, err := access.FinishLogin(r.Context(), q.Get("state"), q.Get("code"), auth.LoginRequest{
		Remote: passageOf(r.Context()).remote, UserAgent: r.UserAgent(),
	})
	if err != nil {
		return failed(err)
	}
	passageOf(r.Context()).who = &session.Principal
	s.setSession(w, r, session, secret, http.SameSiteLaxMode)
	s.record(r, route{Route: Route{Pattern: loginPath + "/callback"}}, auth.Action{Type: "session.began", Outcome: outcomeOK}, http.StatusSeeOther)
	redirect(w, ownPage(to), http.StatusSeeOther)
	return nil
}
