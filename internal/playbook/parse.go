package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// apiVersion is the one spelling that the rest of the system sees.
const apiVersion = "noetl.io/v2"

// Parse reads a playbook and checks it. It returns every problem it can find,
// sorted by place, and no playbook when one of them is an error.
func Parse(file string, src []byte) (*Playbook, Problems) {
	r := newReader(file, src)
	var p *Playbook
	if root := r.load(src); root != nil {
		p = r.playbook(root)
	}
	problems := r.sorted()
	if problems.Err() != nil {
		return nil, problems
	}
	return p, problems
}

var rootKeys = []string{
	"apiVersion", "kind", "metadata", "workload", "keychain", "workbook", "executor", "workflow",
}

func (r *reader) playbook(root *node) *Playbook {
	if !anyOf(root, "apiVersion", "kind", "metadata", "workflow") {
		r.notPlaybook(root.at(), "it has none of the keys apiVersion, kind, metadata and workflow")
		return nil
	}
	r.unknownKeys(root, "the playbook", rootKeys, append(extensions(root), "vars")...)
	r.apiVersion(root)
	if !r.documentKind(root) {
		return nil
	}
	p := &Playbook{APIVersion: apiVersion, Kind: "Playbook"}
	p.Metadata = r.metadata(root)
	p.Workload = r.workload(root)
	p.Keychain = r.keychain(root)
	r.readWorkbook(root)
	exec := r.executor(root, &p.Executor)
	p.Steps = r.workflow(root)
	if len(p.Steps) > 0 {
		r.check(p, exec)
	}
	return p
}

// extensions are keys that authors keep anchors and notes under.
func extensions(root *node) []string {
	return slices.DeleteFunc(root.keys(), func(k string) bool { return !strings.HasPrefix(k, "x-") })
}

func anyOf(n *node, keys ...string) bool {
	for _, k := range keys {
		if n.get(k) != nil {
			return true
		}
	}
	return false
}

func (r *reader) apiVersion(root *node) {
	n := root.get("apiVersion")
	switch {
	case !n.given():
		r.fail(place{root.pos, "apiVersion"}, "missing_api_version", "apiVersion is missing", "add apiVersion: "+apiVersion)
	case n.str() == apiVersion:
	case n.str() == "noetl.io/v1", n.str() == "noetl.io/v10":
		r.warn(n.at(), "old_api_version", "apiVersion "+n.str()+" is read as "+apiVersion, "write "+apiVersion)
	default:
		r.fail(n.at(), "unsupported_api_version", "unsupported apiVersion "+quote(n.compact()), "write "+apiVersion)
	}
}

// documentKind returns false for documents of another kind, whose other keys
// would only lead to complaints that miss the point.
func (r *reader) documentKind(root *node) bool {
	n := root.get("kind")
	switch {
	case !n.given():
		r.fail(place{root.pos, "kind"}, "missing_kind", "kind is missing", "add kind: Playbook")
		return true
	case n.str() == "Playbook":
		return true
	case strings.EqualFold(n.str(), "Playbook"):
		r.fail(n.at(), "wrong_kind", "the kind "+quote(n.str())+" is not known", `write "Playbook"`)
		return true
	}
	r.fail(n.at(), "wrong_kind", "this is a document of kind "+quote(n.compact())+" and not a Playbook", "")
	return root.get("workflow").given()
}

func (r *reader) metadata(root *node) Metadata {
	m := Metadata{Extra: jinja.NewDict(0)}
	n := root.get("metadata")
	if !n.given() {
		r.fail(place{root.pos, "metadata"}, "missing_metadata", "metadata is missing", "add metadata: {name: …}")
		return m
	}
	if n = r.want(n, mapShape, "metadata must be a map"); n == nil {
		return m
	}
	for _, e := range n.entries {
		switch e.key {
		case "name":
			m.Name = r.text(e.value, "metadata.name")
		case "path":
			m.Path = strings.TrimSpace(r.text(e.value, "metadata.path"))
		case "description":
			m.Description = e.value.str()
		case "labels":
			m.Labels = r.labels(e.value)
		default:
			m.Extra.Set(e.key, e.value.native())
		}
	}
	if name := n.get("name"); strings.TrimSpace(m.Name) == "" && (!name.given() || name.shape == scalarShape) {
		r.fail(n.at(), "missing_name", "metadata.name is missing", r.misspeltName(n))
	}
	if m.Path == "" {
		m.Path = m.Name
	}
	return m
}

