package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// bed is a control plane with its API in virtual time, on parts that fail when
// they are told to.
type bed struct {
	*meters
	*control.Plane
	t       *testing.T
	store   *tampered
	bus     *moody
	tier    *shelf
	ids     *snowflake.Generator
	metrics *obs.Metrics
	api     http.Handler
	idle    bool // nothing runs in the background
	late    atomic.Int64
}

// virtual runs a scenario in a bubble.
func virtual(f func(t *testing.T, m *meters)) func(*testing.T, *meters) {
	return func(t *testing.T, m *meters) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			m.t = t
			f(t, m)
			m.look()
			m.read = nil // what is in the bubble stays there
		})
	}
}

// onBed runs a scenario on a bed in virtual time.
func onBed(f func(b *bed), change ...func(*bed, *control.Options)) func(*testing.T, *meters) {
	return virtual(func(t *testing.T, m *meters) { f(newBed(t, m, change)) })
}

// atDesk runs a scenario on a bed where nothing happens by itself, and where
// time passes when it is told to.
func atDesk(f func(b *bed, pass func(time.Duration))) func(*testing.T, *meters) {
	return func(t *testing.T, m *meters) {
		now := time.Now()
		f(newBed(t, m, []func(*bed, *control.Options){func(b *bed, o *control.Options) {
			b.idle, o.Clock = true, func() time.Time { return now }
		}}), func(d time.Duration) { now = now.Add(d) })
	}
}

func newBed(t *testing.T, m *meters, change []func(*bed, *control.Options)) *bed {
	t.Helper()
	b := &bed{meters: m, t: t, store: &tampered{Store: memstore.New()}, tier: &shelf{}, ids: snowflake.New(1, nil), metrics: control.NewMetrics("test")}
	b.bus = &moody{Bus: membus.New(membus.Options{RefuseEvent: func(bus.EventMessage) error {
		if err := b.bus.events.Load(); err != nil {
			return *err
		}
		return nil
	}})}
	if err := b.bus.OpenEvents(t.Context(), bus.EventOptions{MaxAge: time.Hour, Duplicates: time.Minute}); err != nil {
		t.Fatal(err)
	}
	o := control.Options{
		Store: b.store, Bus: b.bus, IDs: b.ids.Next, ServerURL: "http://plane", Metrics: b.metrics,
		Results: control.ResultOptions{Tiers: []result.Tier{b.tier}, MaxBytes: 1 << 20},
	}
	for _, c := range change {
		c(b, &o)
	}
	b.Plane = b.plane(o)
	s, err := api.New(api.Options{Plane: b.Plane, Metrics: b.metrics})
	if err != nil {
		t.Fatal(err)
	}
	b.api = s.Handler()
	m.handler(b.api)
	b.store.held = func() { m.look() }
	return b
}

// plane runs one until the scenario ends.
func (b *bed) plane(o control.Options) *control.Plane {
	b.t.Helper()
	p, err := control.New(o)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.idle {
		return p
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("run: %v", err)
		}
		_ = b.bus.Close()
	})
	synctest.Wait()
	return p
}

const bedPlaybook = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: one, path: bed/one}\nworkflow:\n  - {step: start, tool: {kind: noop}}\n"

// begin starts an execution of one command.
func (b *bed) begin(r control.ExecuteRequest) event.ID {
	b.t.Helper()
	if _, err := b.Register(b.t.Context(), control.RegisterRequest{Content: bedPlaybook}); err != nil {
		b.t.Fatal(err)
	}
	r.Path = "bed/one"
	a, err := b.Execute(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	return a.ExecutionID
}

// take claims the command of an execution for the worker w.
func (b *bed) take(id event.ID) *event.Command {
	b.t.Helper()
	rows, err := b.store.CommandsOf(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd, err := b.Claim(b.t.Context(), event.ClaimRequest{EventID: rows[0].EventID, ExecutionID: id, WorkerID: "w", Heartbeats: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return cmd
}

// tell reports about a command.
func (b *bed) tell(cmd *event.Command, kind event.Type, more string) error {
	b.t.Helper()
	_, err := b.Report(b.t.Context(), event.Report{ExecutionID: cmd.ExecutionID, WorkerID: "w", Events: []event.Incoming{{
		EventID: b.ids.Next(), Step: cmd.NodeName, Type: kind,
		Payload: json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success"%s}`, cmd.Meta.CommandID, more)),
		Meta:    json.RawMessage(fmt.Sprintf(`{"command_id":%q,"attempt":%d}`, cmd.Meta.CommandID, cmd.Meta.Attempt)),
	}}})
	return err
}

// finish runs an execution to its end.
func (b *bed) finish(r control.ExecuteRequest) event.ID {
	b.t.Helper()
	id := b.begin(r)
	if err := b.tell(b.take(id), event.CommandCompleted, ""); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// without has operations of the store fail while f runs.
func (b *bed) without(f func(), ops ...string) {
	b.store.Inject(memstore.Faults{Hook: func(op string) memstore.Fault {
		for _, o := range ops {
			if o == op {
				return memstore.Refuse
			}
		}
		return memstore.None
	}})
	f()
	b.store.Inject(memstore.Faults{})
}

// ask makes a request of the API.
func (b *bed) ask(method, path, body string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	b.api.ServeHTTP(w, r)
	return w.Code
}

// tampered is a store whose rows somebody changed behind its back.
type tampered struct {
	*memstore.Store
	lies bool
	part bool // the log has a part that can be dropped
	held func()
}

func (s *tampered) LogState(ctx context.Context) (store.LogState, error) {
	state, err := s.Store.LogState(ctx)
	if s.part {
		state.Parts = []store.LogPart{{Name: "p", From: 1, To: 2}}
	}
	return state, err
}

func (s *tampered) RemoveRange(ctx context.Context, r store.RangeRemoval) (map[string]int, bool, error) {
	rows, _, err := s.Store.RemoveRange(ctx, r)
	return rows, s.part, err
}

// RemoveExecutions lets somebody look while executions are removed.
func (s *tampered) RemoveExecutions(ctx context.Context, list []store.Removal, o store.RemovalOptions) (store.RemovalReport, error) {
	if s.held != nil {
		s.held()
	}
	return s.Store.RemoveExecutions(ctx, list, o)
}

func (s *tampered) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	x, err := s.Store.Execution(ctx, id)
	if s.lies {
		x.Status = event.StatusCancelled
	}
	return x, err
}

func (s *tampered) CommandsOf(ctx context.Context, id event.ID) ([]store.Command, error) {
	list, err := s.Store.CommandsOf(ctx, id)
	for i := range list {
		if s.lies {
			list[i].Status = event.StatusCancelled
		}
	}
	return list, err
}

// moody is a bus that refuses what it is told to.
type moody struct {
	*membus.Bus
	commands atomic.Bool
	events   atomic.Pointer[error]
}

func (m *moody) Publish(ctx context.Context, notes ...event.Notification) error {
	if m.commands.Load() {
		return event.Errorf(event.Unavailable, "no commands today")
	}
	return m.Bus.Publish(ctx, notes...)
}

// shelf keeps values in memory, and may not give them up.
type shelf struct {
	stuck atomic.Bool
}

func (*shelf) Name() string { return "file" }

func (s *shelf) Put(_ context.Context, _ string, r io.Reader) error {
	if s.stuck.Load() {
		return event.Errorf(event.Unavailable, "the shelf is full")
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

func (*shelf) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("{}")), nil
}

func (s *shelf) Delete(context.Context, string) error {
	if s.stuck.Load() {
		return event.Errorf(event.Unavailable, "the shelf is stuck")
	}
	return nil
}
