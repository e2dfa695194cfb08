package egress

import (
	"errors"
	"net/http"
	"net/url"
)

// MaxRedirects is how many redirects are followed.
const MaxRedirects = 10

// ErrRedirects ends a chain of redirects that is too long.
var ErrRedirects = errors.New("more than 10 redirects")

// CheckRedirect is the rule for one redirect, for http.Client. Where the hop
// may connect to is decided by the transport; this bounds the chain, keeps to
// http and https and takes credentials off when another host comes in: the
// usual headers, and those named in more (see WithSecrets).
func CheckRedirect(req *http.Request, via []*http.Request) error { return checkRedirect(req, via, nil) }

// WithSecrets is CheckRedirect that also keeps further headers from other hosts.
func WithSecrets(more ...string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error { return checkRedirect(req, via, more) }
}

var secretHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "X-Access-Token"}

func checkRedirect(req *http.Request, via []*http.Request, more []string) error {
	if len(via) > MaxRedirects {
		return ErrRedirects
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return &Denied{Host: req.URL.Hostname(), Why: "a redirect leads to something that is neither http nor https"}
	}
	if leftOrigin(req, via) {
		for _, name := range append(secretHeaders[:len(secretHeaders):len(secretHeaders)], more...) {
			req.Header.Del(name)
		}
	}
	return nil
}

// leftOrigin tells whether any hop was elsewhere: credentials do not come back
// when another host has chosen what to ask for with them.
func leftOrigin(req *http.Request, via []*http.Request) bool {
	for _, hop := range append(via[1:len(via):len(via)], req) {
		if !sameOrigin(hop.URL, via[0].URL) {
			return true
		}
	}
	return false
}

// sameOrigin tells whether credentials for a may be sent to b: the same host
// and port, or a step up from http to https on the standard ports.
func sameOrigin(a, b *url.URL) bool {
	if plainHost(a.Hostname()) != plainHost(b.Hostname()) {
		return false
	}
	if portOf(a) == portOf(b) && a.Scheme == b.Scheme {
		return true
	}
	return b.Scheme == "http" && a.Scheme == "https" && portOf(b) == "80" && portOf(a) == "443"
}
