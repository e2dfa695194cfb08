package event

import "strings"

// Type names a kind of event. Canonical spellings are the constants below;
// Canonical maps the older ones that logs and workers still use.
type Type string

const (
	PlaybookStarted   Type = "playbook_started"
	PlaybookCompleted Type = "playbook.completed"
	PlaybookFailed    Type = "playbook.failed"
	PlaybookCancelled Type = "playbook.cancelled"

	StepEnter   Type = "step.enter"
	StepExit    Type = "step.exit"
	StepSkipped Type = "step.skipped"
	StepFailed  Type = "step.failed"
	LoopDone    Type = "loop.done"
	StepReused  Type = "step.reused" // it ran in another execution, whose result is taken over

	RerunPrepared Type = "rerun.prepared" // everything that is reused is in the log; the rest runs now

	NextEvaluated Type = "next.evaluated"
	CtxUpdated    Type = "ctx.updated"

	TimerSet    Type = "timer.set"
	TimerFired  Type = "timer.fired"
	ChildIssued Type = "child.issued" // an execution that a command asked for

	SignalReceived Type = "signal.received" // somebody sent something to the execution; see SentSignal
	SignalRefused  Type = "signal.refused"  // one that was kept does not fit the command that waits for it

	FrameCommitted Type = "frame.committed" // all rows of a cursor loop's frame have ended

	CommandIssued    Type = "command.issued"
	CommandClaimed   Type = "command.claimed"
	CommandStarted   Type = "command.started"
	CommandCompleted Type = "command.completed"
	CommandFailed    Type = "command.failed"
	CommandCancelled Type = "command.cancelled"
	CommandReleased  Type = "command.released"
	CommandParked    Type = "command.parked" // it waits without a worker; see Park
	CommandHeartbeat Type = "command.heartbeat"
	CallDone         Type = "call.done"
	CallError        Type = "call.error"

	MessageDeduplicated Type = "subscription.message.deduplicated" // a start was suppressed as a duplicate
)

var aliases = map[Type]Type{
	"playbook.initialized": PlaybookStarted,
	"playbook.started":     PlaybookStarted,
	"playbook_completed":   PlaybookCompleted,
	"playbook_failed":      PlaybookFailed,
	"playbook_cancelled":   PlaybookCancelled,
	"execution.cancelled":  PlaybookCancelled,
	"step_enter":           StepEnter,
	"step_started":         StepEnter,
	"step_completed":       StepExit,
	"step_skipped":         StepSkipped,
	"step_failed":          CommandFailed,
	"action_started":       CommandStarted,
	"action_done":          CallDone,
	"action_completed":     CommandCompleted,
	"action_failed":        CommandFailed,
	"signal_received":      SignalReceived,
	"signal.sent":          SignalReceived,
	"signal_refused":       SignalRefused,
}

// Canonical is the present-day spelling of t; unknown types are themselves.
func (t Type) Canonical() Type {
	if c, ok := aliases[t]; ok {
		return c
	}
	return t
}

// IsTerminal tells whether t ends an execution.
func (t Type) IsTerminal() bool {
	switch t.Canonical() {
	case PlaybookCompleted, PlaybookFailed, PlaybookCancelled:
		return true
	}
	return false
}

// IsExecution tells whether t is about the execution as a whole.
func (t Type) IsExecution() bool { return t.Canonical() == PlaybookStarted || t.IsTerminal() }

// IsCommandEnd tells whether t ends a command.
func (t Type) IsCommandEnd() bool {
	switch t.Canonical() {
	case CommandCompleted, CommandFailed, CommandCancelled:
		return true
	}
	return false
}

// DerivedStatus is the status word of an event whose producer gave none: what
// the words of the type's name say, and that something goes on when none of
// them is about an end.
func (t Type) DerivedStatus() string {
	derived := StatusRunning
	for _, w := range strings.FieldsFunc(string(t), func(r rune) bool { return r == '.' || r == '_' || r == '-' || r == ':' }) {
		if status, ok := endWords[strings.ToLower(w)]; ok {
			derived = status // the last word counts: loop.exit.failed has failed
		}
	}
	return derived
}

// endWords are the words of event types that tell of an end, and of which.
var endWords = map[string]string{
	"done": StatusCompleted, "exit": StatusCompleted, "completed": StatusCompleted, "committed": StatusCompleted, "received": StatusCompleted,
	"error": StatusFailed, "failed": StatusFailed, "lettered": StatusFailed,
	"cancelled": StatusCancelled, "canceled": StatusCancelled,
	"abandoned": StatusAbandoned, "skipped": StatusSkipped,
}

// Status words of events, executions and commands.
const (
	StatusPending   = "PENDING"
	StatusClaimed   = "CLAIMED"
	StatusStarted   = "STARTED"
	StatusWaiting   = "WAITING"
	StatusRunning   = "RUNNING"
	StatusEntered   = "ENTERED"
	StatusSkipped   = "SKIPPED"
	StatusContext   = "CONTEXT"
	StatusCompleted = "COMPLETED"
	StatusFailed    = "FAILED"
	StatusCancelled = "CANCELLED"
	StatusAbandoned = "ABANDONED"
	StatusReused    = "REUSED"

	StatusDeduplicated = "DEDUPLICATED"

	// Tool statuses, carried by command.completed.
	ToolSuccess = "success"
	ToolError   = "error"
	ToolTimeout = "timeout"
)

// IsFinal tells whether an execution or command status is an end state.
func IsFinal(status string) bool {
	return status == StatusCompleted || status == StatusFailed || status == StatusCancelled
}
