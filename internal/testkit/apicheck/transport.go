package apicheck

import (
	"errors"
	"io"
	"net/http"
	"sync"
)

// Transport sends requests with base and holds each exchange against the
// document, once the answer was read to its end. Answers that are cut off say
// nothing.
func (c *Checker) Transport(t Reporter, base http.RoundTripper) http.RoundTripper {
	return transport{c, t, base}
}

type transport struct {
	check *Checker
	test  Reporter
	base  http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := &copying{of: http.NoBody}
	out := r.Clone(r.Context())
	if r.Body != nil {
		sent.of = r.Body
		out.Body = sent
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	e := &exchange{method: r.Method, url: r.URL, status: resp.StatusCode, header: resp.Header.Clone()}
	read := &copying{of: resp.Body}
	resp.Body = &judged{copying: read, end: sync.OnceFunc(func() {
		if e.body, e.bodyCut = sent.bytes(); e.body == nil && r.ContentLength > 0 {
			e.bodyCut = true
		}
		e.answer, e.answerCut = read.bytes()
		for _, complaint := range t.check.judge(e) {
			t.test.Errorf("%s %s: %d: %s", r.Method, r.URL.RequestURI(), e.status, complaint)
		}
	})}
	return resp, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Client is an HTTP client for the API at base, whose exchanges are checked.
func Client(t Reporter, base string) (*http.Client, error) {
	resp, err := http.Get(base + "/api/openapi.json") //nolint:noctx // a test that waits for its server has its own limit
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	c, err := Shared(raw)
	if err != nil {
		return nil, err
	}
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.MaxIdleConnsPerHost = 32
	return &http.Client{Transport: c.Transport(t, own)}, nil
}

// judged is the body of an answer that is judged when it was read.
type judged struct {
	*copying
	end func()
}

func (b *judged) Read(p []byte) (int, error) {
	n, err := b.copying.Read(p)
	if errors.Is(err, io.EOF) {
		b.end()
	}
	return n, err
}
