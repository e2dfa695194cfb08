package engine

import "encoding/json"

// slots holds what is known of each iteration of a loop. Memory is taken page
// by page as iterations are issued, so that a large loop costs what it has
// produced and not what it may produce.
type slots struct{ pages []*page }

const pageSize = 1024

type page [pageSize]slot

// slot is one iteration.
type slot struct {
	mark   mark
	result json.RawMessage
}

func newSlots(n int) slots { return slots{pages: make([]*page, (n+pageSize-1)/pageSize)} }

func (t slots) get(i int) slot {
	if p := t.pages[i/pageSize]; p != nil {
		return p[i%pageSize]
	}
	return slot{}
}

// setSlot changes what is known of an iteration.
func (s *State) setSlot(t slots, i int, v slot) {
	p := &t.pages[i/pageSize]
	if *p == nil {
		*p = new(page) // an empty page means the same as none
	}
	at(s, (*p)[:], i%pageSize, v)
}
