package python

import (
	"context"
	"io"
	"os/exec"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// maxResolved bounds what is remembered of interpreters.
const maxResolved = 64

// wants is the interpreter a call asks for; the zero value is the worker's own.
type wants struct {
	python string   // program name or path
	specs  []string // packages, sorted
}

// poolKey tells apart what cannot share a warm parent.
type poolKey struct{ python, specs string }

// pool is the processes of one interpreter and one set of packages.
type pool struct {
	tool  *Tool
	wants wants
	key   poolKey

	turn  chan struct{} // held while the fields up to warm are read or changed
	lease *lease        // of the environment; nil without packages
	start *launch       // how a parent is started; nil until known
	warm  *parent       // nil until first needed

	users int         // guarded by Tool.mu, as the rest
	last  time.Time   // when the last user left
	timer *time.Timer // ends an unused pool
}

// launch is how an interpreter is started.
type launch struct {
	python string
	venv   string // "" without an environment of its own
	idle   int
}

// Warm starts what the first Run would otherwise have to wait for.
func (t *Tool) Warm(ctx context.Context) error {
	p, err := t.pool(wants{})
	if err != nil {
		return err
	}
	defer p.release()
	_, err = p.parent(ctx, io.Discard)
	return err
}

// Close ends the warm parents and all their children. A Run under way fails
// with a retryable error of kind internal.
func (t *Tool) Close() error {
	t.mu.Lock()
	t.closed = true
	pools := t.pools
	t.pools = map[poolKey]*pool{}
	t.mu.Unlock()
	var first error
	for _, p := range pools {
		if err := p.end(); err != nil && first == nil {
			first = err
		}
	}
	t.ending.Wait()
	return first
}

// pool finds the pool for a call and counts it as a user.
func (t *Tool) pool(w wants) (*pool, error) {
	key := poolKey{python: w.python, specs: joinSpecs(w.specs)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, closedError()
	}
	p := t.pools[key]
	if p == nil {
		p = &pool{tool: t, wants: w, key: key, turn: make(chan struct{}, 1)}
		t.pools[key] = p
		t.evict(t.opts.Parents)
	}
	p.users++
	if p.timer != nil {
		p.timer.Stop()
	}
	return p, nil
}

func closedError() *tool.Error {
	return &tool.Error{Kind: tool.KindInternal, Code: "CLOSED", Message: "the python tool is shut down", Retryable: true}
}

// evict ends unused pools, the longest unused first, until at most keep are
// left besides those in use. Tool.mu is held.
func (t *Tool) evict(keep int) {
	for len(t.pools) > keep {
		var oldest *pool
		for _, p := range t.pools {
			if p.users == 0 && p.key != (poolKey{}) && !p.last.IsZero() && (oldest == nil || p.last.Before(oldest.last)) {
				oldest = p
			}
		}
		if oldest == nil {
			return
		}
		t.dismiss(oldest)
	}
}

// dismiss ends an unused pool in the background. Tool.mu is held.
func (t *Tool) dismiss(p *pool) {
	delete(t.pools, p.key)
	if p.timer != nil {
		p.timer.Stop()
	}
	t.ending.Go(func() { _ = p.end() })
}

// release is for a call that has ended.
func (p *pool) release() {
	t := p.tool
	t.mu.Lock()
	defer t.mu.Unlock()
	p.users--
	p.last = time.Now()
	if p.users > 0 || p.key == (poolKey{}) || t.closed {
		return
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(t.opts.Expiry, p.expire)
	} else {
		p.timer.Reset(t.opts.Expiry)
	}
	t.evict(t.opts.Parents)
}

func (p *pool) expire() {
	t := p.tool
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.users == 0 && t.pools[p.key] == p {
		t.dismiss(p)
	}
}

// end stops the processes and gives the environment back.
func (p *pool) end() error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	var err error
	if p.warm != nil {
		err = p.warm.close()
		p.warm = nil
	}
	if p.lease != nil {
		p.lease.release()
		p.lease, p.start = nil, nil
	}
	return err
}

// child takes a ready process, starting the warm parent when there is none.
func (p *pool) child(ctx context.Context, log io.Writer) (*child, error) {
	warm, err := p.parent(ctx, log)
	if err != nil {
		return nil, err
	}
	return warm.take(ctx)
}

func (p *pool) parent(ctx context.Context, log io.Writer) (*parent, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.warm != nil && p.warm.alive() {
		return p.warm, nil
	}
	if p.tool.isClosed() {
		return nil, closedError()
	}
	if p.start == nil {
		if err := p.settle(ctx, log); err != nil {
			return nil, err
		}
	}
	warm, err := startParent(p.start, p.tool.opts)
	if err != nil {
		return nil, err
	}
	p.warm = warm
	return warm, nil
}

func (t *Tool) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// settle finds out how to start the parent: the interpreter behind a name, and
// the environment with the packages, which may have to be made first.
func (p *pool) settle(ctx context.Context, log io.Writer) error {
	found := p.tool.found
	if p.wants.python != "" {
		var err error
		if found, err = exec.LookPath(p.wants.python); err != nil {
			return tool.ConfigErrorf("python: no interpreter %q on this worker: %v", p.wants.python, err)
		}
	}
	base, err := p.tool.resolve(ctx, found)
	if err != nil {
		return err
	}
	l := &launch{python: base.path, idle: 1}
	if p.key == (poolKey{}) {
		l.idle = p.tool.opts.Idle
	}
	if len(p.wants.specs) > 0 {
		if p.lease, err = p.tool.venvs.acquire(ctx, base, p.wants.specs, log); err != nil {
			return err
		}
		l.python, l.venv = p.lease.python(), p.lease.dir
	}
	p.start = l
	return nil
}

// resolve remembers what programs turned out to be.
func (t *Tool) resolve(ctx context.Context, found string) (interpreter, error) {
	t.mu.Lock()
	known, ok := t.resolved[found]
	t.mu.Unlock()
	if ok {
		return known, nil
	}
	base, err := resolve(ctx, found)
	if err != nil {
		return base, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.resolved) >= maxResolved {
		clear(t.resolved)
	}
	t.resolved[found] = base
	return base, nil
}
