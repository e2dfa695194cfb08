package httptool

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}

// plan is a request read from the config, checked, before anything is sent.
type plan struct {
	method   string
	url      *url.URL
	header   http.Header
	body     payload
	verify   bool
	follow   bool
	respType string // json, text or binary
	download bool   // put the body aside, whatever its size
	held     int64  // largest body that is held in memory
	proof    *outbound.Proof

	blobs tool.Blobs
	// encoded is a field as JSON, keys in the author's order.
	encoded func(field string) (json.RawMessage, error)
}

func readPlan(call *tool.Call) (*plan, error) {
	f := call.Fields()
	p := &plan{header: http.Header{}, encoded: call.Encoded, blobs: call.Blobs}
	for _, read := range []func(tool.Fields) error{
		p.readMethod, p.readURL, p.readHeaders, p.readSwitches, p.readHeld, p.readBody,
	} {
		if err := read(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *plan) readMethod(f tool.Fields) error {
	text, err := f.String("method")
	if err != nil {
		return err
	}
	p.method = strings.ToUpper(strings.TrimSpace(text))
	if p.method == "" {
		p.method = http.MethodGet
	}
	if !slices.Contains(methods, p.method) {
		return tool.ConfigErrorf("method %q is not one of %s", text, strings.Join(methods, ", "))
	}
	return nil
}

func (p *plan) readURL(f tool.Fields) error {
	text, err := f.String("url", "endpoint")
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return tool.ConfigErrorf("http needs a url; an expression that gave nothing looks the same as a missing one")
	}
	u, err := outbound.ParseURL("url", text)
	if err != nil {
		return err
	}
	p.url = u
	params, err := f.Object("params")
	if err != nil {
		return err
	}
	return p.addQuery(params)
}

// addQuery appends to the query the author wrote in the url, which stays as
// it is. A list repeats its name.
func (p *plan) addQuery(params map[string]any) error {
	extra := url.Values{}
	for name, value := range params {
		items, isList := value.([]any)
		if !isList {
			items = []any{value}
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			text, err := tool.Text(item)
			if err != nil {
				return err
			}
			extra.Add(name, text)
		}
	}
	if len(extra) == 0 {
		return nil
	}
	if p.url.RawQuery != "" {
		p.url.RawQuery += "&"
	}
	p.url.RawQuery += extra.Encode()
	return nil
}

func (p *plan) readHeaders(f tool.Fields) error {
	headers, err := f.Texts("headers")
	if err != nil {
		return err
	}
	for name, value := range headers {
		p.header.Set(strings.TrimSpace(name), value)
	}
	if p.header.Get("User-Agent") == "" {
		p.header.Set("User-Agent", "noetl")
	}
	return nil
}

func (p *plan) readSwitches(f tool.Fields) (err error) {
	if p.verify, err = f.Bool(true, "verify_ssl", "verify"); err != nil {
		return err
	}
	if p.follow, err = f.Bool(true, "follow_redirects"); err != nil {
		return err
	}
	if p.download, err = f.Bool(false, "download"); err != nil {
		return err
	}
	if p.respType, err = f.String("response_type"); err != nil {
		return err
	}
	switch p.respType {
	case "":
		p.respType = "json"
	case "json", "text", "binary":
	default:
		return tool.ConfigErrorf("response_type %q is not one of json, text, binary", p.respType)
	}
	return nil
}

func (p *plan) readHeld(f tool.Fields) error {
	text, err := f.String("max_response_bytes")
	if err != nil || text == "" {
		return err
	}
	if p.held, err = strconv.ParseInt(text, 10, 64); err != nil || p.held < 1 {
		return tool.ConfigErrorf("max_response_bytes must be a number of bytes, not %q", text)
	}
	return nil
}

// request turns the plan into what net/http sends.
func (p *plan) request(ctx context.Context) (*http.Request, error) {
	var body io.Reader
	if p.body.present && p.body.open == nil {
		body = strings.NewReader(p.body.bytes)
	}
	req, err := http.NewRequestWithContext(ctx, p.method, p.url.String(), body)
	if err != nil {
		return nil, tool.ConfigErrorf("request to %s cannot be made", outbound.Shown(p.url))
	}
	if p.body.open != nil {
		req.GetBody = func() (io.ReadCloser, error) { return p.body.open(ctx) }
		if req.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
		req.ContentLength = p.body.length
	}
	req.Header = p.header
	// net/http takes these two from the request, not from its headers.
	if host := p.header.Get("Host"); host != "" {
		req.Host = host
	}
	p.header.Del("Host")
	p.header.Del("Content-Length")
	if p.body.present && p.header.Get("Content-Type") == "" && p.body.contentType != "" {
		p.header.Set("Content-Type", p.body.contentType)
	}
	return req, nil
}

// what names the request in messages.
func (p *plan) what() string { return p.method + " " + outbound.Shown(p.url) }
