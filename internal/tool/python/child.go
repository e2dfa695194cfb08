package python

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// drain bounds the wait for output that a process outside the group may
	// hold open for ever.
	drain = time.Second
	// reapWait bounds the wait for a killed process, which may be stuck in
	// the kernel.
	reapWait = 10 * time.Second
)

// child is a process that runs one program.
type child struct {
	parent  *parent
	pid     int
	talk    *os.File
	stdout  *os.File
	stderr  *os.File
	refused syscall.Errno // instead of a process: why there is none
	taken   atomic.Bool   // by a call

	gone   chan struct{} // closed when it has ended; then the fields below are set
	status syscall.WaitStatus
	lost   bool // ended with its parent, so the status is not known
}

func newChild(p *parent, pid int, fds []int) *child {
	return &child{
		parent: p, pid: pid, gone: make(chan struct{}),
		talk: fileOf(fds[0], "python talk"), stdout: fileOf(fds[1], "python stdout"), stderr: fileOf(fds[2], "python stderr"),
	}
}

func (c *child) end(status syscall.WaitStatus, lost bool) {
	c.status, c.lost = status, lost
	close(c.gone)
}

func (c *child) close() {
	if c.refused != 0 {
		return
	}
	c.talk.Close()
	c.stdout.Close()
	c.stderr.Close()
}

// dead tells that it has ended.
func (c *child) dead() bool {
	if c.refused != 0 {
		return false
	}
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// take marks it as used; one that died meanwhile is of no use to anybody.
func (c *child) take() bool {
	c.taken.Store(true)
	if c.dead() {
		c.close()
		return false
	}
	return true
}

// checked turns a refusal into the error it stands for.
func (c *child) checked() (*child, error) {
	if c.refused != 0 {
		return nil, noProcess(c.refused)
	}
	return c, nil
}

// noProcess is for a machine that is full at the moment.
func noProcess(err error) *tool.Error {
	return &tool.Error{
		Kind: tool.KindResourceLimit, Code: "NO_PROCESS", Retryable: true,
		Message: "the worker cannot start another python process: " + err.Error(),
	}
}

// answer is what came of one exchange.
type answer struct {
	started  bool // the code may have run
	complete bool // kind and body are set
	kind     byte // R value, N no value, E failure
	body     []byte
	stored   *tool.Stored // instead of body
	storeErr error        // why it could not be stored
	tooLarge bool
	ended    bool // ctx ended and the process was stopped
	status   syscall.WaitStatus
	lost     bool
	stdout   string
	stderr   string
}

// exchange runs one request and returns when the answer is here or the process
// is dead, with nothing of the call left but a process that is about to exit.
func (c *child) exchange(ctx context.Context, req *request, call *tool.Call) *answer {
	defer c.close()
	out, errs := tool.NewCapture(tool.OutputLimit), tool.NewCapture(tool.OutputLimit)
	live := tool.LiveLog(call.Log)
	var streams sync.WaitGroup
	streams.Go(func() { _, _ = io.Copy(io.MultiWriter(out, live), c.stdout) })
	streams.Go(func() { _, _ = io.Copy(io.MultiWriter(errs, live), c.stderr) })
	terminated := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(terminated)
		c.terminate()
	})

	a := &answer{}
	c.converse(ctx, req, a, call)
	if !a.complete {
		c.await()
	}
	c.drain(&streams)
	if !stop() {
		<-terminated
		a.ended = !a.complete
	}
	select {
	case <-c.gone:
		a.status, a.lost = c.status, c.lost
	default:
	}
	a.stdout, a.stderr = out.String(), errs.String()
	return a
}

// converse sends the request and reads the answer. Any error means that the
// process is gone or of no more use; what became of it its status tells.
func (c *child) converse(ctx context.Context, req *request, a *answer, call *tool.Call) {
	for _, b := range req.frames() {
		if _, err := c.talk.Write(b); err != nil {
			return
		}
	}
	r := bufio.NewReaderSize(c.talk, 4096)
	mark, err := r.ReadByte()
	if err != nil {
		return
	}
	a.started = true
	if mark != 'A' {
		return
	}
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return
	}
	size := binary.BigEndian.Uint64(head[1:])
	if head[0] == 'R' && storable(call, size) {
		a.stored, a.storeErr = store(ctx, call, r, size)
		a.kind, a.complete = head[0], a.storeErr == nil || ctx.Err() == nil && !errors.Is(a.storeErr, io.ErrUnexpectedEOF)
		if a.storeErr != nil {
			c.talk.Close() // it cannot finish its answer, and ends
		}
		return
	}
	if size > maxResult {
		a.tooLarge = true
		c.talk.Close() // it cannot finish its answer, and ends
		return
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return
	}
	a.kind, a.body, a.complete = head[0], body, true
}

// await waits for a process that will not answer any more; one that goes on
// running without its socket is stopped.
func (c *child) await() {
	timer := time.NewTimer(c.parent.grace)
	defer timer.Stop()
	select {
	case <-c.gone:
	case <-timer.C:
		c.terminate()
	}
}

// drain reads output to its end. Both streams end before the answer comes,
// unless a process the code left behind holds them: the parent kills it when
// the child has ended.
func (c *child) drain(streams *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		streams.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-c.gone:
	}
	deadline := time.Now().Add(drain)
	_ = c.stdout.SetReadDeadline(deadline)
	_ = c.stderr.SetReadDeadline(deadline)
	<-done
}

// terminate ends the process group, first kindly, and waits for it.
func (c *child) terminate() {
	for _, try := range []struct {
		op   byte
		wait time.Duration
	}{{'T', c.parent.grace}, {'K', reapWait}} {
		c.parent.order(try.op, c.pid)
		timer := time.NewTimer(try.wait)
		select {
		case <-c.gone:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	// Nobody reaped it: make sure at least that our reads end.
	_ = errors.Join(c.talk.SetDeadline(time.Now()), c.stdout.SetReadDeadline(time.Now()), c.stderr.SetReadDeadline(time.Now()))
}
