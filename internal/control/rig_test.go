package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
	"github.com/noetl/noetl-go/internal/testkit/storeproof"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simulate runs f in a bubble whose clock moves only when everybody waits.
func simulate(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// rig is one store and one bus with any number of planes and workers.
type rig struct {
	t     *testing.T
	store *memstore.Store
	bus   *membus.Bus
	ids   *snowflake.Generator

	excused  []string // kinds of differences the test makes on purpose
	unproven bool     // the test writes logs or rows by hand
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: memstore.New(), bus: membus.New(membus.Options{}), ids: snowflake.New(1, nil)}
	t.Cleanup(func() {
		_ = r.bus.Close()
		r.store.Inject(memstore.Faults{})
		if !r.unproven && r.store.Ping(context.Background()) == nil { // else the test closed it
			storeproof.Clean(t, r.store, r.excused...)
		}
	})
	return r
}

// running is a plane whose Run is under way.
type running struct {
	*control.Plane
	stop func() // ends Run and waits for it; may be called more than once
}

func (r *rig) plane(local control.LocalWorker, change ...func(*control.Options)) *running {
	r.t.Helper()
	o := control.Options{Store: r.store, Bus: r.bus, IDs: r.ids.Next, ServerURL: "http://plane"}
	for _, f := range change {
		f(&o)
	}
	p, err := control.New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	if local != nil {
		p.SetLocal(local)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
	r.t.Cleanup(stop)
	synctest.Wait() // what Run does first is done
	return &running{Plane: p, stop: stop}
}

func (r *rig) register(p *running, yaml string) store.Entry {
	r.t.Helper()
	reg, err := p.Register(r.t.Context(), control.RegisterRequest{Content: yaml})
	if err != nil {
		r.t.Fatalf("register: %v", err)
	}
	return reg.Entry
}

func (r *rig) start(p *running, path string) event.ID {
	r.t.Helper()
	a, err := p.Execute(r.t.Context(), control.ExecuteRequest{Path: path})
	if err != nil {
		r.t.Fatalf("execute %s: %v", path, err)
	}
	return a.ExecutionID
}

// await waits until an execution has ended.
func (r *rig) await(p *running, id event.ID) store.Execution {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Hour)
	defer cancel()
	wake, stop := p.Watch(id)
	defer stop()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	for {
		row, err := p.Execution(ctx, id)
		if err == nil && event.IsFinal(row.Status) {
			return row
		}
		select {
		case <-wake:
		case <-look.C:
		case <-ctx.Done():
			r.t.Fatalf("execution %s did not end: %+v", id, row)
		}
	}
}

