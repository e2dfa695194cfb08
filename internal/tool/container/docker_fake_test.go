package container_test

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// dockerd is an engine that speaks the Docker Engine API over a socket and runs
// nothing: tests say how its containers end.
type dockerd struct {
	t    *testing.T
	host string

	mu         sync.Mutex
	images     map[string]bool   // here
	registry   map[string]string // images that can be pulled, to the login they want ("" = none)
	containers map[string]*box   // by id
	asked      []string          // method and path
	refuse     map[string]answer // by method and path prefix
	hook       func(r *http.Request)
	serial     int
}

type answer struct {
	status int
	body   string
}

type box struct {
	id, name string
	body     map[string]any
	files    map[string]string
	status   string
	code     int
	oom      bool
	started  time.Time
	finished time.Time
	output   []byte
	result   string
}

func newDockerd(t *testing.T) *dockerd {
	t.Helper()
	dir, err := os.MkdirTemp("", "dockerd") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &dockerd{
		t: t, host: "unix://" + path, images: map[string]bool{}, registry: map[string]string{}, containers: map[string]*box{}, refuse: map[string]answer{},
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: d}}
	srv.Start()
	t.Cleanup(srv.Close)
	return d
}

func (d *dockerd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.asked = append(d.asked, r.Method+" "+r.URL.Path)
	hook := d.hook
	d.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for prefix, a := range d.refuse {
		if strings.HasPrefix(r.Method+" "+r.URL.Path, prefix) {
			say(w, a.status, a.body)
			return
		}
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.Method == "POST" && r.URL.Path == "/containers/create":
		d.create(w, r)
	case r.Method == "GET" && r.URL.Path == "/containers/json":
		d.list(w, r)
	case r.Method == "POST" && r.URL.Path == "/images/create":
		d.pull(w, r)
	case parts[0] == "containers" && len(parts) >= 2:
		d.one(w, r, parts[1], strings.Join(parts[2:], "/"))
	default:
		say(w, 404, "page not found")
	}
}

// say answers with the engine's form of a message.
func say(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func (d *dockerd) create(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		say(w, 400, "invalid JSON: "+err.Error())
		return
	}
	name := r.URL.Query().Get("name")
	image, _ := body["Image"].(string)
	if !d.images[image] {
		say(w, 404, "No such image: "+image)
		return
	}
	if c := d.find(name); c != nil {
		say(w, 409, fmt.Sprintf("Conflict. The container name %q is already in use by container %q.", "/"+name, c.id))
		return
	}
	d.serial++
	c := &box{id: fmt.Sprintf("%064x", d.serial), name: name, body: body, files: map[string]string{}, status: "created"}
	d.containers[c.id] = c
	w.WriteHeader(201)
	_ = json.NewEncoder(w).Encode(map[string]any{"Id": c.id, "Warnings": []string{}})
}

func (d *dockerd) find(id string) *box {
	for _, c := range d.containers {
		if c.id == id || c.name == id {
			return c
		}
	}
	return nil
}

