package playbook

import "slices"

// kinds lists the tool kinds a playbook may name.
var kinds = []string{
	"agent", "artifact", "container", "duckdb", "ducklake", "gateway", "gcs", "http", "iterator", "mcp",
	"nats", "noop", "playbook", "playbooks", "postgres", "provider", "python", "result_fetch", "rhai",
	"script", "secrets", "shell", "snowflake", "snowflake_transfer", "subscription", "task_sequence",
	"transfer", "wasm", "workbook",
}

// orphans are kinds of the language that no worker runs.
var orphans = []string{
	"agent", "gateway", "gcs", "iterator", "playbooks", "provider", "rhai", "secrets", "snowflake_transfer", "wasm",
}

// KnownKinds lists the tool kinds the language has, sorted. A worker may run
// fewer of them.
func KnownKinds() []string { return slices.Clone(kinds) }

// fields are the settings of the common kinds. Tools may take others: the
// list serves only to notice misspellings, and to recognise a setting that
// was written beside the tool and not inside it.
var fields = map[string][]string{
	"http": {
		"url", "endpoint", "method", "headers", "params", "json", "data", "form", "body", "payload", "auth",
		"timeout", "timeout_seconds", "verify_ssl", "follow_redirects",
	},
	"noop":   {"message", "result"},
	"python": {"code", "script", "libs", "env", "cwd", "timeout", "timeout_seconds", "auth"},
	"shell":  {"command", "cmds", "cmd", "env", "cwd", "timeout", "timeout_seconds", "exports", "shell"},
	"postgres": {
		"auth", "query", "command", "commands", "script", "params", "as_objects", "pool", "credential", "connection",
		"timeout", "timeout_seconds", "database", "schema",
	},
	"playbook": {
		"path", "catalog_id", "version", "payload", "return_step", "return_result", "result_step", "wait",
		"timeout", "poll_interval",
	},
}

// taskKeys are the keys of a task that belong to the language and not to the tool.
var taskKeys = []string{
	"kind", "name", "desc", "description", "input", "args", "set", "spec", "output", "output_select",
	"sink", "eval", "retry",
}

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
	switch {
	case name == "":
		r.fail(k.at(), "wrong_type", "the kind of a tool is a word, this is "+k.describe(), "")
		return "", false
	case r.wire:
	case slices.Contains(orphans, name):
		r.warn(k.at(), "no_worker", "no worker runs tools of kind "+quote(name)+" yet: the step fails when it is reached",
			"use python, shell or http instead")
	case !slices.Contains(kinds, name):
		remedy := didYouMean(name, "known kinds:", kinds)
		if _, near := nearest(name, kinds); near {
			remedy += listing(" known kinds:", kinds)
		}
		r.fail(k.at(), "unknown_kind", "unknown tool kind "+quote(name), remedy)
	}
	return name, true
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

// misspeltFields warns about settings that are nearly, but not quite, those of
// the kind.
func (r *reader) misspeltFields(n *node, kind string) {
	known := fields[kind]
	if known == nil || r.wire {
		return
	}
	all := slices.Concat(known, taskKeys)
	for _, e := range n.entries {
		if slices.Contains(all, e.key) || len(e.key) < 4 {
			continue
		}
		for _, k := range all {
			if n.get(k) == nil && distance(e.key, k) <= 1+len(k)/8 {
				r.warn(n.keyAt(e), "unknown_key", "unknown key "+quote(e.key)+" in a tool of kind "+kind,
					"did you mean "+quote(k)+"?")
				break
			}
		}
	}
}
