package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/testkit"
)

// prometheusProgram finds one of Prometheus' programs.
func prometheusProgram(t *testing.T, name string) string {
	t.Helper()
	at, err := exec.LookPath(name)
	if err == nil {
		return at
	}
	if at, err = filepath.Abs("../../bin/prometheus/usr/bin/" + name); err == nil {
		if _, err = os.Stat(at); err == nil {
			return at
		}
	}
	if os.Getenv("NOETL_TEST_REQUIRE_PROMETHEUS") != "" {
		t.Fatalf("%s is not installed: run `make deps`", name)
	}
	t.Skipf("%s is not installed: run `make deps`, or set NOETL_TEST_REQUIRE_PROMETHEUS=1 to fail here", name)
	return ""
}

// rule is a line of the alert rules.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

func alertRules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.Unmarshal([]byte(repository(t, "deploy/prometheus/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func TestAlertRulesAreValidAndLeadToARunbook(t *testing.T) {
	t.Parallel()
	promtool := prometheusProgram(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = "../../deploy/prometheus"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	anchors := map[string]bool{}
	for line := range strings.Lines(repository(t, "docs/operations.md")) {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			anchors[strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-")] = true
		}
	}
	for _, r := range alertRules(t) {
		if r.Alert == "" {
			continue
		}
		for _, name := range []string{"summary", "description", "runbook"} {
			if r.Annotations[name] == "" {
				t.Errorf("alert %s has no %s", r.Alert, name)
			}
		}
		if r.Labels["severity"] == "" {
			t.Errorf("alert %s has no severity", r.Alert)
		}
		if anchor, ok := strings.CutPrefix(r.Annotations["runbook"], "docs/operations.md#"); !ok || !anchors[anchor] {
			t.Errorf("alert %s: there is no %s", r.Alert, r.Annotations["runbook"])
		}
	}
}

// panel is what a dashboard shows.
type panel struct {
	Type, Title string
	Targets     []struct{ Expr string }
}

func dashboard(t *testing.T) []panel {
	t.Helper()
	var d struct{ Panels []panel }
	if err := json.Unmarshal([]byte(repository(t, "deploy/grafana/noetl.json")), &d); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(d.Panels, func(p panel) bool { return p.Type == "row" })
}

var variables = strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*")

// metricName finds the metrics of a query, with what selects their series.
var metricName = regexp.MustCompile(`\b((?:noetl|go|process)_[a-z0-9_]+)(\{[^}]*\})?`)

// A real Prometheus reads a real server and worker while they work, and answers
// every question of the dashboard and the alerts. NOETL_TEST_OBSERVE makes it
// last longer. That every metric is written is what internal/node tests.
func TestDashboardAndAlertsShowWhatHappens(t *testing.T) {
	t.Parallel()
	program := prometheusProgram(t, "prometheus")
	w := watch(t)
	w.register()
	prometheus := startPrometheus(t, program, w)
	began := time.Now()
	length, _ := time.ParseDuration(os.Getenv("NOETL_TEST_OBSERVE"))
	for w.drive(); time.Since(began) < length; {
		w.drive()
	}
	prometheus.waitFor(t, `rate(noetl_execution_duration_seconds_count{status="COMPLETED"}[1m]) > 0`)
	prometheus.waitFor(t, `rate(noetl_worker_dispatch_duration_seconds_count{tool_kind="noop"}[1m]) > 0`)
	shown := w.scrape()

	for _, p := range dashboard(t) {
		for _, target := range p.Targets {
			query := variables.Replace(target.Expr)
			for _, m := range metricName.FindAllStringSubmatch(query, -1) {
				wantShown(t, shown, "panel "+p.Title, m[1])
			}
			if n, err := prometheus.ask(t, query); err != nil {
				t.Errorf("panel %q: %s: %v", p.Title, query, err)
			} else if n == 0 {
				t.Errorf("panel %q shows nothing: %s", p.Title, query)
			}
		}
	}
	for _, r := range alertRules(t) {
		name := r.Alert + r.Record
		if _, err := prometheus.ask(t, r.Expr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, m := range metricName.FindAllStringSubmatch(r.Expr, -1) {
			wantShown(t, shown, name, m[1])
			if n, err := prometheus.ask(t, m[0]); err != nil || n == 0 {
				t.Errorf("%s: %s finds %d series: %v", name, m[0], n, err)
			}
		}
	}
}

func wantShown(t *testing.T, shown, where, name string) {
	t.Helper()
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if strings.Contains(shown, "# TYPE "+strings.TrimSuffix(name, suffix)+" ") {
			return
		}
	}
	t.Errorf("%s asks for %s, which nobody shows", where, name)
}

type prometheusServer struct{ url string }

func startPrometheus(t *testing.T, program string, w *watched) *prometheusServer {
	t.Helper()
	dir := t.TempDir()
	strip := func(u string) string { return strings.TrimPrefix(u, "http://") }
	config := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n- job_name: noetl\n  authorization: {credentials: %s}\n  static_configs: [{targets: [%q, %q]}]\n",
		watchedToken, strip(w.server), strip(w.worker))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	testkit.Start(t, testkit.Command{Path: program, Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--log.level=error",
	}})
	p := &prometheusServer{"http://" + address}
	p.waitFor(t, `count(up == 1) == 2`)
	return p
}

func (p *prometheusServer) waitFor(t *testing.T, query string) {
	t.Helper()
	testkit.Eventually(t, func() error {
		n, err := p.ask(t, query)
		if err == nil && n == 0 {
			err = fmt.Errorf("%s is not so", query)
		}
		return err
	}, 20*time.Second)
}

// ask counts the series of an answer that have a value.
func (p *prometheusServer) ask(t *testing.T, query string) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var a struct {
		Error string
		Data  struct{ Result []struct{ Value []any } }
	}
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return 0, err
	}
	if a.Error != "" {
		return 0, fmt.Errorf("%s", a.Error)
	}
	n := 0
	for _, series := range a.Data.Result {
		text, _ := series.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			n++
		}
	}
	return n, nil
}
