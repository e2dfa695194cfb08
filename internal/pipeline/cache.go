package pipeline

import (
	"container/list"
	"sync"
)

// cacheBytes bounds what a cache holds on to, beside the number of entries:
// tool configurations carry whole programs. What is compiled from a key is of
// the same order of size as the key.
const cacheBytes = 64 << 20

// cache keeps the most recently used values by the bytes they were made from.
type cache[V any] struct {
	limit int
	weigh func(V) int // bytes of a value that count beside its key; may be nil

	mu      sync.Mutex // guards all below
	bytes   int
	entries map[string]*list.Element
	recent  *list.List // of *cached[V], latest first
}

type cached[V any] struct {
	key   string
	value V
	bytes int
}

func newCache[V any](limit int, weigh func(V) int) *cache[V] {
	return &cache[V]{limit: limit, weigh: weigh, entries: map[string]*list.Element{}, recent: list.New()}
}

func (c *cache[V]) get(key []byte) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[string(key)] // the compiler spares the copy
	if !ok {
		return v, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

// put stores a value; of two that were made at once the earlier one stays,
// they are the same.
func (c *cache[V]) put(key []byte, v V) {
	bytes := len(key)
	if c.weigh != nil {
		bytes += c.weigh(v)
	}
	if bytes > cacheBytes/2 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[string(key)]; ok {
		return
	}
	k := string(key)
	c.entries[k] = c.recent.PushFront(&cached[V]{k, v, bytes})
	c.bytes += bytes
	for c.recent.Len() > c.limit || c.bytes > cacheBytes {
		oldest := c.recent.Remove(c.recent.Back()).(*cached[V])
		delete(c.entries, oldest.key)
		c.bytes -= oldest.bytes
	}
}
