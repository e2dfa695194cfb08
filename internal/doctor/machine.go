package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noetl/noetl-go/internal/obs"
)

// Port is the address a server wants to listen at.
type Port struct {
	Address string
	Proc    string // "/proc"
}

// Name implements Check.
func (Port) Name() string { return "port" }

// Look implements Check. An address that a server of ours has already is good.
func (p Port) Look(ctx context.Context) []Finding {
	ln, err := net.Listen("tcp", p.Address)
	if err == nil {
		_ = ln.Close()
		return []Finding{ok(p.Address, "the address is free")}
	}
	if !errors.Is(err, unix.EADDRINUSE) {
		return []Finding{failed(p.Address, "choose another address with --listen", err)}
	}
	if p.ours(ctx) {
		return []Finding{ok(p.Address, "a NoETL server listens there")}
	}
	return []Finding{fail(p.Address, "stop it, or choose another address with --listen", "the address is in use by %s", p.owner())}
}

func (p Port) ours(ctx context.Context) bool {
	for _, scheme := range []string{"http", "https"} {
		if answer, err := get(ctx, scheme+"://"+p.Address+"/health"); err == nil && strings.Contains(answer, `"status"`) {
			return true
		}
	}
	return false
}

// owner finds the process that listens, as far as the system tells.
func (p Port) owner() string {
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		return "another process"
	}
	n, _ := strconv.Atoi(port)
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		if inode := listening(filepath.Join(p.Proc, file), n); inode != "" {
			if name := holder(p.Proc, inode); name != "" {
				return name
			}
		}
	}
	return "another process"
}

// listening finds the inode of the socket that listens at a port.
func listening(file string, port int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	want := ":" + strings.ToUpper(hex4(port))
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) > 9 && strings.HasSuffix(f[1], want) && f[3] == "0A" {
			return f[9]
		}
	}
	return ""
}

func hex4(n int) string {
	s := strconv.FormatInt(int64(n), 16)
	return strings.Repeat("0", max(4-len(s), 0)) + s
}

func holder(proc, inode string) string {
	links, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			dir := filepath.Dir(filepath.Dir(link))
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			return strings.TrimSpace(string(name)) + " (process " + filepath.Base(dir) + ")"
		}
	}
	return ""
}

// Directory is where a server keeps its files.
type Directory struct {
	Path     string
	Disk     func(dir string) (free, size uint64, err error)
	Database bool // the database is in it
}

// Name implements Check.
func (Directory) Name() string { return "data" }

const (
	diskWarn = 2 << 30
	diskFail = 200 << 20
)

// Look implements Check.
func (d Directory) Look(context.Context) []Finding {
	at, there := d.Path, true
	info, err := os.Stat(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		there = false
		for at = filepath.Dir(absolute(d.Path)); ; at = filepath.Dir(at) {
			if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
				break
			}
		}
	case err != nil:
		return []Finding{failed(d.Path, "check the path and its rights", err)}
	case !info.IsDir():
		return []Finding{fail(d.Path, "name a directory with --data-dir", "it is not a directory")}
	}
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return []Finding{fail(at, "chown it to the user that runs the server, or choose another with --data-dir", "the directory cannot be written by this user")}
	}
	found := []Finding{ok(d.Path, "the directory can be written")}
	switch {
	case !there:
		found[0] = ok(d.Path, "the directory does not exist yet and can be made")
	case d.Database && info.Mode().Perm()&0o007 != 0:
		found[0] = warn(d.Path, "chmod 700 "+d.Path, "others on this machine can read the directory, and it holds the database and its key")
	}
	free, _, err := d.Disk(at)
	switch {
	case err != nil:
		found = append(found, warn(at, "see how much space is left", "the free space cannot be read: %v", err))
	case free < diskFail:
		found = append(found, fail(at, "free some space, or move the directory", "only %s are free", size(free)))
	case free < diskWarn:
		found = append(found, warn(at, "free some space, or move the directory", "only %s are free", size(free)))
	default:
		found = append(found, ok(at, "%s are free", size(free)))
	}
	return found
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

func size(n uint64) string {
	const unit = 1 << 10
	text, f := "B", float64(n)
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if f < unit {
			break
		}
		f /= unit
		text = next
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + text
}

// Python is the interpreter of python steps.
type Python struct{ Path string }

// Name implements Check.
func (Python) Name() string { return "python" }

// Look implements Check.
func (p Python) Look(ctx context.Context) []Finding {
	remedy := "install Python 3.9 or newer, or name it with PYTHON_PATH; only python steps need it"
	at, err := exec.LookPath(p.Path)
	if err != nil {
		return []Finding{warn(p.Path, remedy, "there is no Python, so python steps fail here")}
	}
	out, err := exec.CommandContext(ctx, at, "-c", "import sys, json, venv; print('%d.%d.%d' % sys.version_info[:3], sys.version_info >= (3, 9))").Output()
	words := strings.Fields(string(out))
	switch {
	case err != nil || len(words) != 2:
		return []Finding{warn(at, remedy, "it does not start as a Python with its standard library: %v", err)}
	case words[1] != "True":
		return []Finding{warn(at, remedy, "it is Python %s, which is too old for python steps", words[0])}
	}
	return []Finding{ok(at, "Python %s starts", words[0])}
}

// Jobs are what container steps need; nothing else does.
type Jobs struct {
	Getenv func(string) string
}

// Name implements Check.
func (Jobs) Name() string { return "containers" }

