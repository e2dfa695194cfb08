// Package postgres runs SQL on PostgreSQL servers. It owns the connections it
// keeps open between commands; it must not know of workflows, credential stores
// or retries: credentials are asked for by name, and whether a failure is worth
// another try is only reported.
package postgres

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// Options adjusts the tool; the zero value of each field is its default.
type Options struct {
	Pool           Pool          // of steps that say nothing else
	MaxConnections int           // over all pools; 64
	MaxRows        int           // rows of a statement held in memory; 10,000
	MaxBytes       int64         // bytes of data held in memory; 8 MiB
	MaxSpill       int64         // bytes of data a command may put aside; 1 GiB
	Statement      time.Duration // longest statement; 0 = only the budget of the step
	IdleInTx       time.Duration // longest silence within a transaction; 45 s
	Attempts       int           // to connect; 3
	SpillDir       string        // where large data waits to be stored; "" = the system's
}

// DefaultPoolSize is how many connections a pool has at most unless told.
const DefaultPoolSize = 6

// Pool says how many connections are kept to one place and for how long.
type Pool struct {
	Min      int           // kept open while the pool is in use; 1
	Max      int           // 6
	Waiting  int           // commands that may queue for a connection; 50
	Timeout  time.Duration // longest wait for one; 30 s. Negative = as long as the step may take
	Lifetime time.Duration // longest use of one; 1 h
	Idle     time.Duration // longest rest of one; 5 min
}

func (o Options) withDefaults() Options {
	o.Pool = o.Pool.or(Pool{Min: 1, Max: DefaultPoolSize, Waiting: 50, Timeout: 30 * time.Second, Lifetime: time.Hour, Idle: 5 * time.Minute})
	o.MaxConnections = orInt(o.MaxConnections, 64)
	o.MaxRows = orInt(o.MaxRows, 10_000)
	o.MaxBytes = orInt(o.MaxBytes, 8<<20)
	o.MaxSpill = orInt(o.MaxSpill, 1<<30)
	o.IdleInTx = orInt(o.IdleInTx, 45*time.Second)
	o.Attempts = orInt(o.Attempts, 3)
	return o
}

// or fills what p leaves open.
func (p Pool) or(def Pool) Pool {
	return Pool{
		Min: orInt(p.Min, def.Min), Max: orInt(p.Max, def.Max), Waiting: orInt(p.Waiting, def.Waiting),
		Timeout: orInt(p.Timeout, def.Timeout), Lifetime: orInt(p.Lifetime, def.Lifetime), Idle: orInt(p.Idle, def.Idle),
	}
}

func orInt[N ~int | ~int64](n, def N) N {
	if n == 0 {
		return def
	}
	return n
}

// Tool runs SQL. Commands that log in the same way share connections.
type Tool struct {
	opts  Options
	pools *pools
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool. Close it to end its connections.
func New(opts Options) *Tool {
	opts = opts.withDefaults()
	return &Tool{opts: opts, pools: newPools(opts.MaxConnections, opts.Attempts)}
}

// Kind is "postgres".
func (*Tool) Kind() string { return "postgres" }

// Close ends all connections. Commands under way are not disturbed; their
// connections end with them.
func (t *Tool) Close() error {
	t.pools.close()
	return nil
}

// Run executes the statements on one connection, in order and up to the first
// that fails. Data is {columns, rows, row_count, affected_rows} of the last one
// and the same for each under command_0, command_1, …; data that is too large
// goes to call.Blobs.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "the SQL", limit)
	}
	p, err := t.readPlan(ctx, call)
	if err != nil {
		return nil, err
	}
	out := newSpool(t.opts.SpillDir, t.spillAt(call), t.opts.MaxSpill)
	defer out.close()
	r := &runner{plan: p, call: call, opts: t.opts, limit: limit, out: out}
	if err := r.run(ctx, t.pools); err != nil {
		return nil, err
	}
	return r.result(ctx)
}

// spillAt is how many bytes of data are held in memory.
func (t *Tool) spillAt(call *tool.Call) int64 {
	if call.InlineLimit > 0 && call.Blobs != nil {
		return min(t.opts.MaxBytes, int64(call.InlineLimit))
	}
	return t.opts.MaxBytes
}
