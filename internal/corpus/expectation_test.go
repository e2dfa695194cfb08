package corpus_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const fixtures = "../../../shared/fixtures"

// entry is one playbook with one input. The header of expectations.yaml says
// what the fields mean.
type entry struct {
	Path         string         `yaml:"path"`
	Variant      string         `yaml:"variant"`
	Class        string         `yaml:"class"`
	CatalogPath  string         `yaml:"catalog_path"`
	Needs        []string       `yaml:"needs"`
	Overrides    map[string]any `yaml:"workload_overrides"`
	Expect       expectation    `yaml:"expect"`
	Uncertain    bool           `yaml:"uncertain"`
	Alternatives []expectation  `yaml:"acceptable_alternatives"`
}

type expectation struct {
	Status       statuses            `yaml:"status"`
	Steps        *[]string           `yaml:"steps_executed"`
	OrderMatters bool                `yaml:"step_order_matters"`
	PartialOrder []string            `yaml:"partial_order"`
	Once         []string            `yaml:"exactly_once"`
	NotExecuted  []string            `yaml:"steps_not_executed"`
	FailedStep   string              `yaml:"failed_step"`
	ErrorMatches string              `yaml:"error_matches"`
	Results      map[string]any      `yaml:"results"`
	Loops        map[string]loopWant `yaml:"loops"`
	Stdout       map[string]string   `yaml:"stdout_contains"`
	Children     []childWant         `yaml:"child_executions"`

	// Words for people.
	Notes            string `yaml:"notes"`
	Nondeterministic string `yaml:"nondeterministic"`
	Duration         string `yaml:"duration"`
	When             string `yaml:"when"`
}

type loopWant struct {
	Iterations int    `yaml:"iterations"`
	Mode       string `yaml:"mode"`
	Results    []any  `yaml:"results"`
}

// statuses are those that are acceptable. The rest of an expectation describes
// the first of them.
type statuses []string

func (s *statuses) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = statuses{n.Value}
		return nil
	}
	var choice struct {
		AnyOf []string `yaml:"any_of"`
	}
	if err := n.Decode(&choice); err != nil {
		return err
	}
	*s = choice.AnyOf
	return nil
}

func (e *entry) name() string {
	if e.Variant == "" {
		return e.Path
	}
	return e.Path + " (" + e.Variant + ")"
}

func (e *entry) payload(t *testing.T) json.RawMessage {
	t.Helper()
	workload := maps.Clone(e.Overrides)
	if workload == nil {
		workload = map[string]any{}
	}
	for key, file := range standIns[e.Path] {
		abs, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		workload[key] = abs
	}
	if len(workload) == 0 {
		return nil
	}
	b, err := json.Marshal(workload)
	if err != nil {
		t.Fatalf("%s: encode the workload: %v", e.name(), err)
	}
	return b
}

// What entries say they need: some of it every machine that runs the tests
// has, some is a server or a program of its own.
var (
	met     = regexp.MustCompile(`^(shell only|python only|none \(|worker cwd)`)
	foreign = regexp.MustCompile(`(?i)postgres|psycopg|nats|test api|static json|duckdb|http`)
)

// load reads the entries that need nothing foreign. The others are returned
// with what they need.
func load(t *testing.T) (entries []*entry, skipped []verdict) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(fixtures, "expectations.yaml"))
	if os.IsNotExist(err) {
		t.Skipf("the real playbooks are not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var raw []yaml.Node
	if err := yaml.Unmarshal(b, &raw); err != nil {
		t.Fatalf("read expectations.yaml: %v", err)
	}
	for i := range raw {
		var head struct {
			Path    string   `yaml:"path"`
			Variant string   `yaml:"variant"`
			Class   string   `yaml:"class"`
			Needs   []string `yaml:"needs"`
		}
		if err := raw[i].Decode(&head); err != nil {
			t.Fatalf("read expectations.yaml, line %d: %v", raw[i].Line, err)
		}
		e := &entry{Path: head.Path, Variant: head.Variant, Class: head.Class, Needs: head.Needs}
		if missing := e.missing(t); len(missing) > 0 {
			skipped = append(skipped, verdict{e.name(), "class " + e.Class + ", needs " + strings.Join(missing, ", ")})
			continue
		}
		entries = append(entries, decodeEntry(t, &raw[i]))
	}
	if len(entries) < 50 {
		t.Fatalf("only %d entries can run; there were more than 50", len(entries))
	}
	return entries, skipped
}

// decodeEntry refuses fields of expect it does not know: an expectation nobody
// compares would count as met.
func decodeEntry(t *testing.T, n *yaml.Node) *entry {
	t.Helper()
	var e struct {
		entry `yaml:",inline"`

		Setup        []string `yaml:"setup"`
		Uncertainty  string   `yaml:"uncertainty"`
		WhyUncertain string   `yaml:"why_uncertain"`
		DependsOn    []string `yaml:"depends_on"`
		CheckedBy    string   `yaml:"checked_by"`
	}
	b, err := yaml.Marshal(n)
	if err != nil {
		t.Fatalf("read expectations.yaml, line %d: %v", n.Line, err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&e); err != nil {
		t.Fatalf("read the entry at line %d of expectations.yaml: %v", n.Line, err)
	}
	return &e.entry
}

// missing are the services an entry needs. All of class B need one.
func (e *entry) missing(t *testing.T) (services []string) {
	t.Helper()
	for _, need := range e.Needs {
		switch {
		case e.Class == "B" || foreign.MatchString(need) && !met.MatchString(need):
			services = append(services, need)
		case !met.MatchString(need):
			t.Errorf("%s needs %q; say in this test whether we have that", e.name(), need)
		}
	}
	if e.Class == "B" && len(services) == 0 {
		services = []string{"what the expectations do not say"}
	}
	return services
}
