package jinja

import (
	"iter"
	"slices"
)

// Dict is a map from strings to values that keeps the order of insertion. The
// zero Dict is empty and ready for use; a nil *Dict may be read. It may be read
// by many goroutines at once as long as none writes.
type Dict struct {
	entries []entry
	// index maps keys to places in entries once there are more than
	// indexFrom of them; below that, a scan is faster and smaller.
	index map[string]int
}

type entry struct {
	key string
	val any
}

const indexFrom = 8

// NewDict returns an empty Dict with room for n entries.
func NewDict(n int) *Dict {
	return &Dict{entries: make([]entry, 0, n)}
}

// Len returns the number of entries.
func (d *Dict) Len() int {
	if d == nil {
		return 0
	}
	return len(d.entries)
}

// Get returns the value of a key and whether it is present.
func (d *Dict) Get(k string) (any, bool) {
	if i := d.find(k); i >= 0 {
		return d.entries[i].val, true
	}
	return nil, false
}

// Lookup is Get; with it a Dict is a Scope.
func (d *Dict) Lookup(name string) (any, bool) { return d.Get(name) }

// find returns the place of a key, or -1.
func (d *Dict) find(k string) int {
	if d == nil {
		return -1
	}
	if d.index != nil {
		if i, ok := d.index[k]; ok {
			return i
		}
		return -1
	}
	for i := range d.entries {
		if d.entries[i].key == k {
			return i
		}
	}
	return -1
}

// Set gives a key a value. A new key goes to the end, an old one keeps its place.
func (d *Dict) Set(k string, v any) {
	if i := d.find(k); i >= 0 {
		d.entries[i].val = v
		return
	}
	d.entries = append(d.entries, entry{k, v})
	switch {
	case d.index != nil:
		d.index[k] = len(d.entries) - 1
	case len(d.entries) > indexFrom:
		d.reindex()
	}
}

// Delete removes a key, if it is there. The others keep their order.
func (d *Dict) Delete(k string) {
	i := d.find(k)
	if i < 0 {
		return
	}
	d.entries = slices.Delete(d.entries, i, i+1)
	d.reindex()
}

// reindex is called by writers only, so that reading never writes.
func (d *Dict) reindex() {
	d.index = nil
	if len(d.entries) <= indexFrom {
		return
	}
	d.index = make(map[string]int, 2*len(d.entries))
	for i := range d.entries {
		d.index[d.entries[i].key] = i
	}
}

// Keys returns the keys in order; the slice is the caller's.
func (d *Dict) Keys() []string {
	keys := make([]string, d.Len())
	for i := range keys {
		keys[i] = d.entries[i].key
	}
	return keys
}

// All iterates over the entries in order.
func (d *Dict) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := 0; i < d.Len(); i++ {
			if e := d.entries[i]; !yield(e.key, e.val) {
				return
			}
		}
	}
}

// Clone returns a shallow copy.
func (d *Dict) Clone() *Dict {
	c := NewDict(d.Len())
	if d != nil {
		c.entries = append(c.entries, d.entries...)
		c.reindex()
	}
	return c
}

// MarshalJSON writes the entries in order.
func (d *Dict) MarshalJSON() ([]byte, error) {
	if d == nil {
		return []byte("null"), nil
	}
	return ToJSON(d)
}

// UnmarshalJSON replaces the entries by those of a JSON object, in its order.
func (d *Dict) UnmarshalJSON(b []byte) error {
	v, err := FromJSON(b)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		*d = Dict{}
	case *Dict:
		*d = *v
	default:
		return typeError("expected a JSON object, got %s", typeName(v))
	}
	return nil
}
