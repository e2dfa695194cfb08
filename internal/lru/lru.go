// Package lru is a bounded map that forgets what was used longest ago. It must
// not know what is kept in it.
package lru

import (
	"container/list"
	"sync"
)

// Cache keeps a bounded number of values. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	mu    sync.Mutex // guards the rest
	limit int
	order *list.List // of *slot[K, V], most recently used first
	slots map[K]*list.Element
}

type slot[K comparable, V any] struct {
	key   K
	value V
}

// New makes a cache of at most limit values.
func New[K comparable, V any](limit int) *Cache[K, V] {
	return &Cache[K, V]{limit: limit, order: list.New(), slots: make(map[K]*list.Element)}
}

// Get finds a value and marks it as used.
func (c *Cache[K, V]) Get(k K) (V, bool) {
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

// Put stores a value as the most recently used one.
func (c *Cache[K, V]) Put(k K, v V) {
	c.Update(k, func(V) V { return v })
}

// Update replaces a value by what change makes of it; a new one is made from the
// zero value.
func (c *Cache[K, V]) Update(k K, change func(V) V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[k]; ok {
		s := e.Value.(*slot[K, V])
		s.value = change(s.value)
		c.order.MoveToFront(e)
		return
	}
	var zero V
	v := change(zero)
	if c.order.Len() >= c.limit {
		oldest := c.order.Back()
		delete(c.slots, oldest.Value.(*slot[K, V]).key)
		c.order.Remove(oldest)
	}
	c.slots[k] = c.order.PushFront(&slot[K, V]{k, v})
}

// Drop forgets a key.
func (c *Cache[K, V]) Drop(k K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.slots[k]; ok {
		delete(c.slots, k)
		c.order.Remove(e)
	}
}

// DropFunc forgets all that match.
func (c *Cache[K, V]) DropFunc(match func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, e := range c.slots {
		if match(k, e.Value.(*slot[K, V]).value) {
			delete(c.slots, k)
			c.order.Remove(e)
		}
	}
}

// Len is how many values there are.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.slots)
}
