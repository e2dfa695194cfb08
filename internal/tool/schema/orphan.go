package schema

const useAnother = "use python, shell or http instead"

// orphans are kinds of the language that no worker runs. Playbooks that name
// one are valid, and fail when they get there.
var orphans = []*Kind{
	{
		Name: "agent", Doc: "Runs an agent of some framework.", Returns: "the agent's answer", NoWorker: useAnother,
		Fields: []Field{
			{Name: "framework", Shape: Text, Words: []string{"adk", "langchain", "custom", "noetl"}, Doc: "Framework."},
			{Name: "entrypoint", Shape: Text, Doc: "`module:attribute`, or a path in the catalog."},
			{Name: "entrypoint_mode", Shape: Text, Words: []string{"factory", "callable"}, Doc: "What the entry point is."},
			{Name: "entrypoint_args", Shape: Map, Doc: "Its arguments."},
			{Name: "invoke_method", Shape: Text, Doc: "Method to call."},
			{Name: "invoke_kwargs", Shape: Map, Doc: "Arguments of the method."},
			{Name: "payload", Shape: Any, Doc: "What to hand over."},
			{Name: "input_arg", Shape: Text, Doc: "Parameter that takes it."},
			{Name: "on_failure", Shape: Map, Doc: "What to do about a failure."},
		},
	},
	{
		Name: "gcs", Doc: "Uploads a file to Google Cloud Storage.", Returns: "`{status, uri, size}`", NoWorker: useAnother,
		Fields: []Field{
			{Name: "source", Shape: Text, Doc: "File."},
			{Name: "destination", Shape: Text, Doc: "`gs://` address."},
			{Name: "credential", Aliases: []string{"auth"}, Shape: Text | Map, Doc: "The credential."},
			{Name: "content_type", Shape: Text, Doc: "Its type."},
			{Name: "metadata", Shape: Map, Doc: "Remarks kept with it."},
		},
	},
	{
		Name: "rhai", Doc: "Runs a Rhai script.", Returns: "its last value", NoWorker: useAnother,
		Fields: []Field{
			{Name: "code", Aliases: []string{"script"}, Shape: Code, Doc: "The script."},
		},
	},
	{
		Name: "wasm", Doc: "Runs a WebAssembly plug-in.", Returns: "its answer", NoWorker: useAnother,
		Fields: []Field{
			{Name: "plugin", Shape: Map, Doc: "`{path, version}`."},
			{Name: "entry", Shape: Text, Doc: "Function to call."},
		},
	},
	{
		Name: "provider", Doc: "Brings cloud resources into a wanted state.", Returns: "what changed", NoWorker: useAnother,
		Fields: []Field{
			{Name: "provider", Shape: Text, Doc: "Which cloud."},
			{Name: "runtime", Shape: Text, Doc: "How to talk to it."},
			{Name: "action", Shape: Text, Doc: "What to do."},
			{Name: "service", Shape: Text, Doc: "Service of a short action."},
			{Name: "dry_run", Shape: Flag, Default: "true", Doc: "Only say what would be done."},
			{Name: "auth", Shape: Text | Map, Doc: "The credential."},
			{Name: "poll", Shape: Map, Doc: "How to wait for it."},
			{Name: "endpoint", Shape: Text, Doc: "Server, for tests."},
			{Name: "stack", Shape: Text, Doc: "What it belongs to."},
			{Name: "confirm", Shape: Text, Doc: "Digest of the plan to carry out."},
			{Name: "reconcile", Shape: Text, Words: []string{"report", "enforce", "adopt"}, Default: "report", Doc: "What to do about differences."},
			{Name: "known_desired", Shape: Any, Doc: "The state last wanted."},
			{Name: "guard", Shape: Map, Doc: "What must hold before anything is done."},
		},
	},
	open("gateway", "Belongs to an older language."),
	open("iterator", "Belongs to an older language; write loop on the step."),
	open("playbooks", "Belongs to an older language; use playbook."),
	open("secrets", "Belongs to an older language; declare a keychain."),
}

func open(name, doc string) *Kind {
	return &Kind{Name: name, Doc: doc, Returns: "nothing", NoWorker: useAnother, Open: true}
}
