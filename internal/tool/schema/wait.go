package schema

var wait = &Kind{
	Name: "wait", Doc: "Waits for time to pass, or for somebody to send a signal to the execution. No worker is held meanwhile.",
	Returns: "after a time `{status: elapsed, waited_seconds}`; after a signal `{status, signal, data, by, at}` with `status` `received`, " +
		"or `approved` or `rejected` for an approval; with `on_timeout: continue` `{status: timeout, signal, waited_seconds}`",
	Fields: []Field{
		{Name: "duration", Aliases: []string{"for"}, Shape: Duration, Doc: "How long to wait."},
		{Name: "until", Shape: Text, Doc: "When to go on: a time such as `2030-01-31T12:00:00Z`, or seconds since 1970. A time that has passed is not waited for."},
		{Name: "signal", Shape: Text, Doc: "Name of the signal to wait for. One that was sent before is taken at once; each is taken once."},
		{Name: "approval", Shape: Flag, Default: "false", Doc: "Ask for a yes or a no: the form is `{approved, comment}`, the signal is named `approval` unless `signal` says otherwise."},
		{Name: "message", Shape: Text, Doc: "What the sender is asked for."},
		{Name: "form", Shape: Map, Doc: "What may be sent: a JSON Schema, or `{field: type}`, or `{field: {type, title, enum, default, required}}`."},
		{Name: "timeout", Aliases: []string{"timeout_seconds"}, Shape: Duration, Doc: "How long to wait for the signal; for ever when absent."},
		{Name: "on_timeout", Shape: Text, Words: []string{"fail", "continue"}, Default: "fail", Doc: "What the end of that time means."},
		{Name: "on_reject", Shape: Text, Words: []string{"fail", "continue"}, Default: "fail", Doc: "What a no means; a failure has the code `REJECTED`."},
	},
	Needs: []Need{{"duration", "until", "signal", "approval"}},
}
