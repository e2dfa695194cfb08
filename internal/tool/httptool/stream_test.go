package httptool_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/httptool"
)

// shelf keeps blobs: JSON is checked, small ones are held to be looked at.
type shelf struct {
	mu   sync.Mutex
	held map[string][]byte
	peak uint64
	fast bool // JSON is believed to be JSON
	fail error
}

func (s *shelf) Put(_ context.Context, b tool.Blob, r io.Reader) (*tool.Stored, error) {
	if s.fail != nil {
		_, _ = io.CopyN(io.Discard, r, 1000)
		return nil, s.fail
	}
	hash, keep := sha256.New(), &bytes.Buffer{}
	pr, pw := io.Pipe()
	verdict := make(chan error, 1)
	go func() {
		var err error
		if b.MediaType == "" && !s.fast {
			dec := json.NewDecoder(pr)
			for err == nil {
				_, err = dec.Token()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
		}
		_, _ = io.Copy(io.Discard, pr)
		verdict <- err
	}()
	buf, total := make([]byte, 64<<10), int64(0)
	var readErr error
	for readErr == nil {
		var n int
		n, readErr = r.Read(buf)
		total += int64(n)
		hash.Write(buf[:n])
		_, _ = pw.Write(buf[:n])
		if keep.Len() < 1<<20 {
			keep.Write(buf[:n])
		}
		if total>>24 != (total-int64(n))>>24 { // every 16 MiB
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			s.peak = max(s.peak, m.HeapAlloc)
		}
	}
	_ = pw.Close()
	if err := <-verdict; err != nil {
		return nil, &tool.Error{Kind: tool.KindParse, Message: "the data is not JSON"}
	}
	if !errors.Is(readErr, io.EOF) {
		return nil, readErr
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := "noetl://execution/1/result/x/" + strconv.Itoa(len(s.held)+1)
	if s.held == nil {
		s.held = map[string][]byte{}
	}
	s.held[ref] = keep.Bytes()
	return &tool.Stored{StoredResult: event.StoredResult{Ref: ref, Bytes: total, SHA256: hex.EncodeToString(hash.Sum(nil)), MediaType: b.MediaType}}, nil
}

func (s *shelf) Open(_ context.Context, ref string, _, _ int64) (io.ReadCloser, error) {
	b, ok := s.held[ref]
	if !ok {
		return nil, &tool.Error{Kind: tool.KindMissingRef, Message: "no such reference"}
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func storing(config map[string]any, s *shelf) *tool.Call {
	call := callOf(config)
	call.Blobs, call.InlineLimit = s, 1<<10
	return call
}

func serving(t *testing.T, contentType string, write func(io.Writer)) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		write(w)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestLargeJSONIsStoredAsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	body := "\xef\xbb\xbf [" + strings.Repeat(`{"text":"a \" [ , } b","n":12345678901234567890},`, 200) + "1]\n"
	srv := serving(t, "application/json", func(w io.Writer) { _, _ = io.WriteString(w, body) })
	s := &shelf{}
	res, err := newTool(t, httptool.Options{}).Run(t.Context(), storing(map[string]any{"url": srv.URL}, s))
	if err != nil {
		t.Fatal(err)
	}
	if res.Stored == nil || res.Data != nil || res.HTTP.Status != 200 {
		t.Fatalf("result %+v", res)
	}
	var got struct {
		StatusCode int `json:"status_code"`
		Data       json.RawMessage
		Headers    map[string]string
		URL        string
		Elapsed    float64
	}
	if err := json.Unmarshal(s.held[res.Stored.Ref], &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Data) != strings.TrimSpace(body[3:]) || got.StatusCode != 200 || got.URL != srv.URL || got.Elapsed <= 0 || got.Headers["content-type"] != "application/json" {
		t.Errorf("stored %.300s", s.held[res.Stored.Ref])
	}
}

func TestWhatIsNotOneJSONValueIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4<<10)
	for name, tc := range map[string]struct{ contentType, body, media string }{
		"text":                       {"text/plain; charset=utf-8", long, "text/plain; charset=utf-8"},
		"lines of JSON":              {"application/json", strings.Repeat(`{"a":1}`+"\n", 1000), "application/json; charset=utf-8"},
		"JSON that ends in between":  {"application/json", `["` + long, "application/json; charset=utf-8"},
		"JSON that reaches out":      {"application/json", `"` + long + `","status_code":500,"x":1`, "application/json; charset=utf-8"},
		"JSON that closes too early": {"application/json", `"` + long + `"},{"a":1`, "application/json; charset=utf-8"},
		"bytes":                      {"", "\x00\x01" + long, "application/octet-stream"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serving(t, tc.contentType, func(w io.Writer) { _, _ = io.WriteString(w, tc.body) })
			s := &shelf{}
			res, err := newTool(t, httptool.Options{TempDir: t.TempDir()}).Run(t.Context(), storing(map[string]any{"url": srv.URL}, s))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StatusCode int `json:"status_code"`
				Data       struct {
					Ref       string `json:"_ref"`
					Bytes     int
					MediaType string `json:"media_type"`
					SHA256    string
				}
			}
			if err := json.Unmarshal(res.Data, &got); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(tc.body))
			if string(s.held[got.Data.Ref]) != tc.body || got.Data.Bytes != len(tc.body) || got.Data.SHA256 != hex.EncodeToString(sum[:]) || got.StatusCode != 200 {
				t.Errorf("data %+v, stored %.100q", got, s.held[got.Data.Ref])
			}
			if tc.contentType != "" && got.Data.MediaType != tc.media {
				t.Errorf("media type %q", got.Data.MediaType)
			}
		})
	}
}

