package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/result/file"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// depot is a server with a place for large values, and an execution in it.
type depot struct {
	*client.Client
	url string
	dir string
	id  event.ID
}

func newDepot(t *testing.T) *depot {
	t.Helper()
	d := &depot{dir: t.TempDir()}
	files, err := file.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	srv, _ := serve(t, control.Options{
		Store: memstore.New(), Bus: membus.New(membus.Options{}), IDs: snowflake.New(1, time.Now).Next,
		Results: control.ResultOptions{Tiers: []result.Tier{files}, Large: "file"},
	}, api.Options{InternalToken: "internal"})
	d.url = srv.URL
	if d.Client, err = client.New(srv.URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if _, err := d.Register(t.Context(), twoSteps); err != nil {
		t.Fatal(err)
	}
	run, err := d.Execute(t.Context(), client.ExecuteRequest{Path: "demo/two"})
	if err != nil {
		t.Fatal(err)
	}
	d.id = run.ExecutionID
	return d
}

// rowsOf gives JSON of so many bytes, piece by piece, and looks at the heap now
// and then.
type rowsOf struct {
	left  int
	piece []byte
	rest  []byte
	begun bool
	heap  *uint64
}

func (r *rowsOf) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		switch {
		case !r.begun:
			r.begun, r.rest = true, []byte("[0")
		case r.left > 0:
			r.left -= len(r.piece)
			r.rest = r.piece
			if r.left>>25 != (r.left+len(r.piece))>>25 {
				*r.heap = max(*r.heap, heapNow())
			}
		case r.left > -1<<40:
			r.left, r.rest = -1<<40, []byte("]")
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func heapNow() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestALargeValueIsNeverHeld sends 200 MB to a server in the same process and
// reads them back: the heap of both together stays far below.
func TestALargeValueIsNeverHeld(t *testing.T) {
	d := newDepot(t)
	piece := []byte(fmt.Sprintf(`,{"id":12345,"name":"%s","tags":["a","b"],"v":1.5}`, strings.Repeat("some text ", 6500)))
	var heap uint64
	base := heapNow()
	size := 200 << 20
	if underRace { // it is five times slower and no smaller
		size = 64 << 20
	}
	source := func() io.Reader { return &rowsOf{left: size, piece: piece, heap: &heap} }
	at, err := d.PutBlob(t.Context(), d.id, client.ResultOptions{Name: "big"}, source())
	if err != nil || at.Store != "file" || at.Bytes < int64(size) {
		t.Fatalf("%+v, %v", at, err)
	}
	body, got, err := d.OpenBlob(t.Context(), at.Ref, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	sum, buf := sha256.New(), make([]byte, 1<<20)
	for n := 0; ; n++ {
		k, err := body.Read(buf)
		_, _ = sum.Write(buf[:k])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n%1024 == 0 {
			heap = max(heap, heapNow())
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != at.SHA256 || got.Bytes != at.Bytes || got.SHA256 != at.SHA256 {
		t.Errorf("what came back is not what was sent: %+v", got)
	}
	if heap > base+40<<20 {
		t.Errorf("the heap grew from %d MiB to %d MiB", base>>20, heap>>20)
	}
}

func TestBlobsOverHTTP(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	text := strings.Repeat("line of text\n", 100_000)
	at, err := d.PutBlob(t.Context(), d.id, client.ResultOptions{Name: "a b/c.txt", MediaType: "text/plain", Scope: "workflow", TTL: "1d", Store: "file", SourceStep: "s"}, strings.NewReader(text))
	if err != nil || at.Store != "file" || at.Scope != "workflow" || at.ExpiresAt == nil || at.MediaType != "text/plain" {
		t.Fatalf("%+v, %v", at, err)
	}
	for _, part := range [][2]int64{{0, 0}, {5, 0}, {700_000, 13}, {int64(len(text)) - 1, 50}, {int64(len(text)), 0}, {int64(len(text)), 4}} {
		body, about, err := d.OpenBlob(t.Context(), at.Ref, part[0], part[1])
		if err != nil {
			t.Fatalf("%v: %v", part, err)
		}
		got, err := io.ReadAll(body)
		want := text[part[0]:]
		if part[1] > 0 {
			want = want[:min(int(part[1]), len(want))]
		}
		if err != nil || string(got) != want || about.Bytes != at.Bytes || want != "" && about.MediaType != "text/plain" || about.Store != "file" || !about.ExpiresAt.Equal(*at.ExpiresAt) {
			t.Errorf("%v: %d bytes, %v, %+v", part, len(got), err, about)
		}
		_ = body.Close()
	}
	if _, _, err := d.OpenBlob(t.Context(), at.Ref, int64(len(text))+1, 0); event.CodeOf(err) != event.Invalid {
		t.Errorf("behind the end: %v", err)
	}
	var list struct {
		Results []struct {
			Ref  string `json:"ref"`
			Name string `json:"name"`
			Step string `json:"source_step"`
		} `json:"results"`
	}
	d.answer(t, http.MethodGet, "/api/result/"+d.id.String()+"/list", nil, 200, &list)
	if len(list.Results) != 1 || list.Results[0].Ref != at.Ref || list.Results[0].Name != "a b/c.txt" || list.Results[0].Step != "s" {
		t.Errorf("the list is %+v", list)
	}
	d.answer(t, http.MethodDelete, "/api/result/"+d.id.String()+"?scope=step", nil, 200, nil)
	if _, _, err := d.OpenBlob(t.Context(), at.Ref, 0, 0); err != nil {
		t.Errorf("a value of another scope is gone: %v", err)
	}
	d.answer(t, http.MethodDelete, "/api/result/"+d.id.String(), nil, 200, nil)
	_, _, err = d.OpenBlob(t.Context(), at.Ref, 0, 0)
	if event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), "was collected") {
		t.Errorf("a value that was removed: %v", err)
	}
	if left := d.files(t); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
}

func (d *depot) files(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// answer makes a request and reads its answer.
func (d *depot) answer(t *testing.T, method, path string, header http.Header, status int, out any, body ...io.Reader) {
	t.Helper()
	var r io.Reader
	if len(body) > 0 {
		r = body[0]
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, r)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Authorization", "Bearer internal")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
}

func TestABlobMayArriveCompressed(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	data := []byte(`["` + strings.Repeat("x", 1<<20) + `"]`)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var at client.StoredResult
	path := "/api/result/" + d.id.String() + "/blob?name=n"
	d.answer(t, http.MethodPut, path, http.Header{"Content-Encoding": {"zstd"}}, 200, &at, bytes.NewReader(enc.EncodeAll(data, nil)))
	if got, err := d.Result(t.Context(), at.Ref); err != nil || string(got) != string(data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	d.answer(t, http.MethodPut, path, http.Header{"Content-Encoding": {"zstd"}}, 400, nil, strings.NewReader("no zstd"))
	d.answer(t, http.MethodPut, path, http.Header{"Content-Encoding": {"br"}}, 415, nil, strings.NewReader("1"))
}

func TestBlobsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	broken := errors.New("the source broke")
	large := `["` + strings.Repeat("x", 9<<20)
	for name, c := range map[string]struct {
		id   event.ID
		o    client.ResultOptions
		r    io.Reader
		want func(error) bool
	}{
		"no such execution": {1, client.ResultOptions{Name: "n"}, strings.NewReader("1"), is(event.NotFound)},
		"no name":           {d.id, client.ResultOptions{}, strings.NewReader("1"), is(event.Invalid)},
		"no JSON":           {d.id, client.ResultOptions{Name: "n"}, strings.NewReader(large), is(event.Invalid)},
		"no such store":     {d.id, client.ResultOptions{Name: "n", Store: "s3"}, strings.NewReader("1"), is(event.Invalid)},
		"no such time":      {d.id, client.ResultOptions{Name: "n", TTL: "x"}, strings.NewReader("1"), is(event.Invalid)},
		"a broken source": {
			d.id,
			client.ResultOptions{Name: "n"},
			io.MultiReader(strings.NewReader(large), iotest.ErrReader(broken)),
			func(err error) bool { return errors.Is(err, broken) },
		},
	} {
		if _, err := d.PutBlob(t.Context(), c.id, c.o, c.r); err == nil || !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var list struct{ Results []any }
	d.answer(t, http.MethodGet, "/api/result/"+d.id.String()+"/list", nil, 200, &list)
	if len(list.Results) > 0 {
		t.Errorf("references are left: %v", list.Results)
	}
}

func is(code event.Code) func(error) bool {
	return func(err error) bool { return event.CodeOf(err) == code }
}

func TestDamageBreaksTheTransfer(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	at, err := d.PutResultAs(t.Context(), d.id, client.ResultOptions{Name: "n", Store: "file"}, json.RawMessage(`["`+strings.Repeat("x", 2<<20)+`"]`))
	if err != nil {
		t.Fatal(err)
	}
	name := d.files(t)[0]
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-5] ^= 1
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	body, _, err := d.OpenBlob(t.Context(), at.Ref, 0, 0)
	if err == nil {
		_, err = io.Copy(io.Discard, body)
		_ = body.Close()
	}
	if err == nil {
		t.Error("a damaged value arrives without complaint")
	}
}

func TestWhatWouldBeCollected(t *testing.T) {
	t.Parallel()
	d := newDepot(t)
	if _, err := d.PutResultAs(t.Context(), d.id, client.ResultOptions{Name: "n", TTL: "1ms"}, json.RawMessage(`1`)); err != nil {
		t.Fatal(err)
	}
	var report control.CollectReport
	for report.Removed == 0 { // a millisecond passes
		d.answer(t, http.MethodGet, "/api/internal/results/collect", nil, 200, &report)
	}
	if !report.DryRun || report.Removed != 1 || report.Results[0].Why != "expired" {
		t.Errorf("a dry run says %+v", report)
	}
	d.answer(t, http.MethodPost, "/api/internal/results/collect", nil, 200, &report)
	if report.DryRun || report.Removed != 1 {
		t.Errorf("the run says %+v", report)
	}
	report = control.CollectReport{}
	d.answer(t, http.MethodPost, "/api/internal/results/collect", nil, 200, &report)
	if report.Removed != 0 {
		t.Errorf("the next run says %+v", report)
	}
}
