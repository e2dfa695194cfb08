package playbook

import "github.com/noetl/noetl-go/internal/tool/schema"

// toolOnly are settings that make sense nowhere but inside a tool. One of them
// at the level of the step is a slip of indentation.
var toolOnly = []string{
	"kind", "code", "command", "commands", "cmd", "cmds", "url", "endpoint", "query", "script", "method",
	"headers", "params", "body", "json", "form", "image", "path", "return_step", "libs", "auth", "message",
}

// kind checks the kind of a task. It returns false when no worker could ever
// make sense of the task.
func (r *reader) kind(n *node) (string, bool) {
	k := n.get("kind")
	if !k.given() {
		r.missingKind(n)
		return "", false
	}
	name := k.str()
	declared, known := schema.Lookup(name)
	switch {
	case name == "":
		what := k.describe()
		if k.shape == scalarShape {
			what = "empty"
		}
		r.fail(k.at(), "wrong_type", "the kind of a tool is a word, this is "+what, listing("known kinds:", kinds))
		return "", false
	case r.wire:
	case known && declared.NoWorker != "":
		r.warn(k.at(), "no_worker", "no worker runs tools of kind "+quote(name)+" yet: the step fails when it is reached",
			declared.NoWorker)
	case !known:
		r.unknownKind(k, "unknown tool kind "+quote(name))
	}
	return name, true
}

// unknownKind complains about a kind that the language does not have. It is a
// warning where workers may bring their own.
func (r *reader) unknownKind(k *node, msg string) {
	remedy := didYouMean(k.str(), "known kinds:", kinds)
	if _, near := nearest(k.str(), kinds); near {
		remedy += listing(" known kinds:", kinds)
	}
	if r.options.AllowUnknownKinds {
		r.warn(k.at(), "unknown_kind", msg, remedy)
		return
	}
	r.fail(k.at(), "unknown_kind", msg, remedy)
}

func (r *reader) missingKind(n *node) {
	for _, e := range n.entries {
		if distance(e.key, "kind") <= 2 && e.value.shape == scalarShape {
			r.fail(n.keyAt(e), "missing_kind", "the tool has no kind, but a key "+quote(e.key), `did you mean "kind"?`)
			return
		}
	}
	r.fail(n.at(), "missing_kind", "the tool has no kind", "add kind: shell, http, python, … (known kinds: "+join(kinds)+")")
}
