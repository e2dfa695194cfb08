package obs

import (
	"cmp"
	"slices"
	"sync"
)

// tableRows bounds the series of a table.
const tableRows = 64

// Row is one series of a table.
type Row struct {
	Labels []string // in the order of the table's labels
	Value  float64
}

// Table is a gauge whose series are not known beforehand, such as one per pool.
// They are replaced as a whole, and there are at most 64: of more, the largest
// are shown and the rest is added up as Other.
type Table struct{ f *family }

// rows holds the series of a table between two looks.
type rows struct {
	names []string
	mu    sync.Mutex // guards now
	now   []Row
}

// Table makes a table, or returns the one that has the name.
func (r *Registry) Table(name, help string, labels ...string) Table {
	f := r.family(name, help, "gauge", nil, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.table == nil {
		f.table = &rows{names: labels}
	}
	return Table{f}
}

// Replace sets all series. Rows with the wrong number of labels are left out.
func (t Table) Replace(list []Row) {
	w := len(t.f.table.names)
	kept := slices.DeleteFunc(slices.Clone(list), func(r Row) bool { return len(r.Labels) != w })
	slices.SortStableFunc(kept, func(a, b Row) int { return cmp.Compare(b.Value, a.Value) })
	if len(kept) > tableRows {
		rest := Row{Labels: slices.Repeat([]string{Other}, w)}
		for _, r := range kept[tableRows-1:] {
			rest.Value += r.Value
		}
		kept = append(kept[:tableRows-1:tableRows-1], rest)
	}
	slices.SortFunc(kept, func(a, b Row) int { return slices.Compare(a.Labels, b.Labels) })
	t.f.table.mu.Lock()
	defer t.f.table.mu.Unlock()
	t.f.table.now = kept
}

func (t *rows) all() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}
