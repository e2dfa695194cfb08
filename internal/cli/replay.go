package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type replayCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	At        string   `help:"The moment: the number of an event, an event id, a time (2026-01-02T15:04:05Z), how long ago (-5m), or now." default:"now" placeholder:"WHEN"`
	Diff      string   `help:"Show what changed between --at and this moment." placeholder:"WHEN"`
	outputFlags
}

// replayed is an execution at a moment.
type replayed struct {
	At    string          `json:"at"`
	State client.Replayed `json:"state"`
}

// Run prints how the execution stood, or what changed between two moments.
func (c *replayCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	one, err := c.state(ctx, cl, c.At)
	if err != nil {
		return err
	}
	if c.Diff == "" {
		return c.object(env, one.State, c.Execution.String(), func() error { return showState(env, one) })
	}
	other, err := c.state(ctx, cl, c.Diff)
	if err != nil {
		return err
	}
	if other.State.EventCount < one.State.EventCount {
		one, other = other, one
	}
	changes := stateChanges(one.State, other.State)
	value := struct {
		From    string        `json:"from"`
		To      string        `json:"to"`
		Events  int64         `json:"events"`
		Changes []stateChange `json:"changes"`
	}{one.At, other.At, other.State.EventCount - one.State.EventCount, changes}
	t := newTable("WHAT", "BEFORE", "AFTER")
	t.empty = "nothing changed between the two moments"
	for _, ch := range changes {
		t.add(ch.What, ch.What, orText(ch.Before, "-"), orText(ch.After, "-"))
	}
	return c.list(env, value, t)
}

// state asks for the execution at a moment.
func (c *replayCommand) state(ctx context.Context, cl *client.Client, at string) (replayed, error) {
	r := client.ReplayRequest{ExecutionID: c.Execution, Limit: 100000}
	when, err := c.moment(ctx, cl, at, &r)
	if err != nil {
		return replayed{}, err
	}
	state, err := cl.Replay(ctx, r)
	if err == nil && state.EventCount == 0 {
		if _, err := cl.Status(ctx, c.Execution); err != nil {
			return replayed{}, err
		}
		if r.AsOfEventID == 0 && r.AsOfTime.IsZero() {
			return replayed{}, event.Errorf(event.NotFound, "execution %s has no events", c.Execution)
		}
	}
	if err == nil && state.Truncated {
		err = event.Errorf(event.Limit, "the log of execution %s is longer than a replay reads: choose an earlier moment with --at", c.Execution)
	}
	return replayed{when, state}, err
}

// moment reads a moment into the request and says it in words.
func (c *replayCommand) moment(ctx context.Context, cl *client.Client, at string, r *client.ReplayRequest) (string, error) {
	switch n, err := strconv.ParseInt(at, 10, 64); {
	case at == "" || at == "now" || at == "end":
		return "now", nil
	case err == nil && n > 1<<40: // an id is a snowflake, far above any count of events
		r.AsOfEventID = event.ID(n)
		return "event " + at, nil
	case err == nil && n > 0:
		events, err := cl.Events(ctx, c.Execution, n-1, 1)
		if err != nil {
			return "", err
		}
		if len(events) == 0 || events[0].Seq != n {
			return "", invalidf("--at %s: execution %s has no event with that number; noetl events %s shows them", at, c.Execution, c.Execution)
		}
		r.AsOfEventID = events[0].EventID
		return fmt.Sprintf("event %d, %s %s", n, events[0].Type, events[0].NodeName), nil
	}
	if d, err := time.ParseDuration(strings.TrimPrefix(at, "-")); err == nil {
		r.AsOfTime = time.Now().Add(-d)
		return r.AsOfTime.UTC().Format(time.RFC3339), nil
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t, err = time.ParseInLocation(time.DateTime, at, time.Local)
	}
	if err != nil {
		return "", invalidf("%q is no moment: give the number of an event, an event id, a time such as 2026-01-02T15:04:05Z, or how long ago, as -5m", at)
	}
	r.AsOfTime = t
	return t.UTC().Format(time.RFC3339), nil
}

func showState(env *Env, r replayed) error {
	s := r.State
	fmt.Fprintf(env.Stdout, "%s  at %s: %s, the last one %s %s\n", env.paint(statusColour("STATUS", s.Execution.Status), s.Execution.Status), r.At,
		plural(int(s.EventCount), "event"), orText(string(s.LastEventType), "-"), s.Execution.LastNodeName)
	t := newTable("COMMAND", "STATUS", "WORKER")
	for _, id := range slices.Sorted(maps.Keys(s.Commands)) {
		t.add(id, shortCommand(id), s.Commands[id].Status, orText(s.Commands[id].WorkerID, "-"))
	}
	if len(t.rows) > 0 {
		fmt.Fprintln(env.Stdout)
		if err := t.print(env); err != nil {
			return err
		}
	}
	loops := newTable("LOOP", "DONE", "FAILED", "TOTAL")
	for _, id := range slices.Sorted(maps.Keys(s.Loops)) {
		l := s.Loops[id]
		total := "?"
		if l.Total != nil {
			total = strconv.FormatInt(*l.Total, 10)
		}
		loops.add(id, l.StepName, strconv.FormatInt(l.Done, 10), strconv.FormatInt(l.Failed, 10), total)
	}
	if len(loops.rows) == 0 {
		return nil
	}
	fmt.Fprintln(env.Stdout)
	return loops.print(env)
}

// shortCommand is a command id without the execution it begins with.
func shortCommand(id string) string {
	if _, rest, ok := strings.Cut(id, ":"); ok {
		return rest
	}
	return id
}

// stateChange is one thing that is not what it was.
type stateChange struct {
	What   string `json:"what"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// stateChanges lists what differs between two moments, the execution first.
func stateChanges(a, b client.Replayed) []stateChange {
	out := []stateChange{}
	note := func(what, before, after string) {
		if before != after {
			out = append(out, stateChange{what, before, after})
		}
	}
	note("execution", a.Execution.Status, b.Execution.Status)
	note("last step", a.Execution.LastNodeName, b.Execution.LastNodeName)
	for _, id := range unionKeys(a.Commands, b.Commands) {
		note("command "+shortCommand(id), a.Commands[id].Status, b.Commands[id].Status)
	}
	for _, id := range unionKeys(a.Loops, b.Loops) {
		note("loop "+orText(b.Loops[id].StepName, a.Loops[id].StepName), loopText(a.Loops, id), loopText(b.Loops, id))
	}
	return out
}

func loopText(loops map[string]client.ReplayedLoop, id string) string {
	l, ok := loops[id]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d done, %d failed", l.Done, l.Failed)
}

// unionKeys are the keys of either map, in order.
func unionKeys[A, B any](a map[string]A, b map[string]B) []string {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return slices.Sorted(maps.Keys(all))
}
