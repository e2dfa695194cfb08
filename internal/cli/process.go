package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lifeFlags start and stop a process that serves.
type lifeFlags struct {
	Action string `arg:"" optional:"" enum:"start,stop" default:"start" help:"start (the same as nothing), or stop: end the one that runs here."`
	Force  bool   `short:"f" help:"With stop: do not wait for what it is doing."`
	InitDB bool   `name:"init-db" hidden:"" help:"Not needed: a server brings its tables up to date when it starts."`
}

// pidFile names a process while it runs. It is locked for as long, so that a
// file that was left behind is recognised whatever the number in it is now.
type pidFile struct{ f *os.File }

// claimPID writes the file. Another process that holds it is an error.
func claimPID(path string) (*pidFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("write the process id: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(invalidf("%s belongs to a process that runs: stop that first", path), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return nil, fmt.Errorf("write the process id: %w", errors.Join(err, f.Close()))
	}
	return &pidFile{f}, nil
}

// release forgets the process.
func (p *pidFile) release() {
	if p != nil {
		_ = os.Remove(p.f.Name())
		_ = p.f.Close()
	}
}

// holder is the process that holds a file; 0 when none does.
func holder(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the process id: %w", err)
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		return 0, nil // left behind
	}
	var text [32]byte
	n, _ := f.Read(text[:])
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil || pid < 2 {
		return 0, fmt.Errorf("%s holds no process id", path)
	}
	return pid, nil
}

// stopTime is how long a process may take to finish what it does.
const stopTime = 60 * time.Second

// stopProcess asks the holder of a file to end and waits until it has.
func stopProcess(ctx context.Context, env *Env, what, path string, force bool) error {
	pid, err := holder(path)
	if err != nil {
		return err
	}
	if pid == 0 {
		return invalidf("no %s runs here: %s is held by nobody", what, path)
	}
	sig := syscall.SIGTERM
	if force {
		sig = syscall.SIGKILL
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for {
		now, err := holder(path)
		if err != nil || now != pid {
			fmt.Fprintf(env.Stdout, "stopped %s (process %d)\n", what, pid)
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			fmt.Fprintf(env.Stderr, "noetl: %s (process %d) has not ended yet; end it at once with -f\n", what, pid)
			return exit(ExitTimedOut)
		}
	}
}

// serverPID is the file of a server with this data directory.
func serverPID(dir string) string { return filepath.Join(dir, "server.pid") }

// claimServerPID holds it, if there is such a directory at all. Servers that
// share one, with a database and NATS elsewhere, are told apart by nobody: the
// first has it.
func claimServerPID(dir string) *pidFile {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	p, err := claimPID(serverPID(dir))
	if err != nil {
		return nil
	}
	return p
}

// workerDir is where the workers of this user are known.
func workerDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", invalidf("find the user's cache: %v", err)
	}
	return filepath.Join(cache, "noetl", "run"), nil
}

// workerPID is the file of a worker.
func workerPID(name string) (string, error) {
	dir, err := workerDir()
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator || r == 0 {
			return '_'
		}
		return r
	}, name)
	return filepath.Join(dir, "worker-"+clean+".pid"), err
}

// claimWorkerPID holds it; a machine without a place for it goes without.
func claimWorkerPID(name string) *pidFile {
	path, err := workerPID(name)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return nil
	}
	p, err := claimPID(path)
	if err != nil {
		return nil
	}
	return p
}

// stopWorker stops the worker of a name, or the only one.
func stopWorker(ctx context.Context, env *Env, name string, force bool) error {
	if name == "" {
		dir, err := workerDir()
		if err != nil {
			return err
		}
		files, _ := filepath.Glob(filepath.Join(dir, "worker-*.pid"))
		var names []string
		for _, f := range files {
			if pid, err := holder(f); err == nil && pid != 0 {
				names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "worker-"), ".pid"))
			}
		}
		switch len(names) {
		case 0:
			return invalidf("no worker of this user runs here")
		case 1:
			name = names[0]
		default:
			return invalidf("several workers run here: stop one of them with -n NAME: %s", strings.Join(names, ", "))
		}
	}
	path, err := workerPID(name)
	if err != nil {
		return err
	}
	return stopProcess(ctx, env, "worker "+name, path, force)
}
