// Package redact keeps secrets out of what is stored, shown and logged. It
// replaces values that are known to be secret, wherever they occur and however
// they are written, and texts whose shape leaves no doubt. It never judges by
// the name of a field alone: author, next_page_token and total_tokens are data.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "[REDACTED]"

// shortest is the least number of bytes of a value that is looked for: anything
// below would be found in innocent text.
const shortest = 6

// Secrets are the values that must not be seen. More may become known at any
// time. The zero value knows none and still recognises shapes. It is safe for
// concurrent use.
type Secrets struct {
	mu    sync.RWMutex
	known map[string]struct{} // as they were added
	text  *needles            // as they are written in plain text
	json  *needles            // as they are written within a JSON string
}

// Add makes values known. Short ones are left out, since they would be found
// everywhere.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := false
	for _, v := range values {
		v = strings.TrimSpace(v)
		if _, again := s.known[v]; again || len(v) < shortest {
			continue
		}
		if s.known == nil {
			s.known = map[string]struct{}{}
		}
		s.known[v] = struct{}{}
		grown = true
	}
	if grown {
		s.text, s.json = newNeedles(s.known, writtenInText), newNeedles(s.known, writtenInJSON)
	}
}

// public are the fields of credentials that are no secrets: where and as whom,
// not with what.
var public = map[string]bool{
	"host": true, "db_host": true, "port": true, "db_port": true, "user": true, "username": true, "db_user": true, "database": true,
	"dbname": true, "db_name": true, "schema": true, "db_schema": true, "sslmode": true, "ssl_mode": true, "type": true, "name": true,
	"header": true, "header_name": true, "scope": true, "scopes": true, "region": true, "account": true, "sf_account": true,
	"sf_user": true, "warehouse": true, "sf_warehouse": true, "sf_database": true, "sf_schema": true, "role": true, "sf_role": true,
	"endpoint": true, "project": true, "project_id": true, "client_id": true, "client_email": true, "token_type": true, "tenant_id": true,
	"nats_user": true, "nats_username": true, "auth_uri": true, "token_uri": true, "token_url": true, "universe_domain": true,
	"private_key_id": true, "bucket": true, "prefix": true, "issuer": true, "audience": true, "domain": true, "description": true,
	"access_key_id": true, "aws_access_key_id": true, "public_key": true, "sf_public_key": true, "grant_type": true, "method": true,
	"expires_at": true, "expires_in": true,
}

// AddData makes the secret parts of a credential known: all its texts but
// those of fields that say where and as whom, and of addresses the password
// alone. Data is JSON-like.
func (s *Secrets) AddData(data any) {
	var found []string
	collect(data, "", &found)
	if m, ok := data.(map[string]any); ok {
		found = append(found, pairs(m)...)
	}
	s.Add(found...)
}

func collect(v any, key string, found *[]string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "://") && !strings.ContainsAny(v, " \n") {
			collectAddress(v, found)
		} else if !public[strings.ToLower(key)] {
			*found = append(*found, v)
		}
	case map[string]any:
		for k, x := range v {
			collect(x, k, found)
		}
	case []any:
		for _, x := range v {
			collect(x, key, found)
		}
	}
}

// collectAddress adds the password of a URL, and values of its query.
func collectAddress(address string, found *[]string) {
	u, err := url.Parse(address)
	if err != nil {
		*found = append(*found, address)
		return
	}
	if password, ok := u.User.Password(); ok {
		*found = append(*found, password, u.User.String())
	}
	for name, values := range u.Query() {
		if sensitive(name) {
			*found = append(*found, values...)
		}
	}
}

// pairs are a name and its password as Basic authentication sends them.
func pairs(m map[string]any) (found []string) {
	var users, passwords []string
	for k, v := range m {
		text, _ := v.(string)
		switch strings.ToLower(k) {
		case "user", "username", "db_user", "nats_user", "client_id":
			users = append(users, text)
		case "password", "db_password", "nats_password", "client_secret":
			passwords = append(passwords, text)
		}
	}
	for _, u := range users {
		for _, p := range passwords {
			if p != "" {
				found = append(found, base64.StdEncoding.EncodeToString([]byte(u+":"+p)))
			}
		}
	}
	return found
}

