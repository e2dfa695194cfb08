package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/testkit"
)

const (
	metricsPage = "docs/metrics.md"
	metricsMark = "<!-- From here on written by: go test ./internal/e2e -run MetricsOfTheDocs -update -->\n\n"
)

// TestTheMetricsOfTheDocsAreThoseOfTheProcesses writes down what a server and a
// worker show, and holds the page against it.
func TestTheMetricsOfTheDocsAreThoseOfTheProcesses(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	traces := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"} // nobody is there
	natsPort, metricsPort := testkit.FreePort(t), testkit.FreePort(t)
	server := s.serverWith(traces, 0, "--nats-listen", fmt.Sprintf("127.0.0.1:%d", natsPort))
	testkit.Start(t, testkit.Command{Path: s.bin, Env: traces, Args: []string{
		"worker", "--server-url", server.url, "--nats-url", fmt.Sprintf("nats://127.0.0.1:%d", natsPort), "--metrics-listen", fmt.Sprintf("127.0.0.1:%d", metricsPort),
	}}).WaitOutput("noetl worker", patience)
	want := "## Of a server\n\n" + s.metricTable(server.url)
	want += "\n## Of a worker\n\n" + s.metricTable(fmt.Sprintf("http://127.0.0.1:%d", metricsPort))

	file := filepath.Join(root, metricsPage)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(text), metricsMark)
	if !found {
		t.Fatalf("%s has no mark where the generated part begins", metricsPage)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+metricsMark+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is out of date; run go test ./internal/e2e -run MetricsOfTheDocs -update\n%s", metricsPage, diff)
	}
}

// shownMetric is a family as a process shows it.
type shownMetric struct {
	name, kind, help string
	labels           []string
	values           map[string][]string
}

// metricTable describes the metrics at an address when each has at least a line.
func (s *system) metricTable(url string) string {
	s.t.Helper()
	var list []*shownMetric
	testkit.Eventually(s.t, func() error {
		list = readMetrics(s.metrics(&process{url: url}))
		for _, m := range list {
			if m.values == nil {
				return fmt.Errorf("%s shows nothing", m.name)
			}
		}
		return nil
	}, patience)
	var b strings.Builder
	b.WriteString("| Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n")
	for _, m := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.described(), m.help)
	}
	return b.String()
}

// fromOutside are labels whose values are names that come from outside.
var fromOutside = []string{"event_type", "tool_kind", "pool", "endpoint", "provider", "operation", "version", "region", "stream", "consumer"}

func (m *shownMetric) described() string {
	var words []string
	for _, l := range m.labels {
		word := "`" + l + "`"
		if !slices.Contains(fromOutside, l) {
			word += ": " + strings.Join(slices.Sorted(slices.Values(m.values[l])), ", ")
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

var (
	metricHead  = regexp.MustCompile(`^# (HELP|TYPE) (\S+) (.*)$`)
	metricLine  = regexp.MustCompile(`^([a-z_]+?)(?:\{(.*)\})? \S+$`)
	metricLabel = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// readMetrics finds the families in the order they are shown.
func readMetrics(text string) []*shownMetric {
	var list []*shownMetric
	byName := map[string]*shownMetric{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if h := metricHead.FindStringSubmatch(line); h != nil {
			m := byName[h[2]]
			if m == nil {
				m = &shownMetric{name: h[2]}
				byName[h[2]], list = m, append(list, m)
			}
			if h[1] == "HELP" {
				m.help = h[3]
			} else {
				m.kind = h[3]
			}
			continue
		}
		l := metricLine.FindStringSubmatch(line)
		if l == nil {
			continue
		}
		m := byName[l[1]]
		for _, end := range []string{"_bucket", "_sum", "_count"} {
			if name, cut := strings.CutSuffix(l[1], end); m == nil && cut {
				m = byName[name]
			}
		}
		if m != nil {
			m.add(l[2])
		}
	}
	return list
}

func (m *shownMetric) add(labels string) {
	if m.values == nil {
		m.values = map[string][]string{}
	}
	for _, l := range metricLabel.FindAllStringSubmatch(labels, -1) {
		name, value := l[1], l[2]
		if name == "le" {
			continue
		}
		if !slices.Contains(m.labels, name) {
			m.labels = append(m.labels, name)
		}
		if !slices.Contains(m.values[name], value) {
			m.values[name] = append(m.values[name], value)
		}
	}
}
