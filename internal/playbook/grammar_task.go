package playbook

// The objects of a tool: what belongs to the language and not to the tool.

var (
	verbs    = []string{"continue", "retry", "jump", "break", "fail"}
	backoffs = []string{"none", "linear", "exponential", "fixed", "constant"}
)

// The current forms of what older languages said about a tool.
const (
	rulesForm  = "spec: {policy: {rules: [{when: \"{{ … }}\", then: {do: …}}]}} in the tool"
	retryForm  = "spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 3, backoff: exponential, delay: 1}}]}}"
	thenForm   = "then: {do: …}"
	selectForm = "output: {select: [name, …]}"
)

var taskObject = &object{
	name: "task", title: "a tool", open: true,
	doc: "One tool call. The keys here belong to the language; all others are settings of the tool.",
	fields: []field{
		{name: "kind", forms: asText, required: true, doc: "The kind of tool."},
		{name: "name", forms: asText, doc: "The label of the task: its result is known by it, and jumps lead to it."},
		{name: "desc", forms: asText, doc: "What the task is for."},
		{name: "description", forms: asText, doc: "What the task is for."},
		{name: "input", forms: asAnything, doc: "Values for the tool."},
		{name: "args", forms: asAnything, doc: "The same as input, or the arguments of a program."},
		{name: "set", forms: asDict, must: "must be a map of names and values", doc: "Variables that are set after the task; output is its data."},
		{name: "spec", forms: asDict, object: taskSpecObject, doc: "The policy of the task."},
		{name: "output", forms: asDict, object: outputObject, doc: "How the result is kept."},
		{name: "sink", forms: asAnything, doc: "A mark that the tool writes to the system of record: true."},

		{name: "output_select", forms: asList | asDict | asText, modern: selectForm, doc: "What is kept at hand of a large result."},
		{name: "with", forms: asAnything, modern: "input: {…}", doc: "Values for the tool, in kind: playbook."},
		{name: "eval", forms: asList, items: evalObject, each: asDict, modern: rulesForm, doc: "What happens after the task."},
		{name: "retry", forms: asDict | asText, object: retryObject, modern: retryForm, doc: "When the tool is tried again."},
		{name: "policy", forms: asDict, object: policyObject, modern: rulesForm, doc: "What happens after the task."},
		{name: "set_vars", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set after the task."},
		{name: "set_ctx", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set after the task."},
		{name: "set_iter", forms: asDict, modern: "set: {iter.name: …}", doc: "Variables of the iteration that are set after the task."},

		{name: "when", forms: asAnything, idle: "put it on the step, or write a rule under spec.policy.rules", doc: "A condition."},
		{name: "save", forms: asAnything, idle: "save the result with a further task", doc: "Where the result is saved."},

		{name: "next", forms: asAnything, must: "belongs to the step and not to its tool", gone: "indent it like tool:", doc: "A key of the step."},
		{name: "loop", forms: asAnything, must: "belongs to the step and not to its tool", gone: "indent it like tool:", doc: "A key of the step."},
	},
}

var taskSpecObject = &object{
	name: "task_spec", title: "spec of a tool", open: true, doc: "The policy of a task.",
	fields: []field{
		{name: "policy", forms: asDict, object: policyObject, must: "must be a map with rules", doc: "What happens after the task."},
		{name: "render", forms: asFlag, doc: "Whether braces in code are templates."},
	},
}

var policyObject = &object{
	name: "policy", title: "spec.policy", doc: "What happens after a task, by the first rule that matches.",
	fields: []field{
		{name: "rules", forms: asList, items: ruleObject, each: asDict, doc: "The rules, in the order in which they are tried."},
		{name: "on_unmatched", forms: asText, words: []string{"continue", "break", "fail"}, noun: "action", doc: "What happens when the task failed and no rule matches."},
		{name: "mode", forms: asText, words: []string{"exclusive"}, doc: "The first matching rule decides: exclusive."},
	},
}

var ruleObject = &object{
	name: "rule", title: "a rule", doc: "One rule: a condition and what to do.",
	fields: []field{
		{name: "when", forms: asExpr, doc: "The condition; output is the outcome of the task."},
		{name: "then", forms: asDict | asText, object: actionObject, doc: "What to do."},
		{name: "else", forms: asDict | asText, object: elseObject, doc: "What to do when no rule before it matched."},
		{name: "cond", forms: asExpr, modern: `when: "{{ … }}"`, doc: "The condition."},
		{name: "expr", forms: asExpr, modern: `when: "{{ … }}"`, doc: "The condition."},
	},
}

var elseObject = &object{
	name: "else", title: "else", open: true, doc: "What to do when no rule before it matched.",
	fields: []field{{name: "then", forms: asDict | asText, object: actionObject, doc: "What to do."}},
}

var actionObject = &object{
	name: "then", title: "then", doc: "What a rule does.",
	fields: []field{
		{name: "do", forms: asText, words: verbs, noun: "action", doc: "The action."},
		{name: "attempts", forms: asText, doc: "retry: how often the task runs in all, from 1 on; 3 when absent."},
		{name: "backoff", forms: asText, words: backoffs, doc: "retry: how the waiting grows."},
		{name: "delay", forms: asText, doc: "retry: seconds to wait, 1 when absent."},
		{name: "to", forms: asText, doc: "jump: the name of a task, or previous."},
		{name: "set", forms: asDict, must: "must be a map of names and values", doc: "Variables that are set."},
		{name: "set_ctx", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set."},
		{name: "set_iter", forms: asDict, modern: "set: {iter.name: …}", doc: "Variables of the iteration that are set."},
		{name: "set_vars", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set."},
	},
}

// evalObject is an entry of the older language's `eval` list.
var evalObject = &object{
	name: "eval_entry", title: "an entry of eval", doc: "A rule in the older form.",
	fields: []field{
		{name: "expr", forms: asExpr, doc: "The condition."},
		{name: "when", forms: asExpr, doc: "The condition."},
		{name: "do", forms: asText, words: verbs, noun: "action", doc: "The action."},
		{name: "attempts", forms: asText, doc: "retry: how often the task runs in all."},
		{name: "backoff", forms: asText, words: backoffs, doc: "retry: how the waiting grows."},
		{name: "delay", forms: asText, doc: "retry: seconds to wait."},
		{name: "set_vars", forms: asDict, doc: "Variables that are set."},
		{name: "set", forms: asDict, doc: "Variables that are set."},
		{name: "target", forms: asText, doc: "jump: the name of a task."},
		{name: "to", forms: asText, doc: "jump: the name of a task."},
		{name: "else", forms: asDict, doc: "What to do when no entry before it matched."},
	},
}

// retryObject is the older language's `retry` block.
var retryObject = &object{
	name: "retry", title: "retry", doc: "When a tool is tried again, in the older form.",
	fields: []field{
		{name: "max_attempts", forms: asText, doc: "How often the task runs in all."},
		{name: "attempts", forms: asText, doc: "How often the task runs in all."},
		{name: "initial_delay", forms: asText, doc: "Seconds to wait."},
		{name: "delay", forms: asText, doc: "Seconds to wait."},
		{name: "delay_seconds", forms: asText, doc: "Seconds to wait."},
		{name: "backoff_seconds", forms: asText, doc: "Seconds to wait."},
		{name: "backoff", forms: asText, doc: "How the waiting grows, or seconds to wait."},
		{name: "backoff_multiplier", forms: asNumber, doc: "By what the waiting grows: 1 or 2."},
		{name: "retry_on", forms: asList | asText, doc: "What is worth another try: error, timeout, connection, rate_limit, or status codes."},
		{name: "retry_on_status", forms: asList | asNumber, doc: "Status codes of HTTP that are worth another try."},
		{name: "status_codes", forms: asList | asNumber, doc: "Status codes of HTTP that are worth another try."},
		{name: "retryable_status_codes", forms: asList | asNumber, doc: "Status codes of HTTP that are worth another try."},
		{name: "when", forms: asExpr, doc: "When to try again."},
		{name: "retry_when", forms: asExpr, doc: "When to try again."},
		{name: "stop_when", forms: asExpr, doc: "When not to try again."},
		{name: "max_delay", forms: asText, idle: "the wait between tries is bounded by attempts and delay alone", doc: "The longest wait."},
		{name: "jitter", forms: asAnything, idle: "tries are not spread: remove it", doc: "Whether waits vary."},
	},
}

// storeKinds are the words for where large results may be kept.
var storeKinds = []string{"auto", "db", "nats", "file", "s3", "memory", "kv", "disk", "object", "gcs", "duckdb", "eventlog", "queryable"}

var outputObject = &object{
	name: "output", title: "output", doc: "How a result is kept.",
	fields: []field{
		{name: "select", forms: asList | asText, items: selectionObject, each: asText | asDict, doc: "What is kept at hand of a large result."},
		{name: "inline_max_bytes", forms: asCount, doc: "How large a result may be before it is stored apart."},
		{name: "store", forms: asDict | asText, object: storeObject, doc: "Where a large result is kept."},
		{name: "as", forms: asText, doc: "A second name for the data."},
		{name: "output_select", forms: asList | asDict | asText, modern: "select: [name, …]", doc: "What is kept at hand of a large result."},
	},
}

var storeObject = &object{
	name: "store", title: "output.store", doc: "Where a large result is kept.",
	fields: []field{
		{name: "kind", forms: asText, words: storeKinds, noun: "kind of store", doc: "The kind of store."},
		{name: "scope", forms: asText, words: []string{"step", "execution", "workflow", "permanent"}, noun: "scope", doc: "With what it ends: its execution, the whole tree of executions, or never."},
		{name: "ttl", forms: asText | asNumber, doc: "How long it is kept at most: 30m, 1h, 1d, forever."},
		{name: "compression", forms: asText, doc: "Ignored: stores compress as they see fit."},
	},
}

var selectionObject = &object{
	name: "selection", title: "a selection", doc: "A part of a result and the name it is known by.",
	fields: []field{
		{name: "path", forms: asText, required: true, doc: "Where it is in the result: $.a.b"},
		{name: "as", forms: asText, doc: "Its name; the last word of the path when absent."},
	},
}
