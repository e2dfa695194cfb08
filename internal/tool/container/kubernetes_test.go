package container_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
)

func inCluster(t *testing.T) (*cluster, *bench) {
	t.Helper()
	c := newCluster(t)
	return c, newBench(t, container.Options{Kubernetes: c.options})
}

func TestAJobIsDescribedInFull(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	_, res := b.starts(b.call(object{
		"image": "app:1", "command": []any{"run"}, "args": []any{"$(A)"}, "service_account": "worker", "namespace": "jobs", "backoff_limit": int64(2),
		"timeout_seconds": int64(90), "ttl_seconds_after_finished": int64(60), "image_pull_policy": "ifnotpresent", "restart_policy": "OnFailure",
		"resources":     object{"requests": object{"cpu": "100m"}, "limits": object{"memory": "1Gi"}},
		"env":           []any{object{"name": "A", "value": int64(5)}, object{"name": "B", "value_from": object{"secret_name": "s", "secret_key": "k"}}},
		"node_selector": object{"disk": "ssd"},
		"tolerations":   []any{object{"key": "gpu", "operator": "Exists", "effect": "NoSchedule", "toleration_seconds": int64(30)}},
		"volumes": []any{
			object{"name": "tmp", "empty_dir": object{"size_limit": "1Gi"}},
			object{"name": "c", "config_map": object{"name": "cm", "optional": true}},
			object{"name": "s", "secret": object{"secret_name": "sec"}},
		},
		"volume_mounts": []any{object{"name": "tmp", "mount_path": "/tmp", "sub_path": "x"}},
	}, func(c *tool.Call) { c.Args = object{"price": "$(A) $$"} }))
	path, o := c.job()
	if !strings.HasPrefix(path, "/apis/batch/v1/namespaces/jobs/jobs/noetl-container-crunch-numbers-612489553370251264-") {
		t.Errorf("the job is at %s", path)
	}
	if res.Park.Callback != "container:uid-1" {
		t.Errorf("parked on %+v", res.Park)
	}
	labels := o["metadata"].(object)["labels"].(object)
	wantFields(t, labels, object{
		"noetl.execution-id": "612489553370251264", "noetl.tool-kind": "container", "noetl.run": "1", "noetl.attempt": "1",
	})
	if step, _ := labels["noetl.step-name"].(string); !strings.HasPrefix(step, "Crunch-numbers-") {
		t.Errorf("the step's label is %q", step)
	}
	spec := o["spec"].(object)
	wantFields(t, spec, object{"backoffLimit": 2, "activeDeadlineSeconds": 90, "ttlSecondsAfterFinished": 60})
	template := spec["template"].(object)
	if diff := cmp.Diff(labels, template["metadata"].(object)["labels"]); diff != "" {
		t.Errorf("labels of the pod differ: %s", diff)
	}
	pod := template["spec"].(object)
	wantFields(t, pod, object{
		"restartPolicy": "OnFailure", "serviceAccountName": "worker", "nodeSelector": object{"disk": "ssd"}, "imagePullSecrets": nil,
		"tolerations": []any{object{"key": "gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 30}},
		"volumes": []any{
			object{"name": "tmp", "emptyDir": object{"sizeLimit": "1Gi"}},
			object{"name": "c", "configMap": object{"name": "cm", "optional": true}},
			object{"name": "s", "secret": object{"secretName": "sec"}},
		},
	})
	main := pod["containers"].([]any)[0].(object)
	wantFields(t, main, object{
		"name": "main", "image": "app:1", "command": []any{"run"}, "args": []any{"$(A)"}, "imagePullPolicy": "IfNotPresent",
		"resources":    object{"requests": object{"cpu": "100m"}, "limits": object{"memory": "1Gi"}},
		"volumeMounts": []any{object{"name": "tmp", "mountPath": "/tmp", "subPath": "x"}}, "terminationMessagePath": "/noetl/result.json",
	})
	env := main["env"].([]any)
	wantFields(t, object{"0": env[0], "1": env[1], "2": env[2]}, object{
		"0": object{"name": "A", "value": "5"},
		"1": object{"name": "B", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "k"}}},
		"2": object{"name": "NOETL_INPUT", "value": `{"price":"$$(A) $$$"}`}, // as the cluster has to see it
	})
	if c.named("/secrets/") != nil || c.named("/configmaps/") != nil {
		t.Error("objects were made that nobody needs")
	}
}

