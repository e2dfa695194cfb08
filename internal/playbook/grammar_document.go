package playbook

// The objects above the steps.

var rootObject = &object{
	name: "playbook", title: "the playbook", doc: "A playbook: what it is called, what it is given and the steps it runs.",
	fields: []field{
		{
			name: "apiVersion", forms: asText, required: true, words: []string{"noetl.io/v1", "noetl.io/v2", "noetl.io/v10"},
			doc: "The version of the language: noetl.io/v2.",
		},
		{name: "kind", forms: asText, required: true, words: []string{"Playbook"}, doc: "The kind of document: Playbook."},
		{name: "metadata", forms: asDict, required: true, object: metadataObject, doc: "What the playbook is called and where it is filed."},
		{
			name: "workload", forms: asDict, must: "must be a map of default inputs",
			doc: "Default inputs; an execution may replace each key.",
		},
		{name: "keychain", forms: asList, items: keychainObject, each: asDict, doc: "The credentials that the steps use, by alias."},
		{
			name: "workbook", forms: asList | asDict, items: workbookObject, each: asDict, must: "must be a list of named tools",
			doc: "Tools that several steps share, by name.",
		},
		{name: "executor", forms: asDict, object: executorObject, doc: "Settings of the whole run."},
		{
			name: "workflow", forms: asList, required: true, items: stepObject, each: asDict, must: "must be a list of steps",
			doc: "The steps.",
		},
		{name: "vars", forms: asDict, modern: "workload: {…}", doc: "Further defaults of the workload."},
	},
}

var metadataObject = &object{
	name: "metadata", title: "metadata", doc: "What the playbook is called and where it is filed. Further keys are kept.", open: true,
	fields: []field{
		{name: "name", forms: asText, required: true, doc: "The name of the playbook."},
		{name: "path", forms: asText, doc: "The path in the catalog; the name when absent."},
		{name: "description", forms: asText, doc: "What the playbook is for."},
		{name: "labels", forms: asDict, each: asText, doc: "Labels to find the playbook by."},
		{name: "tags", forms: asList | asText, each: asText, doc: "Words to find the playbook by."},
		{name: "capabilities", forms: asList | asText, each: asText, doc: "What the playbook can do for those who look for one."},
		{name: "version", forms: asText, doc: "The author's own version number."},
		{name: "exposed_in_ui", forms: asFlag, doc: "Whether user interfaces show the playbook."},
		{name: "exposes_as_mcp", forms: asFlag, doc: "Whether the playbook is offered as a tool to agents; true when absent."},
		{name: "agent", forms: asFlag, doc: "Whether the playbook is an agent."},
		{name: "schedule", forms: asDict, object: scheduleObject, doc: "When the playbook is started by itself, once it is registered."},
		{name: "schedules", forms: asList, items: scheduleObject, each: asDict, doc: "The same where there are several."},
		{name: "strict_workload", forms: asFlag, doc: "Whether an execution is warned about inputs that the workload does not declare."},
	},
}

var keychainObject = &object{
	name: "keychain_entry", title: "a keychain entry", open: true,
	doc: "A credential under an alias. Further keys are settings of its provider.",
	fields: []field{
		{name: "name", forms: asText, required: true, doc: "The alias: auth: name, or {{ keychain.name.field }}."},
		{name: "kind", forms: asText, doc: "What sort of secret it is, such as secret_manager, bearer or oauth2."},
		{name: "credential", forms: asText, doc: "The name of the stored credential."},
		{name: "token_type", forms: asText, doc: "The type of the token."},
		{
			name: "scope", forms: asText, words: []string{"local", "shared", "global", "execution", "workflow", "catalog"},
			doc: "How widely the value is shared: local to the execution, shared with the executions it starts, or global for all executions of the playbook; local when absent.",
		},
		{
			name: "provider", forms: asText,
			doc: "Where the secret lives: env, file, vault, k8s, aws, aws_sts, gcp, gcp_iam, azure or azure_oauth; registered beforehand when absent.",
		},
		{name: "auth", forms: asText, doc: "The alias that authenticates to the provider."},
		{name: "map", forms: asDict, each: asText, doc: "Fields of the alias and the paths of their secrets."},
		{name: "region", forms: asText, doc: "The region of the secret."},
		{name: "allowed_regions", forms: asList, each: asText, doc: "The regions that may see the secret."},
		{name: "residency", forms: asText, words: []string{"none", "advisory", "strict"}, doc: "How strictly regions are kept; none when absent."},
		{name: "no_broker_fallback", forms: asFlag, doc: "Whether the secret may not be fetched through another region's broker."},
		{name: "auto_renew", forms: asFlag, doc: "Whether the token is renewed before it expires."},
		{name: "renew_config", forms: asDict, doc: "How the token is renewed where that differs: endpoint, method, headers, data or json, token_field and ttl_field."},
		{name: "type", forms: asText, doc: "The type of credential that tools take the value for, such as bearer or postgres."},
		{name: "ref", forms: asText, doc: "The reference of a secret without a map, or the name of the stored credential."},
		{name: "path", forms: asText, doc: "The reference of a secret without a map; the alias when absent."},
		{name: "ttl_seconds", forms: asNumber | asTemplate, doc: "How long the value is kept; by kind when absent, and never beyond what its issuer says."},
		{name: "endpoint", forms: asText, doc: "The address that gives the token, for oauth2 and http."},
		{name: "method", forms: asText, doc: "The method of the request; POST for oauth2, GET for http without data."},
		{name: "headers", forms: asDict, each: asText, doc: "Headers of the request."},
		{name: "params", forms: asDict, doc: "Parameters of the request's query."},
		{name: "data", forms: asAnything, doc: "The form that is sent, or the value of a static entry."},
		{name: "json", forms: asAnything, doc: "The JSON that is sent instead of a form."},
		{name: "token", forms: asText, doc: "The token of a bearer entry."},
		{name: "token_field", forms: asText, doc: "The field of the answer that holds the token; access_token for oauth2."},
		{name: "ttl_field", forms: asText, doc: "The field of the answer that holds the seconds the token lives; expires_in when absent."},
		{name: "target_audience", forms: asText, doc: "The service that a google_id_token is for."},
		{name: "service_account_secret", forms: asText, doc: "The reference of the secret that holds the service account of a google_id_token."},
		{name: "service_account_credential", forms: asText, doc: "The stored credential that holds the service account of a google_id_token."},
	},
}

