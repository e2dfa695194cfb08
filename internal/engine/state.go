package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
)

// State is the fold of one execution's log. It holds what later decisions can
// need and nothing else: ended commands leave only their results behind.
type State struct {
	head                             // everything that is copied whole at Begin
	steps    map[string]*step        // steps that were entered or skipped
	open     map[event.ID]*Command   // commands without an end, by issuing event
	commands map[string]*Command     // the same, by command id
	ended    map[event.ID]endedEntry // the newest ended commands, for idempotent answers
	vars     map[string]*value       // durable variables
	timers   map[event.ID]*timer     // alarms that have not fired, by the event that set them
	workload *jinja.Dict
	fetch    scope.Fetch // finds the whole of summarised values; lent from outside
	missing  string      // a value that fetch did not find
	prog     *Program    // knows the further names of results; lent by who decides

	journaling bool
	epoch      uint64
	saved      head
	undo       []func()
}

// head holds the state's scalars and copy-on-write slices.
type head struct {
	id, catalogID, parentID event.ID
	path                    string
	version                 int
	pool                    string
	trace                   json.RawMessage
	actor                   *event.Actor
	parent                  Parent
	depth                   int             // executions this one is within
	parentIter              json.RawMessage // the parent's iteration that started this execution
	preparing               bool            // what a rerun takes over is not complete yet

	seq         int64
	lastEventID event.ID
	lastType    event.Type
	lastNode    string
	updatedAt   time.Time
	startedAt   time.Time
	endedAt     time.Time
	status      string
	errorText   string
	currentStep string

	order     []string   // step names in order of first appearance
	loops     []*run     // loop runs that are still open, in order of entry
	unrouted  []*run     // ended runs whose arcs were not evaluated, by end
	offers    []offer    // tokens waiting at their target, by arrival
	parked    []*Command // parked commands whose timer or child is not arranged yet
	signals   []*signal  // sent before anybody waited for them, oldest first
	signalled []*Command // parked commands for which a signal came that is not handed over yet
	pending   []queued   // unclaimed commands, oldest first, from pendingAt on
	pendingAt int
	turn      int64      // of the command that was queued last
	unhandled int        // failed runs nobody handled
	endRing   []event.ID // keys of ended, oldest first
}

// endedKept bounds how many ended commands are remembered by event id.
const endedKept = 512

type endedEntry struct{ cmd *Command }

// queued is a command's place among those that wait for a worker. A command
// that waits again has a later turn, and its old place means nothing.
type queued struct {
	cmd  *Command
	turn int64
}

func (q queued) waits() bool { return q.cmd.Status == event.StatusPending && q.cmd.turn == q.turn }

// offer is a token: an arc fired and its target has not been entered yet.
type offer struct {
	target string
	from   string // step whose run fired the arc; "" for the entry
	cause  event.ID
}

// step is what the fold knows of one step.
type step struct {
	name   string
	runs   int
	cur    *run
	result *scope.Value // of the last run that produced one; nil while undefined
	loop   bool
	kind   string       // of its last command
	routed *routeDetail // how its last ended run was routed
	epoch  uint64
}

// phase is where a run stands.
type phase uint8

const (
	running phase = iota
	completed
	failed
	skipped
)

// run is one entry into a step.
type run struct {
	step    string
	gen     int
	phase   phase
	entered event.ID
	ended   event.ID // the event that ended it
	timer   event.ID // its timer.set, when it has a bound
	routed  bool
	handled bool // failed, and an error arc took it up
	openCmd int  // commands without an end

	next, succeeded, faulted int             // loops: first index not issued, iterations by end
	applied                  int             // sequential loops: iterations whose variables are written
	vars                     json.RawMessage // loops: the values of the command issued last

	updates json.RawMessage // context updates its command asked for
	value   *scope.Value
	errText string
	errRaw  json.RawMessage
	reason  string

	enteredAt, endedAt time.Time
	from               []string // steps whose arcs led here
	reused             event.ID // the execution whose outcome this is; 0 for a run of our own
	parts              int      // reused results that follow in events of their own
	collected          [][]rawJSON
	skip               *endDetail // why it was passed over

	loop   *loopRun
	cursor *cursorRun
	epoch  uint64
}

// loopRun is the part of a run that only loops have. It is shared by all saved
// copies of the run; its elements change through setSlot and put.
type loopRun struct {
	iterator string
	parallel bool
	window   int
	total    int
	items    []json.RawMessage       // nil when the items are 0 … total-1, or not fetched yet
	itemsRef string                  // where the items are kept when they are too large for the log
	shared   json.RawMessage         // values common to all iterations, frozen at entry
	slots    slots                   // per index
	refs     map[int]scope.Reference // results that are only summaries
	errors   map[int]string
	updates  map[int]json.RawMessage
}

type mark uint8

const (
	notIssued mark = iota
	wasIssued
	hasSucceeded
	hasFailed
)

