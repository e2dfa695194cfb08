package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A shape says what an answer must look like:
//
//	{a: id, b?: text, c: null|time}   an object that has these members; b may
//	                                  be missing; others are not looked at
//	{a: id, !}                        an object that has nothing else
//	[shape]  [shape+]  []             a list; one that is not empty; an empty one
//	{*: shape}                        an object whose members all have the shape
//	id  sid                           an id as a number; as a string
//	int  real  bool  text  str  time  text is not empty; time is RFC 3339 in UTC
//	null  any  "words"  42  true      literally
//	a|b                               one of them
//	@name                             a shape of the table below
type shape interface {
	// check lists what is wrong with v, each with its place.
	check(v any, place string) []string
}

// known are the shapes several answers share.
var known = map[string]string{
	"error":   `{error: text, status: int}`,
	"entry":   `{catalog_id: sid, path: text, kind: text, version: int, content: str, layout: any, payload: any, meta: any, created_at: time}`,
	"started": `{execution_id: sid, status: "started", commands_generated: int}`,
	"command": `{event_id: id, execution_id: id, node_id: text, node_name: text, action: text,
		context: {tool_config: any, args: any, render_context: any},
		meta: {command_id: text, step: text, tool_kind: text, attempt: int, max_attempts: int, execution_id: sid, catalog_id: sid, actionable: bool}}`,
	"row": `{execution_id: id, execution_id_str: sid, catalog_id: id, catalog_id_str: sid, path: text|null, version: int, status: text,
		started_at: time, completed_at: time|null, start_time: time, end_time: time|null, duration_seconds: real, duration_human: text,
		progress: int, event_count: int, current_step: text|null, parent_execution_id: id|null, result: any, error: text|null}`,
	"event": `{event_id: id, execution_id: id, catalog_id: id|null, event_type: text, node_id: str, node_name: str, status: text|null,
		context: any, result: any, meta: any, error: text|null, parent_event_id: id|null, parent_execution_id: id|null, duration: real,
		created_at: time, timestamp: time}`,
	"pages":      `{page: int, page_size: int, total_events: int, total_pages: int, has_next: bool, has_prev: bool}`,
	"runtime":    `{runtime_id: id, name: text, kind: text, uri: any, status: text, labels: any, capabilities: any, capacity: any, runtime: any, heartbeat: time, created_at: time, updated_at: time}`,
	"credential": `{id: sid, name: "pg_demo", type: "postgres", meta?: {team: "x"}, tags: ["a"+], description: "Demo", created_at: time, updated_at: time}`,
	"checksum":   `{type: "sha256", value: text}`,
	"variable":   `{var_name: text, var_type: text, var_value: any, source_step: text|null, created_at: time, accessed_at: time|null, access_count: int}`,
	"schedule": `{schedule_id: sid, name: "nightly", path: "demo/two", cron: "30 2 * * *", timezone: "Europe/Berlin", overlap: "queue", queue_limit: 3, catch_up: "latest",
		jitter: text, payload: {who: "cron"}, max_failures: 5, state: "active", next_at: time, last_tick: time|null, failures: 0, revision: int, created_at: time, updated_at: time}`,
	"retained": `{dry_run: bool, policy: str, looked: int, removed: int, kept: {*: int}, rules: {*: int}, rows: {*: int}, partitions: int, strays: int, archived: int, truncated: bool,
		lag_seconds: real, duration_seconds: real, !}`,
	"totals": `{total_executions: int, successful_executions: int, failed_executions: int, cancelled_executions: int, running_executions: int, total_playbooks: int, total_workers: int}`,
}

type (
	word    string
	literal struct{ text string }
	either  []shape
	list    struct {
		item   shape
		filled bool
	}
	members struct {
		all      shape // of every member; nil without
		only     bool  // nothing but those that are named
		named    map[string]shape
		optional map[string]bool
	}
)

var decimal = regexp.MustCompile(`^[1-9][0-9]*$`)