// pending returns the commands that wait for a worker.
func (r *rig) pending() []store.Command {
	r.t.Helper()
	rows, err := r.store.PendingCommands(r.t.Context(), time.Now().Add(time.Hour), 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

// verify proves the log of an ended execution: no gaps, one end, at most one
// accepted end per command, and projections that agree with the fold.
func (r *rig) verify(id event.ID) *engine.State {
	r.t.Helper()
	events, err := r.store.Events(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	s := engine.NewState(id)
	terminals, ends, issued := 0, map[string]int{}, map[string]event.ID{}
	for i := range events {
		e := &events[i]
		if e.Seq != int64(i)+1 {
			r.t.Fatalf("execution %s: event %d has seq %d", id, i, e.Seq)
		}
		if e.Type.IsTerminal() {
			terminals++
		}
		if e.Type == event.CommandIssued {
			issued[e.CommandID] = e.EventID
		}
		if eff := s.Apply(e); eff.Ended {
			ends[e.CommandID]++
		}
	}
	if terminals != 1 {
		r.t.Errorf("execution %s has %d terminal events", id, terminals)
	}
	for cmd, eventID := range issued {
		if ends[cmd] != 1 {
			r.t.Errorf("command %s has %d accepted ends", cmd, ends[cmd])
		}
		row, err := r.store.Command(context.Background(), id, eventID)
		if err != nil || !event.IsFinal(row.Status) {
			r.t.Errorf("command %s: row %q, %v", cmd, row.Status, err)
		}
	}
	row, err := r.store.Execution(context.Background(), id)
	if sum := s.Summary(); err != nil || row.Status != sum.Status || row.LastSeq != sum.LastSeq {
		r.t.Errorf("execution %s: row %s/%d, fold %s/%d, %v", id, row.Status, row.LastSeq, sum.Status, sum.LastSeq, err)
	}
	return s
}

// fold is the state of an execution by its log.
func (r *rig) fold(id event.ID) *engine.State {
	r.t.Helper()
	events, err := r.store.Events(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	s := engine.NewState(id)
	for i := range events {
		s.Apply(&events[i])
	}
	return s
}

// crew is a scripted remote worker: it takes what is announced, claims it from
// any of its planes, pretends to run it and reports.
type crew struct {
	r      *rig
	id     string
	planes []*control.Plane
	eager  int
	runs   sync.Map // command id -> *atomic.Int64
	turn   atomic.Int64
	drop   func(cmd *event.Command) bool // die with the command instead of reporting
	// says makes the report of a command; nil or a nil answer stands for success.
	says func(cmd *event.Command) *event.Incoming
}

// hire starts hands goroutines of a worker until the test ends.
func (r *rig) hire(id string, hands, eager int, planes ...*running) *crew {
	w := &crew{r: r, id: id, eager: eager}
	for _, p := range planes {
		w.planes = append(w.planes, p.Plane)
	}
	r.employ(w, hands)
	return w
}

func (r *rig) employ(w *crew, hands int) {
	ctx, cancel := context.WithCancel(context.Background())
	sub, err := r.bus.Subscribe(ctx, []string{"shared"}, 4*hands)
	if err != nil {
		r.t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() { w.loop(ctx, sub) })
	}
	r.t.Cleanup(func() {
		cancel()
		sub.Stop()
		wg.Wait()
	})
}

// plane is where the next request goes: in turn, as behind a load balancer.
func (w *crew) plane() *control.Plane {
	return w.planes[int(w.turn.Add(1))%len(w.planes)]
}

func (w *crew) loop(ctx context.Context, sub bus.Subscription) {
	for {
		d, err := sub.Next(ctx)
		if err != nil {
			return
		}
		n := d.Notification()
		cmd, err := w.plane().Claim(ctx, event.ClaimRequest{EventID: n.EventID, ExecutionID: n.ExecutionID, WorkerID: w.id, Heartbeats: true})
		switch event.CodeOf(err) {
		case event.Unavailable:
			_ = d.Nak(100 * time.Millisecond)
			continue
		}
		_ = d.Ack()
		if err == nil {
			w.work(ctx, cmd)
		}
	}
}

// work runs a command and whatever is handed over after it.
func (w *crew) work(ctx context.Context, first *event.Command) {
	for todo := []*event.Command{first}; len(todo) > 0; {
		cmd := todo[0]
		todo = todo[1:]
		n, _ := w.runs.LoadOrStore(cmd.Meta.CommandID, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if w.drop != nil && w.drop(cmd) {
			continue
		}
		rep := success(w.r.ids.Next(), w.id, w.eager, cmd)
		if w.says != nil {
			if in := w.says(cmd); in != nil {
				in.EventID, in.Step, in.Meta = rep.Events[0].EventID, cmd.NodeName, rep.Events[0].Meta
				rep.Events[0] = *in
			}
		}
		answer, err := w.report(ctx, rep)
		if err != nil {
			if ctx.Err() == nil {
				w.r.t.Errorf("worker %s: report %s: %v", w.id, cmd.Meta.CommandID, err)
			}
			return
		}
		todo = append(todo, answer.Commands...)
	}
}

// report repeats a report until it is answered.
func (w *crew) report(ctx context.Context, rep event.Report) (event.ReportAnswer, error) {
	for {
		answer, err := w.plane().Report(ctx, rep)
		if event.CodeOf(err) != event.Unavailable || err == nil || ctx.Err() != nil {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// success is the report of a command that ended well.
func success(id event.ID, worker string, eager int, cmd *event.Command) event.Report {
	return event.Report{ExecutionID: cmd.ExecutionID, WorkerID: worker, Eager: eager, Events: []event.Incoming{completed(id, cmd)}}
}

func completed(id event.ID, cmd *event.Command) event.Incoming {
	return event.Incoming{
		EventID: id, Step: cmd.NodeName, Type: event.CommandCompleted,
		Payload: json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","data":{"attempt":%d}}`, cmd.Meta.CommandID, cmd.Meta.Attempt)),
		Meta:    json.RawMessage(fmt.Sprintf(`{"command_id":%q,"attempt":%d}`, cmd.Meta.CommandID, cmd.Meta.Attempt)),
	}
}

// desk is a scripted local worker. With a plane it runs what it is given on
// goroutines of its own; without, it only collects.
type desk struct {
	r     *rig
	slots chan struct{}
	got   chan *event.Command
}

func newDesk(r *rig, slots int) *desk {
	return &desk{r: r, slots: make(chan struct{}, slots), got: make(chan *event.Command, 1024)}
}

func (d *desk) ID() string               { return "local" }
func (d *desk) Serves(pool string) bool  { return pool == "shared" }
func (d *desk) Unreserve()               { <-d.slots }
func (d *desk) Deliver(c *event.Command) { d.got <- c }

func (d *desk) Reserve() bool {
	select {
	case d.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// serve runs delivered commands on hands goroutines until the test ends.
func (d *desk) serve(p *running, hands int) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &crew{r: d.r, id: d.ID(), eager: 1, planes: []*control.Plane{p.Plane}}
	var wg sync.WaitGroup
	for range hands {
		wg.Go(func() {
			for {
				select {
				case c := <-d.got:
					w.work(ctx, c)
					d.Unreserve()
				case <-ctx.Done():
					return
				}
			}
		})
	}
	d.r.t.Cleanup(func() { cancel(); wg.Wait() })
}

func wantCode(t *testing.T, err error, code event.Code, reason string) {
	t.Helper()
	e, ok := errors.AsType[*event.Error](err)
	if !ok || e.Code != code || reason != "" && e.Reason != reason {
		t.Fatalf("error is %v, want %s %s", err, code, reason)
	}
}

const linear = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: linear, path: test/linear, labels: {team: a}}
workload: {n: 1}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: b}]}
  - step: b
    tool: {kind: noop}
    next: {arcs: [{step: c}]}
  - step: c
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
`

const fanout = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fanout, path: test/fanout}
workflow:
  - step: start
    loop: {in: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], iterator: item, spec: {mode: parallel}}
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
`

const single = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: single, path: test/single}
workflow:
  - step: start
    tool: {kind: noop}
`
