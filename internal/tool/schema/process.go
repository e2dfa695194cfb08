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
	Returns: "the global `result`, else what `main()` or a top-level `return` gives, else `{stdout, stderr}`; a `{_file: path, media_type}` in it becomes `{_ref, bytes, media_type, sha256}`",
	Fields: []Field{
		{Name: "code", Shape: Code, Doc: "The code. Its braces are its own unless `spec.render` is true or it is one expression."},
		{Name: "code_b64", Aliases: []string{"code_base64"}, Shape: Code, Doc: "The code in base64."},
		{Name: "script", Shape: Map, Doc: "Code kept elsewhere: `{uri, source: {type: inline, file, http, gcs or s3, …}}`."},
		{Name: "libs", Shape: List | Map, Doc: "Imports: a list of modules, or a map of names to modules or `{from, import}`."},
		{Name: "env", Shape: Map, Doc: "Environment variables."},
		{Name: "cwd", Shape: Text, Doc: "Working directory on the worker. Default: a private one that goes with the call."},
		{Name: "python", Shape: Text, Doc: "The interpreter: a program name or a path. Default: the worker's."},
		{Name: "deps", Shape: Any, Doc: "Packages: a list of requirements as pip takes them, installed once per worker into an environment of their own, or `{packages, sys_path, venv_path}`."},
		{Name: "files", Shape: Map, Doc: "Stored data as files: names to references such as `{{ step._ref }}`. The code finds the paths in `files`."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Any, Doc: "Credentials for the code, by alias or as a map of names to aliases: variables `NOETL_AUTH_<NAME>_<FIELD>`, and those that programs know, such as `PGPASSWORD`."},
		{Name: "resources", Shape: Map, Doc: "Limits: `memory` of a process, `cpu` seconds, `disk` size of a file, `timeout`."},
		{Name: "assert", Shape: Map, Doc: "Names the input must have (`expects`) and the result must have (`returns`)."},
		{Name: "iterator", Shape: Any, Doc: "A loop of an older language.", Unavailable: "write loop: {in: …, iterator: …} on the step"},
	},
	Needs: []Need{{"code", "code_b64", "script"}},
}

var shell = &Kind{
	Name: "shell", Doc: "Runs commands one after the other and stops at the first that fails.",
	Returns: "`{exit_code, returncode, stdout, stderr, commands, duration_ms}`, `json` with `parse: json`, `exports`, and `stdout_ref`, `stderr_ref` of output above 1 MiB",
	Fields: []Field{
		{Name: "cmds", Aliases: []string{"cmd", "command"}, Shape: Code | List, Doc: "A list of commands, or one script."},
		{Name: "shell", Shape: Text, Doc: "The program that runs them. Default: bash, or sh where there is none."},
		{Name: "cwd", Shape: Text, Doc: "Working directory on the worker. Default: a private one that goes with the call; in a local run, where that was started."},
		{Name: "env", Shape: Map, Doc: "Environment variables; of the worker's own, only PATH and the like are passed on."},
		{Name: "parse", Shape: Code, Words: []string{"json"}, Doc: "Read stdout as one JSON value."},
		{Name: "args", Shape: List, Doc: "Arguments of the commands: `$1`, `$2` and so on."},
		{Name: "exports", Shape: List | Text, Doc: "Variables of the commands that the result shows under `exports`."},
		{Name: "files", Shape: Map, Doc: "Stored data as files: names to references such as `{{ step._ref }}`. Their paths are in `NOETL_FILE_<NAME>`."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Any, Doc: "Credentials for the commands, by alias or as a map of names to aliases: variables `NOETL_AUTH_<NAME>_<FIELD>`, and those that programs know, such as `PGPASSWORD`."},
		{Name: "resources", Shape: Map, Doc: "Limits: `memory` of a process, `cpu` seconds, `disk` size of a file, `timeout`."},
	},
	Needs: []Need{{"cmds"}},
}

