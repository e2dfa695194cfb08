package api

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
)

// builtin is shown at / when no web application is built in: enough to see
// that the server runs and what can be asked of it.
var builtin = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>NoETL</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;margin:3rem auto;max-width:60rem;padding:0 1rem;color-scheme:light dark}
table{border-collapse:collapse;width:100%}td{padding:.2rem .8rem .2rem 0;vertical-align:top}code{font-size:.9em}
</style>
<h1>NoETL {{.Version}}</h1>
<p>The server runs. <a href="/api/executions">Executions</a> and <a href="/api/health">health</a> as JSON.</p>
<table>{{range .Routes}}<tr><td><code>{{.Method}}</code><td><code>{{.Pattern}}</code><td>{{.Summary}}{{end}}</table>
</html>
`))

func (s *Server) builtinPage(w http.ResponseWriter) error {
	var page bytes.Buffer
	err := builtin.Execute(&page, struct {
		Version string
		Routes  []Route
	}{s.opt.Version, s.Routes()})
	if err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes())
	return nil
}
