package pipeline_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

func TestTemplatesSeeTheCommandsNames(t *testing.T) {
	t.Parallel()
	context := `{"workload":{"name":"w","deep":{"x":[1,2]}},"name":"n","big":9007199254740993,"nothing":null,
		"fetch":{"rows":[{"id":4}]},"each":[10,20],"item":{"id":3},
		"__steps":{"fetch":{},"each":{"loop":{"total":3,"success":2,"failed":1,"errors":[{"index":2,"error":"no"}]}}}}`
	for _, c := range []struct{ template, want string }{
		{"{{ name }}", `"n"`},
		{"{{ ctx.name }}", `"n"`},
		{"{{ workload.name }}", `"w"`},
		{"{{ workload.deep.x[1] }}", `2`},
		{"{{ big }}", `9007199254740993`},
		{"{{ nothing }}", `null`},
		{"{{ missing }}", `null`},
		{"{{ missing.attribute | default('d') }}", `"d"`},
		{"{{ __steps }}", `null`},
		{"{{ '__steps' in ctx }}", `false`},
		{"{{ fetch.rows[0].id }}", `4`},
		{"{{ fetch.data.rows[0].id }}", `4`},
		{"{{ fetch.result.rows[0].id }}", `4`},
		{"{{ fetch }}", `{"rows":[{"id":4}]}`},
		{"{{ each | length }}", `2`},
		{"{{ each.stats.failed }}", `1`},
		{"{{ each.results[1] }}", `20`},
		{"{{ each.errors[0].error }}", `"no"`},
		{"{{ execution_id }}", `"7"`},
		{"{{ catalog_id }}", `"5"`},
		{"{{ step }}", `"s"`},
		{"{{ step == 's' }}", `true`},
		{"{{ command_id }}", `"7:s:9"`},
		{"{{ server_url }} {{ worker_id }} {{ action }} {{ node_name }}", `"http://server w1 echo s"`},
		{"{{ job.uuid }}{{ job.id }}{{ job.execution_id }}", `"777"`},
		{"{{ iter.item.id }} {{ iter._index }} {{ iter._total }} {{ iter._last }}", `"3 1 2 True"`},
		{"{{ _index }}/{{ _total }}", `"1/2"`},
		{"{{ iter.index }} {{ iter._first }} {{ loop_index }}", `"1 False 1"`},
		{"{{ loop.index }} {{ loop.first }} {{ loop.last }} {{ loop.length }} {{ loop.done }}", `"1 False True 2 False"`},
		{"{% for x in [4, 5] %}{{ loop.index }}{% endfor %}", `"12"`},
		{"{{ execution.id }} {{ execution.catalog_id }}", `"7 5"`},
		{"{{ env.HOME is defined }}", `false`},
		{"{{ item.id }}", `3`},
		{"{{ input.own }}", `"yes"`},
		{"{{ args.own }}", `"yes"`},
	} {
		t.Run(c.template, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{})
			config := fmt.Sprintf(`{"kind":"echo","v":%q,"input":{"own":"yes"}}`, c.template)
			e := b.run(t, command("echo", config, with(context), iteration("item", 1, 2)))
			if e.Type != event.CommandCompleted {
				t.Fatalf("the command ended with %s", e.Payload)
			}
			v, err := json.Marshal(b.echo.calls[0].Config["v"])
			if err != nil {
				t.Fatal(err)
			}
			if string(v) != c.want {
				t.Errorf("value is %s, want %s", v, c.want)
			}
		})
	}
}

func TestAnAuthorsNamesHideFactsButNotIdentity(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	b.run(t, command("echo", `{"kind":"echo","v":"{{ action }} {{ job }} {{ execution_id }} {{ step }}"}`,
		with(`{"action":"deploy","job":"nightly","execution_id":"1","step":"2"}`))).
		wantData(t, `{"config":{"v":"deploy nightly 7 s"},"args":{}}`)
}

func TestWhatTheControlPlaneBindsWinsOverFacts(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	b.run(t, command("echo", `{"kind":"echo","v":"{{ execution.path }} {{ iter.parent.x }} {{ loop.index }} {{ path }}"}`,
		with(`{"execution":{"path":"a/b"},"iter":{"parent":{"x":1}},"path":"mine"}`), iteration("item", 2, 3))).
		wantData(t, `{"config":{"v":"a/b 1 2 mine"},"args":{"_index":2,"_total":3}}`)
}

