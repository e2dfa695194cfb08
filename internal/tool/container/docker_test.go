package container_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
)

func onDocker(t *testing.T) (*dockerd, *bench) {
	t.Helper()
	d := newDockerd(t)
	d.has("busybox:1")
	return d, newBench(t, container.Options{Docker: container.Daemon{Host: d.host}})
}

func TestAContainerRunsToItsEnd(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	call := b.call(object{
		"image": "busybox:1", "command": "echo hi", "args": []any{"a", int64(2)}, "env": object{"A": int64(1)}, "backoff_limit": "2",
		"resources":     object{"limits": object{"memory": "512Mi", "cpu": "500m"}},
		"volumes":       []any{object{"name": "v", "persistent_volume_claim": object{"claim_name": "disk"}}, object{"name": "t", "emptyDir": object{"medium": "Memory", "sizeLimit": "1Mi"}}},
		"volume_mounts": []any{object{"name": "v", "mount_path": "/v", "read_only": true}, object{"name": "t", "mountPath": "/t"}},
		"auth":          "pg",
	})
	next, res := b.starts(call)
	c := d.only()
	if !strings.HasPrefix(c.name, "noetl-container-crunch-numbers-612489553370251264-") || len(c.name) > 63 {
		t.Errorf("the container is called %s", c.name)
	}
	if want := "container:" + c.id; res.Park.Callback != want || res.Park.Delay != 5 {
		t.Errorf("parked on %+v, want %s and 5 s", res.Park, want)
	}
	env, _ := c.body["Env"].([]any)
	for _, want := range []any{"A=1", `NOETL_INPUT={"n":1}`, "NOETL_AUTH_PG_DB_PASSWORD=db-pw", "PGHOST=h", "NOETL_EXECUTION_ID=612489553370251264"} {
		if !slices.Contains(env, want) {
			t.Errorf("the environment has no %v: %v", want, env)
		}
	}
	want := object{
		"Memory": 5.36870912e+08, "NanoCpus": 5e8, "RestartPolicy": object{"Name": "on-failure", "MaximumRetryCount": 2.0},
		"Mounts": []any{
			object{"Type": "volume", "Source": "disk", "Target": "/v", "ReadOnly": true},
			object{"Type": "tmpfs", "Target": "/t", "TmpfsOptions": object{"SizeBytes": 1048576.0}},
		},
	}
	if diff := cmp.Diff(want, c.body["HostConfig"]); diff != "" {
		t.Errorf("host config (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"/bin/sh", "-c", "echo hi"}, c.body["Entrypoint"]); diff != "" {
		t.Error(diff)
	}
	if c.files["/noetl/"] != "777 " || c.status != "running" {
		t.Errorf("the container is %s with %v", c.status, c.files)
	}
	next, res = b.starts(next) // it still runs
	if res.Park.Delay != 10 {
		t.Errorf("the next look is after %v s, want 10", res.Park.Delay)
	}
	d.ends(0, func(c *box) {
		c.print(1, "line\n")
		c.print(2, "warning\n")
		c.print(1, `{"last":true}`+"\n")
		c.result = `{"answer": 42}`
	})
	data, err := b.data(next)
	if err != nil {
		t.Fatal(err)
	}
	wantFields(t, data, object{
		"terminal_state": "succeeded", "job_name": c.name, "job_uid": c.id, "exit_code": 0, "stdout": "line\n{\"last\":true}\n", "stderr": "warning\n",
		"result": object{"answer": 42}, "via": "poll", "backend": "docker", "namespace": nil,
	})
	if !strings.Contains(b.log.String(), "line\n") {
		t.Errorf("the log has no output: %q", b.log.String())
	}
	again, err := b.data(next) // the report was lost
	if err != nil || again["terminal_state"] != "succeeded" {
		t.Errorf("a second look gives %v, %v", again, err)
	}
}

func TestTheLastLineOfOutputIsTheResultWithoutAFile(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	next, _ := b.starts(b.call(object{"image": "busybox:1"}))
	d.ends(0, func(c *box) { c.print(1, "text\n{\"a\": [1, 2]}\n\n") })
	data, err := b.data(next)
	if err != nil {
		t.Fatal(err)
	}
	wantFields(t, data, object{"result": object{"a": []int{1, 2}}})
}

func TestLongOutputIsKeptElsewhere(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	next, _ := b.starts(b.call(object{"image": "busybox:1"}))
	d.ends(0, func(c *box) {
		for range 3 {
			c.print(1, strings.Repeat("x", 1<<20)+"\n")
		}
		c.print(1, `{"end":1}`)
	})
	data, err := b.data(next)
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := data["stdout_uri"].(string)
	if s := b.shelf.At(ref); s == nil || s.Bytes != 3<<20+3+9 {
		t.Errorf("stored under %q is %+v", ref, s)
	}
	if text, _ := data["stdout"].(string); len(text) > 1<<20+100 {
		t.Errorf("%d bytes are inline", len(text))
	}
	wantFields(t, data, object{"result": object{"end": 1}})
}

func TestFailedContainersAreToldApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end       func(*dockerd)
		state     string
		kind      string
		retryable bool
	}{
		"its program failed": {func(d *dockerd) { d.ends(3) }, "failed", tool.KindLogic, false},
		"out of memory":      {func(d *dockerd) { d.ends(137, func(c *box) { c.oom = true }) }, "failed_oom", tool.KindResourceLimit, false},
		"dead":               {func(d *dockerd) { d.ends(1, func(c *box) { c.status = "dead" }) }, "failed_node_lost", tool.KindServerError, true},
		"gone": {func(d *dockerd) {
			d.mu.Lock()
			defer d.mu.Unlock()
			clear(d.containers)
		}, "failed_node_lost", tool.KindServerError, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, b := onDocker(t)
			next, _ := b.starts(b.call(object{"image": "busybox:1"}))
			tc.end(d)
			data, err := b.data(next)
			wantError(t, err, tc.kind, tc.state, tc.retryable, "ended as "+tc.state)
			wantFields(t, data, object{"terminal_state": tc.state})
		})
	}
}

