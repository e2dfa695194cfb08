package python

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noetl/noetl-go/internal/tool"
)

var (
	//go:embed program.py
	programSource string
	//go:embed runner.py
	runnerSource string
)

// bootstrap reads the rest from stdin: the source is too long to show in a
// process list, and a file of it would have to be cleaned up.
const bootstrap = `import sys; exec(compile(sys.stdin.read(), "<noetl>", "exec"))`

// errLost means that no user code ran: the call may go to another process.
var errLost = errors.New("python process lost")

const (
	noteSize     = 12
	replaceDelay = 100 * time.Millisecond
)

// environ is that of the warm process; each call adds its own to it.
func (l *launch) environ() []string {
	if l.venv == "" {
		return tool.CleanEnviron(nil, "PYTHONPATH", "VIRTUAL_ENV")
	}
	return tool.CleanEnviron(map[string]string{
		"VIRTUAL_ENV": l.venv, "PATH": filepath.Join(l.venv, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH"),
	})
}

// parent is one life of the warm process. It dies with this process, and its
// children die with it.
type parent struct {
	idle    int // children kept ready
	grace   time.Duration
	cmd     *exec.Cmd
	control *net.UnixConn
	stderr  *tool.Capture
	ready   chan *child   // Invariant: len(ready) + forking <= Max + idle
	gone    chan struct{} // closed when the process and its notes have ended

	mu       sync.Mutex     // guards the fields below
	live     map[int]*child // made and not yet known to have ended
	waiting  int            // callers in take
	forking  int            // ordered and not yet made
	worked   bool           // a child was made
	refill   *time.Timer    // replaces children that died unused
	closing  bool
	finished bool
}

// startParent starts the process and does not wait for it to be ready.
func startParent(l *launch, opts Options) (*parent, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	defer theirs.Close()
	p := &parent{
		idle: l.idle, grace: opts.Grace, control: ours, stderr: tool.NewCapture(16 << 10),
		ready: make(chan *child, opts.Max+l.idle), gone: make(chan struct{}), live: map[int]*child{},
	}
	p.cmd = exec.Command(l.python, "-c", bootstrap)
	p.cmd.Env = l.environ()
	p.cmd.Stdin = strings.NewReader(programSource + "\n" + runnerSource)
	p.cmd.Stderr = p.stderr
	p.cmd.ExtraFiles = []*os.File{theirs}
	p.cmd.SysProcAttr = parentAttributes()
	p.cmd.WaitDelay = 2 * time.Second
	started := make(chan error, 1)
	go p.supervise(started)
	if err := <-started; err != nil {
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) {
			return nil, noProcess(err)
		}
		return nil, tool.ConfigErrorf("python interpreter %s cannot be started: %v", l.python, err)
	}
	return p, nil
}

// supervise owns the process from start to end. It keeps its thread, because
// the kernel ends the process together with the thread that started it.
func (p *parent) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := p.cmd.Start(); err != nil {
		p.control.Close()
		close(p.gone)
		started <- err
		return
	}
	started <- nil
	notes := make(chan struct{})
	go func() {
		p.readNotes()
		// Without notes the process is of no use; this makes it end.
		p.control.Close()
		close(notes)
	}()
	_ = p.cmd.Wait()
	<-notes
	p.finish()
}

// readNotes follows the process until its end of the socket closes.
func (p *parent) readNotes() {
	buf, oob := make([]byte, noteSize), make([]byte, unix.CmsgSpace(3*4))
	for {
		fds, err := p.readNote(buf, oob)
		if err != nil {
			closeAll(fds)
			return
		}
		pid := int(int32(binary.BigEndian.Uint32(buf[4:])))
		status := syscall.WaitStatus(binary.BigEndian.Uint32(buf[8:]))
		switch {
		case buf[0] == 'C' && len(fds) == 3:
			p.made(pid, fds)
		case buf[0] == 'X':
			p.ended(pid, status)
		case buf[0] == 'E':
			p.forkFailed(syscall.Errno(status))
		default:
			closeAll(fds)
		}
	}
}

