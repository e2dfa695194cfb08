package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// apiVersion is the one spelling that the rest of the system sees.
const apiVersion = "noetl.io/v2"

// Options loosen what Parse insists on.
type Options struct {
	// AllowUnknownKinds makes tool kinds that the language does not have a
	// warning, for installations whose workers bring kinds of their own.
	AllowUnknownKinds bool
}

// Parse reads a playbook and checks it. It returns every problem it can find,
// sorted by place, and no playbook when one of them is an error.
func Parse(file string, src []byte) (*Playbook, Problems) { return ParseWith(file, src, Options{}) }

// ParseWith is Parse with options.
func ParseWith(file string, src []byte, o Options) (*Playbook, Problems) {
	r := newReader(file, src)
	r.options = o
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

func (r *reader) playbook(root *node) *Playbook {
	if !anyOf(root, "apiVersion", "kind", "metadata", "workflow") {
		r.notPlaybook(root.at(), "it has none of the keys apiVersion, kind, metadata and workflow")
		return nil
	}
	r.apiVersion(root)
	if !r.documentKind(root) {
		return nil
	}
	// These two have been read, and extensions are the author's own.
	root = r.conform(root.without(append(extensions(root), "apiVersion", "kind")...), rootObject)
	p := &Playbook{APIVersion: apiVersion, Kind: "Playbook"}
	p.Metadata = r.metadata(root)
	p.Workload, p.Rendered = r.workload(root)
	p.Keychain = r.keychain(root)
	r.readWorkbook(root)
	exec := r.executor(root, &p.Executor)
	p.Steps = r.workflow(root)
	if len(p.Steps) > 0 {
		r.check(p, exec)
	}
	r.undeclaredAliases(root)
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
	case slices.Contains(rootObject.field("apiVersion").words, n.str()):
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
	if n := root.get("metadata"); !n.given() {
		if !r.reported("metadata") {
			r.fail(place{root.pos, "metadata"}, "missing_metadata", "metadata is missing", "add metadata: {name: …}")
		}
		return m
	}
	n := r.part(root, "metadata", metadataObject)
	for _, e := range n.entries {
		switch e.key {
		case "name":
			m.Name = e.value.str()
		case "path":
			m.Path = strings.TrimSpace(e.value.str())
		case "description":
			m.Description = e.value.str()
		case "labels":
			m.Labels = labels(e.value)
		case "strict_workload":
			m.StrictWorkload = e.value.isTrue()
		case "schedule", "schedules":
			// read together below
		case "tags", "capabilities":
			m.Extra.Set(e.key, texts(e.value))
		default:
			m.Extra.Set(e.key, e.value.native())
		}
	}
	m.Schedules = r.schedules(n)
	if strings.TrimSpace(m.Name) == "" && !r.reported("metadata.name") {
		r.fail(n.at(), "missing_name", "metadata.name is missing", r.misspeltName(n))
	}
	if m.Path == "" {
		m.Path = m.Name
	}
	return m
}

// reported tells that something is wrong with the value at a path already, so
// that its absence is no news.
func (r *reader) reported(path string) bool {
	return slices.ContainsFunc(r.problems, func(p Problem) bool { return p.Path == path && p.Severity == SeverityError })
}

func (r *reader) misspeltName(n *node) string {
	for _, k := range n.keys() {
		if c, ok := nearest(k, []string{"name"}); ok && k != c {
			return "there is a key " + quote(k) + ": did you mean \"name\"?"
		}
	}
	return "add name: …"
}

func labels(n *node) map[string]string {
	if !n.given() {
		return nil
	}
	out := make(map[string]string, len(n.entries))
	for _, e := range n.entries {
		out[e.key] = e.value.str()
	}
	return out
}

// texts is a list of words in the form that templates and the wire know.
func texts(n *node) []any {
	out := []any{}
	for _, w := range n.words() {
		out = append(out, w)
	}
	return out
}

func (r *reader) workflow(root *node) []*Step {
	n := root.get("workflow")
	switch {
	case n == nil && r.reported("workflow"):
		return nil
	case n == nil:
		r.fail(place{root.pos, "workflow"}, "missing_workflow", "workflow is missing", "add workflow: with a list of steps")
		return nil
	case !n.given() || len(n.items) == 0:
		r.fail(n.at(), "empty_workflow", "the workflow has no steps", "add at least one: - step: start")
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
