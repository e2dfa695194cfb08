package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/testkit"
)

// troubled is busy with what else can be interrupted: a child that is waited
// for and a tool that is stopped by a timer.
const troubled = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: troubled, path: e2e/troubled}
workload: {n: 4}
workflow:
  - step: start
    tool: {kind: noop}
    next: [wide, asks, hangs]
  - step: wide
    loop: {in: "{{ n }}", iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: shell, command: "echo {{ i }}"}
    next: join
  - step: asks
    tool: {kind: playbook, path: e2e/troubled_child, return_step: answer}
    next: join
  - step: hangs
    spec: {timeout: 1s}
    tool: {kind: shell, command: "exec sleep 60"}
    next: {arcs: [{step: join, when: "{{ output.status == 'error' }}"}]}
  - step: join
    tool: {kind: noop, result: {wide: "{{ wide | length }}", answer: "{{ asks.value }}"}}
`

const troubledChild = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: troubled_child, path: e2e/troubled_child}
workflow:
  - {step: answer, tool: {kind: noop, result: {value: 42}}}
`

// troubledCommands is how many commands one run of troubled takes.
const troubledCommands = 1 + 4 + 1 + 1 + 1

// campaign is a system under load while something is broken: one server, or two
// on PostgreSQL, and two workers of their own.
type campaign struct {
	t        *testing.T
	s        *system
	backend  string
	servers  []*process
	ports    []int
	natsPort int // of the NATS inside the server; 0 when it is outside
	workers  []*testkit.Process
	env      []string // of servers
	injected int

	// What some faults need.
	nats     *testkit.NATS
	natsDir  string
	postgres *testkit.CrashablePostgres
	clock    string // file
	disk     string // mount point

	mu  sync.Mutex          // guards ids
	ids map[string]event.ID // executions by the key they were started with
}

func newCampaign(t *testing.T, backend string) *campaign {
	c := &campaign{t: t, backend: backend, ids: map[string]event.ID{}}
	c.s = &system{t: t, bin: testkit.BuildFaultyNoetl(t), dir: t.TempDir()}
	return c
}

// begin starts what no fault has brought with it, and registers the playbooks.
func (c *campaign) begin() {
	c.t.Helper()
	if c.backend == "postgres" && c.s.dsn == "" {
		c.s.dsn = testkit.Postgres(c.t)
	}
	if c.backend == "postgres" && c.s.nats == "" {
		c.s.nats = testkit.NATSProcess(c.t)
	}
	if c.s.nats == "" {
		c.natsPort = testkit.FreePort(c.t)
	}
	c.ports = append(c.ports, testkit.FreePort(c.t))
	if c.backend == "postgres" {
		c.ports = append(c.ports, testkit.FreePort(c.t))
	}
	for i := range c.ports {
		c.servers = append(c.servers, nil)
		c.startServer(i)
	}
	for i := range 2 {
		c.workers = append(c.workers, nil)
		c.startWorker(i)
	}
	for _, src := range []string{troubledChild, troubled} {
		c.s.register(c.servers[0], src)
	}
}

// startServer starts the i-th server, with failpoints if any are given.
func (c *campaign) startServer(i int, failpoints ...string) {
	c.t.Helper()
	c.servers[i] = c.s.ready(c.launchServer(i, failpoints...))
}

// launchServer starts the i-th server and does not wait for it: it may die
// before it is ready.
func (c *campaign) launchServer(i int, failpoints ...string) *testkit.Process {
	c.t.Helper()
	args := []string{"--no-worker", "--max-attempts", "1000", "--outbox-publisher", "internal"}
	if c.natsPort != 0 {
		args = append(args, "--nats-listen", fmt.Sprintf("127.0.0.1:%d", c.natsPort))
	}
	env := append([]string{"NOETL_FAILPOINTS=" + strings.Join(failpoints, ";")}, c.env...)
	return c.s.launch(env, c.ports[i], args...)
}

func (c *campaign) natsURL() string {
	if c.natsPort != 0 {
		return fmt.Sprintf("nats://127.0.0.1:%d", c.natsPort)
	}
	return c.s.nats
}

// startWorker starts the i-th worker.
func (c *campaign) startWorker(i int) {
	c.t.Helper()
	c.workers[i] = c.launchWorker(i)
	c.workers[i].WaitOutput("noetl worker", patience)
}

// launchWorker starts the i-th worker, with failpoints if any are given, and
// does not wait for it.
func (c *campaign) launchWorker(i int, failpoints ...string) *testkit.Process {
	c.t.Helper()
	return testkit.Start(c.t, testkit.Command{
		Path: c.s.bin, Env: []string{"NOETL_FAILPOINTS=" + strings.Join(failpoints, ";")},
		Args: []string{
			"worker", "--id", fmt.Sprintf("worker-%d", i), "--server-url", c.url(i % len(c.ports)), "--nats-url", c.natsURL(),
			"--slots", "8", "--heartbeat", "500ms",
		},
	})
}

