package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// silence is how long a process may not be heard of before it counts as offline.
	silence = 60 * time.Second
	// forgotten is after how much silence its row is removed, and forgetEvery how
	// often that is looked for.
	forgotten   = 24 * time.Hour
	forgetEvery = time.Hour

	offline = "offline"

	maxRegistration = 64 << 10 // bytes of labels, capabilities and runtime
	maxRuntimeName  = 255
	maxPulse        = 1000 // commands in one pulse
)

var runtimeKinds = []string{event.KindWorkerPool, event.KindServer, event.KindBroker}

// Enlist stores what a process says of itself under its kind and name, and
// returns it as stored.
func (p *Plane) Enlist(ctx context.Context, r event.Registration) (event.Registered, error) {
	if r.Kind == "" {
		r.Kind = event.KindWorkerPool
	}
	if r.Status == "" {
		r.Status = "active"
	}
	if err := checkRegistration(&r); err != nil {
		return event.Registered{}, err
	}
	if err := p.checkKey(ctx, &r); err != nil {
		return event.Registered{}, err
	}
	if err := p.succeed(ctx, &r); err != nil {
		return event.Registered{}, err
	}
	now := p.now()
	row, err := p.store.PutRuntime(ctx, store.Runtime{
		RuntimeID: p.o.IDs(), Name: r.Name, Kind: r.Kind, URI: r.URI, Status: r.Status, Labels: r.Labels,
		Capabilities: r.Capabilities, Runtime: r.Runtime, Capacity: r.Capacity, Heartbeat: now, CreatedAt: now, UpdatedAt: now,
	})
	if err != nil {
		return event.Registered{}, storeError("store registration", err)
	}
	p.forget(ctx, now)
	return registered(row, now), nil
}

// succeed ends the leases of a worker's predecessor: another process that had
// its name and did not leave in good order. What that one ran nobody runs now,
// so it need not wait until the leases have run out. A worker that registers
// after it has begun to work says that it resumes; its leases are its own.
func (p *Plane) succeed(ctx context.Context, r *event.Registration) error {
	boot, resumed := bootOf(r.Runtime)
	if r.Kind != event.KindWorkerPool || boot == "" || resumed {
		return nil
	}
	row, err := p.store.Runtime(ctx, r.Kind, r.Name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return storeError("find registration", err)
	}
	if former, _ := bootOf(row.Runtime); former == "" || former == boot {
		return nil
	}
	// A lease that ended just before now is found by whoever looks from now on.
	n, err := p.store.RenewWorker(ctx, r.Name, time.Unix(0, 0), p.now().Add(-time.Millisecond))
	if err != nil {
		return storeError("end leases of the former worker", err)
	}
	if n > 0 {
		p.log.Info("a worker was restarted; what it ran is given to others", "worker", r.Name, "commands", n)
	}
	return nil
}

// bootOf tells one run of a worker from the next: by the id it gives itself, or
// by its key, which is made anew each time.
func bootOf(runtime []byte) (id string, resumed bool) {
	var said struct {
		Boot    string `json:"boot_id"`
		Key     string `json:"worker_public_key"`
		Resumed bool   `json:"resumed"`
	}
	if len(runtime) == 0 || json.Unmarshal(runtime, &said) != nil {
		return "", false
	}
	return cmp.Or(said.Boot, said.Key), said.Resumed
}

func checkRegistration(r *event.Registration) error {
	switch {
	case r.Name == "":
		return event.Errorf(event.Invalid, "name: a process needs a name to be known by")
	case len(r.Name) > maxRuntimeName || strings.ContainsRune(r.Name, 0):
		return event.Errorf(event.Invalid, "name: at most %d bytes of text, without a zero byte, are accepted", maxRuntimeName)
	case !slices.Contains(runtimeKinds, r.Kind):
		return event.Errorf(event.Invalid, "kind: want %s, got %q", strings.Join(runtimeKinds, ", "), r.Kind)
	case r.Capacity < 0:
		return event.Errorf(event.Invalid, "capacity: want a number of slots, got %d", r.Capacity)
	}
	if n := len(r.Labels) + len(r.Capabilities) + len(r.Runtime) + len(r.URI) + len(r.Status); n > maxRegistration {
		return &event.Error{
			Code: event.Limit, Message: fmt.Sprintf("the registration has %d bytes, at most %d are accepted", n, maxRegistration),
			Remedy: "keep labels and capabilities short",
		}
	}
	for name, raw := range map[string]json.RawMessage{"labels": r.Labels, "capabilities": r.Capabilities, "runtime": r.Runtime} {
		if len(raw) > 0 && !json.Valid(raw) {
			return event.Errorf(event.Invalid, "%s: want JSON", name)
		}
	}
	return nil
}

