// Package outbound is what the tools that talk to services over HTTP share:
// how a credential becomes part of a request, what a failure is called, and
// how a URL is shown. It must not know what any of the tools asks for.
package outbound

import (
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// ParseURL reads the address of a service. It never repeats one that does not
// parse: it may hold a password in a place where it cannot be recognised.
func ParseURL(field, text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, tool.ConfigErrorf("%s is not valid (is a special character left unescaped?)", field)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, tool.ConfigErrorf("%s %s must start with http:// or https://", field, Shown(u))
	}
	if u.Hostname() == "" {
		return nil, tool.ConfigErrorf("%s %s has no host", field, Shown(u))
	}
	return u, nil
}

// Shown is a URL for people: without user, password, query and fragment, any
// of which may be a credential.
func Shown(u *url.URL) string {
	s := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
	if u.RawQuery != "" {
		s += "?…"
	}
	return s
}

// masked stands for a secret.
const masked = "[REDACTED]"

// secretParams are names of query parameters that carry credentials.
var secretParams = []string{
	"access_token", "api_key", "apikey", "api-key", "key", "token", "auth", "password", "secret", "client_secret", "sig", "signature",
	"x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential", "id_token", "refresh_token",
}

// Masked is a URL as it may be reported: without user and password, and with
// the values of parameters that carry credentials masked, those named in more
// among them. The rest of the query stays as it is.
func Masked(u *url.URL, more ...string) string {
	out := *u
	out.User, out.Fragment, out.RawFragment = nil, "", ""
	if u.RawQuery != "" {
		parts := strings.Split(u.RawQuery, "&")
		for i, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			plain, err := url.QueryUnescape(name)
			if value != "" && (err != nil || isSecretParam(plain, more)) {
				parts[i] = name + "=" + url.QueryEscape(masked)
			}
		}
		out.RawQuery = strings.Join(parts, "&")
	}
	return out.String()
}

func isSecretParam(name string, more []string) bool {
	for _, list := range [][]string{secretParams, more} {
		for _, s := range list {
			if strings.EqualFold(s, name) {
				return true
			}
		}
	}
	return false
}

// secretHeaders never leave the tool with their values.
var secretHeaders = map[string]bool{
	"authorization": true, "proxy-authorization": true, "cookie": true, "set-cookie": true, "www-authenticate": true,
	"x-api-key": true, "x-auth-token": true, "x-access-token": true,
}

// Headers are the headers of an answer as they may be reported: names in lower
// case, several values joined, credentials masked.
func Headers(h map[string][]string) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		name = strings.ToLower(name)
		if secretHeaders[name] {
			out[name] = masked
			continue
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
}
