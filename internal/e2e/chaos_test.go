package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// busy has something of everything that can be interrupted: a chain, parallel
// and sequential loops, a join, a failure that is handled, a cycle.
const busy = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: busy, path: e2e/busy}
workload: {n: 6}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.round: 0}
    next: [wide, fails]
  - step: wide
    loop: {in: "{{ n }}", iterator: i, spec: {mode: parallel, max_in_flight: 3}}
    tool: {kind: shell, command: "sleep 0.02; echo {{ i }}"}
    next: again
  - step: again
    tool: {kind: noop, result: {round: "{{ ctx.round + 1 }}"}}
    set: {ctx.round: "{{ output.round }}"}
    next: {arcs: [{step: again, when: "{{ ctx.round < 3 }}"}, {step: join}]}
  - step: fails
    tool: {kind: shell, command: "exit 3"}
    next: {arcs: [{step: narrow, when: "{{ output.status == 'error' }}"}]}
  - step: narrow
    loop: {in: [a, b], iterator: x}
    tool: {kind: noop, result: "{{ x }}"}
    next: join
  - step: join
    tool: {kind: noop, result: {rounds: "{{ ctx.round }}", wide: "{{ wide | length }}", narrow: "{{ narrow }}"}}
`

// busyCommands is how many commands one run of busy takes.
const busyCommands = 1 + 6 + 3 + 1 + 2 + 1

// chaosTime is how long processes are killed: a moment in every test run,
// minutes in `make chaos`.
func chaosTime(t *testing.T) time.Duration {
	t.Helper()
	v := os.Getenv("NOETL_CHAOS")
	if v == "" {
		return 6 * time.Second
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("NOETL_CHAOS: %v", err)
	}
	return d
}

// TestProcessesDieAtRandom kills -9 one process after the other while
// executions keep coming, and then proves every one of them.
func TestProcessesDieAtRandom(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := newChaos(t, backend)
			c.run(chaosTime(t))
			for _, id := range c.ids {
				c.s.completed(c.servers[0], id)
			}
			for _, p := range c.servers {
				p.Terminate()
				_ = p.Wait(patience)
			}
			db := c.s.open()
			for _, id := range c.ids {
				if p := prove(t, db, id); len(p.accepted) != busyCommands {
					t.Errorf("execution %s has %d commands, want %d", id, len(p.accepted), busyCommands)
				}
			}
			t.Logf("%d executions survived %d kills", len(c.ids), c.kills)
			if len(c.ids) == 0 || c.kills == 0 {
				t.Error("nothing ran, or nothing was killed")
			}
		})
	}
}

type chaos struct {
	t       *testing.T
	s       *system
	rng     *rand.Rand
	servers []*process
	kills   int

	mu  sync.Mutex // guards ids
	ids []event.ID
}

// newChaos starts one server on SQLite, or two on PostgreSQL, each with its
// worker inside.
func newChaos(t *testing.T, backend string) *chaos {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &chaos{t: t, s: newSystem(t, backend), rng: rand.New(rand.NewPCG(seed, 0))}
	n := 1
	if backend != "sqlite" {
		n = 2
	}
	for range n {
		c.servers = append(c.servers, c.server())
	}
	if _, err := c.servers[0].client.Register(c.s.ctx(), busy); err != nil {
		t.Fatal(err)
	}
	return c
}

// server starts one more server. Attempts are plenty: a command may be hit by
// any number of kills, and here that must not be held against it.
func (c *chaos) server() *process { return c.s.server(0, "--slots", "6", "--max-attempts", "1000") }

// run kills and restarts for a while, with load all along.
func (c *chaos) run(d time.Duration) {
	deadline := time.Now().Add(d)
	for time.Now().Before(deadline) {
		i := c.rng.IntN(len(c.servers))
		var load sync.WaitGroup
		for _, p := range c.servers {
			load.Go(func() { c.post(p, 10) })
		}
		<-time.After(time.Duration(20+c.rng.IntN(500)) * time.Millisecond)
		c.servers[i].Kill()
		c.kills++
		load.Wait()
		c.servers[i] = c.server()
	}
}

// post starts executions; those that were acknowledged must complete. A server
// that dies meanwhile gives no acknowledgement, and owes nothing.
func (c *chaos) post(p *process, n int) {
	for range n {
		a, err := p.client.Execute(c.s.ctx(), client.ExecuteRequest{Path: "e2e/busy"})
		switch {
		case err == nil:
			c.mu.Lock()
			c.ids = append(c.ids, a.ExecutionID)
			c.mu.Unlock()
		case !errors.Is(err, &event.Error{Code: event.Unavailable}):
			c.t.Errorf("execute: %v", fmt.Errorf("%w (%s)", err, event.CodeOf(err)))
			return
		default:
			return
		}
	}
}
