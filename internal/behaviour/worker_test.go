package behaviour

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/artifact"
	"github.com/noetl/noetl-go/internal/tool/playbooktool"
)

// kinds are the tools that follow the script. Those that only speak with the
// control plane are real.
var kinds = []string{"noop", "python", "http", "shell", "postgres", "container"}

// labelField carries the label of a task to the tool that stands in for it.
const labelField = "__label"

// worker runs commands one at a time through the real pipeline.
type worker struct {
	runner *pipeline.Runner
	script script
	told   map[string]int // answers given by each entry of the script
	place  string         // step or step[index] of the command that runs
	calls  []call
}

// call is one line of what the worker did.
type call struct{ step, text string }

func newWorker(s script, kept *shelf) *worker {
	w := &worker{script: maps.Clone(s), told: map[string]int{}}
	set := tool.Set{"playbook": noted{playbooktool.New(), w}, "artifact": noted{artifact.New(kept), w}}
	for _, k := range kinds {
		set[k] = standIn{k, w}
	}
	w.runner = pipeline.New(pipeline.Options{
		Tools: set, MaxRuns: 20, ServerURL: "http://server", WorkerID: "w1", Results: kept, InlineLimit: 1 << 10,
		Sleep: func(_ context.Context, d time.Duration) error {
			w.note(fmt.Sprintf("sleep %s", d))
			return nil
		},
	})
	return w
}

func (w *worker) note(text string) {
	step, _, _ := strings.Cut(w.place, "[")
	w.calls = append(w.calls, call{step, w.place + " " + text})
}

// run runs a command to the event that ends it.
func (w *worker) run(ctx context.Context, cmd *event.Command) event.Incoming {
	w.place = cmd.NodeName
	if i := cmd.Meta.IterationIndex; i != nil {
		w.place = fmt.Sprintf("%s[%d]", cmd.NodeName, *i)
	}
	if c := cmd.Meta.Cursor; c != nil && c.Phase == "claim" {
		w.place = "claim " + cmd.NodeName
	}
	labelled := *cmd
	labelled.Context.ToolConfig = addLabels(cmd.Context.ToolConfig)
	var log strings.Builder
	in := w.runner.Run(ctx, &labelled, &log)
	for line := range strings.Lines(log.String()) {
		w.note("log: " + strings.TrimSpace(line))
	}
	return in
}

// addLabels tells each task of a pipeline its own label.
func addLabels(config json.RawMessage) json.RawMessage {
	var tasks []map[string]map[string]json.RawMessage
	if json.Unmarshal(config, &tasks) != nil {
		return config
	}
	for _, t := range tasks {
		for name, spec := range t {
			spec[labelField], _ = json.Marshal(name)
		}
	}
	out, err := json.Marshal(tasks)
	if err != nil {
		return config
	}
	return out
}

// standIn answers for a tool as the script says. Without a script it gives back
// what templates made: its input, or what a noop is told to result in.
type standIn struct {
	kind string
	w    *worker
}

func (s standIn) Kind() string { return s.kind }

func (s standIn) Run(_ context.Context, c *tool.Call) (*tool.Result, error) {
	name, config := s.w.noteCall(s.kind, c)
	if a, ok := s.w.answer(name); ok {
		return a.result()
	}
	switch given, ok := config["result"]; {
	case ok:
		return &tool.Result{Data: json.RawMessage(compact(given))}, nil
	case len(c.Args) > 0:
		return &tool.Result{Data: json.RawMessage(compact(c.Args))}, nil
	}
	return &tool.Result{Data: json.RawMessage(`{"status":"ok"}`)}, nil
}

// noted is a real tool whose calls are noted.
type noted struct {
	tool.Tool
	w *worker
}

func (n noted) Run(ctx context.Context, c *tool.Call) (*tool.Result, error) {
	_, config := n.w.noteCall(n.Kind(), c)
	plain := *c
	plain.Config = config
	return n.Tool.Run(ctx, &plain)
}

// noteCall notes a call with what templates made of it, and returns the label
// of the task and the configuration without it.
func (w *worker) noteCall(kind string, c *tool.Call) (string, map[string]any) {
	name, _ := c.Config[labelField].(string)
	config := maps.Clone(c.Config)
	delete(config, labelField)
	text := kind
	if name != "" {
		text = name + " " + text
	}
	if len(config) > 0 {
		text += " " + compact(config)
	}
	if len(c.Args) > 0 {
		text += " input=" + compact(c.Args)
	}
	w.note(shorten(text))
	return name, config
}

