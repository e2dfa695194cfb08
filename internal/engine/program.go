package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/scope"
)

// Limits bound what one playbook may ask of the engine.
type Limits struct {
	LoopWindow  int // open iterations of a parallel loop that sets no max_in_flight
	StepRuns    int // runs of one step before the execution is stopped
	MaxAttempts int // claims of one command before it is given up

	ParkAfter time.Duration // pauses from this length on hold no worker
	Depth     int           // executions that start each other, one within the other
}

// DefaultLimits are used where a field is zero.
var DefaultLimits = Limits{LoopWindow: 256, StepRuns: 10_000, MaxAttempts: 3, ParkAfter: 5 * time.Second, Depth: 32}

// Program is a playbook prepared for deciding: its graph with reachability,
// and per step the wire form of its tool and the names its templates mention.
// It is immutable and may be shared.
type Program struct {
	pb         *playbook.Playbook
	limits     Limits
	nodes      []*node
	byName     map[string]*node
	aliases    map[string]string            // further names of results -> their steps
	selections map[string][]scope.Selection // parts of a step's result with names of their own
}

// node is one step in the graph.
type node struct {
	step       *playbook.Step
	up, down   []int  // distinct steps with an arc to this one, ascending, and those it leads to
	reach      bits   // steps reachable by one or more arcs
	waits      []wait // what a token waits for here, when there are several upstreams
	toolConfig json.RawMessage
	args       json.RawMessage
	needs      needs
	output     *event.Output
	claim      json.RawMessage // cursor loops: the tool that claims a frame
	claimNeeds needs
}

// Compile prepares p with the default limits.
func Compile(p *playbook.Playbook) (*Program, error) { return CompileWith(p, Limits{}) }

// CompileWith prepares p. It fails only when p is not a valid document.
func CompileWith(p *playbook.Playbook, l Limits) (*Program, error) {
	prog := &Program{pb: p, limits: l.withDefaults(), byName: make(map[string]*node, len(p.Steps)), aliases: map[string]string{}, selections: map[string][]scope.Selection{}}
	for _, s := range p.Steps {
		n := &node{step: s, needs: stepNeeds(s)}
		var err error
		if n.toolConfig, err = jinja.ToJSON(playbook.ToolConfig(s)); err != nil {
			return nil, fmt.Errorf("encode tool of step %q: %w", s.Name, err)
		}
		n.args = json.RawMessage("{}")
		if s.Input != nil {
			if n.args, err = jinja.ToJSON(s.Input.Raw()); err != nil {
				return nil, fmt.Errorf("encode input of step %q: %w", s.Name, err)
			}
		}
		if err := n.prepare(); err != nil {
			return nil, err
		}
		if s.Output != nil {
			if s.Output.As != "" {
				prog.aliases[s.Output.As] = s.Name
			}
			for _, sel := range s.Output.Select {
				prog.selections[s.Name] = append(prog.selections[s.Name], scope.Selection(sel))
			}
		}
		prog.nodes = append(prog.nodes, n)
		prog.byName[s.Name] = n
	}
	return prog, prog.link()
}

// prepare fills in what a cursor loop and the result's fate need.
func (n *node) prepare() error {
	if o := n.step.Output; o != nil {
		n.output = &event.Output{InlineMax: o.InlineMax, Store: o.Store, Scope: o.Scope, TTL: o.TTL}
		for _, sel := range o.Select {
			n.output.Select = append(n.output.Select, event.Selection{Path: sel.Path, As: sel.As})
		}
	}
	if n.step.Loop == nil || n.step.Loop.Cursor == nil {
		return nil
	}
	var err error
	if n.claim, err = jinja.ToJSON(playbook.ClaimConfig(n.step)); err != nil {
		return fmt.Errorf("encode claim of step %q: %w", n.step.Name, err)
	}
	n.claimNeeds.addTask(n.step.Loop.Cursor.Task)
	n.claimNeeds.tidy()
	return nil
}

func (l Limits) withDefaults() Limits {
	if l.LoopWindow == 0 {
		l.LoopWindow = DefaultLimits.LoopWindow
	}
	if l.StepRuns == 0 {
		l.StepRuns = DefaultLimits.StepRuns
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = DefaultLimits.MaxAttempts
	}
	if l.ParkAfter == 0 {
		l.ParkAfter = DefaultLimits.ParkAfter
	}
	if l.Depth == 0 {
		l.Depth = DefaultLimits.Depth
	}
	return l
}

// Playbook is the document the program was made from.
func (p *Program) Playbook() *playbook.Playbook { return p.pb }

// link fills the neighbours of each step, what it reaches and what it waits for.
func (p *Program) link() error {
	for i, nd := range p.nodes {
		for _, a := range nd.step.Arcs {
			t, ok := p.byName[a.Target]
			if !ok {
				return fmt.Errorf("step %q leads to %q, which does not exist", nd.step.Name, a.Target)
			}
			if !slices.Contains(nd.down, t.step.Index) {
				nd.down = append(nd.down, t.step.Index)
				t.up = append(t.up, i)
			}
		}
	}
	for _, nd := range p.nodes {
		nd.reach = p.downwards(nd.down, func(arc) bool { return true })
	}
	p.planJoins()
	return nil
}

// bits is a set of step indexes.
type bits []uint64

func newBits(n int) bits      { return make(bits, (n+63)/64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bits) add(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) union(o bits) {
	for i := range b {
		b[i] |= o[i]
	}
}

func (b bits) meets(o bits) bool {
	for i := range b {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}
