package control

import (
	"container/list"
	"sync"
)

// lru is a bounded map that forgets what was used longest ago. It is safe for
// concurrent use.
type lru[K comparable, V any] struct {
	mu    sync.Mutex // guards the rest
	limit int
	order *list.List // of *slot[K, V], most recently used first
	slots map[K]*list.Element
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), slots: make(map[K]*list.Element)}
}

// get finds a value and marks it as used.
func (c *lru[K, V]) get(k K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.slots[k]
	if !ok {
		var zero V
		return zero, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*slot[K, V]).value, true
}

// put stores a value as the most recently used one.
func (c *lru[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[k]; ok {
		e.Value.(*slot[K, V]).value = v
		c.order.MoveToFront(e)
		return
	}
	if c.order.Len() >= c.limit {
		oldest := c.order.Back()
		delete(c.slots, oldest.Value.(*slot[K, V]).key)
		c.order.Remove(oldest)
	}
	c.slots[k] = c.order.PushFront(&slot[K, V]{k, v})
}

// drop forgets a key.
func (c *lru[K, V]) drop(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[k]; ok {
		delete(c.slots, k)
		c.order.Remove(e)
	}
}