func (d *dockerd) list(w http.ResponseWriter, r *http.Request) {
	var filters struct{ Label, Status []string }
	_ = json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters)
	out := []map[string]any{}
	for _, c := range d.containers {
		labels, _ := c.body["Labels"].(map[string]any)
		has := slices.Contains(filters.Status, c.status)
		for _, l := range filters.Label {
			_, ok := labels[l]
			has = has && ok
		}
		if has {
			out = append(out, map[string]any{"Id": c.id, "Labels": labels, "State": c.status})
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (d *dockerd) pull(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	image := q.Get("fromImage") + ":" + q.Get("tag")
	want, ok := d.registry[image]
	login := ""
	if text := r.Header.Get("X-Registry-Auth"); text != "" {
		raw, _ := base64.URLEncoding.DecodeString(text)
		var proof struct{ Username, Password, Serveraddress string }
		_ = json.Unmarshal(raw, &proof)
		login = proof.Username + ":" + proof.Password + "@" + proof.Serveraddress
	}
	w.WriteHeader(200)
	enc := json.NewEncoder(w)
	_ = enc.Encode(map[string]string{"status": "Pulling from " + q.Get("fromImage"), "id": q.Get("tag")})
	if !ok || login != want {
		why := "pull access denied for " + q.Get("fromImage") + ", repository does not exist or may require 'docker login'"
		_ = enc.Encode(map[string]any{"error": why, "errorDetail": map[string]string{"message": why}})
		return
	}
	for range 3 {
		_ = enc.Encode(map[string]any{"status": "Downloading", "id": "a1b2", "progressDetail": map[string]int{"current": 1, "total": 2}})
	}
	_ = enc.Encode(map[string]string{"status": "Status: Downloaded newer image for " + image})
	d.images[image] = true
}

func (d *dockerd) one(w http.ResponseWriter, r *http.Request, id, what string) {
	c := d.find(id)
	if c == nil {
		say(w, 404, "No such container: "+id)
		return
	}
	switch r.Method + " " + what {
	case "GET json":
		_ = json.NewEncoder(w).Encode(map[string]any{
			"Id": c.id, "Name": "/" + c.name, "Config": map[string]any{"Labels": c.body["Labels"]},
			"State": map[string]any{
				"Status": c.status, "Running": c.status == "running", "ExitCode": c.code, "OOMKilled": c.oom, "Error": "",
				"StartedAt": stamp(c.started), "FinishedAt": stamp(c.finished),
			},
		})
	case "POST start":
		if c.status != "created" {
			w.WriteHeader(304)
			return
		}
		c.status, c.started = "running", time.Now()
		w.WriteHeader(204)
	case "PUT archive":
		for tr := tar.NewReader(r.Body); ; {
			h, err := tr.Next()
			if err != nil {
				break
			}
			text, _ := io.ReadAll(tr)
			c.files["/"+h.Name] = fmt.Sprintf("%o %s", h.Mode, text)
		}
	case "GET archive":
		if c.result == "" || r.URL.Query().Get("path") != "/noetl/result.json" {
			say(w, 404, "Could not find the file "+r.URL.Query().Get("path")+" in container "+c.id)
			return
		}
		tw := tar.NewWriter(w)
		_ = tw.WriteHeader(&tar.Header{Name: "result.json", Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(c.result))})
		_, _ = io.WriteString(tw, c.result)
		_ = tw.Close()
	case "GET logs":
		_, _ = w.Write(c.output)
	case "DELETE ":
		if c.status == "running" && r.URL.Query().Get("force") != "1" {
			say(w, 409, "You cannot remove a running container")
			return
		}
		delete(d.containers, c.id)
		w.WriteHeader(204)
	default:
		say(w, 404, "page not found")
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "0001-01-01T00:00:00Z"
	}
	return t.Format(time.RFC3339Nano)
}

// print adds a frame of output, as the engine sends it to those without a
// terminal.
func (c *box) print(stream byte, text string) {
	var b bytes.Buffer
	b.Write([]byte{stream, 0, 0, 0})
	_ = binary.Write(&b, binary.BigEndian, uint32(len(text)))
	b.WriteString(text)
	c.output = append(c.output, b.Bytes()...)
}

// only is the one container there is.
func (d *dockerd) only() *box {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.containers) != 1 {
		d.t.Fatalf("the engine has %d containers, want 1", len(d.containers))
	}
	for _, c := range d.containers {
		return c
	}
	return nil
}

// ends has the one container end.
func (d *dockerd) ends(code int, change ...func(*box)) {
	c := d.only()
	d.mu.Lock()
	defer d.mu.Unlock()
	c.status, c.code, c.finished = "exited", code, time.Now()
	for _, f := range change {
		f(c)
	}
}

func (d *dockerd) count(prefix string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.asked {
		if strings.HasPrefix(a, prefix) {
			n++
		}
	}
	return n
}

func (d *dockerd) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.containers)
}

func (d *dockerd) has(images ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range images {
		d.images[i] = true
	}
}
