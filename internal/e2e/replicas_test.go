package e2e

import (
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// fanned is a short playbook in which both servers and both workers get their
// hands on the same execution.
const fanned = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fanned, path: e2e/fanned}
workload: {n: 4}
workflow:
  - step: start
    tool: {kind: noop, result: {go: true}}
    next: [left, right]
  - step: left
    loop: {in: "{{ n }}", iterator: i, spec: {mode: parallel}}
    tool: {kind: noop, result: "{{ i }}"}
    next: join
  - step: right
    tool: {kind: noop, result: {side: right}}
    next: join
  - step: join
    tool: {kind: noop, result: {total: "{{ left | sum }}", side: "{{ right.side }}"}}
`

func TestTwoServersTwoWorkersFiveHundredExecutions(t *testing.T) {
	t.Parallel()
	for _, backend := range backends[1:] {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			twoServersTwoWorkers(t, newSystem(t, backend))
		})
	}
}

func twoServersTwoWorkers(t *testing.T, s *system) {
	const executions = 500
	servers := []*process{s.server(0, "--no-worker"), s.server(0, "--no-worker")}
	s.worker("w1", servers[0].url, s.nats, 16)
	s.worker("w2", servers[1].url, s.nats, 16)

	reg, err := servers[0].client.Register(s.ctx(), fanned)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]event.ID, executions)
	g, ctx := errgroup.WithContext(s.ctx())
	g.SetLimit(32)
	for i := range ids {
		g.Go(func() error {
			a, err := servers[i%2].client.Execute(ctx, client.ExecuteRequest{CatalogID: reg.CatalogID})
			ids[i] = a.ExecutionID
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		s.completed(servers[(i+1)%2], id)
	}
	for _, srv := range servers {
		srv.Terminate()
		if err := srv.Wait(patience); err != nil {
			t.Errorf("server after SIGTERM: %v", err)
		}
	}
	db := s.open()
	for _, id := range ids {
		if p := prove(t, db, id); len(p.accepted) != 7 {
			t.Errorf("execution %s has %d commands, want 7", id, len(p.accepted))
		}
	}
}