func TestAJobOwnsItsSecretsAndScripts(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	b.starts(b.call(object{"image": "reg.io/app:1", "script": "echo hi", "auth": object{"db": "pg", "pull": "reg"}}))
	path, o := c.job()
	name := path[strings.LastIndexByte(path, '/')+1:]
	if text := toJSON(t, o); strings.Contains(text, "db-pw") || strings.Contains(text, "pull-pw") || !strings.Contains(text, `"secretKeyRef":{"key":"NOETL_AUTH_DB_DB_PASSWORD","name":"`+name+`"}`) {
		t.Errorf("the job is %s", text)
	}
	owner := object{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "uid-1"}
	for part, want := range map[string]string{
		"/configmaps/" + name: `"data":{"script":"echo hi"}`,
		"/secrets/" + name:    `"type":`,
	} {
		x := c.named(part)
		if x == nil || !strings.Contains(toJSON(t, x), want) {
			t.Fatalf("%s is %v", part, x)
		}
		wantFields(t, x["metadata"].(object), object{"ownerReferences": []any{owner}})
	}
	pull := c.named("-pull")
	if pull == nil || !strings.Contains(toJSON(t, pull), `\"reg.io\"`) || pull["type"] != "kubernetes.io/dockerconfigjson" {
		t.Errorf("the login for pulling is %v", pull)
	}
	if names := o["spec"].(object)["template"].(object)["spec"].(object)["imagePullSecrets"]; !strings.Contains(toJSON(t, names), "-pull") {
		t.Errorf("pulling uses %v", names)
	}
}

func TestJobsEnd(t *testing.T) {
	t.Parallel()
	lost := object{"phase": "Failed", "reason": "NodeLost", "message": "node n1 is gone"}
	disrupted := terminated(143, "Error", "")
	disrupted["conditions"] = []any{object{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "made way"}}
	for name, tc := range map[string]struct {
		job, pod  object
		state     string
		kind      string
		retryable bool
		says      string
	}{
		"as they should":   {condition("Complete", "", ""), terminated(0, "Completed", `{"from":"file"}`), "succeeded", "", false, ""},
		"with an exit":     {condition("Failed", "BackoffLimitExceeded", "x"), terminated(3, "Error", ""), "failed", tool.KindLogic, false, "exit code 3"},
		"out of memory":    {condition("Failed", "BackoffLimitExceeded", "x"), terminated(137, "OOMKilled", ""), "failed_oom", tool.KindResourceLimit, false, "OOMKilled"},
		"out of time":      {condition("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"), nil, "failed_timeout", tool.KindTimeout, true, "longer than"},
		"with their node":  {condition("Failed", "BackoffLimitExceeded", "x"), lost, "failed_node_lost", tool.KindServerError, true, "n1"},
		"with a disrupted": {condition("Failed", "BackoffLimitExceeded", "x"), disrupted, "failed_node_lost", tool.KindServerError, true, "made way"},
		"without a pod":    {condition("Failed", "BackoffLimitExceeded", "x"), nil, "failed_node_lost", tool.KindServerError, true, "pod is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b := inCluster(t)
			next, _ := b.starts(b.call(object{"image": "app:1"}))
			c.stands(object{"active": 1}, object{"phase": "Running"})
			next, _ = b.starts(next)
			c.mu.Lock()
			for p := range c.objects {
				if strings.Contains(p, "/pods/") {
					delete(c.objects, p)
				}
			}
			c.mu.Unlock()
			c.stands(tc.job, tc.pod)
			data, err := b.data(next)
			wantFields(t, data, object{"terminal_state": tc.state, "namespace": "noetl", "job_uid": "uid-1", "completed_at": "2026-01-02T03:04:05Z", "via": "poll"})
			if tc.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				wantFields(t, data, object{"exit_code": 0, "stdout": "hello\n{\"from\":\"output\"}\n", "result": object{"from": "file"}})
				return
			}
			wantError(t, err, tc.kind, tc.state, tc.retryable, tc.says)
		})
	}
}

func TestImagesThatAClusterCannotPull(t *testing.T) {
	t.Parallel()
	for reason, looks := range map[string]int{"InvalidImageName": 1, "ImagePullBackOff": 2, "ErrImagePull": 3} {
		c, b := inCluster(t)
		next, _ := b.starts(b.call(object{"image": "app:1"}))
		c.stands(object{"active": 1}, waiting(reason))
		for range looks - 1 {
			next, _ = b.starts(next)
		}
		data, err := b.data(next)
		wantError(t, err, tool.KindConfig, "failed_image_pull", true, reason+": because")
		wantFields(t, data, object{"terminal_state": "failed_image_pull"})
		if c.left() != 0 {
			t.Errorf("%s: the job still tries", reason)
		}
	}
}

func TestAnImagePullThatRecovers(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	next, _ := b.starts(b.call(object{"image": "app:1"}))
	c.stands(object{"active": 1}, waiting("ErrImagePull"))
	next, _ = b.starts(next)
	c.stands(object{"active": 1}, waiting("ContainerCreating"))
	next, _ = b.starts(next)
	c.stands(condition("Complete", "", ""), terminated(0, "Completed", ""))
	data, err := b.data(next)
	if err != nil {
		t.Fatal(err)
	}
	wantFields(t, data, object{"result": object{"from": "output"}})
}