func (c *campaign) url(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", c.ports[i]) }

// load starts executions until the returned function is called. Each has a key
// and is asked for under it until somebody acknowledges, as a careful client does.
func (c *campaign) load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var posters sync.WaitGroup
	for n := range 2 {
		url := c.url(n % len(c.ports))
		posters.Go(func() {
			cl, err := client.New(url)
			if err != nil {
				c.t.Error(err)
				return
			}
			defer cl.Close()
			for i := 0; ctx.Err() == nil; i++ {
				c.post(ctx, cl, fmt.Sprintf("poster-%d-%d", n, i))
				pause(ctx, 150*time.Millisecond)
			}
		})
	}
	return func() { cancel(); posters.Wait() }
}

// post asks until it is answered. Once begun it does not give up with ctx,
// because then nobody would know what became of the key.
func (c *campaign) post(ctx context.Context, cl *client.Client, key string) {
	deadline := time.Now().Add(patience)
	for {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		a, err := cl.Execute(rctx, client.ExecuteRequest{Path: "e2e/troubled", Dedup: &client.Dedup{Key: key, WindowSecs: 7 * 86400}})
		cancel()
		switch {
		case err == nil:
			c.mu.Lock()
			c.ids[key] = a.ExecutionID
			c.mu.Unlock()
			return
		case event.CodeOf(err) != event.Unavailable:
			c.t.Errorf("execute %s: %v", key, err)
			return
		case time.Now().After(deadline):
			c.t.Errorf("execute %s: still no answer: %v", key, err)
			return
		}
		pause(context.WithoutCancel(ctx), 100*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// judge waits for the ends, stops everything and holds what is stored against
// what was acknowledged.
func (c *campaign) judge() faultResult {
	c.t.Helper()
	r := faultResult{executions: len(c.ids)}
	deadline := time.Now().Add(patience)
	for _, id := range c.ids {
		if !c.ended(id, deadline) {
			r.stuck++
		}
	}
	for _, p := range c.workers {
		p.Kill()
	}
	for _, p := range c.servers {
		p.Terminate()
		_ = p.Wait(patience)
	}
	r.verified = c.verify()
	db := c.s.open()
	for key, id := range c.ids {
		row, err := db.Execution(context.Background(), id)
		if err != nil || row.Status != event.StatusCompleted {
			c.t.Errorf("%s: execution %s is %s: %s (%v)", key, id, row.Status, row.Error, err)
			r.lost++
			continue
		}
		if p := prove(c.t, db, id); len(p.accepted) != troubledCommands {
			c.t.Errorf("execution %s has %d commands, want %d", id, len(p.accepted), troubledCommands)
			r.doubled++
		}
	}
	for path, want := range map[string]int{"e2e/troubled": len(c.ids), "e2e/troubled_child": len(c.ids)} {
		if n := c.count(db, path); n > want {
			c.t.Errorf("%d executions of %s, want %d", n, path, want)
			r.doubled += n - want
		} else if n < want {
			r.lost += want - n
		}
	}
	return r
}

// ended waits for the end of an execution, asking whichever server answers.
func (c *campaign) ended(id event.ID, deadline time.Time) bool {
	for i := 0; time.Now().Before(deadline); i++ {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		st, err := c.servers[i%len(c.servers)].client.Status(ctx, id)
		cancel()
		if err == nil && event.IsFinal(st.Status) {
			return true
		}
		pause(context.Background(), 100*time.Millisecond)
	}
	c.t.Errorf("execution %s has not ended", id)
	return false
}

func (c *campaign) count(db store.Store, path string) int {
	n, before := 0, event.ID(0)
	for {
		rows, err := db.ListExecutions(context.Background(), store.ExecutionFilter{PathPrefix: path, Before: before, Limit: 100})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, row := range rows {
			before = row.ExecutionID
			if row.Path == path {
				n++
			}
		}
		if len(rows) < 100 {
			return n
		}
	}
}

// verify runs `noetl db verify` on what the servers left.
func (c *campaign) verify() bool {
	args := []string{"db", "verify", "--data-dir", filepath.Join(c.s.dir, "data")}
	if c.s.dsn != "" {
		args = []string{"db", "verify", "--database-url", c.s.dsn}
	}
	out, err := exec.Command(c.s.bin, args...).CombinedOutput()
	if err != nil {
		c.t.Errorf("noetl db verify: %v\n%s", err, out)
	}
	return err == nil
}
