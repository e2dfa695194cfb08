package pipeline

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/tool"
)

// checkpointVersion is the form of the note. A worker that does not know the
// form must not guess.
const checkpointVersion = 1

// checkpoint is all a parked command has come to, as another worker needs it to
// go on as if nothing had happened.
type checkpoint struct {
	Version  int      `json:"version"`
	Labels   []string `json:"labels"` // of all tasks, to recognise the command
	Task     int      `json:"task"`   // the one in hand
	Attempts []int    `json:"attempts"`
	Runs     int      `json:"runs"`
	Started  int64    `json:"started_ms"`
	Waiting  *waiting `json:"waiting,omitempty"` // for the outcome of the task; nil = the task is to run again

	Results []savedOutcome `json:"results,omitempty"` // in the order in which tasks ran last
	Fresh   []binding      `json:"fresh,omitempty"`
	Ctx     []binding      `json:"ctx,omitempty"`
	Iter    []binding      `json:"iter,omitempty"`
	Step    []binding      `json:"step,omitempty"`
}

// waiting is a task whose tool has run and whose outcome comes from elsewhere.
type waiting struct {
	Input *jinja.Dict `json:"input,omitempty"` // as rendered, for the task's `set`
	Began int64       `json:"began_ms"`
	// Again has the tool run again when nothing but time passed.
	Again json.RawMessage `json:"again,omitempty"`
}

// savedOutcome is an outcome in a checkpoint.
type savedOutcome struct {
	Label      string          `json:"label"`
	Data       json.RawMessage `json:"data"`
	Error      json.RawMessage `json:"error,omitempty"`
	RetryAfter time.Duration   `json:"retry_after_ns,omitempty"`
	Attempt    int             `json:"attempt"`
	Took       time.Duration   `json:"took_ns"`
	Result     *savedResult    `json:"result,omitempty"`
	Stored     *tool.Stored    `json:"stored,omitempty"`
}

// savedResult is what a tool gave beside its data.
type savedResult struct {
	Stdout   string         `json:"stdout,omitempty"`
	Stderr   string         `json:"stderr,omitempty"`
	ExitCode *int           `json:"exit_code,omitempty"`
	HTTP     *tool.HTTPInfo `json:"http,omitempty"`
}

// binding is a name and what it stands for: data or a task's outcome.
type binding struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	Label bool            `json:"label,omitempty"`
}

// note writes the checkpoint of the task in hand.
func (s *run) note(w *waiting) (json.RawMessage, error) {
	c := &checkpoint{
		Version: checkpointVersion, Labels: s.plan.labels(), Task: s.current, Attempts: s.attempts, Runs: s.runs,
		Started: s.started.UnixMilli(), Waiting: w,
	}
	if w != nil && len(s.plan.tasks[s.current].Set) == 0 {
		w.Input = nil // nobody will look at it
	}
	for _, label := range s.results.labels {
		saved, err := s.results.outcomes[label].save(label)
		if err != nil {
			return nil, err
		}
		c.Results = append(c.Results, saved)
	}
	for _, list := range []struct {
		to   *[]binding
		from *jinja.Dict
	}{{&c.Fresh, s.names.fresh}, {&c.Ctx, s.names.ctxSet}, {&c.Iter, s.names.iterSet}, {&c.Step, s.names.stepSet}} {
		saved, err := s.bindings(list.from)
		if err != nil {
			return nil, err
		}
		*list.to = saved
	}
	raw, err := tool.Encode(c)
	return s.vault.hidden.JSON(raw), err
}

func (p *plan) labels() []string {
	out := make([]string, len(p.tasks))
	for i, t := range p.tasks {
		out[i] = t.Label
	}
	return out
}

func (s *run) bindings(d *jinja.Dict) ([]binding, error) {
	var out []binding
	for name, v := range d.All() {
		if o := s.results.outcomes[name]; o != nil && v == any(o.bound) {
			out = append(out, binding{Name: name, Label: true})
			continue
		}
		raw, err := jinja.ToJSON(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, binding{Name: name, Value: raw})
	}
	return out, nil
}

// readCheckpoint reads a note and checks that it is about a command with this
// plan.
func readCheckpoint(raw json.RawMessage, p *plan) (*checkpoint, error) {
	var c checkpoint
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, err
	}
	if c.Version != checkpointVersion {
		return nil, fmt.Errorf("its version is %d and this worker knows %d", c.Version, checkpointVersion)
	}
	labels := p.labels()
	if len(c.Labels) != len(labels) || len(c.Attempts) != len(labels) || c.Task < 0 || c.Task >= len(labels) {
		return nil, errOtherTasks
	}
	for i, label := range labels {
		if c.Labels[i] != label {
			return nil, errOtherTasks
		}
	}
	return &c, nil
}

// restore brings back the names a command had written.
func (n *names) restore(c *checkpoint, done *results) error {
	for _, o := range done.outcomes {
		o.fetch = n.fetch
	}
	for _, list := range []struct {
		to   **jinja.Dict
		from []binding
	}{{&n.fresh, c.Fresh}, {&n.ctxSet, c.Ctx}, {&n.iterSet, c.Iter}, {&n.stepSet, c.Step}} {
		if len(list.from) == 0 {
			continue
		}
		d := jinja.NewDict(len(list.from))
		for _, b := range list.from {
			v, err := b.value(done)
			if err != nil {
				return fmt.Errorf("%s: %w", b.Name, err)
			}
			d.Set(b.Name, v)
		}
		*list.to = d
	}
	return nil
}

func (b *binding) value(done *results) (any, error) {
	if !b.Label {
		return jinja.FromJSON(b.Value)
	}
	if o := done.outcomes[b.Name]; o != nil {
		return o.value(), nil
	}
	return nil, errOtherTasks
}

func (o *outcome) save(label string) (savedOutcome, error) {
	out := savedOutcome{Label: label, Data: o.data, Attempt: o.attempt, Took: o.took, Stored: o.stored}
	if o.err != nil {
		raw, err := tool.Encode(o.err)
		if err != nil {
			return out, err
		}
		out.Error, out.RetryAfter = raw, o.err.RetryAfter
	}
	if r := o.result; r != nil {
		out.Result = &savedResult{Stdout: r.Stdout, Stderr: r.Stderr, ExitCode: r.ExitCode, HTTP: r.HTTP}
	}
	return out, nil
}

// restore brings back the outcomes of the tasks that ran.
func (r *results) restore(list []savedOutcome) error {
	for i := range list {
		saved := &list[i]
		o := &outcome{data: saved.Data, attempt: saved.Attempt, took: saved.Took, stored: saved.Stored}
		if len(o.data) == 0 {
			o.data = null
		}
		if len(saved.Error) > 0 {
			e, err := readError(saved.Error)
			if err != nil {
				return err
			}
			e.RetryAfter = saved.RetryAfter
			o.err = e
		}
		if saved.Result != nil {
			o.result = &tool.Result{
				Data: o.data, Stdout: saved.Result.Stdout, Stderr: saved.Result.Stderr,
				ExitCode: saved.Result.ExitCode, HTTP: saved.Result.HTTP,
			}
		}
		r.put(saved.Label, o)
	}
	return nil
}

// readError reads an error as it was reported; whole numbers in its details
// stay whole.
func readError(raw json.RawMessage) (*tool.Error, error) {
	var e tool.Error
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, err
	}
	if len(e.Details) == 0 {
		return &e, nil
	}
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, err
	}
	d, _ := dict(v)
	details, _ := d.Get("details")
	e.Details, _ = jinja.Plain(details).(map[string]any)
	return &e, nil
}
