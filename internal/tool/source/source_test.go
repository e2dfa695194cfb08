package source_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/source"
)

type m = map[string]any

// server answers for the web and for buckets.
func server(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/code" && r.Header.Get("Authorization") == "Bearer t":
			_, _ = io.WriteString(w, "from the web "+r.Header.Get("X-A"))
		case r.URL.Path == "/code":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/big":
			_, _ = w.Write(make([]byte, source.MaxBytes+1))
		case r.URL.Path == "/binary":
			_, _ = w.Write([]byte{0xff, 0xfe})
		case r.URL.Path == "/hang":
			<-r.Context().Done()
		case strings.HasPrefix(r.URL.Path, "/bucket/dir/main.py") && strings.Contains(r.Header.Get("Authorization"), "Credential=key/"):
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("ETag", `"x"`)
			_, _ = io.WriteString(w, "from a bucket")
		case r.URL.Path == "/open/main.py":
			_, _ = io.WriteString(w, "from an open bucket")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestScriptsAreLoadedFromWhereTheyAre(t *testing.T) {
	srv := server(t)
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile(filepath.Join(dir, "x.py"), []byte("\ufefffrom a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := m{"type": "aws", "access_key_id": "key", "secret_access_key": "hunter2", "region": "eu-1"}
	pool := egress.NewPool(nil, egress.PoolOptions{})
	t.Cleanup(func() { _ = pool.Close() })
	for name, tc := range map[string]struct {
		script m
		want   string
	}{
		"inline":         {m{"source": m{"type": "inline", "code": "x = 1"}}, "x = 1"},
		"a file":         {m{"uri": "x.py", "source": m{"type": "file"}}, "from a file"},
		"a file by path": {m{"source": m{"path": "x.py"}}, "from a file"},
		"a file by uri":  {m{"uri": "file://" + filepath.Join(dir, "x.py")}, "from a file"},
		"the web":        {m{"uri": "code", "source": m{"type": "http", "endpoint": srv.URL, "auth": m{"type": "bearer", "token": "t"}, "headers": m{"X-A": "b"}}}, "from the web b"},
		"S3":             {m{"uri": "s3://bucket/dir/main.py", "source": m{"endpoint": srv.URL, "auth": keys}}, "from a bucket"},
		"GCS with keys":  {m{"uri": "gs://bucket/dir/main.py", "source": m{"type": "gcs", "endpoint": srv.URL, "auth": keys}}, "from a bucket"},
		"GCS, open":      {m{"uri": "gs://open/main.py", "source": m{"endpoint": srv.URL}}, "from an open bucket"},
	} {
		got, err := source.New(pool).Load(t.Context(), &tool.Call{Log: io.Discard}, tc.script)
		if err != nil || got != tc.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := source.Load(t.Context(), &tool.Call{Log: io.Discard}, m{"uri": "x.py"}); err != nil || got != "from a file" {
		t.Errorf("by default: %q, %v", got, err)
	}
}

func TestScriptsThatCannotBeLoadedSayWhy(t *testing.T) {
	t.Parallel()
	srv := server(t)
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, source.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := egress.Parse(egress.Settings{Profile: "public"})
	if err != nil {
		t.Fatal(err)
	}
	free, guarded := egress.NewPool(nil, egress.PoolOptions{}), egress.NewPool(public, egress.PoolOptions{})
	t.Cleanup(func() { _ = free.Close() })
	for name, tc := range map[string]struct {
		pool   *egress.Pool
		script m
		kind   string
		says   string
	}{
		"nothing said":        {free, m{}, tool.KindConfig, "uri"},
		"an unknown type":     {free, m{"source": m{"type": "ftp"}}, tool.KindConfig, "ftp"},
		"inline without code": {free, m{"source": m{"type": "inline"}}, tool.KindConfig, "code"},
		"a missing file":      {free, m{"uri": "/nowhere/x.py"}, tool.KindNotFound, "/nowhere/x.py"},
		"a directory":         {free, m{"uri": t.TempDir()}, tool.KindConfig, "not a file"},
		"a device":            {free, m{"uri": "/dev/zero"}, tool.KindConfig, "not a file"},
		"a huge file":         {free, m{"uri": big}, tool.KindResourceLimit, "4 MiB"},
		"a huge answer":       {free, m{"uri": srv.URL + "/big"}, tool.KindResourceLimit, "4 MiB"},
		"no text":             {free, m{"uri": srv.URL + "/binary"}, tool.KindParse, "UTF-8"},
		"not let in":          {free, m{"uri": srv.URL + "/code"}, tool.KindAuth, "401"},
		"too slow":            {free, m{"uri": srv.URL + "/hang", "source": m{"timeout": 0.05}}, tool.KindTimeout, "50ms"},
		"a denied address":    {guarded, m{"uri": srv.URL + "/code"}, tool.KindAuth, "not allowed"},
		"a denied bucket":     {guarded, m{"uri": "s3://bucket2/k", "source": m{"endpoint": srv.URL, "region": "x"}}, tool.KindAuth, "not allowed"},
		"a missing object":    {free, m{"uri": "s3://bucket2/k", "source": m{"endpoint": srv.URL, "region": "x"}}, tool.KindNotFound, "s3://bucket2/k"},
		"no bucket":           {free, m{"source": m{"type": "s3"}}, tool.KindConfig, "s3://bucket/path"},
	} {
		_, err := source.New(tc.pool).Load(t.Context(), &tool.Call{Log: io.Discard}, tc.script)
		e, ok := errors.AsType[*tool.Error](err)
		if !ok || e.Kind != tc.kind || !strings.Contains(e.Message, tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