func TestDownloadsAndUploadsUseTheStore(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, `{"got":%q,"length":%d,"type":%q}`, b, r.ContentLength, r.Header.Get("Content-Type"))
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "PNG")
	}))
	t.Cleanup(srv.Close)
	s, tl := &shelf{}, newTool(t, httptool.Options{})
	res, err := tl.Run(t.Context(), storing(map[string]any{"url": srv.URL, "download": true}, s))
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Data map[string]any }
	if err := json.Unmarshal(res.Data, &got); err != nil {
		t.Fatal(err)
	}
	for want, ref := range map[string]any{
		`{"got":"PNG","length":3,"type":"image/png"}`:                 got.Data,
		`{"got":"PNG","length":-1,"type":"application/octet-stream"}`: got.Data["_ref"],
	} {
		res, err := tl.Run(t.Context(), storing(map[string]any{"url": srv.URL, "method": "PUT", "body_ref": ref}, s))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(res.Data), `"data":`+want) {
			t.Errorf("uploading %v: %s", ref, res.Data)
		}
	}
	_, e := fails(t, httptool.Options{}, map[string]any{"url": srv.URL, "download": true})
	if e.Code != "NO_STORE" {
		t.Errorf("without a store: %+v", e)
	}
	s.fail = &tool.Error{Kind: tool.KindStorageQuota, Code: "FULL", Message: "full"}
	big := serving(t, "application/json", func(w io.Writer) { _, _ = io.WriteString(w, "["+strings.Repeat("1,", 5000)+"1]") })
	if _, err := tl.Run(t.Context(), storing(map[string]any{"url": big.URL}, s)); !errors.Is(err, s.fail) {
		t.Errorf("a full store: %v", err)
	}
}

// Not in parallel: it looks at the heap.
func TestHugeAnswersAreNotHeld(t *testing.T) {
	chunk := []byte(`"` + strings.Repeat(`0123456789abcdef`, 4<<10) + `",`)
	for name, size := range map[string]int{"application/json": 64 << 20, "application/octet-stream": 200 << 20} {
		srv := serving(t, name, func(w io.Writer) {
			_, _ = io.WriteString(w, "[")
			for sent := 0; sent < size; sent += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, "0]")
		})
		s := &shelf{fast: true}
		if _, err := newTool(t, httptool.Options{TempDir: t.TempDir()}).Run(t.Context(), storing(map[string]any{"url": srv.URL}, s)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.peak == 0 || s.peak > 64<<20 {
			t.Errorf("%s: the heap grew to %d MiB", name, s.peak>>20)
		}
	}
}

