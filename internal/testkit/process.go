package testkit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// maxOutput bounds how much of a process's output is kept: the newest part.
const maxOutput = 1 << 20

// Command says which program to start and how.
type Command struct {
	Path string
	Args []string
	Env  []string // added to the environment of the test
	Dir  string   // empty: a directory of the test's own
}

// Process is a program under test. It is killed with everything it started
// when the test ends.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
	err  error // how it ended; valid after done
}

// Start runs a program. Its output is shown when the test fails.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := prepareProcess(t, c)
	p.start()
	return p
}

// startWithInput is Start with a standard input that stays open until the
// returned closer or the test process ends.
func startWithInput(t testing.TB, c Command) (*Process, io.Closer) {
	t.Helper()
	p := prepareProcess(t, c)
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatalf("start %s: %v", c.Path, err)
	}
	p.start()
	return p, stdin
}

func prepareProcess(t testing.TB, c Command) *Process {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	p := &Process{t: t, cmd: exec.Command(c.Path, c.Args...), out: newTail(), done: make(chan struct{})}
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	// A group of its own, so that the clean-up reaches grandchildren.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	// A grandchild that inherited the output must not hold up Wait.
	p.cmd.WaitDelay = time.Second
	return p
}

func (p *Process) start() {
	p.t.Helper()
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		p.t.Fatalf("start %s: %v", p.cmd.Path, err)
	}
	p.t.Cleanup(p.cleanup)
}

// run starts the process and waits for it on one locked thread, because the
// parent-death signal follows the thread that forked, not the process.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

func (p *Process) cleanup() {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.t.Errorf("kill process group: %v", err)
	}
	<-p.done
	if p.t.Failed() {
		p.t.Logf("output of %s:\n%s", p.cmd.Path, p.out.String())
	}
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process at once, as a crash would, and waits until it is gone.
// What the process itself started lives on, as it would after a crash.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // already gone is fine
	<-p.done
}

// Freeze stops the process without ending it, as SIGSTOP does.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.cmd.Process.Pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.t.Errorf("send %s: %v", s, err)
	}
}

// Terminate asks the process to end (SIGTERM). Use Wait to see how it did.
func (p *Process) Terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("terminate %s: %v", p.cmd.Path, err)
	}
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the process and returns nil for exit code 0. It
// fails the test when the process still runs after timeout.
func (p *Process) Wait(timeout time.Duration) error {
	p.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	select {
	case <-p.done:
		return p.err
	case <-deadline.C:
		p.t.Fatalf("%s still runs after %v", p.cmd.Path, timeout)
		return nil
	}
}

// Output is what the process has written so far, at most the newest MiB.
func (p *Process) Output() string { return p.out.String() }

// WaitOutput waits until the output contains text and returns the rest of the
// line that follows it. It fails the test when that does not happen in time or
// the process ends before.
func (p *Process) WaitOutput(text string, timeout time.Duration) string {
	p.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		changed := p.out.changed()
		if rest, ok := lineAfter(p.out.String(), text); ok {
			return rest
		}
		select {
		case <-changed:
		case <-p.done:
			// Everything the process wrote has been copied by now.
			if rest, ok := lineAfter(p.out.String(), text); ok {
				return rest
			}
			p.t.Fatalf("%s ended (%v) before it printed %q", p.cmd.Path, p.err, text)
		case <-deadline.C:
			p.t.Fatalf("%s did not print %q within %v", p.cmd.Path, text, timeout)
		}
	}
}

func lineAfter(out, text string) (string, bool) {
	_, rest, ok := strings.Cut(out, text)
	if !ok {
		return "", false
	}
	line, _, whole := strings.Cut(rest, "\n")
	return line, whole
}

// tail keeps the newest maxOutput bytes written to it.
type tail struct {
	mu   sync.Mutex
	buf  []byte
	lost int64
	more chan struct{} // closed by the next write
}

func newTail() *tail { return &tail{more: make(chan struct{})} }

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxOutput; over > 0 {
		t.lost += int64(over)
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	close(t.more)
	t.more = make(chan struct{})
	return len(b), nil
}

func (t *tail) changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.more
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost > 0 {
		return fmt.Sprintf("[%d bytes before this]\n%s", t.lost, t.buf)
	}
	return string(t.buf)
}