// Look implements Check.
func (j Jobs) Look(ctx context.Context) []Finding {
	if host := j.Getenv("KUBERNETES_SERVICE_HOST"); host != "" {
		return []Finding{ok(host, "inside Kubernetes: container steps can become jobs")}
	}
	at, err := exec.LookPath("docker")
	if err != nil {
		return []Finding{ok("", "neither Kubernetes nor docker is here: container steps need one of them, nothing else does")}
	}
	if err := exec.CommandContext(ctx, at, "version", "--format", "{{.Server.Version}}").Run(); err != nil {
		return []Finding{warn(at, "start the docker daemon, or ignore this without container steps", "docker is installed and its daemon does not answer")}
	}
	return []Finding{ok(at, "docker answers")}
}

// Files is how many files and connections the process may open.
type Files struct{ Limit func() (uint64, error) }

// Name implements Check.
func (Files) Name() string { return "limits" }

// OpenFiles is the limit of this process.
func OpenFiles() (uint64, error) {
	var r unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return r.Cur, err
}

// Look implements Check.
func (f Files) Look(context.Context) []Finding {
	n, err := f.Limit()
	remedy := "raise it with ulimit -n 65536, or LimitNOFILE= of the systemd unit"
	switch {
	case err != nil:
		return []Finding{warn("", remedy, "the limit of open files cannot be read: %v", err)}
	case n < 256:
		return []Finding{fail("", remedy, "only %d files may be open", n)}
	case n < 4096:
		return []Finding{warn("", remedy, "only %d files may be open; each client and worker needs one", n)}
	}
	return []Finding{ok("", "%d files may be open", n)}
}

// TLS is how a server shows itself.
type TLS struct {
	Cert, Key, ClientCA string
	Now                 func() time.Time
}

// Name implements Check.
func (TLS) Name() string { return "tls" }

// expirySoon is when a certificate should have been renewed.
const expirySoon = 21 * 24 * time.Hour

// Look implements Check.
func (t TLS) Look(context.Context) []Finding {
	if t.Cert == "" && t.Key == "" {
		if t.ClientCA != "" {
			return []Finding{fail(t.ClientCA, "give --tls-cert and --tls-key too", "certificates of clients are wanted, and the server has none itself")}
		}
		return []Finding{ok("", "TLS is off; a proxy in front may have it")}
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return []Finding{fail(t.Cert, "give a certificate and the key that belongs to it, in PEM", "certificate and key cannot be used: %v", err)}
	}
	found := []Finding{t.expiry(pair.Leaf)}
	if t.ClientCA != "" {
		text, err := os.ReadFile(t.ClientCA)
		if err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) {
			return append(found, fail(t.ClientCA, "give certificates in PEM", "the issuers of clients' certificates cannot be read"))
		}
		found = append(found, ok(t.ClientCA, "certificates of clients can be checked"))
	}
	return found
}

func (t TLS) expiry(leaf *x509.Certificate) Finding {
	now := t.Now()
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return fail(t.Cert, "renew it", "the certificate ended at %s", leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fail(t.Cert, "wait, or set the clock", "the certificate begins at %s", leaf.NotBefore.Format(time.RFC3339))
	case left < expirySoon:
		return warn(t.Cert, "renew it", "the certificate ends in %d days", int(left.Hours()/24))
	}
	return ok(t.Cert, "the certificate is good until %s", leaf.NotAfter.Format(time.DateOnly))
}

// Exposure is who can reach a server, and whether it asks who they are.
type Exposure struct {
	Listen   string
	Auth     bool // callers are known by tokens, sessions or certificates
	TLS      bool
	Insecure bool // somebody wants it open
}

// Name implements Check.
func (Exposure) Name() string { return "auth" }

// Look implements Check.
func (e Exposure) Look(context.Context) []Finding {
	host, _, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return []Finding{fail(e.Listen, "write it as HOST:PORT", "the address to listen at cannot be read")}
	}
	ip := net.ParseIP(host)
	local := strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
	switch {
	case local && !e.Auth:
		return []Finding{ok(e.Listen, "authentication is off, and only this machine reaches the server")}
	case !e.Auth && e.Insecure:
		return []Finding{warn(e.Listen, "switch authentication on, or be sure that a firewall or gateway protects the address", "whoever reaches the address can run commands: authentication is off")}
	case !e.Auth:
		return []Finding{fail(e.Listen, "switch authentication on, or listen on 127.0.0.1", "the server would refuse to start: it listens beyond this machine without authentication")}
	case !local && !e.TLS:
		return []Finding{warn(e.Listen, "give --tls-cert and --tls-key, or put a proxy with TLS in front", "tokens cross the network in clear text: TLS is off")}
	}
	return []Finding{ok(e.Listen, "callers have to say who they are")}
}

// PublicURL is how workers reach the server.
type PublicURL struct{ URL string }

// Name implements Check.
func (PublicURL) Name() string { return "public-url" }

// Look implements Check.
func (p PublicURL) Look(ctx context.Context) []Finding {
	if p.URL == "" {
		return []Finding{ok("", "workers are told the address the server listens at")}
	}
	if _, err := get(ctx, strings.TrimRight(p.URL, "/")+"/health"); err != nil {
		return []Finding{warn(p.URL, "see that it leads to this server from where workers run; it can only answer while a server runs", "nothing answers at the public URL: %v", errors.Unwrap(err))}
	}
	return []Finding{ok(p.URL, "the public URL answers")}
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text := make([]byte, 4096)
	n, _ := answer.Body.Read(text)
	if answer.StatusCode >= http.StatusBadRequest {
		return "", errors.New(answer.Status)
	}
	return string(text[:n]), nil
}

// Disk is obs.Disk.
var Disk = obs.Disk