// writtenInText are the ways in which a value occurs in plain text.
func writtenInText(v string) []string {
	ways := []string{
		v, url.QueryEscape(v), url.PathEscape(v), strings.ReplaceAll(v, "'", "''"), quoted(v),
		base64.StdEncoding.EncodeToString([]byte(v)), base64.URLEncoding.EncodeToString([]byte(v)),
	}
	ways = append(ways, strings.TrimRight(ways[5], "="), strings.TrimRight(ways[6], "="))
	if strings.Contains(v, "\n") { // a key that is printed line by line
		for line := range strings.SplitSeq(v, "\n") {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
				ways = append(ways, line)
			}
		}
	}
	return ways
}

// writtenInJSON are the ways in which a value occurs within a JSON string.
func writtenInJSON(v string) []string {
	var ways []string
	for _, way := range writtenInText(v) {
		ways = append(ways, quoted(way), quotedForHTML(way))
	}
	return ways
}

// quoted is v as encoders write it between quotes.
func quoted(v string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // text always has a JSON form
	return strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`)
}

func quotedForHTML(v string) string {
	b, _ := json.Marshal(v)
	return string(b[1 : len(b)-1])
}

// String is s without secrets.
func (s *Secrets) String(text string) string {
	if !s.mayHold(text, s.needlesFor(false)) {
		return text
	}
	var b strings.Builder
	w := s.Text(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close() // a builder takes everything
	return b.String()
}

// JSON is an encoded value without secrets. It stays valid JSON.
func (s *Secrets) JSON(raw json.RawMessage) json.RawMessage {
	if !s.mayHold(string(raw), s.needlesFor(true)) {
		return raw
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	w := s.JSONText(&b)
	_, _ = w.Write(raw)
	_ = w.Close() // a buffer takes everything
	return b.Bytes()
}

func (s *Secrets) needlesFor(isJSON bool) *needles {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if isJSON {
		return s.json
	}
	return s.text
}

// mayHold is a quick look that spares most texts the slow one.
func (s *Secrets) mayHold(text string, n *needles) bool {
	return n.in(text) || mayHaveShape(text)
}

// needles are texts to be replaced.
type needles struct {
	sorted   []string // for prefixes
	longest  int
	replacer *strings.Replacer
}

func newNeedles(known map[string]struct{}, written func(string) []string) *needles {
	set := map[string]struct{}{}
	for v := range known {
		for _, way := range written(v) {
			if len(way) >= shortest {
				set[way] = struct{}{}
			}
		}
	}
	n := &needles{}
	for way := range set {
		n.sorted = append(n.sorted, way)
		n.longest = max(n.longest, len(way))
	}
	slices.Sort(n.sorted)
	byLength := slices.Clone(n.sorted)
	slices.SortFunc(byLength, func(a, b string) int { return len(b) - len(a) })
	var args []string
	for _, way := range byLength {
		args = append(args, way, Mark)
	}
	n.replacer = strings.NewReplacer(args...)
	return n
}

func (n *needles) in(text string) bool {
	if n == nil {
		return false
	}
	for _, way := range n.sorted {
		if strings.Contains(text, way) {
			return true
		}
	}
	return false
}

func (n *needles) replace(text string) string {
	if n == nil {
		return text
	}
	return n.replacer.Replace(text)
}

// open is how many bytes at the end of text may be the beginning of a needle.
func (n *needles) open(text string) int {
	if n == nil {
		return 0
	}
	for k := min(n.longest-1, len(text)); k > 0; k-- {
		tail := text[len(text)-k:]
		i, _ := slices.BinarySearch(n.sorted, tail)
		if i < len(n.sorted) && len(n.sorted[i]) > k && strings.HasPrefix(n.sorted[i], tail) {
			return k
		}
	}
	return 0
}
