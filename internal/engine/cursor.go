package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
)

// The phases of a cursor loop's commands.
const (
	cursorClaim = "claim" // takes the next frame of rows from the source
	cursorBody  = "body"  // runs the step's tool for one row, or for a frame
)

// cursorDetail is what step.enter freezes of a cursor loop.
type cursorDetail struct {
	MaxRows        int  `json:"max_rows"`
	RowConcurrency int  `json:"row_concurrency"`
	WholeFrame     bool `json:"whole_frame,omitempty"`
}

// cursorRun is the part of a run that only cursor loops have. The frames are
// replaced when they change; what is over leaves only counts behind.
type cursorRun struct {
	cursorDetail
	iterator string
	window   int // frames side by side

	frames  []*frame // open ones, by number
	next    int      // number of the next frame
	drained bool     // a claim found nothing
	empty   int      // number of the frame that was empty
	rows    int      // rows worked on so far
	failed  int      // of these, failed ones
	errText string   // of the first failure
	lost    bool     // a claim failed: what is left cannot be known
}

// frame is one claim and the rows it found.
type frame struct {
	number  int
	claimed bool
	value   *scope.Value // what the claim returned
	rows    []json.RawMessage
	read    bool // rows were taken out of value
	next    int  // first row without a command
	open    int
	ended   int
	updates map[int]json.RawMessage
}

func newCursorRun(d *enterDetail) *cursorRun {
	return &cursorRun{cursorDetail: *d.Cursor, iterator: d.Iterator, window: max(d.MaxInFlight, 1)}
}

// summary is what the step's name shows after the loop.
func (c *cursorRun) summary() *scope.Value {
	d := jinja.NewDict(4)
	state := "drained"
	if !c.drained {
		state = "stopped"
	}
	d.Set("cursor", state)
	d.Set("frames", int64(c.empty))
	d.Set("rows", int64(c.rows))
	d.Set("failed", int64(c.failed))
	return scope.Step(d, scope.Info{})
}

// enterCursor starts a cursor loop; its first claim follows.
func (d *decider) enterCursor(n *node, gen int, cause event.ID) {
	window := 1
	if n.step.Loop.MaxInFlight != nil {
		var err error
		if window, err = d.maxInFlight(n.step); err != nil {
			d.fail(n.step.Name, gen, "loop", err.Error(), cause)
			return
		}
	}
	c := n.step.Loop.Cursor
	d.step(event.StepEnter, n.step.Name, event.StatusEntered, &enterDetail{
		Gen: gen, Iterator: n.step.Loop.Iterator, Mode: string(n.step.Loop.Mode), MaxInFlight: window, CursorLoop: true,
		Cursor: &cursorDetail{MaxRows: max(c.MaxRows, 1), RowConcurrency: max(c.RowConcurrency, 1), WholeFrame: c.WholeFrame},
	}, cause)
}

// advanceCursor keeps the frames of a cursor loop going and ends it when the
// source is drained, or when a failure stops it and nothing of it is open.
func (d *decider) advanceCursor(n *node, r *run) bool {
	c := r.cursor
	halted := c.lost || c.failed > 0 && !n.step.BestEffort
	if !halted && (!d.stopping() || r.step == d.p.pb.Executor.FinalStep) {
		changed := false
		for _, f := range c.frames {
			changed = d.advanceFrame(n, r, f.number) || changed
		}
		for r.phase == running && !r.cursor.drained && len(r.cursor.frames) < c.window {
			d.issue(n, r, issueDetail{Cursor: &event.CursorPlace{Phase: cursorClaim, Step: r.step, Frame: r.cursor.next}},
				d.vars(n.claimNeeds))
			changed = true
		}
		if changed {
			return true
		}
	}
	switch c = r.cursor; {
	case r.openCmd > 0:
		return false
	case halted:
		d.fail(r.step, r.gen, "iteration", c.errText, r.entered)
	case c.drained && len(c.frames) == 0:
		d.step(event.StepExit, r.step, event.StatusCompleted, &endDetail{Gen: r.gen, Iterations: &c.rows, Failed: c.failed, Drained: true}, r.entered)
	default:
		return false
	}
	return true
}

