package httptool

import (
	"bytes"
	"context"
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
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// answer is what came back, before it is read.
type answer struct {
	*plan
	call  *tool.Call
	resp  *http.Response
	start time.Time
	tool  *Tool
}

// receive reads the answer: into memory as long as it is small, into the
// call's Blobs from there on.
func (a *answer) receive(ctx context.Context) (*tool.Result, error) {
	body, err := decoded(a.resp)
	if err != nil {
		return nil, err
	}
	bounded := &boundedReader{r: body, left: a.tool.opts.MaxDownloadBytes, tooLarge: a.tooLarge(a.tool.opts.MaxDownloadBytes)}
	if a.download && a.resp.StatusCode < 300 {
		if a.call.Blobs == nil {
			return nil, &tool.Error{Kind: tool.KindStorageAccess, Code: "NO_STORE", Message: a.what() + ": download needs a place to put the answer, and this worker has none"}
		}
		return a.putAside(ctx, bounded)
	}
	held := a.held
	if limit := int64(a.call.InlineLimit); a.call.Blobs != nil && limit > 0 && limit < held {
		held = limit
	}
	if a.call.Blobs == nil && a.method != http.MethodHead && a.resp.ContentLength > held {
		return nil, a.tooLarge(held)
	}
	head, err := io.ReadAll(io.LimitReader(bounded, held+1))
	if err != nil {
		return nil, err
	}
	if int64(len(head)) <= held {
		value, err := a.value(head)
		if err != nil {
			return nil, err
		}
		return a.result(value)
	}
	if a.call.Blobs == nil {
		return nil, a.tooLarge(held)
	}
	if a.respType == "json" && looksLikeJSON(a.mediaType(), head) {
		return a.streamJSON(ctx, head, bounded)
	}
	return a.putAside(ctx, io.MultiReader(bytes.NewReader(head), bounded))
}

func (a *answer) tooLarge(limit int64) *tool.Error {
	return &tool.Error{
		Kind: tool.KindResourceLimit, Code: "RESPONSE_TOO_LARGE", HTTPStatus: a.resp.StatusCode,
		Message: fmt.Sprintf("%s: the answer is larger than %s; ask for fewer items or page through them", a.what(), byteSize(limit)),
	}
}

func byteSize(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

func (a *answer) mediaType() string { return a.resp.Header.Get("Content-Type") }

// result assembles Data by hand: the body is spliced in as it came, so key
// order and large numbers survive.
func (a *answer) result(value json.RawMessage) (*tool.Result, error) {
	open, err := a.opening()
	if err != nil {
		return nil, err
	}
	end, err := a.ending()
	if err != nil {
		return nil, err
	}
	data := make([]byte, 0, 2*len(value)+len(open)+len(end)+96)
	data = append(append(data, open...), value...)
	data = append(append(data, `,"body":`...), value...)
	data = append(data, end...)
	return &tool.Result{Data: data, HTTP: a.info()}, nil
}

// opening is the envelope of the answer up to the body.
func (a *answer) opening() ([]byte, error) {
	headers, err := tool.Encode(a.info().Headers)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"status_code":%d,"headers":%s,"data":`, a.resp.StatusCode, headers), nil
}

// ending is the rest of the envelope, made when the body has been read.
func (a *answer) ending() ([]byte, error) {
	address, err := tool.Encode(outbound.Masked(a.resp.Request.URL, a.proof.Params()...))
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `,"url":%s,"elapsed":%.6f}`, address, max(time.Since(a.start).Seconds(), 1e-6)), nil
}

func (a *answer) info() *tool.HTTPInfo {
	return &tool.HTTPInfo{Status: a.resp.StatusCode, Headers: outbound.Headers(a.resp.Header)}
}

// value is the body as JSON: itself when it is JSON, else text. An empty body
// is null.
func (a *answer) value(body []byte) (json.RawMessage, error) {
	if a.respType == "binary" {
		return tool.Encode(map[string]any{
			"base64": base64.StdEncoding.EncodeToString(body),
			"size":   len(body),
		})
	}
	text := decodeText(a.mediaType(), body)
	if a.respType == "json" {
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
	body = bytes.TrimPrefix(body, []byte(byteOrderMark))
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

const byteOrderMark = "\xef\xbb\xbf"
