package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Endpoint is an address that a playbook names, and what to send there.
type Endpoint struct {
	URL     string
	Method  string // POST when ""
	Headers map[string]string
	Form    map[string]any // sent as a form, unless the headers say JSON
	JSON    any            // sent as JSON, instead of Form
	Params  map[string]any // of the query
	// Token and TTL are the fields of the answer that hold the token and the
	// seconds it lives.
	Token string
	TTL   string
}

// Ask calls an endpoint. The value is the object it answers with, or its text.
// The address is held to the rules for addresses of playbooks.
func (s *Set) Ask(ctx context.Context, e Endpoint) (Value, error) {
	req, err := e.request()
	if err != nil {
		return Value{}, err
	}
	what := "a request to " + quote(req.URL.Host)
	body, err := call{provider: "the endpoint", what: what, client: s.asked, time: slowTime, request: req, explain: tokenRefused}.raw(ctx)
	if err != nil {
		return Value{}, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		if e.Token != "" {
			return Value{}, event.Errorf(event.Invalid, "the endpoint's answer to %s is no JSON object, so it has no %s", what, quote(e.Token))
		}
		return Value{Text: strings.TrimSpace(string(body))}, nil
	}
	if e.Token != "" && len(fields[e.Token]) == 0 {
		return Value{}, event.Errorf(event.Invalid, "the endpoint's answer to %s has no %s", what, quote(e.Token))
	}
	v := Value{Object: body}
	if lives := e.lives(fields); lives > 0 {
		v.ExpiresAt = s.s.Clock().Add(lives)
	}
	return v, nil
}

// lives is how long the answer says that the token is good.
func (e Endpoint) lives(fields map[string]json.RawMessage) time.Duration {
	text := strings.Trim(string(fields[firstText(e.TTL, "expires_in")]), `"`)
	seconds, err := json.Number(text).Float64()
	if err != nil || seconds <= 0 || seconds > 1e9 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// tokenRefused tells a refused client, which OAuth 2 calls a bad request.
func tokenRefused(status int, body []byte) event.Code {
	var answer struct {
		Error any `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // without a word the status decides
	switch answer.Error {
	case "invalid_client", "invalid_grant", "unauthorized_client", "access_denied":
		return event.Forbidden
	case "temporarily_unavailable", "slow_down":
		return event.Unavailable
	}
	return ""
}

func (e Endpoint) request() (*http.Request, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, event.Errorf(event.Invalid, "endpoint: want an http or https address")
	}
	if len(e.Params) > 0 {
		q := u.Query()
		for k, v := range e.Params {
			q.Set(k, fmt.Sprint(v))
		}
		u.RawQuery = q.Encode()
	}
	body, kind, err := e.body()
	if err != nil {
		return nil, err
	}
	method := strings.ToUpper(firstText(e.Method, http.MethodPost))
	req, err := http.NewRequest(method, u.String(), body)
	if err != nil {
		return nil, event.Errorf(event.Invalid, "endpoint: the method or the address cannot be used")
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Accept", "application/json")
	for k, v := range e.Headers {
		if strings.ContainsAny(k+v, "\r\n\x00") {
			return nil, event.Errorf(event.Invalid, "headers: a line break in %s", quote(k))
		}
		req.Header.Set(k, v)
	}
	return req, nil
}

func (e Endpoint) body() (io.Reader, string, error) {
	content := e.JSON
	for k, v := range e.Headers {
		if strings.EqualFold(k, "Content-Type") && strings.Contains(v, "json") && content == nil && e.Form != nil {
			content = e.Form
		}
	}
	if content != nil {
		raw, err := json.Marshal(content)
		if err != nil {
			return nil, "", event.Errorf(event.Invalid, "data: it has no JSON form")
		}
		return bytes.NewReader(raw), "application/json", nil
	}
	if e.Form == nil {
		return nil, "", nil
	}
	form := url.Values{}
	for k, v := range e.Form {
		if v != nil {
			form.Set(k, fmt.Sprint(v))
		}
	}
	return strings.NewReader(form.Encode()), "application/x-www-form-urlencoded", nil
}
