package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// It measures this process's memory, so it must not run beside other tests.
func TestALargeResultIsStoredWithoutBeingHeld(t *testing.T) {
	size := 64 << 20
	if testing.Short() {
		size = 20 << 20
	}
	tl := newTool(t, python.Options{})
	shelf := &tooltest.Shelf{Keep: 32}
	call := callOf("result = {'text': 'x' * size}", map[string]any{"size": int64(size)})
	call.Blobs, call.InlineLimit = shelf, 100<<10
	parentPID(t, tl)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := tl.Run(t.Context(), call)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if res.Stored == nil || res.Data != nil || res.Stored.Bytes != int64(size)+11 || res.Stored.MediaType != "application/json" {
		t.Errorf("got %+v, data of %d bytes", res.Stored, len(res.Data))
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("the worker allocated %d bytes for it", allocated)
	}
}

type brokenShelf struct{ tooltest.Shelf }

func (*brokenShelf) Put(context.Context, tool.Blob, io.Reader) (*tool.Stored, error) {
	return nil, errors.New("the shelf is full")
}

func TestAStoreThatFailsFailsTheStep(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	for name, code := range map[string]string{
		"a value": "result = 'x' * 2_000_000",
		"a file":  "open('f', 'w').write('x')\nresult = {'_file': 'f'}",
	} {
		call := callOf(code, nil)
		call.Blobs, call.InlineLimit = &brokenShelf{}, 1000
		if _, e := fails(t, tl, call); e.Kind != "storage_access" || !strings.Contains(e.Message, "the shelf is full") {
			t.Errorf("%s: got %+v", name, e)
		}
	}
}

func TestAProcessThatDiesOverItsAnswerStoresNothing(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	// The answer begins and does not end: its own socket is used for that.
	code := `
import socket, struct
for fd in range(3, 40):
    try:
        s = socket.socket(fileno=fd)
        s.getpeername()
    except OSError:
        continue
    s.sendall(struct.pack('>cQ', b'R', 1_000_000) + b'"' + b'x' * 5000)
    os._exit(0)
`
	call := callOf(code, nil)
	shelf := &tooltest.Shelf{}
	call.Blobs, call.InlineLimit = shelf, 1000
	if res, e := fails(t, tl, call); e.Code != "EXIT_0" || res.Stored != nil {
		t.Errorf("got %+v, %+v", e, res)
	}
}

func TestFilesComeAndGo(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	shelf := &tooltest.Shelf{}
	in, err := shelf.Put(t.Context(), tool.Blob{}, strings.NewReader("a,b\n1,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	call := callOf(`
assert open(files['in.csv']).read() == 'a,b\n1,2\n' and table == files['table']
assert os.path.dirname(table) == os.getcwd() == os.environ['HOME'] == os.environ['TMPDIR']
open('out.csv', 'w').write('done')
result = {'n': 1, 'report': {'_file': 'out.csv', 'media_type': 'text/csv'}, 'z': os.getcwd()}
`, nil)
	call.Config["files"] = map[string]any{"in.csv": in.Ref, "table": map[string]any{"_ref": in.Ref}}
	call.Blobs = shelf
	res, err := tl.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		N      int
		Report struct {
			Ref       string `json:"_ref"`
			Bytes     int64
			MediaType string `json:"media_type"`
			SHA256    string
		}
		Z string
	}
	if err := json.Unmarshal(res.Data, &data); err != nil {
		t.Fatal(err)
	}
	stored := shelf.At(data.Report.Ref)
	if stored == nil || string(stored.Head) != "done" || stored.Blob.MediaType != "text/csv" || data.Report.Bytes != 4 || len(data.Report.SHA256) != 64 || data.N != 1 {
		t.Errorf("got %s, stored %+v", res.Data, stored)
	}
	again := callOf("result = os.path.exists(dir)", map[string]any{"dir": data.Z})
	if res, err := tl.Run(t.Context(), again); err != nil || string(res.Data) != "false" {
		t.Errorf("the private directory is still there: %s, %v", res.Data, err)
	}
}

func TestFilesThatCannotBe(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	for says, tc := range map[string]struct {
		code  string
		files map[string]any
	}{
		"is outside the working directory":       {"result = {'_file': '/etc/passwd'}", nil},
		"cannot be read":                         {"os.symlink('/etc/passwd', 'p')\nresult = {'_file': 'p'}", nil},
		"which is not a file":                    {"os.mkdir('d')\nresult = {'_file': 'd'}", nil},
		"cannot be the name of a file":           {"1", map[string]any{"../x": "noetl://execution/1/result/a/1"}},
		"must be a reference to stored data":     {"1", map[string]any{"x": "/etc/passwd"}},
		"nothing is stored as noetl://execution": {"1", map[string]any{"x": "noetl://execution/1/result/a/99"}},
	} {
		call := callOf(tc.code, nil)
		call.Blobs = &tooltest.Shelf{}
		if tc.files != nil {
			call.Config["files"] = tc.files
		}
		if _, e := fails(t, tl, call); !strings.Contains(e.Message, says) {
			t.Errorf("got %+v, want %q", e, says)
		}
	}
}

func TestCredentialsReachTheCodeOnlyWhenAskedFor(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the worker's own")
	tl := newTool(t, python.Options{})
	stored := map[string]*tool.Credential{
		"main-db": {Alias: "main-db", Type: "postgres", Data: map[string]any{"db_host": "h", "db_port": int64(5433), "db_password": "pw"}},
		"gcp":     {Alias: "gcp", Type: "gcs_service_account", Data: map[string]any{"type": "service_account", "private_key": "k", "project_id": "p"}},
	}
	lookup := func(_ context.Context, aliases ...string) (map[string]*tool.Credential, error) {
		out := map[string]*tool.Credential{}
		for _, a := range aliases {
			out[a] = stored[a]
		}
		return out, nil
	}
	code := "e = os.environ\nresult = [e.get(k) for k in ('NOETL_AUTH_MAIN_DB_DB_PASSWORD', 'NOETL_AUTH_DB_DB_PASSWORD', 'PGHOST', 'PGPORT', 'PGPASSWORD', 'AWS_SECRET_ACCESS_KEY')]\n" +
		"f = e.get('GOOGLE_APPLICATION_CREDENTIALS')\nresult += [f and json.load(open(f))['private_key'], e.get('GOOGLE_CLOUD_PROJECT')]"
	for name, tc := range map[string]struct {
		auth any
		want string
	}{
		"none":                                   {nil, `[null,null,null,null,null,null,null,null]`},
		"an alias":                               {"main-db", `["pw",null,"h","5433","pw",null,null,null]`},
		"a map":                                  {map[string]any{"db": "main-db", "cloud": "gcp"}, `[null,"pw","h","5433","pw",null,"k","p"]`},
		"two databases have no common variables": {map[string]any{"db": "main-db", "other": "main-db"}, `[null,"pw",null,null,null,null,null,null]`},
	} {
		call := callOf(code, nil)
		call.Config["auth"], call.Credentials = tc.auth, lookup
		if res, err := tl.Run(t.Context(), call); err != nil || string(res.Data) != tc.want {
			t.Errorf("%s: got %s, %v; want %s", name, res.Data, err, tc.want)
		}
	}
}
