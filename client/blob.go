package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// PutBlob puts all that r gives aside, of any size, without holding it, and
// returns the reference that stands for it. It waits for r as long as that takes,
// and for the server as long as any call does. An error of r comes back as it
// is; NotFound when there is no such execution, Invalid when the options are
// wrong or the data is no JSON though it should be, Limit when it is too large.
func (c *Client) PutBlob(ctx context.Context, executionID ID, o ResultOptions, r io.Reader) (StoredResult, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"name": o.Name, "source_step": o.SourceStep, "scope": o.Scope, "ttl": o.TTL, "store": o.Store, "media_type": o.MediaType,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	watch := c.watch(ctx)
	defer watch.end()
	req, err := c.request(watch.ctx, http.MethodPut, "/api/result/"+executionID.String()+"/blob?"+q.Encode(), nil)
	if err != nil {
		return StoredResult{}, err
	}
	body := &outgoing{r: r, watch: watch}
	defer body.gone.Store(true)
	req.Body, req.ContentLength = body, -1
	req.Header.Set("Content-Type", cmp.Or(o.MediaType, "application/json"))
	resp, err := c.http.Do(req)
	if err != nil {
		if broken := body.err.Load(); broken != nil {
			return StoredResult{}, *broken
		}
		return StoredResult{}, watch.failure(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return StoredResult{}, watch.failure(err)
	case resp.StatusCode >= 300:
		if broken := body.err.Load(); broken != nil {
			return StoredResult{}, *broken
		}
		return StoredResult{}, refused(resp, answer)
	}
	var stored StoredResult
	if err := json.Unmarshal(answer, &stored); err != nil {
		return stored, event.Errorf(event.Internal, "the answer to PUT blob is not what a NoETL server sends: %w", err)
	}
	return stored, nil
}

// watch ends a transfer in which the server does nothing for as long as a call
// may take.
type watch struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the transfer
	cancel context.CancelFunc
	timer  *time.Timer
	limit  time.Duration
	idle   atomic.Bool
}

func (c *Client) watch(ctx context.Context) *watch {
	w := &watch{limit: c.timeout}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.timer = time.AfterFunc(w.limit, func() { w.idle.Store(true); w.cancel() })
	return w
}

func (w *watch) pause() { w.timer.Stop() }
func (w *watch) start() { w.timer.Reset(w.limit) }

func (w *watch) end() {
	w.timer.Stop()
	w.cancel()
}

func (w *watch) failure(err error) error {
	if w.idle.Load() {
		return &event.Error{
			Code: event.Unavailable, Message: fmt.Sprintf("the server did nothing for %s", w.limit), Remedy: "try again", Reason: "network", Err: err,
		}
	}
	return unreachable(err)
}

// outgoing is a body on its way. The transport may ask for more of it after the
// call has returned; then there is no more.
type outgoing struct {
	r     io.Reader
	watch *watch
	gone  atomic.Bool
	err   atomic.Pointer[error]
}

func (o *outgoing) Read(p []byte) (int, error) {
	if o.gone.Load() {
		return 0, errors.New("the call is over")
	}
	o.watch.pause() // the source may take its time
	n, err := o.r.Read(p)
	o.watch.start()
	if err != nil && !errors.Is(err, io.EOF) {
		o.err.Store(&err)
	}
	return n, err
}

func (o *outgoing) Close() error { return nil }

// OpenBlob reads what a reference stands for, from offset on, at most length
// bytes; 0 = to the end. Nothing is held but the piece at hand, and a whole is
// held against its checksum. The caller closes it. BadRequest when ref is no
// reference, Invalid when the offset lies behind the end, NotFound when nothing
// is stored under it, or not any more.
func (c *Client) OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, StoredResult, error) {
	if offset < 0 || length < 0 {
		return nil, StoredResult{}, event.Errorf(event.Invalid, "offset and length must not be negative")
	}
	w := c.watch(ctx)
	req, err := c.request(w.ctx, http.MethodGet, "/api/result/resolve?"+url.Values{"ref": {ref}}.Encode(), nil)
	if err != nil {
		w.end()
		return nil, StoredResult{}, err
	}
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Accept-Encoding", "identity")
	switch {
	case length > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		err = w.failure(err)
		w.end()
		return nil, StoredResult{}, err
	}
	at := described(resp, ref)
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && offset == at.Bytes:
		_ = resp.Body.Close()
		w.end()
		return io.NopCloser(strings.NewReader("")), at, nil
	case resp.StatusCode >= 300:
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20)) // what can be read of it says why
		_ = resp.Body.Close()
		w.end()
		return nil, at, refused(resp, answer)
	}
	w.pause()
	in := &incoming{body: resp.Body, watch: w}
	if resp.StatusCode == http.StatusOK && len(at.SHA256) == sha256.Size*2 {
		in.hash, in.want = sha256.New(), at.SHA256
	}
	return in, at, nil
}

// described is what the header of an answer says of a value.
func described(resp *http.Response, ref string) StoredResult {
	h := resp.Header
	at := StoredResult{Ref: ref, Store: h.Get("X-Noetl-Store"), Scope: h.Get("X-Noetl-Scope"), Bytes: resp.ContentLength, SHA256: strings.Trim(h.Get("ETag"), `"`)}
	if media := h.Get("Content-Type"); media != "application/json" {
		at.MediaType = media
	}
	if t, err := time.Parse(time.RFC3339Nano, h.Get("X-Noetl-Expires")); err == nil {
		at.ExpiresAt = &t
	}
	if _, total, ok := strings.Cut(h.Get("Content-Range"), "/"); ok {
		if n, err := strconv.ParseInt(total, 10, 64); err == nil {
			at.Bytes = n
		}
	}
	return at
}

// incoming is a value on its way here.
type incoming struct {
	body  io.ReadCloser
	watch *watch
	hash  hash.Hash // nil for parts
	want  string
	err   error
}

func (i *incoming) Read(p []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	i.watch.start()
	n, err := i.body.Read(p)
	i.watch.pause()
	if i.hash != nil {
		_, _ = i.hash.Write(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF) && i.hash != nil:
		if got := hex.EncodeToString(i.hash.Sum(nil)); got != i.want {
			err = event.Errorf(event.Internal, "the result that arrived is damaged: its checksum is %s, not %s", got, i.want)
		}
	case errors.Is(err, io.EOF):
	case err != nil:
		err = i.watch.failure(err)
	}
	i.err = err
	return n, err
}

func (i *incoming) Close() error {
	i.watch.end()
	return i.body.Close()
}