// readNote reads one note and the descriptors that came with it.
func (p *parent) readNote(buf, oob []byte) (fds []int, err error) {
	for at := 0; at < noteSize; {
		n, oobn, _, _, err := p.control.ReadMsgUnix(buf[at:], oob)
		if err != nil {
			return fds, err
		}
		if n == 0 {
			return fds, net.ErrClosed
		}
		at += n
		got, err := parseRights(oob[:oobn])
		fds = append(fds, got...)
		if err != nil {
			return fds, err
		}
	}
	return fds, nil
}

func (p *parent) made(pid int, fds []int) {
	c := newChild(p, pid, fds)
	p.mu.Lock()
	p.forking--
	p.worked = true
	p.live[pid] = c
	p.mu.Unlock()
	p.ready <- c
}

func (p *parent) ended(pid int, status syscall.WaitStatus) {
	p.mu.Lock()
	c := p.live[pid]
	delete(p.live, pid)
	p.mu.Unlock()
	if c == nil {
		return
	}
	c.end(status, false)
	if !c.taken.Load() {
		p.replace()
	}
}

// replace drops children that died unused and orders others, a little later:
// should something kill every one of them, they are not made in a frenzy.
func (p *parent) replace() {
	for range len(p.ready) {
		select {
		case c := <-p.ready:
			if c.dead() {
				c.close()
			} else {
				p.ready <- c
			}
		default:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refill != nil {
		p.refill.Stop()
	}
	if !p.finished {
		p.refill = time.AfterFunc(replaceDelay, p.topUp)
	}
}

func (p *parent) forkFailed(errno syscall.Errno) {
	p.mu.Lock()
	p.forking--
	p.mu.Unlock()
	p.ready <- &child{parent: p, refused: errno}
}

// finish runs once, when process and notes have ended: every child still
// known is dead or about to be, and whatever it started is killed here.
func (p *parent) finish() {
	p.mu.Lock()
	live := p.live
	p.live, p.finished = map[int]*child{}, true
	if p.refill != nil {
		p.refill.Stop()
	}
	p.mu.Unlock()
	for pid, c := range live {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		c.end(0, true)
	}
	for {
		select {
		case c := <-p.ready:
			c.close()
			continue
		default:
		}
		break
	}
	close(p.gone)
}

func (p *parent) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.finished && !p.closing
}

// take waits for a ready child. The error is errLost when the warm process
// ended first after having worked, an *Error when it never did.
func (p *parent) take(ctx context.Context) (*child, error) {
	p.wait(1)
	defer p.wait(-1)
	for {
		select {
		case c := <-p.ready:
			if c.take() {
				return c.checked()
			}
			continue
		default:
		}
		p.topUp()
		select {
		case c := <-p.ready:
			if c.take() {
				return c.checked()
			}
		case <-p.gone:
			return nil, p.lostReason()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// lostReason is for callers who waited in vain: trying again is pointless when
// the process ended before it ever did anything.
func (p *parent) lostReason() error {
	p.mu.Lock()
	worked := p.worked
	p.mu.Unlock()
	if worked {
		return errLost
	}
	return lostError("the warm python process ended at once: " + lastLine(p.stderr.String()))
}

func (p *parent) wait(n int) {
	p.mu.Lock()
	p.waiting += n
	p.mu.Unlock()
}

// topUp orders children so that every waiting caller gets one and idle more
// are ready.
func (p *parent) topUp() {
	p.mu.Lock()
	missing := p.waiting + p.idle - len(p.ready) - p.forking
	if p.finished || missing < 0 {
		missing = 0
	}
	p.forking += missing
	p.mu.Unlock()
	for range missing {
		p.order('F', 0)
	}
}

// order tells the process to do something. A failed write means that it is
// ending, which every caller learns from gone.
func (p *parent) order(op byte, pid int) {
	var msg [8]byte
	msg[0] = op
	binary.BigEndian.PutUint32(msg[4:], uint32(pid))
	_, _ = p.control.Write(msg[:])
}

// close ends the process, which kills its children first.
func (p *parent) close() error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.control.Close()
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-p.gone:
		return nil
	case <-timer.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.gone
	return errors.New("warm python process had to be killed")
}
