package apicheck

import (
	"bytes"
	"io"
	"net/http"
	"sync"
)

// Reporter is a test.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// most is how much of a body is looked at.
const most = 4 << 20

// Handler passes requests on to next and holds each exchange against the document.
func (c *Checker) Handler(t Reporter, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL // handlers in between may change it
		sent := &copying{of: r.Body}
		r.Body = sent
		rec := &recorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		body, cut := sent.bytes()
		e := &exchange{
			method: r.Method, url: at, body: body, bodyCut: cut,
			status: rec.status, header: w.Header(), answer: rec.seen.Bytes(), answerCut: rec.cut,
		}
		if e.status == 0 {
			e.status = http.StatusOK
		}
		for _, complaint := range c.judge(e) {
			t.Errorf("%s %s: %d: %s", r.Method, r.URL.RequestURI(), e.status, complaint)
		}
		c.keep(e)
	})
}

// copying is a body that remembers what was read of it.
type copying struct {
	of   io.ReadCloser
	mu   sync.Mutex // guards what follows: a body may still be sent when the answer is there
	seen bytes.Buffer
	cut  bool
}

func (b *copying) Read(p []byte) (int, error) {
	n, err := b.of.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen.Len()+n > most {
		b.cut = true
	} else {
		b.seen.Write(p[:n])
	}
	return n, err
}

func (b *copying) bytes() (seen []byte, cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.seen.Bytes()), b.cut
}

func (b *copying) Close() error { return b.of.Close() }

// recorder is an answer that is remembered.
type recorder struct {
	http.ResponseWriter
	status int
	seen   bytes.Buffer
	cut    bool
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	if err != nil || w.seen.Len()+n > most {
		w.cut = true
	} else {
		w.seen.Write(p[:n])
	}
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// known are checkers by the document they were made from: most servers of a
// test say the same of themselves.
var (
	knownMu sync.Mutex
	known   = map[string]*Checker{}
)

// Of is the checker of a server. A description that lacks something is used as
// far as it goes: one test of the server itself is enough to say so.
func Of(server interface{ Describe() ([]byte, error) }) (*Checker, error) {
	raw, err := server.Describe()
	if len(raw) == 0 {
		return nil, err
	}
	return Shared(raw)
}

// Shared is New, with the same checker for the same document.
func Shared(document []byte) (*Checker, error) {
	knownMu.Lock()
	defer knownMu.Unlock()
	if c, ok := known[string(document)]; ok {
		return c, nil
	}
	c, err := New(document)
	if err == nil {
		known[string(document)] = c
	}
	return c, err
}
