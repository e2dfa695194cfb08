// Package playbook turns an author's YAML into a checked program: a typed,
// normalised document in which every older spelling has become the current one
// and every complaint has a place. It must not know how playbooks are run.
package playbook

import (
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// Pos is a place in the source, 1-based. The zero Pos means "no place".
type Pos struct{ Line, Col int }

// Playbook is a parsed and normalised document. It is immutable.
type Playbook struct {
	APIVersion string // normalised: noetl.io/v2
	Kind       string // "Playbook"
	Metadata   Metadata
	Workload   *jinja.Dict // default inputs as written; never nil
	// Rendered are the keys of Workload that hold templates, in their order.
	// They are evaluated once, when an execution starts.
	Rendered []Assignment
	Keychain []any // declarations as written
	Executor Executor
	Steps    []*Step // in workflow order, never empty
	Entry    int     // index of the step that starts
}

// Step finds a step by name.
func (p *Playbook) Step(name string) (*Step, bool) {
	for _, s := range p.Steps {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Metadata names the playbook.
type Metadata struct {
	Name        string
	Path        string // falls back to Name
	Description string
	Labels      map[string]string
	// StrictWorkload asks for a warning about inputs that the workload does
	// not declare.
	StrictWorkload bool
	// Schedules are when it is started by itself; their paths are not filled in.
	Schedules []event.ScheduleSpec
	Extra     *jinja.Dict // further keys as written
}

// Executor holds run-wide settings.
type Executor struct {
	EntryStep     string
	FinalStep     string
	NoNextIsError bool
	RequiredTools []string
	Pool          string        // worker pool of executions that name none
	StepTimeout   time.Duration // bound of a step's run that sets none; 0 = none
	Deadline      time.Duration // bound of the whole execution; 0 = none
}

// Step is one node of the workflow.
type Step struct {
	Name  string
	Desc  string
	Pos   Pos
	Index int // position in Playbook.Steps

	// Tasks run in order as one command. Empty for a step without a tool,
	// which completes without a command.
	Tasks []*Task
	// Single tells that the author wrote one tool object, not a list: the
	// step's result is the tool's data, not a map by label.
	Single bool
	// Input is the step-level input/args map, nil when absent.
	Input *jinja.Tree

	Loop *Loop
	When *jinja.Template // guard, nil = always
	Set  []Assignment    // applied when a run of the step completes

	Mode Mode // how Arcs fire
	Arcs []*Arc
	// NoMatchIsError makes it an error of the step that none of its arcs
	// fires, whatever the executor says.
	NoMatchIsError bool

	Admit      *jinja.Template // admission, asked before When; nil = always
	AdmitWaits bool            // a token that is not admitted waits, instead of skipping the step

	Timeout    time.Duration // bound of one run; 0 = none
	Deadline   time.Duration // the same, counted from the start of the execution
	Output     *Output       // what becomes of the result; nil = the usual
	BestEffort bool          // loops: failed iterations do not fail the step
}

// Kind is the tool kind of the step's command: the tool's own for a single
// tool, "task_sequence" for a list, "" without a tool.
func (s *Step) Kind() string {
	switch {
	case len(s.Tasks) == 0:
		return ""
	case s.Single:
		return s.Tasks[0].Kind
	}
	return "task_sequence"
}

// Task is one tool call within a step.
type Task struct {
	Label  string // unique within the step; task_<i> when unnamed
	Kind   string
	Pos    Pos
	Config *jinja.Tree  // the tool's own fields: without kind, name, input, args, set, spec, output
	Input  *jinja.Tree  // nil when absent
	Set    []Assignment // applied after the task with output = its data
	Policy *Policy      // nil when absent
	Raw    any          // the task as written (normalised spellings), for the wire's tool_config
	// NeedsAll tells that code in the task reads the context by means no
	// analysis sees (python's `context` or `variables`), so that a command must
	// carry every value.
	NeedsAll bool
}

// Policy decides what happens after a task, by the first matching rule.
type Policy struct{ Rules []Rule }

// Rule is one `when … then …` of a policy; a nil When always matches.
type Rule struct {
	When *jinja.Template
	Then Action
	Pos  Pos
}

// Verb is what a policy rule does.
type Verb string

// The verbs of policy rules.
const (
	Continue Verb = "continue"
	Retry    Verb = "retry"
	Jump     Verb = "jump"
	Break    Verb = "break"
	Fail     Verb = "fail"
)

// Action is the `then` of a rule. An empty Do means the default by outcome:
// continue on success, fail on error.
type Action struct {
	Do       Verb
	Attempts int    // retry: total tries, at least 1
	Backoff  string // none, linear, exponential, fixed
	Delay    float64
	To       string // jump: a label, or "previous"
	Set      []Assignment
}

// Scope says where an assignment's value lives.
type Scope string

// The scopes of `set` keys. Bare keys are ScopeCtx.
const (
	ScopeCtx  Scope = "ctx"
	ScopeIter Scope = "iter"
	ScopeStep Scope = "step"
)

// Assignment is one entry of a `set` map, in document order.
type Assignment struct {
	Scope Scope
	Key   string // without the scope prefix; may contain dots
	Value *jinja.Tree
	Pos   Pos

	at place // of the key, for complaints
}

// Mode says how many arcs may fire.
type Mode string

// The modes of a router.
const (
	Exclusive Mode = "exclusive" // the first true arc
	Inclusive Mode = "inclusive" // every true arc
)

// Arc leads from a step to another.
type Arc struct {
	Target string
	When   *jinja.Template // nil = always
	Set    []Assignment
	// OnError tells that the arc may fire for a failed run: its condition looks
	// at event.name for an error, at output.status or output.error, or at error.
	OnError bool
	Pos     Pos
}

// LoopMode says how iterations are issued.
type LoopMode string

// The loop modes.
const (
	Sequential LoopMode = "sequential"
	Parallel   LoopMode = "parallel"
	Cursor     LoopMode = "cursor"
)

// Loop repeats a step over a collection.
type Loop struct {
	Pos         Pos
	In          *jinja.Tree
	InText      string // as written, for messages
	Iterator    string
	Mode        LoopMode
	MaxInFlight *jinja.Tree // nil = as many as the server allows
	Cursor      *CursorLoop // nil unless Mode is Cursor
}

// CursorLoop takes its items in frames from a source, until one is empty.
type CursorLoop struct {
	Kind           string
	Task           *Task // claims the next frame
	MaxRows        int   // rows of a frame, at least 1
	RowConcurrency int   // rows of a frame worked on side by side, at least 1
	WholeFrame     bool  // the step runs once per frame, with the list of its rows
}

// Output says what becomes of a step's result.
type Output struct {
	Select    []Selection // values that stay at hand when the result is kept elsewhere
	InlineMax int         // bytes up to which the result travels with its event; 0 = the server's limit
	Store     string      // where a large result is kept; "" = the server's choice
	Scope     string      // how long it is kept: with its step, execution, workflow, or for good
	TTL       string      // how long at most: 30m, 1h, 1d, forever
	As        string      // a second name for the result
}

// Selection picks a value out of a result.
type Selection struct {
	Path []string
	As   string
}