func TestCompressionIsUndoneAndBounded(t *testing.T) {
	t.Parallel()
	packed := func(encoding string, body []byte) []byte {
		var buf bytes.Buffer
		var z io.WriteCloser = zlib.NewWriter(&buf)
		if encoding == "gzip" {
			z = gzip.NewWriter(&buf)
		}
		_, _ = z.Write(body)
		_ = z.Close()
		return buf.Bytes()
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		body := packed(encoding, []byte(`{"a":1}`))
		bomb := packed(encoding, bytes.Repeat([]byte(" "), 1<<20))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			switch r.URL.Path {
			case "/bomb":
				_, _ = w.Write(bomb)
			case "/damaged":
				_, _ = w.Write(append(bytes.Clone(body[:6]), "nonsense"...))
			default:
				_, _ = w.Write(body)
			}
		}))
		t.Cleanup(srv.Close)
		// Asked for by hand, net/http leaves the answer as it is.
		config := map[string]any{"url": srv.URL, "headers": map[string]any{"Accept-Encoding": encoding}}
		res, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(config))
		if err != nil || !strings.Contains(string(res.Data), `"data":{"a":1}`) {
			t.Errorf("%s: %v %+v", encoding, err, res)
		}
		config["url"] = srv.URL + "/bomb"
		s := &shelf{}
		_, err = newTool(t, httptool.Options{MaxDownloadBytes: 1 << 18}).Run(t.Context(), storing(config, s))
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Code != "RESPONSE_TOO_LARGE" {
			t.Errorf("%s: a bomb gives %v", encoding, err)
		}
		config["url"] = srv.URL + "/damaged"
		if _, e := fails(t, httptool.Options{}, config); e.Retryable && e.Kind != tool.KindConnection {
			t.Errorf("%s: damage gives %+v", encoding, e)
		}
	}
}

func TestManyRequestsShareFewConnections(t *testing.T) {
	const bound = 20
	var open, most atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) }))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			n := open.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				continue
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	pool := egress.NewPool(nil, egress.PoolOptions{MaxConnections: bound})
	tl := newTool(t, httptool.Options{Pool: pool})
	var group sync.WaitGroup
	for range 1000 {
		group.Go(func() {
			if _, err := tl.Run(t.Context(), callOf(map[string]any{"url": srv.URL})); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most.Load() == 0 || most.Load() > bound {
		t.Errorf("%d connections at once, the bound is %d", most.Load(), bound)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 128<<20 {
		t.Errorf("the heap is %d MiB", m.HeapAlloc>>20)
	}
}

func TestDeniedAddressesAreAuthErrors(t *testing.T) {
	t.Parallel()
	p, err := egress.Parse(egress.Settings{Profile: "public"})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://127.0.0.1:1/", "http://u:hunter2@[::1]/", "http://0x7f000001/", "http://169.254.169.254/latest/meta-data"} {
		_, e := fails(t, httptool.Options{Pool: egress.NewPool(p, egress.PoolOptions{})}, map[string]any{"url": url})
		if e.Kind != tool.KindAuth || e.Code != "EGRESS_DENIED" || e.Retryable {
			t.Errorf("%s: %+v", url, e)
		}
	}
}

// Not in parallel: it counts goroutines.
func TestAnswersThatBreakOffLeaveNothingBehind(t *testing.T) {
	others := goleak.IgnoreCurrent()
	started := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `["`+strings.Repeat("x", 8<<10))
		_ = http.NewResponseController(w).Flush()
		switch r.URL.Path {
		case "/hang":
			started <- struct{}{}
			<-r.Context().Done()
		case "/chunked": // the last chunk never comes
			panic(http.ErrAbortHandler)
		case "/reset":
			conn, _, _ := http.NewResponseController(w).Hijack()
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}))
	tl := httptool.New(httptool.Options{})
	for _, path := range []string{"/chunked", "/reset"} {
		for _, call := range []*tool.Call{callOf(map[string]any{"url": srv.URL + path}), storing(map[string]any{"url": srv.URL + path}, &shelf{})} {
			_, err := tl.Run(t.Context(), call)
			if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindConnection || !e.Retryable {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	_, err := tl.Run(ctx, storing(map[string]any{"url": srv.URL + "/hang"}, &shelf{}))
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindCancelled {
		t.Errorf("cancelled within the body: %v", err)
	}
	_ = tl.Close()
	srv.Close()
	goleak.VerifyNone(t, others)
}
