package httptool

import (
	"bytes"
	"encoding/json"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// payload is a request body. It is text so that a redirect can send it again.
type payload struct {
	present     bool
	bytes       string
	contentType string // used when the author gave none
}

// readBody finds the body: json, else form, else body or payload, else data,
// which doubles as a query for methods without a body.
func (p *plan) readBody(f tool.Fields) (err error) {
	if _, given := f["json"]; given {
		p.body, err = p.jsonBody("json")
		return err
	}
	if name, v, ok := f.First("form"); ok {
		p.body, err = formBody(name, v)
		return err
	}
	if name, v, ok := f.First("body", "payload"); ok {
		p.body, err = p.freeBody(name, v)
		return err
	}
	if _, v, ok := f.First("data"); ok {
		return p.readData(v)
	}
	return nil
}

func (p *plan) readData(v any) (err error) {
	m, isMap := v.(map[string]any)
	if isMap && len(m) == 0 {
		return nil
	}
	query, hasQuery := m["query"]
	body, hasBody := m["body"]
	switch {
	case hasQuery || hasBody:
		if query != nil {
			params, ok := query.(map[string]any)
			if !ok {
				return tool.ConfigErrorf("data.query must be a map of names to values")
			}
			if err = p.addQuery(params); err != nil {
				return err
			}
		}
		if body != nil {
			p.body, err = p.freeBody("data.body", body)
		}
		return err
	case isMap && (p.method == http.MethodGet || p.method == http.MethodDelete || p.method == http.MethodHead):
		return p.addQuery(m)
	}
	p.body, err = p.freeBody("data", v)
	return err
}

// freeBody sends text as it is and encodes anything else the way the author's
// Content-Type asks for, JSON by default.
func (p *plan) freeBody(name string, v any) (payload, error) {
	if s, ok := v.(string); ok {
		return payload{present: true, bytes: s, contentType: "text/plain; charset=utf-8"}, nil
	}
	media, _, _ := mime.ParseMediaType(p.header.Get("Content-Type"))
	switch media {
	case "application/x-www-form-urlencoded":
		return formBody(name, v)
	case "multipart/form-data":
		body, err := multipartBody(name, v)
		if err != nil {
			return payload{}, err
		}
		// The boundary is ours, so the author's header cannot stay.
		p.header.Set("Content-Type", body.contentType)
		return body, nil
	}
	return p.jsonBody(name)
}

// jsonBody is a field as JSON. A dotted name is the field within a field.
func (p *plan) jsonBody(name string) (payload, error) {
	field, inner, nested := strings.Cut(name, ".")
	b, err := p.encoded(field)
	if err == nil && nested {
		var m map[string]json.RawMessage
		err = json.Unmarshal(b, &m)
		b = m[inner]
	}
	if err != nil {
		return payload{}, err
	}
	return payload{present: true, bytes: string(b), contentType: "application/json"}, nil
}

func formBody(name string, v any) (payload, error) {
	const contentType = "application/x-www-form-urlencoded"
	if s, ok := v.(string); ok {
		return payload{present: true, bytes: s, contentType: contentType}, nil
	}
	fields, err := tool.Fields{name: v}.Object(name)
	if err != nil {
		return payload{}, err
	}
	q := &plan{url: &url.URL{}}
	if err := q.addQuery(fields); err != nil {
		return payload{}, err
	}
	return payload{present: true, bytes: q.url.RawQuery, contentType: contentType}, nil
}

func multipartBody(name string, v any) (payload, error) {
	fields, err := tool.Fields{name: v}.Texts(name)
	if err != nil {
		return payload{}, err
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, k := range tool.SortedKeys(fields) {
		if err := w.WriteField(k, fields[k]); err != nil {
			return payload{}, tool.ConfigErrorf("%s.%s cannot be sent as a form field: %v", name, k, err)
		}
	}
	if err := w.Close(); err != nil {
		return payload{}, tool.ConfigErrorf("%s cannot be sent as a form: %v", name, err)
	}
	return payload{present: true, bytes: buf.String(), contentType: w.FormDataContentType()}, nil
}

// readAuth puts resolved credentials into headers. A header the author wrote
// by hand wins.
func (p *plan) readAuth(f tool.Fields) error {
	_, v, ok := f.First("auth")
	if !ok {
		return nil
	}
	if alias, isText := v.(string); isText {
		return tool.ConfigErrorf("auth %q was not resolved to a credential; register a credential of this name", alias)
	}
	object, err := f.Object("auth")
	if err != nil {
		return err
	}
	a := tool.Fields(object)
	kind, err := a.String("type")
	if err != nil {
		return err
	}
	switch strings.ToLower(kind) {
	case "none", "":
		return nil
	case "bearer", "bearer_token":
		return p.setSecret(a, "Authorization", "Bearer ", "token", "access_token", "bearer_token")
	case "api_key", "apikey":
		header, err := a.String("header", "header_name")
		if err != nil {
			return err
		}
		if header == "" {
			header = "X-API-Key"
		}
		p.secret = header
		return p.setSecret(a, header, "", "key", "api_key", "token", "value")
	case "basic":
		return p.setBasic(a)
	}
	return tool.ConfigErrorf("auth.type %q is not available; use bearer, basic or api_key", kind)
}

func (p *plan) setSecret(a tool.Fields, header, prefix string, names ...string) error {
	secret, err := a.String(names...)
	if err != nil {
		return err
	}
	if secret == "" {
		return tool.ConfigErrorf("auth has no %s", names[0])
	}
	if p.header.Get(header) == "" {
		p.header.Set(header, prefix+secret)
	}
	return nil
}

func (p *plan) setBasic(a tool.Fields) error {
	user, err := a.String("username", "user")
	if err != nil {
		return err
	}
	password, err := a.String("password")
	if err != nil {
		return err
	}
	if user == "" && password == "" {
		return tool.ConfigErrorf("auth of type basic needs username and password")
	}
	if p.header.Get("Authorization") == "" {
		req := http.Request{Header: p.header}
		req.SetBasicAuth(user, password)
	}
	return nil
}
