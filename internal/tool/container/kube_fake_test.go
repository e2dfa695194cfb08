package container_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool/container"
)

// cluster is an API server of Kubernetes that keeps objects and runs nothing:
// tests say how its Jobs stand.
type cluster struct {
	t       *testing.T
	options container.Cluster

	mu      sync.Mutex
	objects map[string]object // by path, such as /apis/batch/v1/namespaces/n/jobs/name
	logs    map[string]string // of pods, by name
	token   string
	refuse  map[string]int // by method and path prefix
	asked   []string
	serial  int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, objects: map[string]object{}, logs: map[string]string{}, token: "secret-token", refuse: map[string]int{}}
	srv := httptest.NewTLSServer(c)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	c.options = container.Cluster{API: srv.URL, TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt")}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	for file, text := range map[string]string{c.options.TokenFile: c.token + "\n", c.options.CAFile: string(ca)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// status answers as the API server does when it refuses.
func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := r.Method + " " + r.URL.Path
	c.asked = append(c.asked, line)
	if r.Header.Get("Authorization") != "Bearer "+c.token {
		status(w, 401, "Unauthorized", "Unauthorized")
		return
	}
	for prefix, code := range c.refuse {
		if strings.HasPrefix(line, prefix) {
			status(w, code, "Refused", "the cluster is unwell")
			return
		}
	}
	pod, isLog := strings.CutSuffix(r.URL.Path, "/log")
	switch {
	case r.Method == "POST":
		c.create(w, r)
	case r.Method == "DELETE":
		c.remove(w, r)
	case isLog:
		if c.objects[pod] == nil || r.URL.Query().Get("container") != "main" {
			status(w, 404, "NotFound", "pods not found")
			return
		}
		_, _ = w.Write([]byte(c.logs[pod[strings.LastIndexByte(pod, '/')+1:]]))
	case strings.HasSuffix(r.URL.Path, "/pods"):
		c.pods(w, r)
	case c.objects[r.URL.Path] != nil:
		_ = json.NewEncoder(w).Encode(c.objects[r.URL.Path])
	default:
		status(w, 404, "NotFound", r.URL.Path+" not found")
	}
}

func (c *cluster) create(w http.ResponseWriter, r *http.Request) {
	var o object
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&o) != nil {
		status(w, 415, "UnsupportedMediaType", "want JSON")
		return
	}
	meta, _ := o["metadata"].(object)
	name, _ := meta["name"].(string)
	path := r.URL.Path + "/" + name
	if c.objects[path] != nil {
		status(w, 409, "AlreadyExists", fmt.Sprintf("jobs.batch %q already exists", name))
		return
	}
	if len(name) > 63 || name == "" {
		status(w, 422, "Invalid", "metadata.name: must be no more than 63 characters")
		return
	}
	for k, v := range meta["labels"].(object) {
		if text, _ := v.(string); len(text) > 63 || strings.ContainsAny(text, " :/") {
			status(w, 422, "Invalid", "metadata.labels: invalid value of "+k)
			return
		}
	}
	c.serial++
	meta["uid"] = fmt.Sprintf("uid-%d", c.serial)
	meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	o["status"] = object{}
	c.objects[path] = o
	w.WriteHeader(201)
	_ = json.NewEncoder(w).Encode(o)
}

func (c *cluster) remove(w http.ResponseWriter, r *http.Request) {
	o := c.objects[r.URL.Path]
	if o == nil {
		status(w, 404, "NotFound", "not found")
		return
	}
	var options struct {
		PropagationPolicy string
		Preconditions     struct{ UID string }
	}
	_ = json.NewDecoder(r.Body).Decode(&options)
	if uid := options.Preconditions.UID; uid != "" && uid != o["metadata"].(object)["uid"] {
		status(w, 409, "Conflict", "the UID in the precondition does not match")
		return
	}
	if options.PropagationPolicy != "Background" {
		status(w, 422, "Invalid", "pods would be orphaned")
		return
	}
	delete(c.objects, r.URL.Path)
	_ = json.NewEncoder(w).Encode(object{"kind": "Status", "status": "Success"})
}

func (c *cluster) pods(w http.ResponseWriter, r *http.Request) {
	items := []object{}
	for path, o := range c.objects {
		labels, _ := o["metadata"].(object)["labels"].(object)
		if strings.HasPrefix(path, r.URL.Path+"/") && "job-name="+fmt.Sprint(labels["job-name"]) == r.URL.Query().Get("labelSelector") {
			items = append(items, o)
		}
	}
	_ = json.NewEncoder(w).Encode(object{"kind": "PodList", "items": items})
}

// job is the one Job there is.
func (c *cluster) job() (path string, o object) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for p, x := range c.objects {
		if strings.Contains(p, "/jobs/") {
			path, o, n = p, x, n+1
		}
	}
	if n != 1 {
		c.t.Fatalf("the cluster has %d jobs, want 1", n)
	}
	return path, o
}

// stands sets how the one Job and its pod stand; nil = there is no pod.
func (c *cluster) stands(job, pod object) {
	c.t.Helper()
	path, o := c.job()
	name := path[strings.LastIndexByte(path, '/')+1:]
	c.mu.Lock()
	defer c.mu.Unlock()
	o["status"] = job
	if pod != nil {
		namespace := strings.Split(path, "/")[5]
		c.objects["/api/v1/namespaces/"+namespace+"/pods/"+name+"-x"] = object{
			"metadata": object{"name": name + "-x", "labels": object{"job-name": name}, "creationTimestamp": time.Now().UTC().Format(time.RFC3339)},
			"status":   pod,
		}
		c.logs[name+"-x"] = "hello\n{\"from\":\"output\"}\n"
	}
}

func (c *cluster) named(part string) object {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, o := range c.objects {
		if strings.Contains(p, part) {
			return o
		}
	}
	return nil
}

func (c *cluster) failing(prefix string, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse[prefix] = code
}

func (c *cluster) left() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.objects {
		if strings.Contains(p, "/jobs/") {
			n++
		}
	}
	return n
}

// The pieces of statuses as the API has them.

func condition(kind, reason, message string) object {
	return object{"conditions": []any{object{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": "2026-01-02T03:04:05Z"}}}
}

func terminated(code int, reason, message string) object {
	return object{"phase": "Failed", "containerStatuses": []any{object{
		"name": "main", "state": object{"terminated": object{"exitCode": code, "reason": reason, "message": message, "finishedAt": "2026-01-02T03:04:04Z"}},
	}}}
}

func waiting(reason string) object {
	return object{"phase": "Pending", "containerStatuses": []any{object{"name": "main", "state": object{"waiting": object{"reason": reason, "message": "because"}}}}}
}
