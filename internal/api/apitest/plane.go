// Package apitest is a control plane made of maps, for tests of everything that
// talks HTTP: the API itself, the client, the command line. It decides nothing:
// logs grow only by what a test appends or a client reports.
package apitest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Epoch is the time of everything a Plane makes.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Plane satisfies api.Plane. The On functions replace a method's behaviour;
// set them before the plane is used. The zero value works. What is not faked
// comes from the embedded plane and panics without one.
type Plane struct {
	api.Plane

	OnRegister  func(control.RegisterRequest) (control.Registration, error)
	OnExecute   func(control.ExecuteRequest) (control.ExecuteAnswer, error)
	OnClaim     func(context.Context, event.ClaimRequest) (*event.Command, error)
	OnCommand   func(execution, id event.ID) (*event.Command, error)
	OnReport    func(event.Report) (event.ReportAnswer, error)
	OnSignal    func(event.ID, control.SignalRequest) (control.SignalAnswer, error)
	OnWaits     func(event.ID) ([]event.SignalWait, error)
	OnHeartbeat func([]event.Heartbeat) ([]event.HeartbeatAnswer, error)
	OnRelease   func(event.Heartbeat) error
	OnRerun     func(event.ID, control.RerunRequest) (control.ExecuteAnswer, error)
	OnCancel    func(event.ID, control.CancelRequest) (control.CancelAnswer, error)
	OnFinalize  func(event.ID, control.FinalizeRequest) (control.FinalizeAnswer, error)
	OnCleanup   func(control.CleanupRequest) (control.CleanupAnswer, error)
	OnList      func(store.ExecutionFilter) ([]store.Execution, error)
	OnPutResult func(execution event.ID, name string, data json.RawMessage) (event.StoredResult, error)
	OnExplain   func(id event.ID, step string) ([]event.Explanation, error)
	OnHealth    func() control.Health

	mu       sync.Mutex // guards everything below
	ids      event.ID
	entries  []store.Entry
	rows     map[event.ID]store.Execution
	logs     map[event.ID][]event.Event
	steps    map[event.ID][]engine.StepOutcome
	workload map[event.ID]json.RawMessage
	watchers map[event.ID][]chan struct{}
	results  map[string]json.RawMessage
}

// Put stores a row, its workload and the outcome of its steps.
func (p *Plane) Put(row store.Execution, workload string, steps ...engine.StepOutcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		p.rows = map[event.ID]store.Execution{}
		p.logs = map[event.ID][]event.Event{}
		p.steps = map[event.ID][]engine.StepOutcome{}
		p.workload = map[event.ID]json.RawMessage{}
	}
	p.rows[row.ExecutionID] = row
	p.steps[row.ExecutionID] = steps
	p.workload[row.ExecutionID] = json.RawMessage(workload)
}

// Append adds events to a log under the next sequence numbers, ends the row
// when one of them is terminal, and wakes watchers. It returns the last number.
func (p *Plane) Append(id event.ID, events ...event.Event) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	row := p.rows[id]
	for _, e := range events {
		row.LastSeq++
		e.ExecutionID, e.Seq = id, row.LastSeq
		if e.EventID == 0 {
			p.ids++
			e.EventID = 1000 + p.ids
		}
		if e.CreatedAt.IsZero() {
			e.CreatedAt = Epoch.Add(time.Duration(row.LastSeq) * time.Second)
		}
		switch e.Type.Canonical() {
		case event.PlaybookCompleted:
			row.Status, row.EndedAt = event.StatusCompleted, e.CreatedAt
		case event.PlaybookFailed:
			row.Status, row.EndedAt = event.StatusFailed, e.CreatedAt
		case event.PlaybookCancelled:
			row.Status, row.EndedAt = event.StatusCancelled, e.CreatedAt
		}
		row.LastEventType = e.Type
		p.logs[id] = append(p.logs[id], e)
	}
	p.rows[id] = row
	for _, ch := range p.watchers[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
	return row.LastSeq
}

// Watching tells how many watches of an execution are open.
func (p *Plane) Watching(id event.ID) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watchers[id])
}

func missing(format string, args ...any) error {
	return event.Errorf(event.NotFound, format, args...)
}

// Register stores content under the text behind its first "path:".
func (p *Plane) Register(_ context.Context, r control.RegisterRequest) (control.Registration, error) {
	if p.OnRegister != nil {
		return p.OnRegister(r)
	}
	_, path, ok := strings.Cut(r.Content, "path:")
	if !ok {
		return control.Registration{}, event.Errorf(event.Invalid, "metadata.path is missing")
	}
	path, _, _ = strings.Cut(path, "\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	e := store.Entry{Path: strings.TrimSpace(path), Version: 1, Kind: "playbook", Content: r.Content, Payload: []byte(`{}`), CreatedAt: Epoch}
	for _, old := range p.entries {
		if old.Path == e.Path {
			e.Version = old.Version + 1
		}
	}
	p.ids++
	e.CatalogID = p.ids
	p.entries = append(p.entries, e)
	return control.Registration{Entry: e}, nil
}

// Entry finds an entry.
func (p *Plane) Entry(_ context.Context, ref control.EntryRef) (store.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Backward(p.entries) {
		if e.CatalogID == ref.CatalogID || e.Path == ref.Path && (ref.Version == 0 || ref.Version == e.Version) {
			return e, nil
		}
	}
	return store.Entry{}, missing("not found")
}

// Entries lists entries, newest first.
func (p *Plane) Entries(_ context.Context, f store.EntryFilter) ([]store.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []store.Entry
	for _, e := range slices.Backward(p.entries) {
		if f.Kind == "" || f.Kind == e.Kind {
			list = append(list, e)
		}
	}
	return list, nil
}

// Execute puts a running execution with its start event.
func (p *Plane) Execute(ctx context.Context, r control.ExecuteRequest) (control.ExecuteAnswer, error) {
	if p.OnExecute != nil {
		return p.OnExecute(r)
	}
	e, err := p.Entry(ctx, control.EntryRef{CatalogID: r.CatalogID, Path: r.Path, Version: r.Version})
	if err != nil {
		return control.ExecuteAnswer{}, missing("Playbook not found: %s", r.Path)
	}
	p.mu.Lock()
	p.ids++
	id := 100 + p.ids
	p.mu.Unlock()
	p.Put(store.Execution{
		ExecutionID: id, CatalogID: e.CatalogID, Path: e.Path, Version: e.Version, Status: event.StatusRunning, StartedAt: Epoch,
	}, string(r.Payload))
	p.Append(id, event.Event{Type: event.PlaybookStarted, NodeName: e.Path, Status: event.StatusStarted})
	return control.ExecuteAnswer{ExecutionID: id, Status: "started", CommandsGenerated: 1}, nil
}

// Health is that of OnHealth, or all well.
func (p *Plane) Health(context.Context) control.Health {
	if p.OnHealth != nil {
		return p.OnHealth()
	}
	return control.Health{Database: true, NATS: true, Uptime: 90 * time.Second}
}

// Explain implements api.Executions.
func (p *Plane) Explain(_ context.Context, id event.ID, step string) ([]event.Explanation, error) {
	if p.OnExplain == nil {
		return nil, nil
	}
	return p.OnExplain(id, step)
}