func TestAContainerOutOfTimeIsStopped(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	next, res := b.starts(b.call(object{"image": "busybox:1", "timeout_seconds": int64(3)}))
	if res.Park.Delay != 3 {
		t.Errorf("the look is after %v s, not at the end of its time", res.Park.Delay)
	}
	d.mu.Lock()
	for _, c := range d.containers {
		c.print(1, "so far")
	}
	d.mu.Unlock()
	b.clock.pass(3 * time.Second)
	data, err := b.data(next)
	wantError(t, err, tool.KindTimeout, "failed_timeout", true, "3s")
	wantFields(t, data, object{"terminal_state": "failed_timeout", "stdout": "so far"})
	if n := d.left(); n != 0 {
		t.Errorf("%d containers still run", n)
	}
}

func TestWithoutPollingOneLookIsLeft(t *testing.T) {
	t.Parallel()
	_, b := onDocker(t)
	_, res := b.starts(b.call(object{"image": "busybox:1", "poll": false, "timeout_seconds": "2h"}))
	if res.Park.Delay != 7200 || res.Park.Callback == "" {
		t.Errorf("parked on %+v", res.Park)
	}
}

func TestImagesArePulledWhenTheyAreMissing(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	d.registry["reg.io/team/app:2"] = "u:pull-pw@reg.io"
	b.starts(b.call(object{"image": "reg.io/team/app:2", "auth": object{"pull": "reg"}}))
	if log := b.log.String(); strings.Count(log, "Downloading") != 1 || !strings.Contains(log, "Downloaded newer image") {
		t.Errorf("progress is told as %q", log)
	}
	if env := d.only().body["Env"]; strings.Contains(toJSON(t, env), "pull-pw") {
		t.Errorf("the registry's password is in the environment: %v", env)
	}
}

func TestAnImageThatCannotBePulled(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	_, err := b.tool.Run(t.Context(), b.call(object{"image": "nobody/nothing"}))
	wantError(t, err, tool.KindConfig, "failed_image_pull", true, "pull access denied", "type registry")
	_, err = b.tool.Run(t.Context(), b.call(object{"image": "nobody/nothing", "image_pull_policy": "never"}))
	wantError(t, err, tool.KindConfig, "failed_image_pull", false, "Never")
	d.failing("POST /images/create", 500)
	_, err = b.tool.Run(t.Context(), b.call(object{"image": "nobody/nothing"}))
	wantError(t, err, tool.KindConfig, "failed_image_pull", true, "unwell")
	if n := d.left(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

func TestARunAfterACrashFindsTheSameContainer(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	call := b.call(object{"image": "busybox:1"})
	b.starts(call)
	first := d.only()
	redone := b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Attempt = 2 })
	next, res := b.starts(redone)
	if d.only() != first || res.Park.Callback != "container:"+first.id {
		t.Errorf("parked on %+v, want the first container", res.Park)
	}
	d.ends(0)
	if data, err := b.data(next); err != nil || data["job_uid"] != first.id {
		t.Errorf("got %v, %v", data, err)
	}
	b.starts(redone) // it has ended meanwhile: still the same one
	d.only()
	b.starts(b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Run = 2 })) // a retry is another
	if n := d.left(); n != 2 {
		t.Errorf("%d containers, want one for each try", n)
	}
}

func TestACrashBeforeTheStart(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	call := b.call(object{"image": "busybox:1"})
	b.starts(call)
	d.mu.Lock()
	for _, c := range d.containers {
		c.status = "created" // the worker died here
	}
	d.mu.Unlock()
	b.starts(call)
	if c := d.only(); c.status != "running" {
		t.Errorf("the container is %s", c.status)
	}
}

