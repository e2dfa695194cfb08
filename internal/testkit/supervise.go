package testkit

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// supervised is a shell that outlives the test process just long enough to
// clean up behind it. It waits for its standard input to close, which the
// kernel does for us even on kill -9, then stops the command and removes the
// directory. No goroutine is needed, so leak checkers stay quiet.
type supervised struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	once  sync.Once
}

// Both signals: PostgreSQL ends quickly with the first, a shell in the
// background heeds only the second.
//
// The first argument is the directory to remove (empty: none), the rest is the
// command to run meanwhile (may be absent).
const supervisor = `
dir=$1; shift
pid=
if [ $# -gt 0 ]; then "$@" & pid=$!; fi
read -r _
if [ -n "$pid" ]; then kill -INT "$pid"; kill -TERM "$pid"; wait "$pid"; fi
[ -z "$dir" ] || rm -rf "$dir"
`

// running keeps the pipes of all supervisors reachable: the collector closes
// files nobody refers to, which would stop what they guard.
var running sync.Map // *supervised -> struct{}

// supervise runs args, if any, with output to log until this process ends or
// stop is called, and then removes dir.
func supervise(dir string, cred *syscall.Credential, log *os.File, args ...string) (*supervised, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", supervisor, "sh", dir}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	s := &supervised{cmd: cmd, stdin: stdin}
	running.Store(s, struct{}{})
	return s, nil
}

// stop ends the command and returns when it and its directory are gone.
func (s *supervised) stop() {
	s.once.Do(func() {
		running.Delete(s)
		s.stdin.Close()
		s.cmd.Wait() // the exit code of a stopped command says nothing
	})
}

// scratch is a directory that lives as long as the test process.
var scratch = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "noetl-test-")
	if err != nil {
		return "", fmt.Errorf("make scratch directory: %w", err)
	}
	if _, err := supervise(dir, nil, nil); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
})
