package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
	"github.com/noetl/noetl-go/internal/tool/script"
)

type object = map[string]any

// cluster keeps what it is given and says that every Job has ended as told.
type cluster struct {
	mu      sync.Mutex
	objects map[string]object // by kind
	ended   object            // status of the Job
	code    int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fmt.Sprint(c.objects["Job"]["metadata"])
	switch {
	case r.Method == "POST":
		var o object
		_ = json.NewDecoder(r.Body).Decode(&o)
		o["metadata"].(object)["uid"] = "u1"
		c.objects[o["kind"].(string)] = o
		w.WriteHeader(201)
		_ = json.NewEncoder(w).Encode(o)
	case strings.HasSuffix(r.URL.Path, "/log"):
		_, _ = io.WriteString(w, "wrote 3 rows\n")
	case strings.HasSuffix(r.URL.Path, "/pods"):
		_ = json.NewEncoder(w).Encode(object{"items": []any{object{
			"metadata": object{"name": "pod-1"},
			"status":   object{"containerStatuses": []any{object{"name": "main", "state": object{"terminated": object{"exitCode": c.code, "reason": "Error"}}}}},
		}}})
	case c.objects["Job"] != nil && name != "":
		o := object{"metadata": c.objects["Job"]["metadata"], "status": c.ended}
		_ = json.NewEncoder(w).Encode(o)
	}
}

func newTool(t *testing.T) (*cluster, script.Tool) {
	t.Helper()
	c := &cluster{objects: map[string]object{}}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	jobs, err := container.New(container.Options{Kubernetes: container.Cluster{API: srv.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = jobs.Close() })
	return c, script.New(jobs)
}

func newCall(config object) *tool.Call {
	return &tool.Call{
		Config: config, Args: object{"mode": json.RawMessage(`"$(batch)"`)}, ExecutionID: "7", Step: "run", CommandID: "c", Run: 1, Log: io.Discard,
		Credentials: func(context.Context, ...string) (map[string]*tool.Credential, error) {
			return map[string]*tool.Credential{"pg": {Type: "postgres", Data: object{"db_password": "pw"}}}, nil
		},
	}
}

func TestAScriptIsAJob(t *testing.T) {
	t.Parallel()
	c, tl := newTool(t)
	call := newCall(object{
		"script": object{"type": "inline", "content": "print('hi')"},
		"job": object{
			"namespace": "jobs", "ttlSecondsAfterFinished": int64(300), "backoffLimit": int64(1), "install_dependencies": []any{"requests>=2", "it's"},
			"resources": object{"limits": object{"memory": "512Mi"}}, "env": object{"KEY": "hidden-value"},
		},
		"auth": "pg",
	})
	res, err := tl.Run(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if res.Park == nil || res.Park.Callback != "" || res.Park.Delay != 5 {
		t.Fatalf("parked on %+v", res.Park)
	}
	spec := c.objects["Job"]["spec"].(object)
	main := spec["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)
	want := object{
		"image": "python:3.11-slim", "args": []any{`{"mode":"$$(batch)"}`},
		"command": []any{
			"/bin/sh", "-c",
			`python -m pip install --quiet --disable-pip-version-check --no-cache-dir 'requests>=2' 'it'\''s' 1>&2 && exec python "$0" "$@"`,
			"/noetl/scripts/script.py",
		},
	}
	for k, v := range want {
		g, _ := json.Marshal(main[k])
		w, _ := json.Marshal(v)
		if string(g) != string(w) {
			t.Errorf("%s is %s, want %s", k, g, w)
		}
	}
	if spec["backoffLimit"] != 1.0 || spec["activeDeadlineSeconds"] != 600.0 || spec["ttlSecondsAfterFinished"] != 300.0 {
		t.Errorf("spec is %v", spec)
	}
	if text, _ := json.Marshal(c.objects["Job"]); strings.Contains(string(text), "hidden-value") {
		t.Error("a variable's value is in the description of the job")
	}
	if s := c.objects["Secret"]["stringData"].(object); s["KEY"] != "hidden-value" || s["PGPASSWORD"] != "pw" {
		t.Errorf("the secret holds %v", s)
	}
	if m := c.objects["ConfigMap"]["data"].(object); m["script.py"] != "print('hi')" {
		t.Errorf("the script is %v", m)
	}

	call.Again = res.Again
	c.mu.Lock()
	c.ended = object{"succeeded": 1, "failed": 1, "conditions": []any{object{"type": "Complete", "status": "True"}}}
	c.mu.Unlock()
	if res, err = tl.Run(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var data object
	if err := json.Unmarshal(res.Data, &data); err != nil {
		t.Fatal(err)
	}
	want = object{
		"status": "completed", "namespace": "jobs", "pod_name": "pod-1", "output": "wrote 3 rows\n", "succeeded": 1.0, "failed": 1.0, "exit_code": 0.0,
		"terminal_state": "succeeded", "kubectl_logs": "kubectl logs -n jobs pod-1",
	}
	for k, v := range want {
		if data[k] != v {
			t.Errorf("%s is %v, want %v", k, data[k], v)
		}
	}
	if _, ok := data["execution_time"].(float64); !ok {
		t.Errorf("execution_time is %v", data["execution_time"])
	}

	c.mu.Lock()
	c.code, c.ended = 2, object{"failed": 4, "conditions": []any{object{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}}
	c.mu.Unlock()
	res, err = tl.Run(t.Context(), call)
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindLogic || !strings.Contains(string(res.Data), `"status":"failed"`) {
		t.Errorf("got %v, %+v", err, res)
	}
}

func TestArgumentsOfAScript(t *testing.T) {
	t.Parallel()
	c, tl := newTool(t)
	if _, err := tl.Run(t.Context(), newCall(object{"script": object{"source": object{"code": "x"}}, "args": []any{"a", int64(1)}})); err != nil {
		t.Fatal(err)
	}
	main := c.objects["Job"]["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)
	if got := fmt.Sprint(main["args"]); got != "[a 1]" {
		t.Errorf("arguments are %s", got)
	}
	if got := fmt.Sprint(main["command"].([]any)[2]); got != `exec python "$0" "$@"` {
		t.Errorf("the command is %s", got)
	}
}

func TestMistakesInScriptsAreNamed(t *testing.T) {
	t.Parallel()
	inline := object{"source": object{"type": "inline", "code": "x"}}
	for says, config := range map[string]object{
		"script is missing":     {},
		"not a package":         {"script": inline, "job": object{"install_dependencies": []any{"--index-url=http://evil"}}},
		"must be a list":        {"script": inline, "job": object{"install_dependencies": "requests"}},
		"has no place here":     {"script": inline, "job": object{"command": "x"}},
		"args must be a list":   {"script": inline, "args": "x"},
		"inline needs code":     {"script": object{"type": "inline"}},
		"job must be a map":     {"script": inline, "job": "x"},
		"not one of auto":       {"script": inline, "job": object{"backend": "lxc"}},
		"is not one of inline,": {"script": object{"type": "ftp"}},
	} {
		_, tl := newTool(t)
		_, err := tl.Run(t.Context(), newCall(config))
		e, ok := errors.AsType[*tool.Error](err)
		if !ok || e.Kind != tool.KindConfig || !strings.Contains(e.Message, says) {
			t.Errorf("got %v, want a config error that says %q", err, says)
		}
	}
}
