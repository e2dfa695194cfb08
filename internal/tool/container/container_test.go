package container_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

type object = map[string]any

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench runs calls of the tool.
type bench struct {
	t     *testing.T
	tool  *container.Tool
	clock *clock
	log   strings.Builder
	shelf *tooltest.Shelf
}

func newBench(t *testing.T, o container.Options) *bench {
	t.Helper()
	b := &bench{t: t, clock: &clock{now: time.Now()}, shelf: &tooltest.Shelf{}}
	o.Now = b.clock.Now
	var err error
	if b.tool, err = container.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.tool.Close() })
	return b
}

func (b *bench) call(config object, change ...func(*tool.Call)) *tool.Call {
	c := &tool.Call{
		Config: config, Args: object{"n": json.RawMessage("1")}, ExecutionID: "612489553370251264", Step: "Crunch numbers", CommandID: "612489553370251264:crunch:7",
		Attempt: 1, Run: 1, Log: &b.log, Blobs: b.shelf,
		Credentials: func(_ context.Context, aliases ...string) (map[string]*tool.Credential, error) {
			return map[string]*tool.Credential{
				"reg": {Alias: "reg", Type: "registry", Data: object{"username": "u", "password": "pull-pw"}},
				"pg":  {Alias: "pg", Type: "postgres", Data: object{"db_host": "h", "db_password": "db-pw"}},
			}, nil
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// starts runs a call that has to park, and returns the call for the next look.
func (b *bench) starts(c *tool.Call) (*tool.Call, *tool.Result) {
	b.t.Helper()
	res, err := b.tool.Run(b.t.Context(), c)
	if err != nil {
		b.t.Fatalf("run: %v", err)
	}
	if res.Park == nil || len(res.Again) == 0 {
		b.t.Fatalf("the call did not park: %+v %s", res, res.Data)
	}
	next := *c
	next.Again, next.Attempt = res.Again, c.Attempt+1
	return &next, res
}

// data is the data of a call that ends.
func (b *bench) data(c *tool.Call) (object, error) {
	b.t.Helper()
	res, err := b.tool.Run(b.t.Context(), c)
	if res == nil || res.Park != nil {
		b.t.Fatalf("the call did not end: %+v, %v", res, err)
	}
	var data object
	if err := json.Unmarshal(res.Data, &data); err != nil {
		b.t.Fatal(err)
	}
	return data, err
}

func wantError(t *testing.T, err error, kind, code string, retryable bool, says ...string) {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("got %v, want an error of kind %s", err, kind)
	}
	if e.Kind != kind || e.Code != code || e.Retryable != retryable {
		t.Errorf("got %s/%s retryable %v (%s), want %s/%s retryable %v", e.Kind, e.Code, e.Retryable, e.Message, kind, code, retryable)
	}
	for _, s := range says {
		if !strings.Contains(e.Message, s) {
			t.Errorf("message %q does not say %q", e.Message, s)
		}
	}
}

func wantFields(t *testing.T, got, want object) {
	t.Helper()
	for k, v := range want {
		g, _ := json.Marshal(got[k])
		w, _ := json.Marshal(v)
		if string(g) != string(w) {
			t.Errorf("%s is %s, want %s", k, g, w)
		}
	}
}

func TestToolIsAsTheContractAsks(t *testing.T) {
	d := newDockerd(t)
	d.has("busybox")
	quick := func() *tool.Call {
		return &tool.Call{Config: object{"image": "busybox"}, ExecutionID: "1", Step: "s", CommandID: "c", Run: 1, Log: io.Discard}
	}
	tooltest.Run(t, tooltest.Suite{
		Open: func(t *testing.T) (tool.Tool, func()) {
			tl, err := container.New(container.Options{Docker: container.Daemon{Host: d.host}})
			if err != nil {
				t.Fatal(err)
			}
			return tl, func() { _ = tl.Close() }
		},
		Quick:  quick,
		Broken: func() *tool.Call { c := quick(); c.Config = object{"image": "busybox", "volumes": "x"}; return c },
	})
}

func TestAMachineWithoutAnEngineSaysSo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt     container.Options
		backend string
		says    string
	}{
		"no cluster":        {container.Options{}, "kubernetes", "does not run in a cluster"},
		"an unknown engine": {container.Options{}, "lxc", "auto, kubernetes, docker, podman"},
		"docker over ssh":   {container.Options{Docker: container.Daemon{Host: "ssh://host"}}, "docker", "unix://"},
		"nothing at all":    {container.Options{Docker: container.Daemon{Host: "ssh://host"}}, "auto", "no container engine here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.opt)
			_, err := b.tool.Run(t.Context(), b.call(object{"image": "i", "backend": tc.backend}))
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Kind != tool.KindConfig || e.Retryable || !strings.Contains(e.Message, tc.says) {
				t.Errorf("got %v, want a config error that says %q", err, tc.says)
			}
		})
	}
}

