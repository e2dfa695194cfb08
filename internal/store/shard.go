package store

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/noetl/noetl-go/internal/event"
)

// ShardIndex is the shard of an execution among n. Every program that shares
// the databases computes it the same way, so it can never change.
func ShardIndex(id event.ID, n int) int {
	if n <= 1 {
		return 0
	}
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], uint64(id))
	return int(xxhash.Sum64(key[:]) % uint64(n))
}
