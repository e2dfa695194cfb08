package container

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// Daemon says where a Docker engine is.
type Daemon struct {
	Host     string // as in DOCKER_HOST; "" = the usual socket
	CertPath string // directory with ca.pem, cert.pem and key.pem; "" = no TLS
}

const usualSocket = "unix:///var/run/docker.sock"

// docker runs jobs as containers of one engine.
type docker struct {
	wire
	address string
	socket  string // "" when it is reached over TCP
	given   bool   // somebody named the address
	broken  error  // why the address cannot be used; nil = it can
	now     func() time.Time

	mu    sync.Mutex // guards swept
	swept time.Time  // when ended containers were last looked for
}

func newDocker(o Daemon, now func() time.Time) *docker {
	d := &docker{address: cmp.Or(o.Host, usualSocket), given: o.Host != "", now: now}
	transport := &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second}
	d.client, d.reason = &http.Client{Transport: transport}, messageOf
	d.broken = d.reach(o, transport)
	return d
}

// reach reads where the engine is.
func (d *docker) reach(o Daemon, transport *http.Transport) error {
	u, err := url.Parse(d.address)
	if err != nil {
		return fmt.Errorf("DOCKER_HOST %q is no URL", d.address)
	}
	scheme := "http"
	if o.CertPath != "" {
		if transport.TLSClientConfig, err = clientTLS(o.CertPath); err != nil {
			return err
		}
		scheme = "https"
	}
	switch u.Scheme {
	case "unix":
		d.socket, d.base = u.Path, "http://docker"
		if d.socket == "" {
			return fmt.Errorf("DOCKER_HOST %q names no socket", d.address)
		}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", d.socket)
		}
	case "tcp":
		d.base = scheme + "://" + u.Host
	case "http", "https":
		d.base = u.Scheme + "://" + u.Host
	default:
		return fmt.Errorf("DOCKER_HOST %q cannot be used; write one that begins with unix://, tcp://, http:// or https://", d.address)
	}
	if d.socket == "" && u.Host == "" {
		return fmt.Errorf("DOCKER_HOST %q names no host", d.address)
	}
	return nil
}

func clientTLS(dir string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate for the Docker engine: %w", err)
	}
	authorities, err := authorities(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: authorities}, nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

func (d *docker) name() string { return onDocker }
func (d *docker) close()       { d.client.CloseIdleConnections() }

// present tells whether there is an engine to ask: one that was named, or a
// socket at the usual place.
func (d *docker) present() bool {
	if d.given {
		return d.broken == nil
	}
	info, err := os.Stat(d.socket)
	return err == nil && info.Mode()&os.ModeSocket != 0
}

func (d *docker) start(ctx context.Context, call *tool.Call, j *job) (*place, error) {
	body, err := describe(j)
	if err != nil {
		return nil, err
	}
	d.sweep(ctx)
	if j.PullPolicy == "Always" {
		if err := d.pull(ctx, call, j); err != nil {
			return nil, err
		}
	}
	at := &place{name: j.name, made: true}
	err = d.create(ctx, j, body, at)
	if isStatus(err, http.StatusNotFound) && j.PullPolicy != "Never" { // the image is not here
		if err = d.pull(ctx, call, j); err == nil {
			err = d.create(ctx, j, body, at)
		}
	}
	if isStatus(err, http.StatusConflict) {
		return d.found(ctx, call, j, body)
	}
	if unclear(err) {
		at.uid = j.name
		return at, err
	}
	if err != nil {
		return nil, jobRefused(imageMissing(j, err))
	}
	return at, d.begin(ctx, j, at)
}

// imageMissing explains an image that may not be pulled.
func imageMissing(j *job, err error) error {
	if isStatus(err, http.StatusNotFound) {
		return &tool.Error{Kind: tool.KindConfig, Code: ImagePull, Message: "image " + j.Image + " is not at the Docker engine, and image_pull_policy is Never"}
	}
	return err
}

func (d *docker) create(ctx context.Context, j *job, body any, at *place) error {
	var made struct {
		ID string `json:"Id"`
	}
	err := d.json(ctx, "create container "+j.name, http.MethodPost, "/containers/create", url.Values{"name": {j.name}}, body, &made)
	at.uid = made.ID
	return err
}

// begin puts the job's files into a container and starts it. Both can be done
// again.
func (d *docker) begin(ctx context.Context, j *job, at *place) error {
	files, err := archive(j.Files)
	if err != nil {
		return err
	}
	path := "/containers/" + at.uid
	resp, err := d.ask(ctx, "put files into container "+j.name, http.MethodPut, path+"/archive", url.Values{"path": {"/"}}, bytes.NewReader(files), http.Header{"Content-Type": {"application/x-tar"}})
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp, err = d.ask(ctx, "start container "+j.name, http.MethodPost, path+"/start", nil, nil, nil); err != nil {
		if e, ok := errors.AsType[*tool.Error](err); ok && e.HTTPStatus == http.StatusBadRequest {
			e.Kind = tool.KindConfig // the program is not in the image, or may not run
		}
		return err
	}
	return resp.Body.Close()
}