func TestMistakesOfAuthorsAreNamed(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	d.has("i")
	b := newBench(t, container.Options{Docker: container.Daemon{Host: d.host}})
	for name, tc := range map[string]struct {
		config object
		says   string
	}{
		"no image":                 {object{}, "image is missing"},
		"env is a word":            {object{"env": "A"}, "env must be a map"},
		"a variable without name":  {object{"env": []any{object{"value": "x"}}}, "cannot be the name"},
		"value and value_from":     {object{"env": []any{object{"name": "A", "value": "x", "value_from": object{"secret_name": "s", "secret_key": "k"}}}}, "both value and value_from"},
		"half a value_from":        {object{"env": []any{object{"name": "A", "value_from": object{"secret_name": "s"}}}}, "secret_name and secret_key"},
		"restart always":           {object{"restart_policy": "Always"}, "Never, OnFailure"},
		"a negative backoff":       {object{"backoff_limit": int64(-1)}, "whole number"},
		"a volume of two kinds":    {object{"volumes": []any{object{"name": "v", "empty_dir": object{}, "secret": object{"secret_name": "s"}}}}, "exactly one of"},
		"a mount of no volume":     {object{"volume_mounts": []any{object{"name": "v", "mount_path": "/v"}}}, "none of volumes"},
		"a relative mount":         {object{"volume_mounts": []any{object{"name": "v", "mount_path": "v"}}}, "absolute mount_path"},
		"a secret without cluster": {object{"env": []any{object{"name": "A", "value_from": object{"secret_name": "s", "secret_key": "k"}}}}, "needs a cluster"},
		"nodes without cluster":    {object{"node_selector": object{"a": "b"}}, "needs a cluster"},
		"memory that is none":      {object{"resources": object{"limits": object{"memory": "lots"}}}, "resources.limits.memory"},
		"cpu that is none":         {object{"resources": object{"limits": object{"cpu": "fast"}}}, "resources.limits.cpu"},
		"args as a map":            {object{"args": object{"a": "b"}}, "args must be a list"},
		"an empty script":          {object{"script": " "}, "script is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.config["image"] = "i"; name == "no image" {
				delete(tc.config, "image")
			}
			_, err := b.tool.Run(t.Context(), b.call(tc.config))
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Kind != tool.KindConfig || !strings.Contains(e.Message, tc.says) {
				t.Errorf("got %v, want a config error that says %q", err, tc.says)
			}
		})
	}
	if n := d.left(); n != 0 {
		t.Errorf("%d containers were made all the same", n)
	}
}

func TestAnInputTooLargeForAVariableIsRefused(t *testing.T) {
	t.Parallel()
	d := newDockerd(t)
	d.has("i")
	b := newBench(t, container.Options{Docker: container.Daemon{Host: d.host}})
	large := json.RawMessage(`"` + strings.Repeat("x", 200<<10) + `"`)
	_, err := b.tool.Run(t.Context(), b.call(object{"image": "i"}, func(c *tool.Call) { c.Args = object{"a": large} }))
	wantError(t, err, tool.KindResourceLimit, "INPUT_TOO_LARGE", false, "_ref")
}

// failing refuses requests that begin so.
func (d *dockerd) failing(prefix string, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse[prefix] = answer{status, "the engine is unwell"}
}

func (d *dockerd) well() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.refuse)
}

func (d *dockerd) before(hook func(*http.Request)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hook = hook
}
