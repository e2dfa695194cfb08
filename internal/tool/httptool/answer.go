package httptool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/tool"
)

// readBody reads the answer up to the cap, which counts decompressed bytes so
// that a small answer cannot grow without bound.
func (t *Tool) readBody(resp *http.Response, p *plan) ([]byte, error) {
	limit := t.opts.MaxResponseBytes
	tooLarge := &tool.Error{
		Kind: tool.KindResourceLimit, Code: "RESPONSE_TOO_LARGE", HTTPStatus: resp.StatusCode,
		Message: fmt.Sprintf("%s %s: the answer is larger than %s; ask for fewer items or page through them",
			p.method, shown(p.url), byteSize(limit)),
	}
	if p.method != http.MethodHead && resp.ContentLength > limit {
		return nil, tooLarge
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, tooLarge
	}
	return body, nil
}

func byteSize(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// result assembles Data by hand: the body is spliced in as it came, so key
// order and large numbers survive.
func (p *plan) result(resp *http.Response, body []byte, elapsed time.Duration) (*tool.Result, error) {
	headers := make(map[string]string, len(resp.Header))
	for name, values := range resp.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	final := *resp.Request.URL
	final.User = nil
	value, err := p.value(resp, body)
	if err != nil {
		return nil, err
	}
	headerJSON, err := tool.Encode(headers)
	if err != nil {
		return nil, err
	}
	urlJSON, err := tool.Encode(final.String())
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, 2*len(value)+len(headerJSON)+len(urlJSON)+96)
	data = append(data, `{"status_code":`...)
	data = strconv.AppendInt(data, int64(resp.StatusCode), 10)
	data = append(append(data, `,"headers":`...), headerJSON...)
	data = append(append(data, `,"data":`...), value...)
	data = append(append(data, `,"body":`...), value...)
	data = append(append(data, `,"url":`...), urlJSON...)
	data = append(data, `,"elapsed":`...)
	data = strconv.AppendFloat(data, elapsed.Seconds(), 'f', 6, 64)
	data = append(data, '}')
	return &tool.Result{Data: data, HTTP: &tool.HTTPInfo{Status: resp.StatusCode, Headers: headers}}, nil
}

// value is the body as JSON: itself when it is JSON, else text. An empty body
// is null.
func (p *plan) value(resp *http.Response, body []byte) (json.RawMessage, error) {
	if p.respType == "binary" {
		return tool.Encode(map[string]any{
			"base64": base64.StdEncoding.EncodeToString(body),
			"size":   len(body),
		})
	}
	text := decodeText(resp.Header.Get("Content-Type"), body)
	if p.respType == "json" {
		trimmed := bytes.TrimSpace(text)
		if len(trimmed) == 0 {
			return json.RawMessage("null"), nil
		}
		if json.Valid(trimmed) {
			return trimmed, nil
		}
	}
	return tool.Encode(string(text))
}

// decodeText gives valid UTF-8: Latin-1 is converted when the answer says so,
// other broken bytes become replacement characters, a byte order mark goes.
func decodeText(contentType string, body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if utf8.Valid(body) {
		return body
	}
	_, params, _ := mime.ParseMediaType(contentType)
	switch strings.ToLower(params["charset"]) {
	case "iso-8859-1", "latin1", "windows-1252":
		runes := make([]rune, len(body))
		for i, b := range body {
			runes[i] = rune(b)
		}
		return []byte(string(runes))
	}
	return bytes.ToValidUTF8(body, []byte("\uFFFD"))
}
