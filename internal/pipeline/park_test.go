package pipeline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// parking has every pause of a command given back, however short.
func parking(c *event.Command) { c.Meta.ParkAfter = 0.001 }

func parkOf(t *testing.T, in event.Incoming) *event.Park {
	t.Helper()
	var p struct {
		CommandID string      `json:"command_id"`
		Park      *event.Park `json:"park"`
	}
	if err := json.Unmarshal(in.Payload, &p); err != nil || p.Park == nil || p.CommandID != "7:s:9" {
		t.Fatalf("this is no park: %s %s (%v)", in.Type, in.Payload, err)
	}
	if string(in.Meta) != `{"command_id":"7:s:9","attempt":1}` || in.Status != event.StatusWaiting || in.Step != "s" {
		t.Errorf("the event is %+v", in)
	}
	return p.Park
}

// drive runs a command to its end the way the control plane does: whenever it
// is parked, another worker goes on with it, with what wake makes of the park.
// Commands cross a wire in between.
func drive(t *testing.T, workers func() *pipeline.Runner, cmd *event.Command, wake func(*event.Park) event.Wake) (ended event.Incoming, parks []*event.Park) {
	t.Helper()
	for {
		in := workers().Run(t.Context(), cmd, nil)
		if in.Type != event.CommandParked {
			return in, parks
		}
		p := parkOf(t, in)
		parks = append(parks, p)
		if len(parks) > 500 {
			t.Fatal("the command is parked again and again")
		}
		next := *cmd
		next.Meta.Resume = &event.Resume{State: p.Resume, Wake: wake(p)}
		b, err := json.Marshal(&next)
		if err != nil {
			t.Fatal(err)
		}
		cmd = &event.Command{}
		if err := json.Unmarshal(b, cmd); err != nil {
			t.Fatal(err)
		}
	}
}

func timePassed(*event.Park) event.Wake { return event.Wake{} }

func TestALongPauseIsGivenBack(t *testing.T) {
	t.Parallel()
	config := rules("flaky", `{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":3,"backoff":"linear","delay":4}}`)
	flaky := func() *fake {
		return &fake{kind: "flaky", answers: []answer{{err: failing("connection", true)}, {err: failing("connection", true)}, {data: `{"n":1}`}}}
	}
	for _, tc := range []struct {
		parkAfter float64
		slept     int
		parked    []float64
	}{
		{0, 2, nil},
		{4, 0, []float64{4, 8}},
		{5, 1, []float64{8}},
		{9, 2, nil},
	} {
		t.Run(fmt.Sprint(tc.parkAfter), func(t *testing.T) {
			t.Parallel()
			f := flaky()
			b := newBench(pipeline.Options{}, f)
			cmd := command("flaky", config)
			cmd.Meta.ParkAfter = tc.parkAfter
			in, parks := drive(t, func() *pipeline.Runner { return b.Runner }, cmd, timePassed)
			decode(t, in).wantData(t, `{"n":1}`)
			var waits []float64
			for _, p := range parks {
				waits = append(waits, p.Delay)
			}
			if diff := cmp.Diff(tc.parked, waits); diff != "" || len(b.pauses) != tc.slept || f.count() != 3 {
				t.Errorf("%d pauses were slept through, the tool ran %d times, parks: %s", len(b.pauses), f.count(), diff)
			}
		})
	}
}

// asking is a tool that has its outcome come from elsewhere.
func asking(answers ...answer) *fake {
	if len(answers) == 0 {
		answers = []answer{{res: &tool.Result{Park: &event.Park{Child: &event.ChildRequest{Path: "child", Wait: true}}}}}
	}
	return &fake{kind: "ask", answers: answers}
}

func TestAToolThatWaitsAloneNeedsNoResume(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind, config string
		single, resumes    bool
	}{
		{"a single tool", "ask", `{"kind":"ask"}`, false, false},
		{"a list of one written as a single tool", "task_sequence", `[{"only":{"kind":"ask"}}]`, true, true},
		{"with rules", "ask", rules("ask", `{"then":{"do":"continue"}}`), false, true},
		{"with set", "ask", `{"kind":"ask","set":{"ctx.x":1}}`, false, true},
		{"a list of one", "task_sequence", `[{"only":{"kind":"ask"}}]`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{}, asking())
			p := parkOf(t, b.Run(t.Context(), command(tc.kind, tc.config, func(c *event.Command) { c.Meta.Single = tc.single }), nil))
			if p.Child == nil || p.Child.Path != "child" || len(p.Resume) > 0 != tc.resumes {
				t.Errorf("parked with %+v", p)
			}
		})
	}
}

