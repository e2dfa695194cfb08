package pipeline

import (
	"container/list"
	"sync"
)

// cacheBytes bounds the keys a cache holds on to, beside their number: tool
// configurations carry whole programs. What is compiled from a key is of the
// same order of size.
const cacheBytes = 64 << 20

// cache keeps the most recently used values by the bytes they were made from.
type cache[V any] struct {
	limit int

	mu      sync.Mutex // guards all below
	bytes   int
	entries map[string]*list.Element
	recent  *list.List // of *cached[V], latest first
}

type cached[V any] struct {
	key   string
	value V
}

func newCache[V any](limit int) *cache[V] {
	return &cache[V]{limit: limit, entries: map[string]*list.Element{}, recent: list.New()}
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

// put stores a value; of two that were made at once the later one stays.
func (c *cache[V]) put(key []byte, v V) {
	if len(key) > cacheBytes/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[string(key)]; ok {
		e.Value.(*cached[V]).value = v
		return
	}
	k := string(key)
	c.entries[k] = c.recent.PushFront(&cached[V]{k, v})
	c.bytes += len(k)
	for c.recent.Len() > c.limit || c.bytes > cacheBytes {
		oldest := c.recent.Back()
		k := c.recent.Remove(oldest).(*cached[V]).key
		delete(c.entries, k)
		c.bytes -= len(k)
	}
}