func TestRulesSeeTheEndOfTheirTaskAsAnEvent(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "broken", answers: []answer{{err: failing("logic", false)}}})
	for _, c := range []struct{ kind, when string }{
		{"noop", "event.name == 'call.done' and event.name == 'step.done' and event.status == 'ok' and event.step == 's'"},
		{"broken", "event.name == 'call.error' and event.name == 'step.failed' and event.status == 'error'"},
	} {
		e := b.run(t, command(c.kind, rules(c.kind, fmt.Sprintf(`{"when":"{{ %s }}","then":{"do":"continue","set":{"ctx.hit":true}}},
			{"else":{"then":{"do":"continue"}}}`, c.when))))
		same(t, e.Updates, `{"hit":true}`)
	}
}

func TestChildrenOfALoopGetOnlyWhatTheyAreGiven(t *testing.T) {
	t.Parallel()
	playbook := &fake{kind: "playbook"}
	b := newBench(pipeline.Options{}, playbook)
	b.run(t, command("playbook", `{"kind":"playbook","path":"p","input":{"x":"{{ item }}"}}`, with(`{"item":"i"}`), iteration("item", 0, 2))).
		wantData(t, `{"config":{"path":"p"},"args":{"x":"i"}}`)
}

func TestDataIsNeverTakenForATemplate(t *testing.T) {
	t.Parallel()
	evil := `{{ 7*7 }}{% if x %}{{ keychain.a.b }}`
	b := newBench(pipeline.Options{}, &fake{kind: "fetch", answers: []answer{{data: fmt.Sprintf(`{"text":%q}`, evil)}}})
	e := b.run(t, command("task_sequence", `[
		{"get":{"kind":"fetch","set":{"ctx.kept":"{{ output.text }}"}}},
		{"use":{"kind":"echo","a":"{{ word }}","b":"{{ get.text }}","c":"{{ ctx.kept }}","d":"<{{ input.w }}>","input":{"w":"{{ word }}"}}}]`,
		with(fmt.Sprintf(`{"word":%q}`, evil)), stepInput(`{"s":"{{ word }}"}`)))
	quoted, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Result.Context.Data.(map[string]any)["use"]
	inner, err := json.Marshal("<" + evil + ">")
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, fmt.Sprintf(`{"config":{"a":%[1]s,"b":%[1]s,"c":%[1]s,"d":%[2]s},"args":{"w":%[1]s,"s":%[1]s}}`, quoted, inner))
}