// answer is the next answer of the script's most exact entry for the place.
func (w *worker) answer(task string) (answer, bool) {
	step, _, _ := strings.Cut(w.place, "[")
	for _, key := range []string{w.place + "." + task, step + "." + task, w.place, step} {
		list, ok := w.script[key]
		if !ok || (key == w.place || key == step) && task != "" {
			continue
		}
		n := w.told[key]
		w.told[key]++
		return list[min(n, len(list)-1)], true
	}
	return answer{}, false
}

// script says what calls return, by `step`, `step[index]` or `step.task`, the
// last answer repeating:
//
//	fetch: http 503; http 503; {ok: true}     HTTP answers, or data
//	load: raise out of disk                   the action failed
//	load: refused                             no connection, worth another try
//	load: rows 150                            {count, rows} of so many rows
//	load: text 600000                         {text} of so many letters
//	load: hang                                it never ends
//	claim load: {rows: [1]}; {rows: []}       the claims of a cursor loop
//	child call: {n: 1}                        the child that step call asked for ends
type script map[string][]answer

type answer struct {
	data string
	res  *tool.Result
	err  *tool.Error
	hang bool
}

// hangs tells that commands of a place never end.
func (s script) hangs(place string) bool {
	step, _, _ := strings.Cut(place, "[")
	for _, key := range []string{place, step} {
		if list := s[key]; len(list) > 0 {
			return list[0].hang
		}
	}
	return false
}

func (a answer) result() (*tool.Result, error) {
	res := a.res
	if a.data != "" {
		res = &tool.Result{Data: json.RawMessage(a.data)}
	}
	if a.err != nil {
		return res, a.err
	}
	return res, nil
}

func readScript(d *datadriven.TestData) script {
	out := script{}
	for line := range strings.Lines(d.Input) {
		key, answers, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			panic(d.Pos + ": a line of tools is `step: answer; answer`")
		}
		for text := range strings.SplitSeq(answers, "; ") {
			out[key] = append(out[key], readAnswer(d.Pos, strings.TrimSpace(text)))
		}
	}
	return out
}

func readAnswer(pos, text string) answer {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "raise":
		return answer{err: &tool.Error{
			Kind: tool.KindLogic, Code: "RAISED", Message: rest, Details: map[string]any{"exception_type": "RuntimeError"},
		}}
	case "refused":
		return answer{err: &tool.Error{Kind: tool.KindConnection, Code: "CONN_REFUSED", Message: "connection refused", Retryable: true}}
	case "http":
		return httpAnswer(rest)
	case "hang":
		return answer{hang: true}
	case "rows":
		n, _ := strconv.Atoi(rest)
		rows := make([]map[string]any, n)
		for i := range rows {
			rows[i] = map[string]any{"id": i, "name": fmt.Sprintf("row number %d", i)}
		}
		return answer{data: compact(map[string]any{"count": n, "rows": rows})}
	case "text":
		n, _ := strconv.Atoi(rest)
		return answer{data: compact(map[string]any{"text": strings.Repeat("x", n)})}
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("%s: %q is no answer: %v", pos, text, err))
	}
	return answer{data: compact(v)}
}

// httpAnswer is what the http tool makes of an answer of that status.
func httpAnswer(text string) answer {
	word, body, given := strings.Cut(text, " ")
	status, _ := strconv.Atoi(word)
	if !given {
		body = "{}"
	}
	var v any
	_ = yaml.Unmarshal([]byte(body), &v)
	a := answer{res: &tool.Result{
		Data: json.RawMessage(compact(map[string]any{"status_code": status, "headers": map[string]any{}, "data": v, "body": v})),
		HTTP: &tool.HTTPInfo{Status: status},
	}}
	if status >= http.StatusBadRequest {
		a.err = &tool.Error{
			Kind: tool.KindClientError, Code: "HTTP_" + word, HTTPStatus: status,
			Message: "HTTP " + word + " " + http.StatusText(status), Retryable: status == 429 || status >= 500,
		}
	}
	return a
}

func (w *world) shownCalls(d *datadriven.TestData) string {
	var b strings.Builder
	for _, c := range w.worker.calls {
		if len(d.CmdArgs) == 0 || slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == c.step }) {
			fmt.Fprintln(&b, c.text)
		}
	}
	return b.String()
}

// compact is a value as JSON, keys sorted, text as it is.
func compact(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

// shorten keeps lines readable.
func shorten(text string) string {
	if len(text) <= 600 {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:200], len(text))
}