func TestAJobOutOfTimeIsDeleted(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	next, _ := b.starts(b.call(object{"image": "app:1", "timeout_seconds": "10s"}))
	c.stands(object{"active": 1}, object{"phase": "Running"})
	b.clock.pass(11 * time.Second)
	data, err := b.data(next)
	wantError(t, err, tool.KindTimeout, "failed_timeout", true)
	wantFields(t, data, object{"stdout": "hello\n{\"from\":\"output\"}\n"})
	if c.left() != 0 {
		t.Error("the job is still there")
	}
}

func TestAJobThatIsGoneOrAnotherByNow(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	next, _ := b.starts(b.call(object{"image": "app:1"}))
	path, o := c.job()
	c.mu.Lock()
	o["metadata"].(object)["uid"] = "another"
	c.mu.Unlock()
	_, err := b.data(next)
	wantError(t, err, tool.KindServerError, "failed_node_lost", true, "gone")
	c.mu.Lock()
	delete(c.objects, path)
	c.mu.Unlock()
	_, err = b.data(next)
	wantError(t, err, tool.KindServerError, "failed_node_lost", true, "gone")
}

func TestARunAfterACrashFindsTheSameJob(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	call := b.call(object{"image": "app:1", "auth": "pg"})
	b.starts(call)
	c.mu.Lock()
	for p := range c.objects {
		if strings.Contains(p, "/secrets/") {
			delete(c.objects, p) // the worker died before it made this
		}
	}
	c.mu.Unlock()
	_, res := b.starts(call)
	c.job()
	if res.Park.Callback != "container:uid-1" || c.named("/secrets/") == nil {
		t.Errorf("parked on %+v, secret %v", res.Park, c.named("/secrets/"))
	}
	b.starts(b.call(object{"image": "app:1"}, func(c *tool.Call) { c.Run = 2 }))
	if n := c.left(); n != 2 {
		t.Errorf("%d jobs, want one for each try", n)
	}
}

func TestJobsThatAreDeletedOrEndedAreReplacedWhereTheRunIsNotKnown(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	call := b.call(object{"image": "app:1"}, func(c *tool.Call) { c.Run = 0 })
	b.starts(call)
	c.stands(condition("Failed", "BackoffLimitExceeded", ""), nil)
	if _, res := b.starts(call); res.Park.Callback == "container:uid-1" {
		t.Error("a job that has ended was taken for a new one")
	}
}

func TestWhatAClusterRefuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]struct {
		kind, code string
		retryable  bool
	}{
		401: {tool.KindAuth, "HTTP_401", false}, 403: {tool.KindAuth, "HTTP_403", false}, 404: {tool.KindNotFound, "HTTP_404", false},
		422: {tool.KindConfig, "JOB_INVALID", false}, 429: {tool.KindRateLimit, "HTTP_429", true}, 500: {tool.KindServerError, "HTTP_500", true},
	} {
		c, b := inCluster(t)
		c.failing("POST /apis/batch", code)
		_, err := b.tool.Run(t.Context(), b.call(object{"image": "app:1"}))
		wantError(t, err, want.kind, want.code, want.retryable, "unwell", "create job noetl/")
	}
	c, b := inCluster(t)
	c.failing("POST /api/v1/namespaces/noetl/secrets", 403)
	_, err := b.tool.Run(t.Context(), b.call(object{"image": "app:1", "auth": "pg"}))
	wantError(t, err, tool.KindAuth, "HTTP_403", false, "create secret")
	if c.left() != 0 {
		t.Error("a job without its secret is left to wait for it")
	}
}

func TestTokensAreReadAnew(t *testing.T) {
	t.Parallel()
	c, b := inCluster(t)
	next, _ := b.starts(b.call(object{"image": "app:1"}))
	c.mu.Lock()
	c.token = "another"
	c.mu.Unlock()
	_, err := b.tool.Run(t.Context(), next)
	wantError(t, err, tool.KindAuth, "HTTP_401", false)
	if strings.Contains(err.Error(), "secret-token") {
		t.Errorf("the token is in the message %q", err)
	}
	if err := os.WriteFile(c.options.TokenFile, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.starts(next)
}

func TestAClusterIsTrustedByItsAuthorityOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.options.CAFile = ""
	b := newBench(t, container.Options{Kubernetes: c.options})
	_, err := b.tool.Run(t.Context(), b.call(object{"image": "app:1"}))
	wantError(t, err, tool.KindConnection, "TLS_ERROR", false, "not trusted")
	if _, err := container.New(container.Options{Kubernetes: container.Cluster{API: "10.0.0.1"}}); err == nil {
		t.Error("an address that is no URL is accepted")
	}
}