func TestInputComesFromTheStepTheTaskAndTheLoop(t *testing.T) {
	t.Parallel()
	argvContext := with(`{"n":1,"item":"i"}`)
	for _, c := range []struct {
		name, kind, config string
		change             []func(*event.Command)
		want               string
	}{
		{"step and task, the task wins", "echo", `{"kind":"echo","input":{"b":"task","c":"{{ n }}"}}`, []func(*event.Command){stepInput(`{"a":"{{ n + 1 }}","b":"step"}`)}, `{"a":2,"b":"task","c":1}`},
		{"loop names where absent", "echo", `{"kind":"echo","input":{"_index":"mine"}}`, []func(*event.Command){iteration("item", 4, 9)}, `{"item":"i","_index":"mine","_total":9}`},
		{"a whole map from one expression", "echo", `{"kind":"echo","input":"{{ {'x': n} }}"}`, nil, `{"x":1}`},
		{"no input at all", "echo", `{"kind":"echo"}`, nil, `{}`},
		{"arguments of a program inherit nothing", "shell", `{"kind":"shell","args":["-n","{{ n }}"]}`, []func(*event.Command){stepInput(`{"a":1}`), iteration("item", 0, 1)}, `{}`},
		{"containers inherit nothing", "container", `{"kind":"container","args":["x"]}`, []func(*event.Command){stepInput(`{"a":1}`)}, `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := b3(c.kind)
			b := newBench(pipeline.Options{}, f...)
			e := b.run(t, command(c.kind, c.config, append(c.change, argvContext)...))
			if e.Type != event.CommandCompleted {
				t.Fatalf("the command ended with %s", e.Payload)
			}
			same(t, e.Result.Context.Data.(map[string]any)["args"], c.want)
			if c.kind == "shell" {
				same(t, e.Result.Context.Data.(map[string]any)["config"], `{"args":["-n",1]}`)
			}
		})
	}
}

// b3 is the echo tool under another kind, if that is not its own.
func b3(kind string) []tool.Tool {
	if kind == "echo" {
		return nil
	}
	return []tool.Tool{&fake{kind: kind}}
}

func TestInInputAllValuesSeeTheSameState(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	b.run(t, command("task_sequence", `[{"a":{"kind":"echo","input":{"x":"{{ y }}","y":"{{ x }}"}}}]`, with(`{"x":1,"y":2}`))).
		wantData(t, `{"a":{"config":{},"args":{"x":2,"y":1}}}`)
}

func TestInputKeysAreNamesOfTheirTaskOnly(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	b.run(t, command("task_sequence", `[
		{"a":{"kind":"echo","v":"{{ x }}","input":{"x":"local"}}},
		{"b":{"kind":"echo","v":"{{ x }}"}}]`, with(`{"x":"global"}`))).
		wantData(t, `{"a":{"config":{"v":"local"},"args":{"x":"local"}},"b":{"config":{"v":"global"},"args":{}}}`)
}

func TestTasksSeeTheirElderSiblings(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "make", answers: []answer{{data: `{"n":5}`}, {data: `[6]`}}})
	e := b.run(t, command("task_sequence", `[
		{"one":{"kind":"make"}},{"two":{"kind":"make"}},
		{"see":{"kind":"echo","a":"{{ one.n }}","b":"{{ one.data.n }}","c":"{{ two[0] }}","d":"{{ two.data[0] }}",
			"e":"{{ results.one.n }}","f":"{{ _prev }}","g":"{{ _task }}{{ _attempt }}","h":"{{ ctx.one.n }}","i":"{{ output.data }}"}}]`))
	same(t, e.Result.Context.Data.(map[string]any)["see"].(map[string]any)["config"],
		`{"a":5,"b":5,"c":6,"d":6,"e":5,"f":[6],"g":"see1","h":5,"i":[6]}`)
}

func TestSetReachesLaterTasksAndOnlyCtxTheExecution(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "make", answers: []answer{{data: `{"n":5}`}}})
	e := b.run(t, command("task_sequence", `[
		{"a":{"kind":"make","set":{"ctx.x":"{{ output.n }}","bare":"{{ output.status }}","iter.y":"{{ output.data.n }}","step.z":"{{ output }}","ctx.deep.k":1}}},
		{"b":{"kind":"echo","v":"{{ x }} {{ ctx.x }} {{ bare }} {{ iter.y }} {{ step.z.n }} {{ step }} {{ deep.k }} {{ deep.old }} {{ iter.item }}"}}]`,
		with(`{"x":1,"deep":{"old":2},"item":"i"}`), iteration("item", 0, 1)))
	same(t, e.Result.Context.Data.(map[string]any)["b"], `{"config":{"v":"5 5 success 5 5 s 1 2 i"},"args":{}}`)
	same(t, e.Updates, `{"x":5,"bare":"success","deep.k":1}`)
}

func TestSetValuesDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	e := b.run(t, command("noop", `{"kind":"noop","set":{"ctx.a":"{{ b }}","ctx.b":"{{ a }}"}}`, with(`{"a":1,"b":2}`)))
	e.wantData(t, `{"status":"ok"}`)
	same(t, e.Updates, `{"a":2,"b":1}`)
}

func TestAnAuthorsOwnCtxIsKeptAndWrittenTo(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	e := b.run(t, command("task_sequence", `[
		{"a":{"kind":"noop","set":{"ctx.x":1}}},{"b":{"kind":"echo","v":"{{ ctx.mine }}{{ ctx.x }}{{ ctx.other }}"}}]`,
		with(`{"ctx":{"mine":"m"},"other":"o"}`)))
	same(t, e.Result.Context.Data.(map[string]any)["b"].(map[string]any)["config"], `{"v":"m1"}`)
}

func TestToolsGetTheContextAsVariables(t *testing.T) {
	t.Parallel()
	python := &fake{kind: "python"}
	b := newBench(pipeline.Options{}, python)
	b.run(t, command("python", `{"kind":"python","code":"result = variables['a']"}`, with(`{"a":1,"__steps":{"a":{}}}`))).Result.Context.Status = ""
	call := python.calls[0]
	if got := string(call.Variables); got != `{"a":1}` {
		t.Errorf("variables are %s", got)
	}
	if call.ExecutionID != "7" || call.Step != "s" || call.ServerURL != "http://server" || call.Timeout == 0 || call.Log == nil {
		t.Errorf("call is %+v", call)
	}
	b.run(t, command("task_sequence", `[{"one":{"kind":"noop","set":{"ctx.k":2}}},{"two":{"kind":"python","code":"result = variables"}}]`, with(`{"a":1}`)))
	same(t, json.RawMessage(python.calls[1].Variables), `{"a":1,"one":{"status":"ok"},"k":2}`)
}