// advanceFrame issues rows until the frame's share is open. The variables that
// its rows wrote are written when all have ended, in the order of the rows.
func (d *decider) advanceFrame(n *node, r *run, number int) bool {
	f := r.cursor.frame(number)
	if !f.claimed {
		return false
	}
	rows, err := d.s.rowsOf(f)
	if err != nil {
		d.fail(r.step, r.gen, "loop", fmt.Sprintf("step %q, frame %d: %v", r.step, number, err), r.entered)
		return true
	}
	if r.cursor.WholeFrame {
		rows = min(rows, 1)
	}
	changed := false
	for ; r.phase == running && f.next < rows && f.open < r.cursor.RowConcurrency; f = r.cursor.frame(number) {
		at := f.next
		d.issue(n, r, issueDetail{Cursor: &event.CursorPlace{Phase: cursorBody, Step: r.step, Frame: number, Row: &at}},
			d.vars(n.needs))
		changed = true
	}
	if f.ended < rows || r.phase != running {
		return changed
	}
	detail := &ctxDetail{Step: r.step, Gen: r.gen, Values: map[string]json.RawMessage{}}
	for _, i := range slices.Sorted(maps.Keys(f.updates)) {
		r.addUpdates(detail, f.updates[i])
	}
	d.nest(detail)
	d.update(r.step, detail, r.entered)
	d.step(event.FrameCommitted, r.step, event.StatusCompleted, &frameDetail{Gen: r.gen, Frame: number, Rows: len(f.rows)}, r.entered)
	return true
}

// frameDetail is the context of frame.committed.
type frameDetail struct {
	Gen   int `json:"gen"`
	Frame int `json:"frame"`
	Rows  int `json:"row_count"`
}

func (c *cursorRun) frame(number int) *frame {
	for _, f := range c.frames {
		if f.number == number {
			return f
		}
	}
	return nil
}

// change replaces a frame by a changed copy, in a copy of the cursor.
func (s *State) change(r *run, number int, f func(c *cursorRun, f *frame)) {
	c := *r.cursor
	c.frames = slices.Clone(c.frames)
	for i, old := range c.frames {
		if old.number == number {
			changed := *old
			c.frames[i] = &changed
			f(&c, &changed)
		}
	}
	s.touch(r).cursor = &c
}

// issueCursor records the command of a claim or a row.
func (s *State) issueCursor(r *run, cmd *Command) {
	p := cmd.place
	if p.Phase == cursorClaim {
		c := *r.cursor
		c.frames = with(c.frames, &frame{number: p.Frame})
		c.next = max(c.next, p.Frame+1)
		s.touch(r).cursor = &c
		return
	}
	if p.Row != nil && *p.Row >= 0 {
		cmd.Index = *p.Row
		s.change(r, p.Frame, func(_ *cursorRun, f *frame) {
			f.next = max(f.next, *p.Row+1)
			f.open++
		})
	}
}

// settleCursor records the end of a claim or of a row.
func (s *State) settleCursor(r *run, cmd *Command, ok bool, data json.RawMessage, ref *scope.Reference, updates json.RawMessage) {
	p := cmd.place
	if p == nil {
		return
	}
	if len(data) > 0 {
		data, updates = splitUpdates(data, updates)
	}
	s.change(r, p.Frame, func(c *cursorRun, f *frame) {
		if !ok && c.errText == "" {
			c.errText = fmt.Sprintf("frame %d, %s: %s", p.Frame, placeName(p), cmd.Error)
		}
		if p.Phase == cursorClaim {
			f.claimed, c.lost = true, c.lost || !ok
			f.value = scope.Step(nonNil(data), scope.Info{Ref: ref, Sequence: cmd.Kind == "task_sequence"})
			return
		}
		f.open--
		f.ended++
		c.rows++
		if !ok {
			c.failed++
		}
		if len(updates) > 0 && p.Row != nil {
			f.updates = cloneWith(f.updates, *p.Row, updates)
		}
	})
}

func placeName(p *event.CursorPlace) string {
	if p.Row != nil {
		return fmt.Sprintf("row %d", *p.Row)
	}
	return p.Phase
}