func TestWhatWakesACommandIsTheOutcomeOfItsTask(t *testing.T) {
	t.Parallel()
	pipe := `[{"before":{"kind":"echo","set":{"iter.k":"{{ output.status }}"}}},
		{"call":{"kind":"ask","input":{"arg":"{{ 1 + 1 }}"},"set":{"ctx.got":"{{ output.n }}","ctx.sent":"{{ arg }}"},
			"spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' and output.error.kind == 'timeout' }}","then":{"do":"continue","set":{"ctx.late":true}}}]}}}},
		{"after":{"kind":"echo","v":"{{ call.n }} {{ _prev.n }} {{ before.status }} {{ iter.k == 'success' }} {{ ctx.got }}"}}]`
	for _, tc := range []struct {
		name    string
		wake    event.Wake
		want    string // data; "" when the command fails
		updates string
		failure string
	}{
		{
			"data",
			event.Wake{Data: json.RawMessage(`{"n":5}`)},
			`{"before":{"config":{},"args":{}},"call":{"n":5},"after":{"config":{"v":"5 5 success True 5"},"args":{}}}`, `{"got":5,"sent":2}`, "",
		},
		{
			"an error a rule handles",
			event.Wake{Error: json.RawMessage(`{"kind":"timeout","message":"too slow"}`)},
			`{"before":{"config":{},"args":{}},"call":{"status":"error","error":"too slow"},"after":{"config":{"v":"  success True "},"args":{}}}`, `{"late":true}`, "",
		},
		{"an error nobody handles", event.Wake{Error: json.RawMessage(`{"kind":"logic","message":"the child failed"}`)}, "", "", "step s, task call: the child failed"},
		{"an error in plain words", event.Wake{Error: json.RawMessage(`"no such playbook"`)}, "", "", "step s, task call: no such playbook"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ask := asking()
			b := newBench(pipeline.Options{}, ask)
			in, _ := drive(t, func() *pipeline.Runner { return b.Runner }, command("task_sequence", pipe), func(*event.Park) event.Wake { return tc.wake })
			e := decode(t, in)
			if ask.count() != 1 {
				t.Errorf("the tool ran %d times", ask.count())
			}
			if tc.want == "" {
				e.wantFailure(t, "logic", tc.failure)
				return
			}
			e.wantData(t, tc.want)
			same(t, e.Updates, tc.updates)
		})
	}
}

func TestAFailedWaitCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	ask := asking()
	b := newBench(pipeline.Options{}, ask)
	config := rules("ask", `{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":3,"backoff":"fixed","delay":2}}`)
	woken := 0
	in, parks := drive(t, func() *pipeline.Runner { return b.Runner }, command("ask", config, parking), func(p *event.Park) event.Wake {
		if p.Child == nil {
			return event.Wake{}
		}
		if woken++; woken < 3 {
			return event.Wake{Error: json.RawMessage(`{"kind":"connection","message":"gone"}`)}
		}
		return event.Wake{Data: json.RawMessage(`[3]`)}
	})
	decode(t, in).wantData(t, `[3]`)
	if ask.count() != 3 || len(parks) != 5 {
		t.Errorf("asked %d times in %d parks, want 3 in 5", ask.count(), len(parks))
	}
}

func TestAToolThatWaitsForNothingIsAnError(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, asking(answer{res: &tool.Result{Park: &event.Park{}}}))
	b.run(t, command("ask", `{"kind":"ask"}`)).
		wantFailure(t, tool.KindInternal, "step s: the ask tool asked to wait and did not say for what")
}