// archive holds the directory for the job's files and result, where any user
// may write.
func archive(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	top := strings.TrimPrefix(filepath.Dir(ResultFile), "/")
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: top + "/", Mode: 0o777})
	dir := strings.TrimPrefix(ScriptDir, "/")
	if err == nil && len(files) > 0 {
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755})
	}
	for _, name := range tool.SortedKeys(files) {
		if err == nil {
			err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + "/" + name, Mode: 0o755, Size: int64(len(files[name]))})
		}
		if err == nil {
			_, err = io.WriteString(w, files[name])
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("pack the files of a container: %w", err)
	}
	return b.Bytes(), nil
}

// found takes over the container that an earlier run made.
func (d *docker) found(ctx context.Context, call *tool.Call, j *job, body any) (*place, error) {
	c, err := d.inspect(ctx, j.name)
	if err != nil {
		return nil, err
	}
	if !j.isOf(c.Config.Labels) {
		return nil, j.taken("Docker engine")
	}
	at := &place{name: j.name, uid: c.ID, started: c.State.StartedAt}
	s := c.state()
	switch {
	case c.State.Status == "created": // nobody came to start it
		at.started, at.made = time.Time{}, true
		return at, d.begin(ctx, j, at)
	case s.end != "" && j.fresh:
		if err := d.remove(ctx, at); err != nil {
			return nil, err
		}
		at = &place{name: j.name, made: true}
		if err := d.create(ctx, j, body, at); err != nil {
			return nil, err
		}
		return at, d.begin(ctx, j, at)
	}
	fmt.Fprintf(call.Log, "container %s is there already; going on with it\n", j.name)
	return at, nil
}

// pull fetches the image and tells how that goes.
func (d *docker) pull(ctx context.Context, call *tool.Call, j *job) error {
	header := http.Header{}
	for _, r := range j.Registry {
		if r.Server != registryOf(j.Image) && len(j.Registry) > 1 {
			continue
		}
		proof, err := json.Marshal(map[string]string{"username": r.User, "password": r.Password, "serveraddress": r.Server})
		if err != nil {
			return fmt.Errorf("encode the login of a registry: %w", err)
		}
		text := base64.URLEncoding.EncodeToString(proof)
		call.Hidden(text)
		header.Set("X-Registry-Auth", text)
		break
	}
	name, tag := splitImage(j.Image)
	resp, err := d.ask(ctx, "pull image "+j.Image, http.MethodPost, "/images/create", url.Values{"fromImage": {name}, "tag": {tag}}, nil, header)
	if err != nil {
		if e, ok := errors.AsType[*tool.Error](err); ok && e.HTTPStatus != 0 {
			return pullFailed(e.Message, e.Kind == tool.KindAuth || e.Kind == tool.KindNotFound)
		}
		return err
	}
	defer resp.Body.Close()
	return follow(ctx, resp.Body, call.Log, j.Image)
}

// pullFailed is the end of a job whose image cannot be had. Where the registry
// says no, another try is as good as for a registry that is down: an image may
// be pushed meanwhile, and rules decide how often to try.
func pullFailed(why string, refused bool) *tool.Error {
	e := &tool.Error{Kind: ends[ImagePull].kind, Code: ImagePull, Retryable: ends[ImagePull].retryable, Message: why}
	if refused {
		e.Message += " (is the image's name right, and does the step's auth name a credential of type registry?)"
	}
	return e
}

// follow reads the progress of a pull. Steps of layers come by the hundred, so
// only what is new about one is shown.
func follow(ctx context.Context, r io.Reader, log io.Writer, image string) error {
	seen := map[string]bool{}
	for dec := json.NewDecoder(r); ; {
		var line struct {
			Status string `json:"status"`
			ID     string `json:"id"`
			Error  string `json:"error"`
			Detail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		err := dec.Decode(&line)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return pullFailed("pull image "+image+": the engine broke off", false)
		}
		if why := cmp.Or(line.Detail.Message, line.Error); why != "" {
			low := strings.ToLower(why)
			return pullFailed("pull image "+image+": "+why, strings.Contains(low, "denied") || strings.Contains(low, "not found") || strings.Contains(low, "unauthorized"))
		}
		text := strings.TrimSpace(line.ID + " " + line.Status)
		if text != "" && !seen[text] && len(seen) < 10_000 {
			seen[text] = true
			fmt.Fprintln(log, "pull "+image+": "+text)
		}
	}
}

// splitImage takes the tag or digest off an image's name.
func splitImage(image string) (name, tag string) {
	if name, digest, ok := strings.Cut(image, "@"); ok {
		return name, digest
	}
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		return image[:i], image[i+1:]
	}
	return image, "latest"
}