func (r *reader) misspeltName(n *node) string {
	for _, k := range n.keys() {
		if c, ok := nearest(k, []string{"name"}); ok && k != c {
			return "there is a key " + quote(k) + ": did you mean \"name\"?"
		}
	}
	return "add name: …"
}

// text reads a value that must be a word or a sentence.
func (r *reader) text(n *node, what string) string {
	if n.given() && n.shape != scalarShape {
		r.fail(n.at(), "wrong_type", what+" must be text, this is "+n.describe(), "")
	}
	return n.str()
}

func (r *reader) labels(n *node) map[string]string {
	if n = r.want(n, mapShape, "metadata.labels must be a map"); n == nil {
		return nil
	}
	labels := make(map[string]string, len(n.entries))
	for _, e := range n.entries {
		labels[e.key] = r.text(e.value, "a label")
	}
	return labels
}

// workload reads the default inputs. A `vars` map at the root is an older
// spelling of further defaults, with less weight.
func (r *reader) workload(root *node) *jinja.Dict {
	n := r.want(root.get("workload"), mapShape, "workload must be a map of default inputs")
	if e, ok := root.entry("vars"); ok {
		r.warn(root.keyAt(e), "old_spelling", "vars at the root is read as defaults of the workload", `write them under "workload"`)
		n = merged(r.want(e.value, mapShape, "vars must be a map"), n)
	}
	if n == nil {
		return jinja.NewDict(0)
	}
	return n.dict()
}

func (r *reader) keychain(root *node) []any {
	n := r.want(root.get("keychain"), listShape, "keychain must be a list")
	if n == nil {
		return nil
	}
	entries := make([]any, 0, len(n.items))
	for _, item := range n.items {
		if item.shape != mapShape || item.get("name").str() == "" {
			r.fail(item.at(), "bad_keychain", "a keychain entry is a map with a name", "")
			continue
		}
		entries = append(entries, item.native())
	}
	return entries
}

// executor reads the run-wide settings. The node is returned for checks that
// need the steps.
func (r *reader) executor(root *node, x *Executor) *node {
	n := r.mapAt(root, "executor", "the playbook")
	r.unknownKeys(n, "executor", []string{"profile", "version", "requires", "spec", "kind"})
	if n == nil {
		return nil
	}
	spec := r.mapAt(n, "spec", "executor")
	r.unknownKeys(spec, "executor.spec",
		[]string{"entry_step", "final_step", "no_next_is_error", "pool", "loop_mode", "policy"})
	if spec == nil {
		return nil
	}
	x.EntryStep = r.text(spec.get("entry_step"), "entry_step")
	x.FinalStep = r.text(spec.get("final_step"), "final_step")
	x.NoNextIsError = r.flag(spec.get("no_next_is_error"), "no_next_is_error")
	return spec
}

func (r *reader) workflow(root *node) []*Step {
	n := root.get("workflow")
	switch {
	case n == nil:
		r.fail(place{root.pos, "workflow"}, "missing_workflow", "workflow is missing", "add workflow: with a list of steps")
		return nil
	case !n.given() || n.shape == listShape && len(n.items) == 0:
		r.fail(n.at(), "empty_workflow", "the workflow has no steps", "add at least one: - step: start")
		return nil
	case n.shape != listShape:
		r.fail(n.at(), "wrong_type", "workflow must be a list of steps, this is "+n.describe(), "begin each step with - step: name")
		return nil
	}
	steps := make([]*Step, 0, len(n.items))
	for _, item := range n.items {
		if s := r.readStep(item); s != nil {
			s.Index = len(steps)
			steps = append(steps, s)
		}
	}
	r.step = ""
	return steps
}

func join(words []string) string { return strings.Join(words, ", ") }
