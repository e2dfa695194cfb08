package cli

import "github.com/noetl/noetl-go/internal/node"

// observationFlags say what a server shows of itself.
type observationFlags struct {
	DisableMetrics bool `help:"Do not show metrics at /metrics." env:"NOETL_DISABLE_METRICS"`
	ShardIndex     int  `help:"Which of several servers this is, for clients that ask." env:"NOETL_SHARD_INDEX" placeholder:"N"`
	ShardCount     int  `help:"How many servers there are; the number of databases when not given." env:"NOETL_SHARD_COUNT" placeholder:"N"`
}

// observationSettings must not be blank.
var observationSettings = []string{"NOETL_DISABLE_METRICS", "NOETL_SHARD_INDEX", "NOETL_SHARD_COUNT"}

// maxShardCount is what clients that share the hash accept.
const maxShardCount = 1024

func (f observationFlags) options() (node.Observation, error) {
	switch {
	case f.ShardCount < 0 || f.ShardCount > maxShardCount:
		return node.Observation{}, invalidf("--shard-count %d (NOETL_SHARD_COUNT): want a number from 1 to %d", f.ShardCount, maxShardCount)
	case f.ShardIndex < 0 || f.ShardIndex >= max(f.ShardCount, 1):
		return node.Observation{}, invalidf("--shard-index %d (NOETL_SHARD_INDEX): want a number below --shard-count %d; give both", f.ShardIndex, max(f.ShardCount, 1))
	}
	return node.Observation{DisableMetrics: f.DisableMetrics, ShardIndex: f.ShardIndex, ShardCount: f.ShardCount}, nil
}
