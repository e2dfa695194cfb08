package obs_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/obs"
)

func scrape(t *testing.T, r *obs.Registry) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSeriesAreThereBeforeAnythingIsCounted(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	c := r.Counter("jobs_total", "Jobs.", obs.Label{Name: "kind", Values: []string{"b", "a"}, Open: true}, obs.Label{Name: "status", Values: []string{"ok"}})
	r.Gauge("depth", "A \\ and a\nline.")
	want := `# HELP jobs_total Jobs.
# TYPE jobs_total counter
jobs_total{kind="a",status="ok"} 0
jobs_total{kind="b",status="ok"} 0
jobs_total{kind="other",status="ok"} 0
# HELP depth A \\ and a\nline.
# TYPE depth gauge
depth 0
`
	if got := scrape(t, &r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c.Inc("a", "ok")
	c.Add(2.5, "b", "ok")
	c.Inc("invented\n\"", "ok") // an open label
	c.Inc("a", "strange")       // a closed one
	c.Inc("a")
	c.Add(-1, "a", "ok")
	got := scrape(t, &r)
	for _, line := range []string{`{kind="a",status="ok"} 1`, `{kind="b",status="ok"} 2.5`, `{kind="other",status="ok"} 1`} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if strings.Contains(got, "invented") || strings.Contains(got, "strange") {
		t.Errorf("a value from outside made a series:\n%s", got)
	}
}

func TestHistogramBucketsAreCumulative(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	h := r.Histogram("took_seconds", "Time.", []float64{.1, 1}, obs.Label{Name: "what", Values: []string{`"x"`}})
	for _, v := range []float64{.05, .1, .5, 7} {
		h.Observe(v, `"x"`)
	}
	want := `# HELP took_seconds Time.
# TYPE took_seconds histogram
took_seconds_bucket{what="\"x\"",le="0.1"} 2
took_seconds_bucket{what="\"x\"",le="1"} 3
took_seconds_bucket{what="\"x\"",le="+Inf"} 4
took_seconds_sum{what="\"x\""} 7.65
took_seconds_count{what="\"x\""} 4
`
	if got := scrape(t, &r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestANameStandsForOneMetric(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	r.Counter("n_total", "N.").Inc()
	r.Counter("n_total", "N.").Inc()
	if got := scrape(t, &r); strings.Count(got, "\nn_total") != 1 || !strings.Contains(got, "n_total 2\n") {
		t.Errorf("two counters of one name:\n%s", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a counter's name was given to a gauge")
		}
	}()
	r.Gauge("n_total", "N.")
}

func TestACounterReachesATotalAndNeverFalls(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	c := r.Counter("n_total", "N.")
	c.Reach(5)
	c.Reach(3)
	if got := scrape(t, &r); !strings.Contains(got, "n_total 5\n") {
		t.Error(got)
	}
}

func TestCountingFromManyGoroutinesLosesNothing(t *testing.T) {
	t.Parallel()
	var r obs.Registry
	c := r.Counter("n_total", "N.", obs.Label{Name: "k", Values: []string{"a"}})
	h := r.Histogram("h", "H.", []float64{1})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				c.Inc("a")
				h.Observe(1)
				_ = scrape(t, &r)
			}
		})
	}
	all.Wait()
	got := scrape(t, &r)
	for _, line := range []string{`n_total{k="a"} 800`, "h_sum 800", "h_count 800", `h_bucket{le="1"} 800`} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}
