package simulation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// otherOrders is how often a finished execution is made again with its
// commands ending in another order.
const otherOrders = 3

// result is how an execution ended, as far as the order of independent events
// has no say in it.
type result struct {
	Status string
	Steps  map[string]string // what each step came to
	Vars   map[string]string
}

// reorder makes a finished execution again, several times: the same commands
// report the same ends, in other orders. It must end the same way.
func (w *world) reorder(program *engine.Program, row store.Execution, events []event.Event) {
	if row.Status != event.StatusCompleted && row.Status != event.StatusFailed || endedByHand(events) {
		return
	}
	reports, want := harvest(row.ExecutionID, events)
	r := w.dice("order", w.name(row.ExecutionID))
	for range otherOrders {
		again := &replica{w: w, program: program, state: engine.NewState(row.ExecutionID), reports: reports, r: r}
		got, err := again.run(row)
		if err != nil {
			w.problem(orderFree, "execution %s, in another order: %v\n%s", w.name(row.ExecutionID), err, again.story())
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.problem(orderFree, "execution %s ends differently in another order (-first +other):\n%s\n%s", w.name(row.ExecutionID), diff, again.story())
			return
		}
	}
}

// harvest takes from a log what each command reported and how it all ended.
func harvest(id event.ID, events []event.Event) (map[string]event.Event, result) {
	s := engine.NewState(id)
	reports := map[string]event.Event{}
	places := placesIn(events)
	for i := range events {
		e := events[i]
		eff := s.Apply(&e)
		if !eff.Ended {
			continue
		}
		switch failed := eff.Command.Status != event.StatusCompleted; {
		case e.Type == event.CallDone && failed:
			e.Type = event.CommandFailed
		case e.Type == event.CallDone:
			e.Type = event.CommandCompleted
		}
		reports[places[e.CommandID]] = e
	}
	return reports, conclude(s, events)
}

// placesIn tells for every command where in the workflow it stands.
func placesIn(events []event.Event) map[string]string {
	out := map[string]string{}
	for i := range events {
		if e := &events[i]; e.Type == event.CommandIssued {
			var m commandMeta
			_ = json.Unmarshal(e.Meta, &m)
			out[e.CommandID] = m.place(e.NodeName)
		}
	}
	return out
}

// conclude reads the end off a state and its log. A failure that nobody takes
// up stops whatever else goes on, wherever that is, so only the failure itself
// is compared then.
func conclude(s *engine.State, events []event.Event) result {
	res := result{Status: s.Summary().Status}
	if res.Status != event.StatusCompleted {
		return res
	}
	res.Steps, res.Vars = map[string]string{}, map[string]string{}
	for _, o := range s.Outcome() {
		switch {
		case o.Status == event.StatusFailed: // which iteration of a loop failed first is a matter of order
			res.Steps[o.Name] = fmt.Sprint(o.Status, " ", o.Runs)
		case o.Runs > 0:
			res.Steps[o.Name] = fmt.Sprint(o.Status, " ", o.Runs, " ", string(o.Result))
		}
	}
	for i := range events {
		if events[i].Type != event.CtxUpdated {
			continue
		}
		var d struct {
			Context struct {
				Values map[string]json.RawMessage `json:"values"`
			} `json:"context"`
		}
		_ = json.Unmarshal(events[i].Result, &d)
		for k, v := range d.Context.Values {
			res.Vars[k] = string(v)
		}
	}
	return res
}

// replica runs an execution through the engine alone.
type replica struct {
	w       *world
	program *engine.Program
	state   *engine.State
	reports map[string]event.Event
	r       *rand.Rand
	log     []event.Event
	ids     event.ID
}

func (m *replica) run(row store.Execution) (result, error) {
	start, err := engine.Start(m.program, engine.StartInput{
		ExecutionID: row.ExecutionID, CatalogID: row.CatalogID, Path: row.Path, Version: row.Version, Pool: row.Pool,
	}, m.env())
	if err != nil {
		return result{}, err
	}
	for m.input(start); !m.state.Final(); {
		open := m.state.OpenCommands()
		if len(open) == 0 || len(m.log) > mostTurns {
			return result{}, fmt.Errorf("it does not end: %d commands are open after %d events", len(open), len(m.log))
		}
		m.input(m.end(open[m.r.IntN(len(open))]))
	}
	return conclude(m.state, m.log), nil
}

// end is what a command reported in the first run. One that the first run did
// not come to succeeds.
func (m *replica) end(c *engine.Command) event.Event {
	place := placesIn(m.log)[c.ID]
	e, ok := m.reports[place]
	if !ok {
		e = event.Event{Type: event.CommandCompleted, Status: event.StatusCompleted, Result: json.RawMessage(
			`{"status":"COMPLETED","context":{"status":"success","result":{"status":"success","context":{"data":{"n":0,"rows":[]}}}}}`)}
	}
	e.Seq, e.EventID, e.CommandID, e.NodeName, e.WorkerID, e.Detail = 0, m.env().NewID(), c.ID, c.Step, "", nil
	return e
}

func (m *replica) input(e event.Event) {
	m.state.Apply(&e)
	m.log = append(append(m.log, e), engine.Decide(m.program, m.state, m.env()).Events...)
}

func (m *replica) env() engine.Env {
	return engine.Env{Now: m.w.began, NewID: func() event.ID { m.ids++; return m.ids }}
}

func (m *replica) story() string {
	var b strings.Builder
	b.WriteString("In another order:\n")
	for i := range m.log {
		b.WriteString(m.w.line(&m.log[i]))
	}
	return b.String()
}