// Command is an issued command as the fold knows it.
type Command struct {
	ID          string
	EventID     event.ID
	Step        string
	Kind        string
	Gen         int
	Index       int // iteration, -1 outside loops
	Status      string
	Worker      string
	Attempt     int
	MaxAttempts int
	LeaseUntil  time.Time // as of the claim; heartbeats renew it in the projection
	CreatedAt   time.Time
	ClaimedAt   time.Time
	EndedAt     time.Time
	EndedBy     event.ID // the event that ended it
	Error       string

	turn         int64 // its place among those that wait for a worker
	budget       int   // claims it may have without being woken in between
	place        *event.CursorPlace
	called       *event.Event    // a call from outside that came before the command was parked
	wait         *waiting        // set while it is parked
	resume       *event.Resume   // set when it was parked before
	vars         json.RawMessage // values its templates mention
	data, errRaw json.RawMessage // from a separate call.done, until the end arrives
	ref          *scope.Reference
	epoch        uint64
}

// value is a variable: its JSON, decoded when first read, and where it is kept
// when it is large.
type value struct {
	raw json.RawMessage
	ref string
	val any
}

func (v *value) get(s *State) any {
	if v.val == nil {
		if raw := v.json(s); len(raw) > 0 {
			v.val, _ = jinja.FromJSON(raw)
		}
	}
	return v.val
}

func (v *value) json(s *State) json.RawMessage {
	if v.raw == nil && v.ref != "" {
		v.raw = s.whole(v.ref) // it never changes, so keeping it is no change of the state
	}
	return v.raw
}

// NewState is the state before the first event.
func NewState(execution event.ID) *State {
	return &State{
		head:     head{id: execution},
		steps:    map[string]*step{},
		open:     map[event.ID]*Command{},
		commands: map[string]*Command{},
		ended:    map[event.ID]endedEntry{},
		vars:     map[string]*value{},
		timers:   map[event.ID]*timer{},
		workload: jinja.NewDict(0),
	}
}

// Seq is the sequence of the last applied event.
func (s *State) Seq() int64 { return s.seq }

// Started tells whether the start event was applied.
func (s *State) Started() bool { return s.status != "" }

// Final tells whether a terminal event was applied.
func (s *State) Final() bool { return event.IsFinal(s.status) }

// Pool is the worker pool the execution's commands go to.
func (s *State) Pool() string { return s.pool }

// Trace is the trace context the execution carries, or nil.
func (s *State) Trace() json.RawMessage { return s.trace }

// Actor is who asked for the execution, or nil.
func (s *State) Actor() *event.Actor { return s.actor }

// Parent is what started an execution on behalf of a command of another one.
type Parent struct {
	Execution event.ID           // 0 when nothing did
	Command   string             // the command that asked for it
	Request   event.ChildRequest // what it asked for, without the payload
}

// Parent says on whose behalf the execution runs.
func (s *State) Parent() Parent {
	p := s.parent
	if p.Command != "" {
		p.Execution = s.parentID
	}
	return p
}

// Lend gives the state a way to find values that the log only refers to. Those
// who decide, explain or dispatch need one; folding does not.
func (s *State) Lend(f scope.Fetch) { s.fetch = f }

// CommandByEvent finds a command by the id of its command.issued event: an
// open one, or one of those that ended last. Nil when unknown.
func (s *State) CommandByEvent(id event.ID) *Command {
	if c, ok := s.open[id]; ok {
		return c
	}
	return s.ended[id].cmd
}

// Pending returns up to max unclaimed commands, oldest first.
func (s *State) Pending(limit int) []*Command {
	var out []*Command
	for _, q := range s.pending[s.pendingAt:] {
		if len(out) == limit {
			break
		}
		if q.waits() {
			out = append(out, q.cmd)
		}
	}
	return out
}

// OpenCommands returns the commands without an end, oldest first.
func (s *State) OpenCommands() []*Command {
	out := make([]*Command, 0, len(s.open))
	for _, c := range s.open {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Command) int { return cmp.Compare(a.EventID, b.EventID) })
	return out
}

// ObserveLease tells the fold of a lease that heartbeats renewed.
func (s *State) ObserveLease(c *Command, until time.Time) {
	if until.After(c.LeaseUntil) {
		s.touchCommand(c).LeaseUntil = until
	}
}

// enqueue puts a command at the end of the pending queue.
func (s *State) enqueue(c *Command) {
	s.turn++
	s.touchCommand(c).turn = s.turn
	s.pending = append(s.pending, queued{c, s.turn})
}

// trimPending skips what is no longer pending and gives memory back.
func (s *State) trimPending() {
	for s.pendingAt < len(s.pending) && !s.pending[s.pendingAt].waits() {
		s.pendingAt++
	}
	if s.pendingAt > 1024 && s.pendingAt*2 > len(s.pending) {
		s.pending = slices.Clone(s.pending[s.pendingAt:])
		s.pendingAt = 0
	}
	if places := len(s.pending) - s.pendingAt; places > 1024 && places > 4*len(s.open) {
		s.compactPending()
	}
}

// compactPending leaves out the places that mean nothing any more.
func (s *State) compactPending() {
	live := make([]queued, 0, len(s.open))
	for _, q := range s.pending[s.pendingAt:] {
		if q.waits() {
			live = append(live, q)
		}
	}
	s.pending, s.pendingAt = live, 0
}

// without is a copy of sl without v: slices in head are never changed in place.
func without[T comparable](sl []T, v T) []T {
	i := slices.Index(sl, v)
	switch {
	case i < 0:
		return sl
	case i == 0:
		return sl[1:]
	}
	out := make([]T, 0, len(sl)-1)
	return append(append(out, sl[:i]...), sl[i+1:]...)
}

// with is a copy of sl with v at the end.
func with[T any](sl []T, v T) []T { return append(slices.Clip(sl), v) }