func TestANameThatBelongsToSomebodyElse(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	call := b.call(object{"image": "busybox:1"})
	b.starts(call)
	d.mu.Lock()
	for _, c := range d.containers {
		c.body["Labels"] = object{}
	}
	d.mu.Unlock()
	_, err := b.tool.Run(t.Context(), call)
	wantError(t, err, tool.KindClientError, "NAME_TAKEN", false)
	if d.left() != 1 {
		t.Error("somebody else's container was removed")
	}
}

func TestWithoutANumberOfTheRunAnEndedContainerIsReplaced(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	call := b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Run = 0 })
	b.starts(call)
	first := d.only()
	d.ends(1)
	b.starts(call)
	if c := d.only(); c == first || c.status != "running" {
		t.Errorf("the container is %s, and the first one is %v", c.status, c == first)
	}
}

func TestTroubleWithLooksPasses(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	next, _ := b.starts(b.call(object{"image": "busybox:1"}))
	d.failing("GET /containers/", 500)
	for range 9 {
		next, _ = b.starts(next)
	}
	_, err := b.tool.Run(t.Context(), next)
	wantError(t, err, tool.KindServerError, "HTTP_500", true, "unwell")
	d.well()
	d.ends(0)
	if _, err := b.data(next); err != nil {
		t.Error(err)
	}
}

func TestACancelledStartLeavesNoContainer(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"/start", "/archive", "/create"} {
		d, b := onDocker(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.before(func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, at) {
				cancel()
			}
		})
		_, err := b.tool.Run(ctx, b.call(object{"image": "busybox:1"}))
		wantError(t, err, tool.KindCancelled, "CANCELLED", false)
		if n := d.count("DELETE "); n != 1 {
			t.Errorf("cancelled at %s: %d containers were removed, want 1", at, n)
		}
		cancel()
	}
}

func TestAStartThatFailsLeavesNoContainer(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	d.failing("PUT /containers/", 500)
	_, err := b.tool.Run(t.Context(), b.call(object{"image": "busybox:1"}))
	wantError(t, err, tool.KindServerError, "HTTP_500", true)
	if n := d.left(); n != 0 {
		t.Errorf("%d containers are left", n)
	}
}

func TestEndedContainersGoAfterAWhile(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	b.starts(b.call(object{"image": "busybox:1", "ttl_seconds_after_finished": int64(600)}))
	d.ends(0)
	other := func(run int) *tool.Call {
		return b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Run = run })
	}
	b.clock.pass(5 * time.Minute)
	b.starts(other(2))
	if n := d.left(); n != 2 {
		t.Fatalf("%d containers, the first went too soon", n)
	}
	b.clock.pass(6 * time.Minute)
	b.starts(other(3))
	if n := d.left(); n != 2 {
		t.Errorf("%d containers, the first did not go", n)
	}
}

func TestAContainerThatNobodyLooksAtAnyMoreIsStopped(t *testing.T) {
	t.Parallel()
	d, b := onDocker(t)
	b.starts(b.call(object{"image": "busybox:1", "timeout_seconds": int64(60)})) // and the execution is cancelled
	forgotten := d.only()
	b.clock.pass(5 * time.Minute)
	b.starts(b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Run = 2 }))
	if n := d.left(); n != 2 {
		t.Fatalf("%d containers, the first went too soon", n)
	}
	b.clock.pass(7 * time.Minute)
	b.starts(b.call(object{"image": "busybox:1"}, func(c *tool.Call) { c.Run = 3 }))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.containers[forgotten.id] != nil || len(d.containers) != 2 {
		t.Errorf("%d containers, the forgotten one among them: %v", len(d.containers), d.containers[forgotten.id] != nil)
	}
}

func TestAScriptRunsInside(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config object
		want   []any
	}{
		"by sh":             {object{"script": "echo hi"}, []any{"/bin/sh", "/noetl/scripts/script"}},
		"by its first line": {object{"script": "#!/usr/bin/env python3\nprint(1)"}, []any{"/usr/bin/env", "python3", "/noetl/scripts/script"}},
		"by a command":      {object{"script": "x", "command": []any{"perl", "-w"}}, []any{"perl", "-w", "/noetl/scripts/script"}},
		"in the older form": {object{"script": object{"source": object{"type": "inline", "code": "x"}}}, []any{"/bin/sh", "/noetl/scripts/script"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, b := onDocker(t)
			tc.config["runtime"] = object{"provider": "docker", "image": "busybox:1", "timeoutSeconds": int64(60), "env": object{"X": "y"}}
			_, res := b.starts(b.call(tc.config))
			c := d.only()
			if diff := cmp.Diff(tc.want, c.body["Entrypoint"]); diff != "" {
				t.Error(diff)
			}
			if c.files["/noetl/scripts/script"] == "" || !strings.Contains(toJSON(t, c.body["Env"]), "X=y") {
				t.Errorf("files %v, env %v", c.files, c.body["Env"])
			}
			if !strings.Contains(string(res.Again), `"limit_seconds":60`) {
				t.Errorf("the note is %s", res.Again)
			}
		})
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
