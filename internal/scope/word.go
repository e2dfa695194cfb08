package scope

import "github.com/noetl/noetl-go/internal/jinja"

// Words with synonyms: playbooks of different ages compare with different
// spellings, and all of them hold.
var (
	StatusOK    = jinja.Word{Text: "success", Same: []string{"ok", "COMPLETED", "completed"}}
	StatusError = jinja.Word{Text: "error", Same: []string{"failed", "FAILED"}}

	EventDone  = jinja.Word{Text: "call.done", Same: []string{"step.done", "step.exit"}}
	EventError = jinja.Word{Text: "call.error", Same: []string{"step.failed"}}
	EventLoop  = jinja.Word{Text: "loop.done", Same: []string{"call.done", "step.done", "step.exit"}}
)