// closeFrame lets go of a frame whose rows have all ended. An empty frame
// means that the source is drained.
func (s *State) closeFrame(e *event.Event) Effect {
	d := resultOf[frameDetail](e)
	r := s.currentRun(e.NodeName, d.Gen)
	if e.WorkerID != "" || r == nil || r.cursor == nil {
		return Effect{Ignored: IgnoredForeign}
	}
	f := r.cursor.frame(d.Frame)
	if f == nil {
		return Effect{Ignored: IgnoredLate}
	}
	c := *r.cursor
	c.frames = without(c.frames, f)
	if d.Rows == 0 && !c.drained {
		c.drained, c.empty = true, f.number
	}
	s.touch(r).cursor = &c
	return Effect{}
}

// rowsOf is how many rows a claim found.
func (s *State) rowsOf(f *frame) (int, error) {
	if f.read || f.value == nil {
		return len(f.rows), nil
	}
	s.missing = ""
	rows := rowsIn(s.bound(f.value).Unwrap())
	if err := s.missingValue(); err != nil {
		return 0, err
	}
	// They are read out of a value that never changes, so keeping them is no
	// change of the state.
	f.rows, f.read = rows, true
	return len(f.rows), nil
}

// rowsIn finds the rows in what a claim returned: a list, or rows as database
// tools return them.
func rowsIn(v any) []json.RawMessage {
	if d, ok := v.(*jinja.Dict); ok {
		rows, ok := d.Get("rows")
		if !ok {
			rows, _ = d.Get("data")
		}
		v = rows
	}
	list, _ := v.([]any)
	out := make([]json.RawMessage, len(list))
	for i, item := range list {
		b, err := jinja.ToJSON(item)
		if err != nil {
			b = json.RawMessage("null")
		}
		out[i] = b
	}
	return out
}

// row binds the names of one row, or of a frame's rows.
func row(s *State, n *node, cmd *event.Command, c *cursorRun, of *Command) {
	ctx := newObject()
	ctx.merge(s.resolved(of.vars))
	if of.place.Phase == cursorClaim {
		ctx.int("__frame_max_rows", c.MaxRows)
		cmd.Context.ToolConfig, cmd.Context.Args = n.claim, json.RawMessage("{}")
		if of.Kind == "python" { // braces in code are no templates; arguments are names in it
			args := newObject()
			args.int("__frame_max_rows", c.MaxRows)
			cmd.Context.Args = args.bytes()
		}
		cmd.Context.RenderContext = ctx.bytes()
		cmd.Meta.Single, cmd.Meta.Output = true, nil
		return
	}
	cmd.Meta.IteratorStep, cmd.Meta.ItemVar = of.Step, c.iterator
	f := c.frame(of.place.Frame)
	if f == nil || of.place.Row == nil {
		return
	}
	index, total := *of.place.Row, 0
	bound := c.iter(s, f, index, &total)
	ctx.merge(bound)
	ctx.raw("iter", s.withParent(bound))
	cmd.Meta.IterationIndex, cmd.Meta.IterationTotal = &index, &total
	cmd.Context.RenderContext = ctx.bytes()
}

// iter is what a row, or a frame's rows, knows of its place.
func (c *cursorRun) iter(s *State, f *frame, index int, total *int) json.RawMessage {
	rows, err := s.rowsOf(f)
	if err != nil {
		s.missing = f.value.Info().Ref.Ref // for who asked
	}
	*total = rows
	item := json.RawMessage("null")
	switch {
	case c.WholeFrame:
		item = encode(f.rows)
	case index >= 0 && index < rows:
		item = f.rows[index]
	}
	o := newObject()
	o.raw(c.iterator, item)
	o.int("_index", index)
	o.int("_total", rows)
	o.int("_frame", f.number)
	return o.bytes()
}

// index is the number a command's id ends with; nil when it has none.
func (d *issueDetail) index() *int {
	if d.Cursor != nil {
		return d.Cursor.Row
	}
	return d.Index
}

// cloneWith is a copy of m with one entry more.
func cloneWith(m map[int]json.RawMessage, k int, v json.RawMessage) map[int]json.RawMessage {
	out := make(map[int]json.RawMessage, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}
