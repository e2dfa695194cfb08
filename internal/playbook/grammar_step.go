package playbook

// The objects of a step: its settings, its loop and its arcs.

// saveInstead is what to do with the saving blocks of older languages.
const saveInstead = "save the result with a further task or step"

var stepObject = &object{
	name: "step", title: "a step", doc: "One node of the workflow.",
	fields: []field{
		{name: "step", forms: asText, required: true, doc: "The name of the step, unique in the workflow."},
		{name: "desc", forms: asText, doc: "What the step is for."},
		{name: "description", forms: asText, doc: "What the step is for."},
		{
			name: "tool", forms: asDict | asList, object: taskObject, items: taskObject, each: asDict,
			doc: "The tool that the step runs, or a list of tasks that run in order.",
		},
		{name: "input", forms: asDict | asTemplate, doc: "Values for the tool, below the tool's own input."},
		{name: "args", forms: asDict | asTemplate, doc: "The same as input."},
		{name: "loop", forms: asDict, object: loopObject, doc: "What the step is repeated for."},
		{
			name: "next", forms: asText | asList | asDict, object: routerObject, items: arcObject, each: asText | asDict,
			doc: "Where the workflow goes after the step.",
		},
		{name: "when", forms: asExpr, doc: "A condition without which the step is skipped."},
		{name: "spec", forms: asDict, object: stepSpecObject, doc: "Limits and policies of the step."},
		{name: "set", forms: asDict, must: "must be a map of names and values", doc: "Variables that are set when the step completes."},
		{name: "output", forms: asDict, object: outputObject, doc: "How the result is kept."},

		{name: "result", forms: asDict, object: outputObject, modern: "output: {…}", doc: "How the result is kept."},
		{name: "vars", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set when the step completes."},
		{name: "set_vars", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set when the step completes."},
		{name: "set_ctx", forms: asDict, modern: "set: {ctx.name: …}", doc: "Variables that are set when the step completes."},
		{name: "with", forms: asDict | asTemplate, modern: "input: {…}", doc: "Values for the tool."},
		{name: "timeout", forms: asSpan, modern: "spec: {timeout: …}", doc: "How long one run of the step may take."},
		{name: "policy", forms: asDict, object: stepPolicyObject, modern: "spec: {policy: {…}}", doc: "Policies of the step."},
		{name: "retry", forms: asDict | asText, object: retryObject, modern: retryForm, doc: "When the tool is tried again."},

		{name: "on_error", forms: asAnything, idle: errorArc, doc: "What happens when the step fails."},
		{name: "sink", forms: asAnything, idle: saveInstead, doc: "Where the result is saved."},
		{name: "save", forms: asAnything, idle: saveInstead, doc: "Where the result is saved."},
		{name: "call", forms: asAnything, idle: "use a tool of kind workbook or playbook", doc: "What the step calls."},
		{name: "return", forms: asAnything, idle: "the result of a step is what its tool returns", doc: "What the step returns."},
		{name: "iterator", forms: asAnything, idle: "write it under loop", doc: "The name of the item of a loop."},
		{name: "arcs", forms: asAnything, idle: "write it under next", doc: "Where the workflow goes after the step."},
		{name: "join", forms: asAnything, idle: "a step with several arcs into it waits for them by itself", doc: "What the step waits for."},

		{
			name: "case", forms: asAnything, doc: "Conditions of an older language.",
			gone: `use "when" on the step, next.arcs[].when for routing, or a list of tasks with spec.policy.rules`,
		},
		{name: "type", forms: asAnything, doc: "The kind of the step in an older language.", gone: "write tool: {kind: …}"},
	},
}

// errorArc is how a failed step goes on.
const errorArc = "add an arc with when: \"{{ output.status == 'error' }}\" to next"

var stepSpecObject = &object{
	name: "step_spec", title: "spec of a step", doc: "Limits and policies of a step.",
	fields: []field{
		{name: "next_mode", forms: asText, words: routerModes, noun: "next mode", doc: "How many arcs may fire when next says nothing itself."},
		{name: "timeout", forms: asSpan, doc: "How long one run of the step may take."},
		{name: "policy", forms: asDict, object: stepPolicyObject, doc: "When the step may run, how long, and what a failure means."},
		{name: "on_error", forms: asText, idle: errorArc, doc: "What happens when the step fails."},
	},
}

var stepPolicyObject = &object{
	name: "step_policy", title: "spec.policy of a step", doc: "When a step may run, how long, and what a failure means.",
	fields: []field{
		{name: "admit", forms: asDict, object: admitObject, doc: "Rules that let the step run or not."},
		{name: "lifecycle", forms: asDict, object: lifecycleObject, doc: "Bounds in time."},
		{name: "failure", forms: asDict, object: failureObject, doc: "What a failed iteration of a loop means."},
		{name: "emit", forms: asAnything, idle: "every step writes its events: remove it", doc: "Which events are written."},
	},
}

var lifecycleObject = &object{
	name: "lifecycle", title: "spec.policy.lifecycle", doc: "Bounds in time.",
	fields: []field{
		{name: "timeout_s", forms: asSpan, doc: "How long one run of the step may take, in seconds; spec.timeout wins."},
		{name: "deadline_s", forms: asSpan, doc: "When the step has to be done, in seconds from the start of the execution."},
	},
}

var failureObject = &object{
	name: "failure", title: "spec.policy.failure", doc: "What a failed iteration of a loop means.",
	fields: []field{
		{
			name: "mode", forms: asText, words: []string{"fail_fast", "best_effort"}, noun: "failure mode",
			doc: "Whether the loop stops at the first failure or goes on.",
		},
	},
}

var admitObject = &object{
	name: "admit", title: "admit", doc: "Rules that let a step run or not; without a match it runs.",
	fields: []field{
		{name: "rules", forms: asList, items: admitRuleObject, each: asDict, doc: "The rules; the first that matches decides."},
		{name: "on_deny", forms: asText, words: []string{"wait", "skip"}, doc: "Whether a step that may not run waits or is skipped; skip when absent."},
		{name: "mode", forms: asText, words: []string{"exclusive"}, doc: "The first matching rule decides: exclusive."},
	},
}

var admitRuleObject = &object{
	name: "admit_rule", title: "an admission rule", doc: "One rule: a condition and whether it lets the step run.",
	fields: []field{
		{name: "when", forms: asExpr, doc: "The condition; always when absent."},
		{name: "then", forms: asDict, object: allowObject, doc: "What the rule decides."},
		{name: "else", forms: asDict, object: admitElseObject, doc: "What holds when no rule before it matched."},
	},
}

var admitElseObject = &object{
	name: "admit_else", title: "else of an admission rule", doc: "What holds when no rule before it matched.",
	fields: []field{
		{name: "then", forms: asDict, object: allowObject, doc: "What the rule decides."},
		{name: "allow", forms: asFlag, modern: "else: {then: {allow: …}}", doc: "Whether the step may run."},
	},
}

var allowObject = &object{
	name: "allow", title: "then of an admission rule", doc: "What an admission rule decides.",
	fields: []field{{name: "allow", forms: asFlag, required: true, doc: "Whether the step may run."}},
}

var (
	routerModes = []string{"exclusive", "inclusive"}
	loopModes   = []string{"sequential", "parallel", "cursor"}
)

var loopObject = &object{
	name: "loop", title: "loop", doc: "What a step is repeated for: the items of a value, or the rows that a cursor claims.",
	fields: []field{
		{name: "in", forms: asAnything, doc: "What to go over: a list, a map, a number, text, or a template that gives one."},
		{name: "iterator", forms: asText, required: true, doc: "The name of the item in templates."},
		{name: "cursor", forms: asDict, object: cursorObject, doc: "How rows are claimed, for mode: cursor."},
		{name: "spec", forms: asDict, object: loopSpecObject, doc: "How the iterations are run."},
		{name: "mode", forms: asText, words: loopModes, noun: "loop mode", modern: "spec: {mode: …}", doc: "How the iterations are run."},
		{name: "max_in_flight", forms: asCount | asTemplate, modern: "spec: {max_in_flight: …}", doc: "How many iterations run side by side."},
		{name: "frame", forms: asDict, object: frameObject, modern: "spec: {frame: {…}}", doc: "How rows are claimed."},
	},
}

var loopSpecObject = &object{
	name: "loop_spec", title: "loop.spec", doc: "How the iterations of a loop are run.",
	fields: []field{
		{name: "mode", forms: asText, words: loopModes, noun: "loop mode", doc: "One after the other, side by side, or claimed row by row."},
		{name: "max_in_flight", forms: asCount | asTemplate, doc: "How many iterations, or frames of a cursor, run side by side."},
		{name: "frame", forms: asDict, object: frameObject, doc: "How rows are claimed, for mode: cursor."},
		{name: "row_concurrency", forms: asCount, modern: "spec: {frame: {row_concurrency: …}}", doc: "How many rows of a frame run side by side."},
		{name: "policy", forms: asDict, object: loopPolicyObject, doc: "Where the iterations run."},
	},
}

var loopPolicyObject = &object{
	name: "loop_policy", title: "loop.spec.policy", doc: "Where the iterations of a loop run.",
	fields: []field{
		{
			name: "exec", forms: asText, words: []string{"distributed", "local"}, idle: "iterations run on whatever workers are free: remove it",
			doc: "Where the iterations run.",
		},
		{name: "results", forms: asAnything, idle: "write output: {…} on the step", doc: "How results are stored."},
	},
}

// frameByItself is said of settings of frames that the engine takes care of.
const frameByItself = "the engine watches over frames by itself: remove it"

var frameObject = &object{
	name: "frame", title: "frame", doc: "How many rows a cursor claims at once and how they are worked on.",
	fields: []field{
		{name: "max_rows", forms: asCount, doc: "How many rows one claim may take, {{ __frame_max_rows }} in the claim; 1 when absent."},
		{name: "row_concurrency", forms: asCount, doc: "How many rows of a frame run side by side; 1 when absent."},
		{name: "process", forms: asText, words: []string{"row", "frame"}, doc: "Whether the step runs once for each row or once for the whole frame."},
		{name: "max_seconds", forms: asNumber | asTemplate, idle: frameByItself, doc: "How long a frame may take."},
		{name: "max_bytes", forms: asNumber | asTemplate, idle: frameByItself, doc: "How large a frame may be."},
		{name: "lease_seconds", forms: asNumber | asTemplate, idle: frameByItself, doc: "How long a worker holds a frame."},
		{name: "heartbeat_seconds", forms: asNumber | asTemplate, idle: frameByItself, doc: "How often a worker reports."},
		{name: "verify_ipc", forms: asFlag, idle: frameByItself, doc: "Whether rows are checked after their transport."},
		{name: "retry_mode", forms: asText, idle: "write a rule with do: retry under spec.policy.rules of the tool", doc: "How frames are tried again."},
		{name: "max_attempts", forms: asNumber | asTemplate, idle: "write a rule with do: retry under spec.policy.rules of the tool", doc: "How often frames are tried."},
	},
}

var cursorObject = &object{
	name: "cursor", title: "cursor", doc: "A tool call that claims the next rows; the loop ends when it gives none.",
	fields: []field{
		{name: "kind", forms: asText, doc: "The kind of tool that claims; postgres when absent."},
		{name: "auth", forms: asAnything, doc: "The credential of the tool."},
		{name: "claim", forms: asText, required: true, doc: "The statement that claims rows; {{ __frame_max_rows }} is how many."},
		{name: "options", forms: asDict, doc: "Further settings of the tool."},
	},
}

var routerObject = &object{
	name: "next", title: "next", doc: "Where the workflow goes after a step.",
	fields: []field{
		{name: "arcs", forms: asList, items: arcObject, each: asDict | asText, doc: "The ways on, in the order in which they are tried."},
		{name: "spec", forms: asDict, object: routerSpecObject, doc: "How many arcs may fire."},
	},
}

var routerSpecObject = &object{
	name: "next_spec", title: "next.spec", doc: "How many arcs may fire.",
	fields: []field{
		{name: "mode", forms: asText, words: routerModes, noun: "mode of next", doc: "The first true arc, or every true arc; exclusive when absent."},
		{
			name: "on_no_match", forms: asText, words: []string{"complete", "quiet", "error"}, noun: "value of on_no_match",
			doc: "What no true arc means: the branch ends (complete, quiet), or the step fails (error).",
		},
		{name: "policy", forms: asAnything, idle: "arcs have no policy: remove it", doc: "A policy of the arcs."},
	},
}

var arcObject = &object{
	name: "arc", title: "an arc", doc: "A way from one step to another.",
	fields: []field{
		{name: "step", forms: asText, required: true, doc: "The step it leads to."},
		{name: "when", forms: asExpr, doc: "The condition; always when absent."},
		{name: "set", forms: asDict, must: "must be a map of names and values", doc: "Variables that are set when the arc fires."},
		{name: "desc", forms: asText, doc: "What the arc is for."},
		{name: "description", forms: asText, doc: "What the arc is for."},
		{name: "name", forms: asText, doc: "What the arc is called."},
		{name: "spec", forms: asAnything, idle: "arcs have no settings: remove it", doc: "Settings of the arc."},
		{name: "args", forms: asDict, modern: "set: {…}", doc: "Variables that are set when the arc fires."},
		{name: "input", forms: asDict, modern: "set: {…}", doc: "Variables that are set when the arc fires."},
		{name: "cond", forms: asExpr, modern: `when: "{{ … }}"`, doc: "The condition."},
		{name: "expr", forms: asExpr, modern: `when: "{{ … }}"`, doc: "The condition."},
		{name: "then", forms: asText | asList | asDict, modern: `{step: …, when: "{{ condition }}"}`, doc: "Where the arc leads."},
		{name: "else", forms: asText | asList | asDict, modern: "{step: …}", doc: "Where the arc leads when no other does."},
	},
}
