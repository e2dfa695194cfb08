package node

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
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
