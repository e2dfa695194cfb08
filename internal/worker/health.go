package worker

import (
	"io"
	"net/http"

	"github.com/noetl/noetl-go/internal/obs"
)

// Handler serves the health and the metrics of the worker: /healthz says that
// the process is there, /readyz whether it takes commands, /livez whether it is
// worth keeping.
func (w *Worker) Handler(metrics *obs.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { answer(rw, "") })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, _ *http.Request) { answer(rw, w.Unready()) })
	mux.HandleFunc("GET /livez", func(rw http.ResponseWriter, _ *http.Request) { answer(rw, w.Dead()) })
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, _ *http.Request) {
		w.Observe()
		rw.Header().Set("Content-Type", obs.ContentType)
		_ = metrics.WriteText(rw) // the reader went away
	})
	return mux
}

func answer(rw http.ResponseWriter, trouble string) {
	rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
	rw.Header().Set("Cache-Control", "no-store")
	if trouble != "" {
		rw.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(rw, trouble+"\n")
		return
	}
	_, _ = io.WriteString(rw, "ok\n")
}
