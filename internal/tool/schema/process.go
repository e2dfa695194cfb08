package schema

// Kinds that run in the worker or on its machine.

var noop = &Kind{
	Name: "noop", Doc: "Does nothing: an anchor for policy rules, or a fixed value.",
	Returns: "`result` when given, else `{status, message}`",
	Fields: []Field{
		{Name: "result", Shape: Any, Doc: "The data of the step."},
		{Name: "message", Shape: Text, Default: "noop", Doc: "A word to leave in the result."},
	},
}

var python = &Kind{
	Name: "python", Doc: "Runs Python code; each input is a name in its scope.",
	Returns: "the global `result`, else what `main()` or a top-level `return` gives, else `{stdout, stderr}`",
	Fields: []Field{
		{Name: "code", Shape: Code, Doc: "The code. Its braces are its own unless `spec.render` is true or it is one expression."},
		{Name: "code_b64", Aliases: []string{"code_base64"}, Shape: Code, Doc: "The code in base64."},
		{Name: "script", Shape: Map, Doc: "Code kept elsewhere: `{source: {type: inline or file, code or path}}`."},
		{Name: "libs", Shape: List | Map, Doc: "Imports: a list of modules, or a map of names to modules or `{from, import}`."},
		{Name: "env", Shape: Map, Doc: "Environment variables."},
		{Name: "cwd", Shape: Text, Doc: "Working directory on the worker."},
		{Name: "assert", Shape: Map, Doc: "Names the input must have (`expects`) and the result must have (`returns`)."},
		{Name: "deps", Shape: Any, Doc: "Packages to install.", Unavailable: "install the packages for the worker's interpreter"},
		{Name: "auth", Shape: Any, Doc: "Credentials for the code.", Unavailable: "pass them as input: {token: \"{{ keychain.name.token }}\"}"},
		{Name: "iterator", Shape: Any, Doc: "A loop of an older language.", Unavailable: "write loop: {in: …, iterator: …} on the step"},
	},
	Needs: []Need{{"code", "code_b64", "script"}},
}

var shell = &Kind{
	Name: "shell", Doc: "Runs commands one after the other and stops at the first that fails.",
	Returns: "`{exit_code, returncode, stdout, stderr, commands, duration_ms}`, and `json` with `parse: json`",
	Fields: []Field{
		{Name: "cmds", Aliases: []string{"cmd", "command"}, Shape: Code | List, Doc: "A list of commands, or one script."},
		{Name: "shell", Shape: Text, Default: "sh", Doc: "The program that runs them."},
		{Name: "cwd", Shape: Text, Doc: "Working directory on the worker."},
		{Name: "env", Shape: Map, Doc: "Environment variables; of the worker's own, only PATH and the like are passed on."},
		{Name: "parse", Shape: Code, Words: []string{"json"}, Doc: "Read stdout as one JSON value."},
		{Name: "args", Shape: List, Doc: "Arguments of the program.", Unavailable: "write them into the command"},
		{Name: "exports", Shape: Any, Doc: "Variables for later steps.", Unavailable: "print JSON, set parse: json and read output.json"},
	},
	Needs: []Need{{"cmds"}},
}

var container = &Kind{
	Name: "container", Doc: "Runs a container as a job and waits for it without holding a worker.",
	Returns: "how the job ended",
	Fields: []Field{
		{Name: "image", Shape: Text, Doc: "The image."},
		{Name: "command", Shape: Text | List, Doc: "The program."},
		{Name: "args", Shape: List, Doc: "Its arguments."},
		{Name: "env", Shape: List | Map, Doc: "Variables: a map, or a list of `{name, value}` and `{name, value_from}`."},
		{Name: "resources", Shape: Map, Doc: "`requests` and `limits`."},
		{Name: "namespace", Shape: Text, Default: "noetl", Doc: "Where the job is made."},
		{Name: "service_account", Shape: Text, Doc: "The account it runs as."},
		{Name: "backoff_limit", Shape: Number, Default: "0", Doc: "Retries by the cluster."},
		{Name: "restart_policy", Shape: Text, Words: []string{"Never", "OnFailure", "Always"}, Default: "Never", Doc: "What the cluster does after an exit."},
		{Name: "node_selector", Shape: Map, Doc: "Labels a node must have."},
		{Name: "tolerations", Shape: List, Doc: "Taints to put up with."},
		{Name: "volumes", Shape: List, Doc: "Volumes of the pod."},
		{Name: "volume_mounts", Shape: List, Doc: "Where they appear."},
		{Name: "runtime", Shape: Map, Doc: "The same settings as one block."},
		{Name: "script", Shape: Code | Map, Doc: "A script to run inside."},
	},
	Needs: []Need{{"image", "runtime"}},
}

var script = &Kind{
	Name: "script", Doc: "Runs a script as a job of the cluster.",
	Returns: "`{status, job_name, output, exit_code, …}`",
	Fields: []Field{
		{Name: "script", Shape: Map, Doc: "Where the script is: `{uri, source: {type, …}}`."},
		{Name: "job", Shape: Map, Doc: "Image, namespace, resources and the like of the job."},
		{Name: "args", Shape: List, Doc: "Arguments of the script."},
	},
	Needs: []Need{{"script"}},
}
