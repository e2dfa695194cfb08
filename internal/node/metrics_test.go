package node_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/obs"
)

// unpinned labels range over names of the outside: kinds of tools and events,
// pools, routes, providers. That one value of them moves is enough.
var unpinned = []string{"event_type", "tool_kind", "pool", "endpoint", "provider", "operation", "version", "region", "stream", "consumer"}

// A metric nobody writes must not exist. Metrics begin at zero, so that one that
// is not zero was written. Every row of the table lets something happen and names
// what that has to write; in the end nothing is left that was not: no metric, and
// no value of its pinned labels.
func TestEveryMetricIsWritten(t *testing.T) {
	t.Parallel()
	var all ledger
	var skipped atomic.Bool // PostgreSQL is not here
	t.Run("scenarios", func(t *testing.T) {
		for name, s := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				m := &meters{t: t}
				defer func() { skipped.Store(skipped.Load() || t.Skipped()) }()
				s.happens(t, m)
				seen := m.facts()
				for _, want := range s.writes {
					if !seen[want] {
						t.Errorf("%s was not written", want)
					}
				}
				all.add(seen)
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, fact := range slices.Sorted(maps.Keys(all.written)) {
		if !all.written[fact] && (fact != postgresOnly || !skipped.Load()) {
			t.Errorf("nobody wrote %s: write it, or remove it", fact)
		}
	}
}

// scenario lets something happen that metrics are there for.
type scenario struct {
	writes  []string // metrics, or pinned values of them, that it is there for
	happens func(t *testing.T, m *meters)
}

// facts are metrics and pinned values by whether they were written.
type facts map[string]bool

type ledger struct {
	mu      sync.Mutex
	written facts
}

func (l *ledger) add(more facts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = facts{}
	}
	for fact, written := range more {
		l.written[fact] = l.written[fact] || written
	}
}

// meters are the registries of a scenario.
type meters struct {
	t    *testing.T
	read []func() string
	seen facts
}

// registry watches one from now on.
func (m *meters) registry(r *obs.Registry) {
	m.t.Helper()
	m.watch(func() string {
		var b strings.Builder
		if err := r.WriteText(&b); err != nil {
			m.t.Fatal(err)
		}
		return b.String()
	})
}

// handler watches what a handler shows as metrics.
func (m *meters) handler(h http.Handler) {
	m.t.Helper()
	m.watch(func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(m.t.Context(), http.MethodGet, "/metrics", nil))
		return w.Body.String()
	})
}

// url watches what a server shows as metrics.
func (m *meters) url(at string) {
	m.t.Helper()
	m.watch(func() string {
		r, err := http.NewRequestWithContext(m.t.Context(), http.MethodGet, at+"/metrics", nil)
		if err != nil {
			m.t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			m.t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			m.t.Fatal(err)
		}
		return string(text)
	})
}

func (m *meters) watch(read func() string) { m.read = append(m.read, read) }

// look notes how metrics stand, for gauges that will be zero again, and returns
// what is shown.
func (m *meters) look() string {
	if m.seen == nil {
		m.seen = facts{}
	}
	var all strings.Builder
	for _, read := range m.read {
		text := read()
		all.WriteString(text)
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
				name, _, _ := strings.Cut(rest, " ")
				if !m.seen[name] {
					m.seen[name] = false // a table may have no rows
				}
			}
			if part := metricLine.FindStringSubmatch(strings.TrimSpace(line)); part != nil {
				for _, fact := range factsOf(part[1], part[2]) {
					// A row for a consumer is there only when somebody wrote it.
					m.seen[fact] = m.seen[fact] || part[3] != "0" || strings.Contains(part[2], `consumer="`)
				}
			}
		}
	}
	return all.String()
}

// has tells whether a line of metrics is shown now.
func (m *meters) has(line string) bool { return strings.Contains(m.look(), line) }

var (
	metricLine = regexp.MustCompile(`^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// facts are all that was seen.
func (m *meters) facts() facts {
	m.look()
	return m.seen
}

// factsOf are the metric of a line and the pinned values in it.
func factsOf(name, labels string) []string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name = strings.TrimSuffix(name, suffix)
	}
	out := []string{name}
	for _, pair := range labelPair.FindAllStringSubmatch(labels, -1) {
		if pair[1] != "le" && pair[2] != obs.Other && !slices.Contains(unpinned, pair[1]) {
			out = append(out, name+"{"+pair[0]+"}")
		}
	}
	return out
}
