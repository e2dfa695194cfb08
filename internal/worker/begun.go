package worker

import "github.com/noetl/noetl-go/internal/event"

// begunKept bounds how many tries of commands are remembered; more than can be
// on their way at any moment.
const begunKept = 4096

// try is one attempt at a command. No two runs may have the same.
type try struct {
	command event.ID
	attempt int
}

// begun remembers the tries a worker has begun with.
type begun struct {
	known map[try]struct{}
	ring  []try // oldest at next
	next  int
}

// add tells whether t is new.
func (b *begun) add(t try) bool {
	if _, known := b.known[t]; known {
		return false
	}
	if b.known == nil {
		b.known = make(map[try]struct{}, begunKept)
	}
	if len(b.ring) < begunKept {
		b.ring = append(b.ring, t)
	} else {
		delete(b.known, b.ring[b.next])
		b.ring[b.next] = t
		b.next = (b.next + 1) % begunKept
	}
	b.known[t] = struct{}{}
	return true
}
