// Package python runs Python code in processes that are used once and forked
// ahead of need from a warm parent, so that a call pays neither interpreter
// start nor imports and user code cannot poison later calls. It must not know
// of workflows; code sees a clean environment, never the worker's own.
package python

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	defaultIdle = 2
	defaultMax  = 16
	maxResult   = 64 << 20
	refillDelay = 5 * time.Millisecond
)

// Options adjusts the tool; the zero value is fine.
type Options struct {
	Interpreter string // program name or path; default PYTHON_PATH, else python3
	Idle        int    // processes kept ready; 2
	Max         int    // calls at once, others wait; 16
	MemoryBytes int64  // address space of one call; 0 = no limit
	CPUSeconds  int64  // processor time of one call; 0 = no limit
	FileBytes   int64  // largest file a call may write; 0 = no limit
}

func (o Options) withDefaults() Options {
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	return o
}

// Tool runs Python code. Close it when the last Run has returned.
type Tool struct {
	opts   Options
	found  string        // the interpreter as configured, maybe a shim
	slots  chan struct{} // one token per running call
	mu     sync.Mutex    // guards the fields below
	python string        // the interpreter itself; "" until first needed
	warm   *parent       // nil until first needed
	closed bool
}

var _ tool.Tool = (*Tool)(nil)

// New finds the interpreter; nothing is started before the first Run. The
// error says that there is no interpreter and where one was looked for.
func New(opts Options) (*Tool, error) {
	opts = opts.withDefaults()
	found, err := findInterpreter(opts.Interpreter)
	if err != nil {
		return nil, err
	}
	return &Tool{opts: opts, found: found, slots: make(chan struct{}, opts.Max)}, nil
}

// Kind is "python".
func (*Tool) Kind() string { return "python" }

// Warm starts what the first Run would otherwise have to wait for.
func (t *Tool) Warm(ctx context.Context) error {
	_, err := t.parent(ctx)
	return err
}

// Close ends the warm parent and all its children. A Run under way fails with
// a retryable error of kind internal.
func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.warm == nil {
		return nil
	}
	return t.warm.close()
}

// Run runs the code. Data is the value of the global result, else what main()
// or a top-level return gives; without any of these {stdout, stderr}.
//
// An exception is an *Error with code PY_<class>: kind schema for type, value
// and lookup errors, parse for undecodable JSON, else logic. A process that
// dies reports the signal. When ctx ends or the timeout passes, the process
// group is ended and the *Error is of kind cancelled or timeout.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "python code", limit)
	}
	p, err := readProgram(call)
	if err != nil {
		return nil, err
	}
	req, err := p.request(call)
	if err != nil {
		return nil, err
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return nil, tool.Ended(ctx, "waiting for a python process", limit)
	}
	a, err := t.exchange(ctx, req, call)
	if err != nil {
		if ctx.Err() != nil {
			return nil, tool.Ended(ctx, "python code", limit)
		}
		return nil, err
	}
	return p.outcome(ctx, limit, a)
}

// exchange gives the request to a child. A child that is lost before it began
// to run the code, because the warm parent died while nobody looked, is
// replaced by another.
func (t *Tool) exchange(ctx context.Context, req *request, call *tool.Call) (*answer, error) {
	for attempt := 1; ; attempt++ {
		c, err := t.child(ctx)
		if err == nil {
			// The child is replaced after a short call and during a long one:
			// a fork beside a short call would only slow it down.
			refill := time.AfterFunc(refillDelay, c.parent.topUp)
			a := c.exchange(ctx, req, call.Log)
			if refill.Stop() {
				c.parent.topUp()
			}
			if a.started || ctx.Err() != nil {
				return a, nil
			}
			err = errLost
		}
		if !errors.Is(err, errLost) {
			return nil, err
		}
		if attempt == 3 {
			return nil, lostError("python processes keep dying before they can run code; is the machine out of memory?")
		}
	}
}

// child takes a ready process, starting the warm parent when there is none.
func (t *Tool) child(ctx context.Context) (*child, error) {
	p, err := t.parent(ctx)
	if err != nil {
		return nil, err
	}
	return p.take(ctx)
}

func (t *Tool) parent(ctx context.Context) (*parent, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, &tool.Error{Kind: tool.KindInternal, Code: "CLOSED", Message: "the python tool is shut down", Retryable: true}
	}
	if t.warm != nil && t.warm.alive() {
		return t.warm, nil
	}
	if t.python == "" {
		path, err := resolve(ctx, t.found)
		if err != nil {
			return nil, err
		}
		t.python = path
	}
	p, err := startParent(t.python, t.opts)
	if err != nil {
		return nil, err
	}
	t.warm = p
	return p, nil
}

func lostError(message string) *tool.Error {
	return &tool.Error{Kind: tool.KindInternal, Code: "PROCESS_LOST", Message: message, Retryable: true}
}
