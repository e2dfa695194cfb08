package testkit

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNoPostgres says that this machine has no PostgreSQL server binaries.
var ErrNoPostgres = errors.New("PostgreSQL server binaries not found")

const startTimeout = 30 * time.Second

// StartPostgres starts a PostgreSQL server on a unix socket and returns the
// URL of its postgres database. The data lives in dir, which must be reachable
// by user postgres when the caller is root, and stays there; an empty dir is a
// temporary one that stop removes. Settings are "name=value" and come after
// the defaults, which are those of a durable server. The server also stops
// when this process ends.
func StartPostgres(dir string, settings ...string) (dsn string, stop func(), err error) {
	bin, err := findPostgres()
	if err != nil {
		return "", nil, err
	}
	cred, err := unprivileged()
	if err != nil {
		return "", nil, err
	}
	// The socket has a directory of its own: socket paths must be short.
	home, err := os.MkdirTemp("", "noetl-pg-")
	if err != nil {
		return "", nil, fmt.Errorf("make PostgreSQL directory: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(home)
		}
	}()
	data := filepath.Join(home, "data")
	if dir != "" {
		data = filepath.Join(dir, "data")
	}
	if err := prepare(bin, home, dir, data, cred); err != nil {
		return "", nil, err
	}
	return launch(bin, home, data, cred, settings)
}

// prepare hands the directories to the server's user and runs initdb, unless
// data already holds a cluster.
func prepare(bin, home, dir, data string, cred *syscall.Credential) error {
	for _, d := range []string{home, dir} {
		if d == "" || cred == nil {
			continue
		}
		if err := os.Chown(d, int(cred.Uid), int(cred.Gid)); err != nil {
			return fmt.Errorf("hand %s to the PostgreSQL user: %w", d, err)
		}
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir = "/"
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("run initdb: %w: %s", err, out)
	}
	return nil
}

func launch(bin, home, data string, cred *syscall.Credential, settings []string) (string, func(), error) {
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		return "", nil, err
	}
	defer log.Close()
	args := []string{filepath.Join(bin, "postgres"), "-D", data, "-k", home}
	defaults := []string{"listen_addresses=", "fsync=on", "max_connections=200", "shared_buffers=128MB"}
	for _, s := range append(defaults, settings...) {
		args = append(args, "-c", s)
	}
	server, err := supervise(home, cred, log, args...)
	if err != nil {
		return "", nil, err
	}
	dsn := "postgres://postgres@/postgres?host=" + url.QueryEscape(home)
	if err := poll(func() error { return execute(dsn, "SELECT 1") }, startTimeout); err != nil {
		text, _ := os.ReadFile(log.Name())
		server.stop()
		return "", nil, fmt.Errorf("PostgreSQL does not answer: %w: %s", err, text)
	}
	return dsn, server.stop, nil
}

// findPostgres is the directory of the newest PostgreSQL binaries.
func findPostgres() (string, error) {
	// Distributions keep the binaries together but may link only some of them
	// into PATH, so their own directory comes first.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return "", ErrNoPostgres
		}
		return filepath.Dir(path), nil
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// unprivileged is the user PostgreSQL runs as: it refuses to run as root. It
// is nil when we are not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// withDatabase is dsn, a URL or a keyword string, pointing at database name.
func withDatabase(dsn, name string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", errors.New("the PostgreSQL URL is not readable")
	}
	u.Path = "/" + name
	return u.String(), nil
}
