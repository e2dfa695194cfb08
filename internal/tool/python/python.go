// Package python runs Python code in processes that are used once and forked
// ahead of need from a warm parent, so that a call pays neither interpreter
// start nor imports and user code cannot poison later calls. It must not know
// of workflows; code sees a clean environment, never the worker's own.
package python

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
)

const (
	defaultIdle    = 2
	defaultMax     = 64
	defaultParents = 4
	defaultExpiry  = 5 * time.Minute
	maxResult      = 64 << 20 // of a value that is held in memory
	refillDelay    = 5 * time.Millisecond
)

// Options adjusts the tool; the zero value is fine.
type Options struct {
	process.Settings
	Interpreter string        // program name or path; default PYTHON_PATH, else python3
	Idle        int           // processes kept ready; 2
	Max         int           // calls at once, others wait; 64
	Parents     int           // warm parents kept for interpreters and environments; 4
	Expiry      time.Duration // after which an unused warm parent, except the default one, ends; 5 min
	VenvDir     string        // where environments for deps are kept; "" = noetl-venvs in the system's temporary directory
	VenvBytes   int64         // how large they may be together; 5 GiB
	Offline     bool          // make no environments, only use those that are kept
}

func (o Options) withDefaults() Options {
	o.Settings = o.Settings.WithDefaults()
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	if o.Parents <= 0 {
		o.Parents = defaultParents
	}
	if o.Expiry <= 0 {
		o.Expiry = defaultExpiry
	}
	if o.VenvDir == "" {
		o.VenvDir = filepath.Join(os.TempDir(), "noetl-venvs")
	}
	if o.VenvBytes <= 0 {
		o.VenvBytes = defaultVenvBytes
	}
	return o
}

// Tool runs Python code. Close it when the last Run has returned.
type Tool struct {
	opts  Options
	found string        // the interpreter as configured, maybe a shim
	slots chan struct{} // one token per running call
	venvs *shelf

	mu       sync.Mutex // guards the fields below
	pools    map[poolKey]*pool
	resolved map[string]interpreter
	closed   bool
	ending   sync.WaitGroup // pools on their way out
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
	return &Tool{
		opts: opts, found: found, slots: make(chan struct{}, opts.Max),
		venvs: &shelf{dir: opts.VenvDir, max: opts.VenvBytes, offline: opts.Offline},
		pools: map[poolKey]*pool{}, resolved: map[string]interpreter{},
	}, nil
}

// Kind is "python".
func (*Tool) Kind() string { return "python" }

// Run runs the code. Data is the value of the global result, else what main()
// or a top-level return gives; without any of these {stdout, stderr}. A value
// larger than call.InlineLimit goes to call.Blobs without being held here.
//
// An exception is an *Error with code PY_<class>: kind schema for type, value
// and lookup errors, parse for undecodable JSON, connection and timeout for
// those, else logic. A process that dies reports the signal, and a limit it
// hit is kind resource_limit. When ctx ends or the timeout passes, the process
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
	p, err := readProgram(ctx, call)
	if err != nil {
		return nil, orEnded(ctx, limit, err)
	}
	if p.place, err = t.opts.Prepare(ctx, call, p.wish); err != nil {
		return nil, orEnded(ctx, limit, err)
	}
	defer func() { _ = p.place.Remove() }()
	if own := p.place.Limits.Timeout; own > 0 && (limit == 0 || own < limit) {
		ctx, cancel = context.WithTimeout(ctx, own)
		defer cancel()
		limit = own
	}
	return t.run(ctx, call, p, limit)
}

func (t *Tool) run(ctx context.Context, call *tool.Call, p *program, limit time.Duration) (*tool.Result, error) {
	req, err := p.request(call, t.opts.Sandbox)
	if err != nil {
		return nil, err
	}
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-ctx.Done():
		return nil, tool.Ended(ctx, "waiting for a python process", limit)
	}
	a, err := t.exchange(ctx, req, call, p)
	if err != nil {
		return nil, orEnded(ctx, limit, err)
	}
	return p.outcome(ctx, limit, a, call)
}

// orEnded prefers the end of ctx as the reason of a failure that it caused.
func orEnded(ctx context.Context, limit time.Duration, err error) error {
	if ctx.Err() != nil {
		return tool.Ended(ctx, "python code", limit)
	}
	return err
}

// exchange gives the request to a child. A child that is lost before it began
// to run the code, because the warm parent died while nobody looked, is
// replaced by another.
func (t *Tool) exchange(ctx context.Context, req *request, call *tool.Call, p *program) (*answer, error) {
	users, err := t.pool(p.wants)
	if err != nil {
		return nil, err
	}
	defer users.release()
	for attempt := 1; ; attempt++ {
		c, err := users.child(ctx, call.Log)
		if err == nil {
			// The child is replaced after a short call and during a long one:
			// a fork beside a short call would only slow it down.
			refill := time.AfterFunc(refillDelay, c.parent.topUp)
			a := c.exchange(ctx, req, call)
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

func lostError(message string) *tool.Error {
	return &tool.Error{Kind: tool.KindInternal, Code: "PROCESS_LOST", Message: message, Retryable: true}
}