var container = &Kind{
	Name: "container", Doc: "Runs a container as a job of a Kubernetes cluster or of a Docker engine, and waits for it without holding a worker. Both are tested against servers of our own that speak their protocols.",
	Returns: "`{terminal_state, job_name, job_uid, namespace, backend, pod_name, exit_code, reason, completed_at, stdout, stderr, stdout_uri, stderr_uri, result, via}`; `result` is what the job left in `/noetl/result.json`, else its last line of output when that is JSON. When a watcher calls back, what it reports",
	Fields: []Field{
		{Name: "image", Shape: Text, Doc: "The image."},
		{Name: "command", Shape: Text | List, Doc: "The program with its first arguments; text is run by `/bin/sh`."},
		{Name: "args", Shape: Text | List, Doc: "Its arguments."},
		{Name: "env", Shape: List | Map, Doc: "Variables: a map, or a list of `{name, value}` and `{name, value_from: {secret_name, secret_key}}`. The step's input is in `NOETL_INPUT`, as JSON."},
		{Name: "backend", Shape: Text, Words: []string{"auto", "kubernetes", "docker", "podman"}, Default: "auto", Doc: "Where it runs: in the worker's cluster, else at the Docker engine of its machine."},
		{Name: "image_pull_policy", Shape: Text, Words: []string{"Always", "IfNotPresent", "Never"}, Doc: "Whether the image is fetched; else as the engine is used to."},
		{Name: "resources", Shape: Map, Doc: "`requests` and `limits`; a Docker engine knows the limits of `cpu` and `memory`."},
		{Name: "namespace", Shape: Text, Default: "noetl", Doc: "Where the job is made; the worker may have another default."},
		{Name: "service_account", Shape: Text, Doc: "The account it runs as."},
		{Name: "backoff_limit", Shape: Number, Default: "0", Doc: "Retries by the cluster."},
		{Name: "restart_policy", Shape: Text, Words: []string{"Never", "OnFailure"}, Default: "Never", Doc: "What the cluster does after an exit."},
		{Name: "ttl_seconds_after_finished", Shape: Duration, Default: "3600", Doc: "How long the job stays after its end."},
		{Name: "node_selector", Shape: Map, Doc: "Labels a node must have."},
		{Name: "tolerations", Shape: List, Doc: "Taints to put up with: `{key, operator, value, effect, toleration_seconds}`."},
		{Name: "volumes", Shape: List, Doc: "Volumes: `{name}` with one of `empty_dir`, `persistent_volume_claim`, `config_map`, `secret`."},
		{Name: "volume_mounts", Shape: List, Doc: "Where they appear: `{name, mount_path, read_only, sub_path}`."},
		{Name: "poll", Shape: Flag, Default: "true", Doc: "Look at the job from time to time. Without, a watcher has to call back; one look is left for when the job's time is over."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Any, Doc: "Credentials, by alias or as a map of names to aliases: those of type `registry` for pulling the image, others as variables `NOETL_AUTH_<NAME>_<FIELD>` and those that programs know. A cluster keeps them in a Secret that goes with the job."},
		{Name: "runtime", Shape: Map, Doc: "The same settings as one block, with `provider` for `backend`; what stands beside it wins."},
		{Name: "script", Shape: Code | Map, Doc: "A script to run inside, as text or as `{uri, source: {type, …}}`: by `command`, else by what its first line names, else by `/bin/sh`."},
	},
	Needs: []Need{{"image", "runtime"}},
}

var script = &Kind{
	Name: "script", Doc: "Runs a Python script as a job, like `container`.",
	Returns: "`{status: completed or failed, job_name, namespace, pod_name, execution_time, output, succeeded, failed, exit_code}` and what `container` returns",
	Fields: []Field{
		{Name: "script", Shape: Map, Doc: "Where the script is: `{uri, source: {type: inline, file, http, gcs or s3, …}}`."},
		{Name: "job", Shape: Map, Doc: "The job: `image` (python:3.11-slim), `install_dependencies`, `namespace`, `resources`, `env`, `timeout` (600), `backoff_limit` (3), `ttl_seconds_after_finished` (300) and other settings of `container`."},
		{Name: "args", Shape: List, Doc: "Arguments of the script. Without, it gets the input as one argument in JSON."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Any, Doc: "Credentials, as for `container`."},
	},
	Needs: []Need{{"script"}},
}
