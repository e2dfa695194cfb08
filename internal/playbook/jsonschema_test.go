package playbook

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// structural are the codes of mistakes in what is written where: keys, types,
// words, and what is required. The schema finds all of them.
var structural = []string{
	"bad_arc", "bad_attempts", "bad_cursor", "bad_duration", "bad_iterator", "bad_keychain", "bad_name", "bad_next", "bad_path", "bad_rule", "bad_task", "bad_workbook",
	"empty_condition", "empty_pipeline", "empty_workflow", "misplaced_key", "missing_api_version", "missing_claim", "missing_field",
	"missing_in", "missing_iterator", "missing_kind", "missing_metadata", "missing_name", "missing_step_name",
	"missing_workflow", "not_a_playbook", "removed_key", "tool_form", "unknown_key", "unknown_kind", "unknown_word",
	"unsupported_api_version", "wrong_kind", "wrong_type",
}

// semantic are the codes of mistakes that no schema can find, because they
// depend on other parts of the document or on the meaning of text.
var semantic = map[string]string{
	"template_syntax":  "expressions are text to a schema",
	"missing_target":   "which steps and tasks there are",
	"duplicate_step":   "names are unique in the workflow",
	"duplicate_label":  "labels are unique in the step",
	"duplicate_name":   "names are unique in the workbook",
	"reserved_name":    "names that templates use",
	"unknown_workbook": "which entries the workbook has",
	"workbook_cycle":   "entries that refer to each other",
	"wrong_mode":       "keys of a loop that contradict each other",
	"missing_cursor":   "what the mode of a loop asks for",
	"bad_set_key":      "what the keys of set mean",
}

// verdict is the first problem of a document of the kind that a schema finds.
// A code that is in neither list is a mistake in this test.
func verdict(t *testing.T, root *node) (first *Problem) {
	t.Helper()
	problems := problemsOf(root)
	beyond := referred(root, nil)
	for i, p := range problems {
		isStructural := slices.Contains(structural, p.Code)
		if p.Severity == SeverityError && !isStructural && semantic[p.Code] == "" {
			t.Errorf("say whether a schema can find errors of code %q: %s", p.Code, p)
		}
		counts := p.Severity == SeverityError || p.Code == "unknown_key"
		if isStructural && counts && first == nil && (p.Code == "bad_workbook" || !within(p.Path, beyond)) {
			first = &problems[i]
		}
	}
	return first
}

// referred lists the places whose settings are not judged where they stand:
// what is beside a reference to the workbook belongs to the tool it names, and
// older retry blocks become rules when rules can say what they do.
func referred(n *node, found []string) []string {
	if n.get("kind").str() == "workbook" {
		found = append(found, n.path())
	}
	for _, e := range n.entries {
		if e.key == "retry" {
			found = append(found, n.keyAt(e).path)
		}
		found = referred(e.value, found)
	}
	for _, item := range n.items {
		found = referred(item, found)
	}
	return found
}

func within(path string, places []string) bool {
	return slices.ContainsFunc(places, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+".") || strings.HasPrefix(path, p+"[")
	})
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("playbook.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("playbook.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// document is a text that is YAML, as a tree.
type document struct {
	name string
	root *node
}

// documents reads the golden files and the real playbooks.
func documents(t *testing.T) (docs []document) {
	t.Helper()
	golden, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(golden) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range golden {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(src), "\n----\n")
		docs = appendDocument(docs, file, []byte(text))
	}
	const real = "../../../shared/fixtures/playbooks"
	if _, err := os.Stat(real); err != nil {
		t.Logf("real playbooks are not here, the golden files have to do: %v", err)
		return docs
	}
	err = filepath.WalkDir(real, func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
			return err
		}
		src, err := os.ReadFile(path)
		name, _ := filepath.Rel(real, path)
		docs = appendDocument(docs, name, src)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// appendDocument adds a text whose YAML is sound: what does not load is not
// for a schema to judge.
func appendDocument(docs []document, name string, src []byte) []document {
	r := newReader(name, src)
	root := r.load(src)
	if root == nil || r.problems.Err() != nil || root.shape != mapShape {
		return docs
	}
	return append(docs, document{name, root})
}

func problemsOf(root *node) Problems {
	r := newReader("p.yaml", nil)
	r.playbook(root)
	return r.sorted()
}

// plain is a tree as validators take it.
func plain(n *node) any {
	switch n.shape {
	case scalarShape:
		return n.scalar
	case listShape:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = plain(item)
		}
		return list
	case mapShape:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = plain(e.value)
		}
		return m
	}
	return nil
}

func TestSchemaAndParserAgreeOnTheCorpus(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	valid, invalid := 0, 0
	for _, d := range documents(t) {
		problem, err := verdict(t, d.root), s.Validate(plain(d.root))
		switch {
		case problem == nil && err == nil:
			valid++
		case problem != nil && err != nil:
			invalid++
		case problem != nil:
			t.Errorf("%s: only the parser objects:\n%s", d.name, problem)
		default:
			t.Errorf("%s: only the schema objects:\n%v", d.name, err)
		}
	}
	t.Logf("%d valid and %d invalid documents agreed on", valid, invalid)
	if valid < 10 || invalid < 5 {
		t.Errorf("too few documents to prove anything: %d valid, %d invalid", valid, invalid)
	}
}

func TestSchemaIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	first := JSONSchema()
	for range 5 {
		if !bytes.Equal(first, JSONSchema()) {
			t.Fatal("two schemas of one language differ")
		}
	}
}