var workbookObject = &object{
	name: "workbook_entry", title: "a workbook entry", open: true,
	doc: "A tool that steps call by name with kind: workbook. The tool's fields may also stand directly in the entry.",
	fields: []field{
		{name: "name", forms: asText, required: true, doc: "The name that steps call it by."},
		{name: "tool", forms: asDict, object: taskObject, doc: "The tool."},
		{name: "desc", forms: asText, doc: "What the tool is for."},
		{name: "description", forms: asText, doc: "What the tool is for."},
		{name: "sink", forms: asFlag | asDict, doc: "A mark that the tool writes to the system of record."},
	},
}

var executorObject = &object{
	name: "executor", title: "executor", doc: "Settings of the whole run.",
	fields: []field{
		{name: "requires", forms: asDict, object: requiresObject, doc: "What the playbook cannot do without."},
		{name: "spec", forms: asDict, object: executorSpecObject, doc: "How the workflow is run."},
		{
			name: "profile", forms: asText, words: []string{"local", "distributed", "auto"}, idle: "every playbook runs on whatever workers there are: remove it",
			doc: "The kind of installation the playbook was written for.",
		},
		{
			name: "kind", forms: asText, words: []string{"distributed", "local", "hybrid"}, idle: "every playbook runs on whatever workers there are: remove it",
			doc: "The kind of installation the playbook was written for.",
		},
		{name: "version", forms: asText, idle: "there is one version of the executor: remove it", doc: "The version of the executor."},
	},
}

var requiresObject = &object{
	name: "executor_requires", title: "executor.requires", doc: "What the playbook cannot do without.",
	fields: []field{
		{name: "tools", forms: asList, each: asText, doc: "Kinds of tools that workers must run."},
		{name: "features", forms: asList, each: asText, doc: "Abilities of the engine."},
	},
}

var executorSpecObject = &object{
	name: "executor_spec", title: "executor.spec", doc: "How the workflow is run.",
	fields: []field{
		{name: "entry_step", forms: asText, doc: "The step that starts; otherwise the one named start, otherwise the first."},
		{name: "final_step", forms: asText, doc: "A step that runs once when everything else is done."},
		{name: "no_next_is_error", forms: asFlag, doc: "Whether a step none of whose arcs fires is an error."},
		{name: "pool", forms: asText, doc: "The pool of workers that runs the steps."},
		{name: "timeout", forms: asSpan, doc: "How long the whole execution may take."},
		{name: "policy", forms: asDict, object: executorPolicyObject, doc: "Defaults and limits."},
		{name: "loop_mode", forms: asText, idle: "write spec: {mode: …} on each loop", doc: "How loops are run."},
	},
}

var executorPolicyObject = &object{
	name: "executor_policy", title: "executor.spec.policy", doc: "Defaults and limits of the run.",
	fields: []field{
		{name: "defaults", forms: asDict, object: executorDefaultsObject, doc: "What holds for steps that say nothing else."},
		{name: "limits", forms: asDict, object: executorLimitsObject, doc: "Bounds of the whole run."},
		{name: "results", forms: asDict, idle: "write output: {…} on the steps concerned", doc: "How results are stored."},
	},
}

var executorDefaultsObject = &object{
	name: "executor_defaults", title: "executor.spec.policy.defaults", doc: "What holds for steps that say nothing else.",
	fields: []field{
		{name: "timeout_s", forms: asSpan, doc: "How long one run of a step may take, in seconds."},
	},
}

// deadlineForm is the current way to bound a whole execution.
const deadlineForm = "executor: {spec: {timeout: …}}"

var executorLimitsObject = &object{
	name: "executor_limits", title: "executor.spec.policy.limits", doc: "Bounds of the whole run.",
	fields: []field{
		{name: "timeout_s", forms: asSpan, modern: deadlineForm, doc: "How long the whole execution may take, in seconds."},
		{name: "deadline_s", forms: asSpan, modern: deadlineForm, doc: "How long the whole execution may take, in seconds."},
		{name: "max_duration_s", forms: asSpan, modern: deadlineForm, doc: "How long the whole execution may take, in seconds."},
	},
}
