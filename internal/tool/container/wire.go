package container

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// maxAnswer bounds what an engine may answer at once.
const maxAnswer = 8 << 20

// answerTime is how long an engine may take to answer.
const answerTime = time.Minute

// wire speaks JSON over HTTP to one engine.
type wire struct {
	client *http.Client
	base   string                     // without a slash at its end
	prove  func(http.Header) error    // adds what proves who we are; may be nil
	reason func(answer []byte) string // the engine's words for a refusal
}

// ask makes a request. An answer that is no success is an *tool.Error with its
// status. The caller closes the body.
func (w *wire) ask(ctx context.Context, what, method, path string, query url.Values, body io.Reader, header http.Header) (*http.Response, error) {
	target := w.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, tool.ConfigErrorf("%s: the request cannot be made", what)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if w.prove != nil {
		if err := w.prove(req.Header); err != nil {
			return nil, err
		}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return nil, outbound.Failure(ctx, what, 0, err)
	}
	e := outbound.StatusError(what, resp.StatusCode, resp.Header)
	if e == nil || resp.StatusCode == http.StatusNotModified {
		return resp, nil
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if why := strings.TrimSpace(w.reason(answer)); why != "" {
		e.Message += ": " + why
	}
	return nil, e
}

// json asks with a value and reads one; both may be nil.
func (w *wire) json(ctx context.Context, what, method, path string, query url.Values, send, receive any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var body io.Reader
	if send != nil {
		raw, err := tool.Encode(send)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	resp, err := w.ask(ctx, what, method, path, query, body, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return outbound.Failure(ctx, what, 0, err)
	}
	if receive == nil {
		return nil
	}
	if err := json.Unmarshal(raw, receive); err != nil {
		return &tool.Error{Kind: tool.KindParse, Code: "ENGINE_ANSWER", Message: what + ": the engine's answer is not what its API promises: " + err.Error()}
	}
	return nil
}

// messageOf reads {"message": …}, which both engines use for refusals.
func messageOf(answer []byte) string {
	var e struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &e) != nil {
		return ""
	}
	return e.Message
}

// isStatus tells whether an error is an answer with this status.
func isStatus(err error, status int) bool {
	e, ok := err.(*tool.Error) //nolint:errorlint // ours are never wrapped
	return ok && e.HTTPStatus == status
}

// unclear tells that a request may have been carried out although it failed:
// nobody answered.
func unclear(err error) bool {
	e, ok := err.(*tool.Error) //nolint:errorlint // ours are never wrapped
	return ok && e.HTTPStatus == 0 && (e.Kind == tool.KindConnection || e.Kind == tool.KindTimeout || e.Kind == tool.KindCancelled || e.Kind == tool.KindParse)
}
