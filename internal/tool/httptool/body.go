package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// payload is a request body. It is text, or can be opened again, so that a
// redirect can repeat it.
type payload struct {
	present     bool
	bytes       string
	contentType string                                           // used when the author gave none
	open        func(ctx context.Context) (io.ReadCloser, error) // instead of bytes
	length      int64                                            // of what open gives; -1 = unknown
}

// readBody finds the body: json, else form, else body or payload, else data,
// which doubles as a query for methods without a body.
func (p *plan) readBody(f tool.Fields) (err error) {
	if _, v, ok := f.First("body_ref"); ok {
		if name, _, twice := f.First("json", "form", "body", "payload"); twice {
			return tool.ConfigErrorf("body_ref and %s are both given; a request has one body", name)
		}
		p.body, err = p.storedBody(v)
		return err
	}
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

// storedBody is data that was put aside: a reference, or the description that a
// download left ({_ref, bytes, media_type}), which also tells its size.
func (p *plan) storedBody(v any) (payload, error) {
	about := tool.Fields{"_ref": v}
	if m, ok := v.(map[string]any); ok {
		about = m
	}
	ref, err := about.String("_ref", "ref")
	if err != nil {
		return payload{}, err
	}
	if ref == "" {
		return payload{}, tool.ConfigErrorf("body_ref needs a reference such as {{ step._ref }}")
	}
	media, err := about.String("media_type")
	if err != nil {
		return payload{}, err
	}
	if media == "" {
		media = "application/octet-stream"
	}
	if p.blobs == nil {
		return payload{}, &tool.Error{Kind: tool.KindStorageAccess, Code: "NO_STORE", Message: "body_ref cannot be read: this worker has no access to stored data"}
	}
	body := payload{present: true, contentType: media, length: -1}
	if text, _ := about.String("bytes"); text != "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			body.length = n
		}
	}
	body.open = func(ctx context.Context) (io.ReadCloser, error) { return p.blobs.Open(ctx, ref, 0, 0) }
	return body, nil
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
