package corpus_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	Setup        []string       `yaml:"setup"`
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
	AlsoNot      []string            `yaml:"not_executed"` // as alternatives spell it
	Optional     []string            `yaml:"optional_steps"`
	FailedStep   string              `yaml:"failed_step"`
	ErrorMatches string              `yaml:"error_matches"`
	Results      map[string]any      `yaml:"results"`
	Loops        map[string]loopWant `yaml:"loops"`
	Stdout       map[string]string   `yaml:"stdout_contains"`
	Children     []childWant         `yaml:"child_executions"`
	Tables       []tableWant         `yaml:"tables"`
	Requests     map[string]any      `yaml:"http_requests"`
	Scenario     *scenario           `yaml:"scenario"`

	// Words for people.
	Notes            string `yaml:"notes"`
	Nondeterministic string `yaml:"nondeterministic"`
	Duration         string `yaml:"duration"`
	When             string `yaml:"when"`
}

// loopWant is what a loop does. One that is entered again has a list of counts,
// one for each time.
type loopWant struct {
	Iterations counts `yaml:"iterations"`
	Rows       counts `yaml:"rows"` // of a cursor
	Mode       string `yaml:"mode"`
	Results    []any  `yaml:"results"`
}

type counts []int

func (c *counts) UnmarshalYAML(n *yaml.Node) error {
	var one int
	if n.Kind == yaml.ScalarNode {
		err := n.Decode(&one)
		*c = counts{one}
		return err
	}
	return n.Decode((*[]int)(c))
}

// scenario is what a subscription does once messages come in.
type scenario struct {
	Publish string   `yaml:"publish"`
	Expect  []string `yaml:"expect"`
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

// needs tells whether the entry asks for something with this in its words.
func (e *entry) needs(word string) bool {
	return slices.ContainsFunc(e.Needs, func(need string) bool { return strings.Contains(need, word) })
}

// payload is the input of an entry with its placeholders filled.
func (e *entry) payload(places *strings.Replacer) (json.RawMessage, error) {
	workload := maps.Clone(e.Overrides)
	if workload == nil {
		workload = map[string]any{}
	}
	for key, file := range standIns[e.Path] {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		workload[key] = abs
	}
	for key, v := range workload {
		if text, ok := v.(string); ok {
			workload[key] = places.Replace(text)
		}
	}
	if len(workload) == 0 {
		return nil, nil
	}
	return json.Marshal(workload)
}

// known are the things that entries need and this test has.
var known = regexp.MustCompile(`^(shell only|python only|none \(|worker cwd|postgres|http to localhost|static JSON|test API|` +
	`any endpoint|duckdb|nats JetStream|python psycopg|tables noetl\.frame)`)

// load reads all entries that can be run anywhere.
func load(t *testing.T) (entries []*entry) {
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
		e := decodeEntry(t, &raw[i])
		if !strings.Contains("ABD", e.Class) {
			continue
		}
		for _, need := range e.Needs {
			if !known.MatchString(need) {
				t.Errorf("%s needs %q; say in this test whether we have that", e.name(), need)
			}
		}
		if err := e.decide(); err != nil {
			t.Error(err)
		}
		entries = append(entries, e)
	}
	if len(entries) < 100 {
		t.Fatalf("there are only %d entries; there were more than 100", len(entries))
	}
	return entries
}

// decodeEntry refuses fields of expect it does not know: an expectation nobody
// compares would count as met.
func decodeEntry(t *testing.T, n *yaml.Node) *entry {
	t.Helper()
	var e struct {
		entry `yaml:",inline"`

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