func (w word) check(v any, place string) []string {
	number, isNumber := v.(json.Number)
	text, isText := v.(string)
	_, isBool := v.(bool)
	ok := false
	switch w {
	case "any":
		ok = true
	case "null":
		ok = v == nil
	case "id":
		ok = isNumber && decimal.MatchString(string(number))
	case "sid":
		ok = isText && decimal.MatchString(text)
	case "int":
		_, err := number.Int64()
		ok = isNumber && err == nil
	case "real":
		ok = isNumber
	case "bool":
		ok = isBool
	case "text":
		ok = isText && text != ""
	case "str":
		ok = isText
	case "time":
		_, err := time.Parse(time.RFC3339Nano, text)
		ok = isText && err == nil && strings.HasSuffix(text, "Z")
	}
	if ok {
		return nil
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", place, string(w), show(v))}
}

func (l literal) check(v any, place string) []string {
	if got := show(v); got != l.text {
		return []string{fmt.Sprintf("%s: want %s, got %s", place, l.text, got)}
	}
	return nil
}

func (e either) check(v any, place string) []string {
	var all []string
	for _, s := range e {
		complaints := s.check(v, place)
		if len(complaints) == 0 {
			return nil
		}
		all = append(all, complaints...)
	}
	return all
}

func (l list) check(v any, place string) (complaints []string) {
	items, ok := v.([]any)
	if !ok || l.filled && len(items) == 0 {
		return []string{fmt.Sprintf("%s: want a list, got %s", place, show(v))}
	}
	for i, item := range items {
		complaints = append(complaints, l.item.check(item, fmt.Sprintf("%s[%d]", place, i))...)
	}
	return complaints
}

func (m members) check(v any, place string) (complaints []string) {
	object, ok := v.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: want an object, got %s", place, show(v))}
	}
	for _, name := range slices.Sorted(maps.Keys(m.named)) {
		member, there := object[name]
		switch {
		case there:
			complaints = append(complaints, m.named[name].check(member, place+"."+name)...)
		case !m.optional[name]:
			complaints = append(complaints, fmt.Sprintf("%s.%s is missing", place, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if m.only && m.named[name] == nil {
			complaints = append(complaints, fmt.Sprintf("%s.%s should not be there", place, name))
		}
	}
	if m.all != nil {
		for name, member := range object {
			complaints = append(complaints, m.all.check(member, place+"."+name)...)
		}
	}
	return complaints
}

// show is a value as JSON, cut when it is long.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 200 {
		return string(b[:200]) + "…"
	}
	return string(b)
}

// shapeText is a shape being read.
type shapeText struct {
	t    testing.TB
	rest string
}

func parseShape(t testing.TB, s string) shape {
	t.Helper()
	p := &shapeText{t, s}
	out := p.union()
	if p.skip(); p.rest != "" {
		t.Fatalf("shape %q: %q is left over", s, p.rest)
	}
	return out
}

func (p *shapeText) skip() { p.rest = strings.TrimLeft(p.rest, " \t\n") }

func (p *shapeText) take(s string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *shapeText) must(s string) {
	p.t.Helper()
	if !p.take(s) {
		p.t.Fatalf("shape: want %q before %q", s, p.rest)
	}
}

func (p *shapeText) union() shape {
	out := either{p.one()}
	for p.take("|") {
		out = append(out, p.one())
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

var (
	namePattern    = regexp.MustCompile(`^@?[a-z_]+[a-z_0-9]*`)
	literalPattern = regexp.MustCompile(`^("[^"]*"|-?[0-9]+|true|false)`)
)

func (p *shapeText) one() shape {
	p.t.Helper()
	switch {
	case p.take("{"):
		return p.object()
	case p.take("["):
		if p.take("]") {
			return literal{"[]"}
		}
		l := list{item: p.union()}
		l.filled = p.take("+")
		p.must("]")
		return l
	}
	p.skip()
	if text := literalPattern.FindString(p.rest); text != "" {
		p.rest = p.rest[len(text):]
		return literal{text}
	}
	name := namePattern.FindString(p.rest)
	p.rest = p.rest[len(name):]
	if ref, ok := strings.CutPrefix(name, "@"); ok {
		if known[ref] == "" {
			p.t.Fatalf("shape: there is no @%s", ref)
		}
		return parseShape(p.t, known[ref])
	}
	if !slices.Contains([]string{"any", "null", "id", "sid", "int", "real", "bool", "text", "str", "time"}, name) {
		p.t.Fatalf("shape: no word at %q", name+p.rest)
	}
	return word(name)
}

func (p *shapeText) object() shape {
	p.t.Helper()
	m := members{named: map[string]shape{}, optional: map[string]bool{}}
	for !p.take("}") {
		switch {
		case p.take("!"):
			m.only = true
		case p.take("*"):
			p.must(":")
			m.all = p.union()
		default:
			p.skip()
			name := namePattern.FindString(p.rest)
			if name == "" {
				p.t.Fatalf("shape: want a name at %q", p.rest)
			}
			p.rest = p.rest[len(name):]
			m.optional[name] = p.take("?")
			p.must(":")
			m.named[name] = p.union()
		}
		p.take(",")
	}
	return m
}

func TestShapesTellRightFromWrong(t *testing.T) {
	t.Parallel()
	const s = `{a: id, b?: sid, c: null|time, d: [@checksum+], e: {*: int}, f: "x"|true, g?: {h: int, !}}`
	for _, c := range []struct{ body, complaint string }{
		{`{"a":612489553370251264,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ""},
		{`{"a":1,"b":"2","c":"2026-01-02T03:04:05.5Z","d":[{"type":"sha256","value":"v"}],"e":{"n":1},"f":true,"more":1}`, ""},
		{`{"a":"1","c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ".a: want id"},
		{`{"a":1.5,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ".a: want id"},
		{`{"a":1,"b":2,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ".b: want sid"},
		{`{"a":1,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ".c is missing"},
		{`{"a":1,"c":"2026-01-02T03:04:05+01:00","d":[{"type":"sha256","value":"v"}],"e":{},"f":"x"}`, ".c: want time"},
		{`{"a":1,"c":null,"d":[],"e":{},"f":"x"}`, ".d: want a list"},
		{`{"a":1,"c":null,"d":[{"type":"md5","value":"v"}],"e":{},"f":"x"}`, `.d[0].type: want "sha256"`},
		{`{"a":1,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{"n":"1"},"f":"x"}`, ".e.n: want int"},
		{`{"a":1,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"y"}`, `.f: want "x"`},
		{`{"a":1,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x","g":{"h":1}}`, ""},
		{`{"a":1,"c":null,"d":[{"type":"sha256","value":"v"}],"e":{},"f":"x","g":{"h":1,"i":2}}`, ".g.i should not be there"},
		{`[]`, "want an object"},
	} {
		v, err := decodeTree(c.body)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(parseShape(t, s).check(v, ""), "\n")
		if (got == "") != (c.complaint == "") || !strings.Contains(got, c.complaint) {
			t.Errorf("%s: complaints %q, want %q", c.body, got, c.complaint)
		}
	}
}
