package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"
)

// keys are the names of fields that hold secrets, as whole names.
var keys = map[string]bool{
	"password": true, "passwd": true, "pwd": true, "secret": true, "secret_key": true, "api_key": true, "apikey": true, "api_secret": true,
	"access_token": true, "refresh_token": true, "auth_token": true, "id_token": true, "oauth_token": true, "bearer_token": true,
	"authorization": true, "proxy_authorization": true, "cookie": true, "set_cookie": true, "x_api_key": true,
	"x_auth_token": true, "x_access_token": true, "private_key": true, "private_key_passphrase": true, "passphrase": true,
	"client_secret": true, "connection_string": true, "db_password": true, "database_password": true, "aws_secret_access_key": true,
	"secret_access_key": true, "encryption_key": true, "master_key": true, "ssh_key": true, "snowflake_password": true,
}

// headers are always blanked, whatever their value.
var headers = map[string]bool{
	"authorization": true, "proxy_authorization": true, "cookie": true, "set_cookie": true, "www_authenticate": true,
	"x_api_key": true, "x_auth_token": true, "x_access_token": true,
}

// Header tells whether the value of an HTTP header must not be shown.
func Header(name string) bool { return headers[normal(name)] }

// sensitive tells whether a field of this name holds secrets. Of a path such as
// workload.login.password the last part counts.
func sensitive(key string) bool {
	return keys[normal(key[strings.LastIndexByte(key, '.')+1:])]
}

// normal is a key in lower case with underscores: clientSecret, Client-Secret
// and client_secret are one.
func normal(key string) string {
	var b strings.Builder
	lower := false
	for _, r := range key {
		switch {
		case r == '-' || r == ' ':
			r = '_'
		case unicode.IsUpper(r):
			if lower {
				b.WriteByte('_')
			}
			r = unicode.ToLower(r)
			b.WriteRune(r)
			lower = false
			continue
		}
		b.WriteRune(r)
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
	}
	return b.String()
}

// named tells that a text under this name must not be shown.
func named(key, text string) bool {
	return Header(key) || sensitive(key) && looksSecret(text)
}

// Shown is w behind a filter for JSON that leaves the server: what has the
// shape of a secret is marked, and under names of secrets whatever looks like
// one. Short words under such names stay: they are aliases of credentials. Close
// writes what was kept back; it does not close w.
func (s *Secrets) Shown(w io.Writer) *Shown {
	return &Shown{jsonFilter{s: s, w: w, byName: true}}
}

// Shown is a filter in front of a writer.
type Shown struct{ jsonFilter }

// ShownJSON is Shown for a value at hand.
func (s *Secrets) ShownJSON(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(raw))
	w := s.Shown(&b)
	_, _ = w.Write(raw)
	_ = w.Close() // a buffer takes everything
	return b.Bytes()
}

// looksSecret tells a secret from the alias of one, a template or a word.
func looksSecret(v string) bool {
	if len(v) < 8 || strings.Contains(v, "{{") || strings.Contains(v, "keychain.") {
		return false
	}
	if strings.ContainsAny(v, " \n") && len(v) > 200 {
		return false // prose or code
	}
	letters, digits, other := 0, 0, 0
	for _, r := range v {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		case r != '_' && r != '-' && r != '/' && r != '.':
			other++
		}
	}
	return len(v) >= 24 || digits >= 2 && letters > 0 || other > 0
}
