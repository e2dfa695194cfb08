package auth

import (
	"container/list"
	"sync"
)

// lru keeps the values that were touched last, a bounded number of them.
type lru[V any] struct {
	mu    sync.Mutex // guards all below
	most  int
	order *list.List // of *kept[V], the latest first
	at    map[string]*list.Element
}

type kept[V any] struct {
	key   string
	value V
}

func newLRU[V any](most int) *lru[V] {
	return &lru[V]{most: most, order: list.New(), at: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.at[key]
	if !ok {
		var none V
		return none, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*kept[V]).value, true
}

func (l *lru[V]) put(key string, v V) {
	l.update(key, func(V) V { return v })
}

// update replaces a value by what change makes of it; of a new one it makes it
// from the zero value.
func (l *lru[V]) update(key string, change func(V) V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.at[key]; ok {
		l.order.MoveToFront(e)
		k := e.Value.(*kept[V])
		k.value = change(k.value)
		return
	}
	var none V
	l.at[key] = l.order.PushFront(&kept[V]{key, change(none)})
	for l.order.Len() > l.most {
		last := l.order.Back()
		delete(l.at, l.order.Remove(last).(*kept[V]).key)
	}
}

func (l *lru[V]) drop(match func(key string, v V) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, e := range l.at {
		if match(key, e.Value.(*kept[V]).value) {
			l.order.Remove(e)
			delete(l.at, key)
		}
	}
}

func (l *lru[V]) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}
