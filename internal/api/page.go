package api

import (
	_ "embed"
	"net/http"
)

// The built-in page is shown when no web application is configured: a live
// list of executions, and the steps and log of the chosen one.
var (
	//go:embed page.html
	pageHTML []byte
	//go:embed page.js
	pageScript []byte
	//go:embed page.css
	pageStyle []byte
)

// pagePolicy allows what the page itself brings: nothing from elsewhere, nothing
// inline, and nobody may frame it.
const pagePolicy = "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; object-src 'none'; frame-ancestors 'none'"

// builtinPage serves the page's files; it is false when path is none of them.
func (s *Server) builtinPage(w http.ResponseWriter, path string) bool {
	body, kind := pageHTML, "text/html; charset=utf-8"
	switch path {
	case "/":
	case "/page.js":
		body, kind = pageScript, "text/javascript; charset=utf-8"
	case "/page.css":
		body, kind = pageStyle, "text/css; charset=utf-8"
	default:
		return false
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", pagePolicy)
	_, _ = w.Write(body)
	return true
}