// Beat notes that a process is alive, renews the leases of its commands, and
// says which of them to stop. One that is unknown becomes known, as it
// describes itself or by its name alone.
func (p *Plane) Beat(ctx context.Context, b event.Pulse) (event.PulseAnswer, error) {
	if b.Kind == "" {
		b.Kind = event.KindWorkerPool
	}
	if len(b.Commands) > maxPulse {
		return event.PulseAnswer{}, event.Errorf(event.Limit, "%d commands in one heartbeat: at most %d are accepted", len(b.Commands), maxPulse)
	}
	_, err := p.store.BeatRuntime(ctx, b.Kind, b.Name, p.now())
	if errors.Is(err, store.ErrNotFound) {
		r := event.Registration{}
		if b.Registration != nil {
			r = *b.Registration
		}
		r.Name, r.Kind = b.Name, b.Kind
		_, err = p.Enlist(ctx, r)
	}
	if err != nil {
		return event.PulseAnswer{}, storeError("note heartbeat", err)
	}
	p.forget(ctx, p.now())
	if b.Kind != event.KindWorkerPool {
		return event.PulseAnswer{}, nil
	}
	return p.renew(ctx, b)
}

func (p *Plane) renew(ctx context.Context, b event.Pulse) (a event.PulseAnswer, err error) {
	if b.Commands == nil {
		now := p.now()
		if _, err := p.store.RenewWorker(ctx, b.Name, now.Add(-p.o.HardTimeout), now.Add(p.o.PoolLease)); err != nil {
			return a, storeError("renew leases", err)
		}
		return a, nil
	}
	beats := slices.Clone(b.Commands)
	for i := range beats {
		if beats[i].WorkerID == "" {
			beats[i].WorkerID = b.Name
		}
	}
	answers, err := p.Heartbeat(ctx, beats)
	if err != nil {
		return a, err
	}
	for i, answer := range answers {
		if answer.Cancel {
			a.Cancel = append(a.Cancel, beats[i].EventID)
		}
	}
	return a, nil
}

// Leave forgets a process that ends, and tells whether it was known.
func (p *Plane) Leave(ctx context.Context, kind, name string) (bool, error) {
	if kind == "" {
		kind = event.KindWorkerPool
	}
	known, err := p.store.DeleteRuntime(ctx, kind, name)
	if err != nil {
		return false, storeError("remove registration", err)
	}
	return known, nil
}

// RegisteredFilter selects processes; zero fields do not restrict.
type RegisteredFilter struct {
	Kind   string
	Name   string // SQL LIKE pattern
	Status string // as shown, so offline finds the silent ones
}

// Registered lists processes by kind and name.
func (p *Plane) Registered(ctx context.Context, f RegisteredFilter) ([]event.Registered, error) {
	rows, err := p.store.ListRuntimes(ctx, store.RuntimeFilter{Kind: f.Kind, Name: f.Name})
	if err != nil {
		return nil, storeError("list registrations", err)
	}
	now, list := p.now(), make([]event.Registered, 0, len(rows))
	for _, row := range rows {
		if r := registered(row, now); f.Status == "" || strings.EqualFold(f.Status, r.Status) {
			list = append(list, r)
		}
	}
	return list, nil
}

// registered is a row as it is shown: silence speaks louder than what the
// process last said of itself.
func registered(row store.Runtime, now time.Time) event.Registered {
	r := event.Registered{
		RuntimeID: row.RuntimeID, Name: row.Name, Kind: row.Kind, Status: row.Status, Labels: orNull(row.Labels),
		Capabilities: orNull(row.Capabilities), Runtime: orNull(row.Runtime),
		Heartbeat: row.Heartbeat.UTC(), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.URI != "" {
		r.URI = &row.URI
	}
	if row.Capacity > 0 {
		r.Capacity = &row.Capacity
	}
	if now.Sub(row.Heartbeat) > silence {
		r.Status = offline
	}
	return r
}

func orNull(raw []byte) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// forget removes processes that have been silent for long. It comes along with
// the heartbeats of others, now and then; failing is no reason to refuse those.
func (p *Plane) forget(ctx context.Context, now time.Time) {
	last := p.forgot.Load()
	if now.UnixNano()-last < int64(forgetEvery) || !p.forgot.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	n, err := p.store.PurgeRuntimes(ctx, now.Add(-forgotten))
	switch {
	case err != nil:
		p.log.Warn("registrations of silent processes are not removed", "error", err)
	case n > 0:
		p.log.Info("registrations of silent processes removed", "count", n)
	}
}
