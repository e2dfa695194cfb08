// Package obs is what operators watch: a registry of counters, gauges and
// histograms, the metrics of a server in it, and figures of the machine. Label
// values come from closed sets, so that no client can make series without end.
// It must not know what the numbers mean to whoever counts them.
package obs

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Other is the value under which everything outside a label's set is counted.
const Other = "other"

// Label is a dimension of a metric and the values it may have.
type Label struct {
	Name   string
	Values []string
	// Open tells that values may come from outside the set; they count as Other.
	Open bool
}

// Registry holds metrics in the order they were made. It is safe for
// concurrent use.
type Registry struct {
	mu       sync.Mutex // guards what follows
	families []*family
	before   []func()
	process  bool // shows the figures of the process
}

// OnScrape has f bring metrics up to date before they are written. It must be
// quick and not use the registry but for metrics it holds.
func (r *Registry) OnScrape(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = append(r.before, f)
}

// family is one metric with all its series.
type family struct {
	name, help, kind string
	labels           []labelSet
	bounds           []float64 // of a histogram's buckets
	series           []series
	table            *rows // instead of series
}

// labelSet finds the place of a value in its label's set.
type labelSet struct {
	name   string
	values []string
	at     map[string]int
}

// series is one line of a counter or gauge, or the lines of a histogram.
type series struct {
	bits    atomic.Uint64   // a gauge's or counter's value, or the sum of a histogram
	buckets []atomic.Uint64 // not cumulative; the last is for values above all bounds
}

// Counter is a total that only grows.
type Counter struct{ f *family }

// Gauge is a value that goes up and down.
type Gauge struct{ f *family }

// Histogram counts observations by size.
type Histogram struct{ f *family }

// Counter makes a counter, or returns the one that has the name.
func (r *Registry) Counter(name, help string, labels ...Label) Counter {
	return Counter{r.family(name, help, "counter", nil, labels)}
}

// Gauge makes a gauge, or returns the one that has the name.
func (r *Registry) Gauge(name, help string, labels ...Label) Gauge {
	return Gauge{r.family(name, help, "gauge", nil, labels)}
}

// Histogram makes a histogram with the given upper bounds of its buckets,
// ascending, or returns the one that has the name.
func (r *Registry) Histogram(name, help string, bounds []float64, labels ...Label) Histogram {
	return Histogram{r.family(name, help, "histogram", bounds, labels)}
}

func (r *Registry) family(name, help, kind string, bounds []float64, labels []Label) *family {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.families {
		if f.name == name {
			if f.kind != kind || len(f.labels) != len(labels) {
				panic(fmt.Sprintf("obs: metric %s is a %s with %d labels already", name, f.kind, len(f.labels)))
			}
			return f
		}
	}
	f := &family{name: name, help: help, kind: kind, bounds: slices.Clone(bounds)}
	n := 1
	for _, l := range labels {
		set := newLabelSet(l)
		f.labels = append(f.labels, set)
		n *= len(set.values)
	}
	f.series = make([]series, n)
	if kind == "histogram" {
		for i := range f.series {
			f.series[i].buckets = make([]atomic.Uint64, len(bounds)+1)
		}
	}
	r.families = append(r.families, f)
	return f
}

func newLabelSet(l Label) labelSet {
	values := slices.Compact(slices.Sorted(slices.Values(l.Values)))
	if l.Open && !slices.Contains(values, Other) {
		values = append(values, Other)
	}
	set := labelSet{name: l.Name, values: values, at: make(map[string]int, len(values))}
	for i, v := range values {
		set.at[v] = i
	}
	return set
}

// find is the series of label values. A value outside a closed set, or a wrong
// number of them, is a mistake of the program and counted nowhere.
func (f *family) find(values []string) *series {
	if len(values) != len(f.labels) {
		return nil
	}
	at := 0
	for i := range f.labels {
		l := &f.labels[i]
		n, ok := l.at[values[i]]
		if !ok {
			if n, ok = l.at[Other]; !ok {
				return nil
			}
		}
		at = at*len(l.values) + n
	}
	return &f.series[at]
}

func (s *series) add(d float64) {
	for {
		old := s.bits.Load()
		if s.bits.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+d)) {
			return
		}
	}
}

// Inc counts one.
func (c Counter) Inc(values ...string) { c.Add(1, values...) }

// Add counts n; what is negative is not counted.
func (c Counter) Add(n float64, values ...string) {
	if s := c.f.find(values); s != nil && n > 0 {
		s.add(n)
	}
}

// Reach lifts the counter to a total that is kept elsewhere.
func (c Counter) Reach(total float64, values ...string) {
	s := c.f.find(values)
	for s != nil {
		old := s.bits.Load()
		if math.Float64frombits(old) >= total || s.bits.CompareAndSwap(old, math.Float64bits(total)) {
			return
		}
	}
}

// Set gives the gauge a value.
func (g Gauge) Set(v float64, values ...string) {
	if s := g.f.find(values); s != nil {
		s.bits.Store(math.Float64bits(v))
	}
}

// Observe counts a value.
func (h Histogram) Observe(v float64, values ...string) {
	s := h.f.find(values)
	if s == nil || math.IsNaN(v) {
		return
	}
	at, _ := slices.BinarySearch(h.f.bounds, v)
	s.buckets[at].Add(1)
	s.add(v)
}
