package node

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/tool"
)

// Observation is what a server shows of itself.
type Observation struct {
	DisableMetrics bool
	// ShardIndex and ShardCount are told to clients that ask; without a count it
	// is the number of databases.
	ShardIndex, ShardCount int
}

// registration is what a worker says of itself in the registry.
func registration(pools []string, name string, slots int, tools tool.Set, version string) event.Registration {
	host, _ := os.Hostname()
	return event.Registration{
		Status:       "ready",
		Capacity:     slots,
		Labels:       asJSON(map[string]any{"pool_name": cmp.Or(name, pools[0]), "pools": pools}),
		Capabilities: asJSON(slices.Sorted(maps.Keys(tools))),
		Runtime:      asJSON(map[string]any{"kind": "go", "version": version, "hostname": host, "pid": os.Getpid(), "boot_id": bootID()}),
	}
}

func asJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil { // only words, lists of words and numbers are given
		panic("encode registration: " + err.Error())
	}
	return raw
}

// observe shows what only the whole process knows of.
func (n *Node) observe(o Options) {
	if db, ok := n.Store.(interface{ HoldsMachine() bool }); ok {
		n.metrics.OnScrape(func() {
			held := 0.0
			if db.HoldsMachine() {
				held = 1
			}
			n.metrics.LeaseHeld.Set(held, obs.TaskMachine)
		})
	}
	if o.DataDir == "" {
		return
	}
	n.metrics.OnScrape(func() {
		if free, size, err := obs.Disk(o.DataDir); err == nil {
			n.metrics.DiskFree.Set(float64(free))
			n.metrics.DiskSize.Set(float64(size))
		}
	})
}

// meteredTier counts what is done to values outside of the database.
type meteredTier struct {
	result.Tier
	ops *obs.System
}

func (m meteredTier) count(op string, err error) error {
	how := obs.OK
	if err != nil {
		how = obs.Error
	}
	m.ops.ObjectOps.Inc(m.Name(), op, how)
	return err
}

// Put implements result.Tier.
func (m meteredTier) Put(ctx context.Context, key string, r io.Reader) error {
	return m.count(obs.ObjectPut, m.Tier.Put(ctx, key, r))
}

// Open implements result.Tier.
func (m meteredTier) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	body, err := m.Tier.Open(ctx, key, offset, length)
	return body, m.count(obs.ObjectOpen, err)
}

// Delete implements result.Tier.
func (m meteredTier) Delete(ctx context.Context, key string) error {
	return m.count(obs.ObjectDelete, m.Tier.Delete(ctx, key))
}
