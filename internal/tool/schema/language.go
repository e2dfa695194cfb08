package schema

// Kinds that refer to other parts of the language.

var playbook = &Kind{
	Name: "playbook", Doc: "Runs another playbook from the catalog as a child.",
	Returns: "with `return_result` the child's result, with `return_step` that step's data beside `{status, execution_id, path}`, with `wait` the latter alone; without waiting `{status: started, execution_id, path, async}`",
	Fields: []Field{
		{Name: "path", Shape: Text, Doc: "Its path in the catalog."},
		{Name: "catalog_id", Shape: Text, Doc: "Its id in the catalog."},
		{Name: "version", Shape: Text, Doc: "Its version; the latest when absent."},
		{Name: "payload", Aliases: []string{"with"}, Shape: Any, Doc: "Its workload, when there is no `input`."},
		{Name: "execution_pool", Aliases: []string{"pool"}, Shape: Text, Doc: "The pool of workers it runs in; that of its parent when absent."},
		{Name: "return_step", Shape: Text, Doc: "Wait, and return the data of this step of it."},
		{Name: "return_result", Shape: Flag, Default: "false", Doc: "Wait, and return its result."},
		{Name: "result_step", Shape: Text, Doc: "The step whose data is its result."},
		{Name: "wait", Shape: Flag, Default: "false", Doc: "Wait for its end."},
		{Name: "poll_interval", Shape: Duration, Doc: "How often to look.", Unavailable: "remove it: the end of the child wakes the step up"},
	},
	Needs: []Need{{"path", "catalog_id"}},
}

var workbook = &Kind{
	Name: "workbook", Doc: "Stands for a tool of the playbook's workbook; whatever is written beside it wins over the tool's own.",
	Returns: "what that tool returns", Open: true,
	Fields: []Field{
		{Name: "task", Shape: Text, Doc: "Name of the entry; `name` says the same."},
	},
}

var taskSequence = &Kind{
	Name: "task_sequence", Doc: "What a list of tasks is called in the log; it is not written.",
	Returns: "a map of the tasks' data by label", Open: true, NoWorker: "write the tasks as a list under tool",
}