func TestANoteThatCannotBeUsedFailsTheCommand(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	for name, note := range map[string]string{
		"no JSON":         `"x"`,
		"another version": `{"version":9}`,
		"other tasks":     `{"version":1,"labels":["x"],"attempts":[0],"task":0}`,
		"no such task":    `{"version":1,"labels":["a"],"attempts":[0],"task":1}`,
		"a broken name":   `{"version":1,"labels":["a"],"attempts":[0],"task":0,"fresh":[{"name":"b","label":true}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := b.run(t, command("task_sequence", `[{"a":{"kind":"noop"}}]`, func(c *event.Command) {
				c.Meta.Resume = &event.Resume{State: json.RawMessage(note)}
			}))
			if e.Type != event.CommandFailed || e.Error.Code != "CHECKPOINT" || !strings.Contains(e.Error.Message, "execute the playbook again") {
				t.Errorf("the command ended with %s: %s", e.Type, e.Payload)
			}
		})
	}
}

func TestTheNextTrySeesWhyTheLastOneFailed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*event.Command){"slept": func(*event.Command) {}, "parked": parking} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{kind: "flaky", answers: []answer{
				{err: &tool.Error{Kind: "schema", Message: "x", RetryAfter: 3 * time.Second, Details: map[string]any{"line": int64(7)}}}, {data: `1`},
			}}
			b := newBench(pipeline.Options{}, f)
			in, _ := drive(t, func() *pipeline.Runner { return b.Runner }, command("flaky", `{"kind":"flaky",
				"v":"{{ output.error.kind }} {{ output.error.details.line }} {{ output.error.retry_after }} {{ _attempt }}",
				"spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":2}}]}}}`, change), timePassed)
			decode(t, in).wantData(t, `1`)
			if got := f.calls[1].Config["v"]; got != "schema 7 3.0 2" {
				t.Errorf("the second try saw %q", got)
			}
		})
	}
}

// TestParkingChangesNothing runs random pipelines twice, once sleeping through
// every pause and once parked at every pause, and wants the same end.
func TestParkingChangesNothing(t *testing.T) {
	t.Parallel()
	parked := 0
	for seed := range uint64(400) {
		config, context := randomPipeline(rand.New(rand.NewPCG(seed, 1)))
		slept := newBench(pipeline.Options{MaxRuns: 30}, moody(seed)).Run(t.Context(), command("task_sequence", config, with(context), iteration("item", 1, 3)), nil)
		b := newBench(pipeline.Options{MaxRuns: 30}, moody(seed))
		in, parks := drive(t, func() *pipeline.Runner { return b.Runner },
			command("task_sequence", config, with(context), iteration("item", 1, 3), parking), timePassed)
		parked += len(parks)
		if diff := cmp.Diff(withoutTime(t, slept), withoutTime(t, in)); diff != "" {
			t.Fatalf("seed %d: the end differs (-slept +parked):\n%s\n%s", seed, diff, config)
		}
	}
	if parked < 200 {
		t.Errorf("only %d parks in all; the test shows little", parked)
	}
}

// moody fails and succeeds by turns that depend on the seed only.
func moody(seed uint64) *fake {
	r := rand.New(rand.NewPCG(seed, 2))
	f := &fake{kind: "moody"}
	code := 3
	for range 64 {
		switch r.IntN(4) {
		case 0:
			f.answers = append(f.answers, answer{err: &tool.Error{
				Kind: "schema", Message: "odd <b>", Retryable: true, RetryAfter: 3 * time.Second, Details: map[string]any{"exception_type": "E", "line": int64(r.IntN(9))},
			}})
		case 1:
			f.answers = append(f.answers, answer{
				res: &tool.Result{Data: json.RawMessage(`{"why":"busy","n":1.0}`), HTTP: &tool.HTTPInfo{Status: 503, Headers: map[string]string{"k": "v"}}},
				err: failing("server_error", true),
			})
		default:
			f.answers = append(f.answers, answer{res: &tool.Result{
				Data: json.RawMessage(fmt.Sprintf(`{"n":%d,"z":[1,2.0],"a":{"t":"<&>"}}`, r.IntN(100))), Stdout: "out", ExitCode: &code,
			}})
		}
	}
	return f
}

// randomPipeline makes a list of tasks full of rules, jumps and names.
func randomPipeline(r *rand.Rand) (config, context string) {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	values := []string{
		"{{ output }}", "{{ output.status }}", "{{ output.data.n }}", "{{ results }}", "{{ _prev }}",
		"{{ nowhere.at.all }}", "{{ [_attempt, _task, fetch] }}", "{{ ctx.seen | default('none') }}", "{{ output.error }}", "{{ item }}", "plain",
	}
	keys := []string{"ctx.seen", "ctx.deep.er", "iter.note", "step.z", "bare", "ctx.t0"}
	set := func() string {
		k1, k2 := pick(keys...), pick(keys...)
		if k1 == k2 {
			return fmt.Sprintf(`{%q:%q,"iter.k":"{{ iter.k | default(0) + 1 }}"}`, k1, pick(values...))
		}
		return fmt.Sprintf(`{%q:%q,%q:%q}`, k1, pick(values...), k2, pick(values...))
	}
	n := 1 + r.IntN(4)
	var tasks []string
	for i := range n {
		var rules []string
		for range 1 + r.IntN(3) {
			when := pick("output.status == 'error'", "output.error.details.line == 3", "output.http.status == 503", "_attempt < 2",
				"ctx.seen == 'ok'", "iter.k | default(0) < 3", "step.z is defined", "t0.n | default(0) > 50", "output.py.exception_type == 'E'")
			do := pick(`"do":"retry","attempts":3,"backoff":"linear","delay":1`, `"do":"retry","attempts":2,"backoff":"fixed","delay":2`,
				`"do":"retry","attempts":4,"backoff":"exponential","delay":0.5`, `"do":"retry","attempts":2`, fmt.Sprintf(`"do":"jump","to":"t%d"`, r.IntN(n)), `"do":"continue"`, `"do":"break"`)
			rules = append(rules, fmt.Sprintf(`{"when":"{{ %s }}","then":{%s,"set":%s}}`, when, do, set()))
		}
		if r.IntN(3) > 0 {
			rules = append(rules, `{"else":{"then":{"do":"continue"}}}`)
		}
		tasks = append(tasks, fmt.Sprintf(`{"t%d":{"kind":%q,"v":"{{ [t0.n, t0.data.a, iter.k, iter.note.n, step.z is defined, step.z.n, bare.n, ctx.deep.er.n, _prev.n, results | list, ctx.seen == 'ok', ctx.seen.status == 'ok', _prev.config is defined] }}","input":{"i":"{{ iter.k }}"},
			"set":%s,"spec":{"policy":{"rules":[%s]}}}}`, i, pick("moody", "moody", "echo"), set(), strings.Join(rules, ",")))
	}
	return "[" + strings.Join(tasks, ",") + "]", `{"item":{"id":1},"fetch":{"rows":[1]},"deep":{"old":1},"__steps":{"fetch":{}}}`
}

// withoutTime is an event whose payload is decoded and holds no durations.
func withoutTime(t *testing.T, in event.Incoming) map[string]any {
	t.Helper()
	var payload any
	if err := json.Unmarshal(in.Payload, &payload); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"type": in.Type, "status": in.Status, "meta": string(in.Meta), "payload": timeless(payload)}
}

func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "duration_ms")
		for k, x := range v {
			v[k] = timeless(x)
		}
	case []any:
		for i, x := range v {
			v[i] = timeless(x)
		}
	}
	return v
}

// What the tasks before produced is part of the note, however large it is.
func TestALargeNoteIsKeptElsewhere(t *testing.T) {
	t.Parallel()
	first := &fake{kind: "first", answers: []answer{{data: large}}}
	flaky := &fake{kind: "flaky", answers: []answer{{err: failing("connection", true)}, {data: `{"n":1}`}}}
	kept := &shelf{kept: map[string]json.RawMessage{}}
	workers := func() *pipeline.Runner { // one that has fetched nothing yet
		return newBench(pipeline.Options{Results: kept, InlineLimit: limit}, first, flaky).Runner
	}
	cmd := command("task_sequence", `[{"a":{"kind":"first"}},
		{"b":{"kind":"flaky","spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":2,"delay":4}}]}}}},
		{"c":{"kind":"echo","n":"{{ a.rows[2].id }}"}}]`, parking)
	in, parks := drive(t, workers, cmd, timePassed)
	if len(parks) != 1 || len(parks[0].Resume) > limit {
		t.Fatalf("%d parks, the note has %d bytes", len(parks), len(parks[0].Resume))
	}
	ended := decode(t, in)
	whole := string(kept.kept[referenceOf(t, ended).Ref])
	if !strings.Contains(whole, `"n":3`) || first.count() != 1 || flaky.count() != 2 {
		t.Errorf("%s with %s, the tools ran %d and %d times", in.Type, whole, first.count(), flaky.count())
	}
}
