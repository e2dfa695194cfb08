package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// How large events of a log may be. Those that issue commands hold the values
// which the command reads, and have more room.
const (
	largestEvent   = 150 << 10
	largestCommand = 512<<10 + 4<<10
)

// large returns 1.7 MB and lets the steps after it read some of it, and all.
const large = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: e2e/large}
workflow:
  - step: big
    tool:
      kind: python
      code: |
        result = {'count': 160, 'rows': [{'id': i, 'text': 'x' * 10625} for i in range(160)], 'deep': {'answer': 42}}
    next: chosen
  - step: chosen
    tool:
      kind: python
      code: |
        result = {'note': {'text': 'kept', 'tail': 'y' * 5}, 'bulk': 'z' * 300000}
      output: {select: [{path: "$.note.text", as: word}]}
    next: part
  - step: part
    tool: {kind: noop, result: {count: "{{ big.count }}", id: "{{ big.rows[150].id }}", answer: "{{ big.deep.answer }}", word: "{{ chosen.word }}"}}
    next: whole
  - step: whole
    tool:
      kind: python
      input: {all: "{{ big }}"}
      code: |
        result = {'rows': len(all['rows']), 'last': all['rows'][159]['id'], 'chars': sum(len(r['text']) for r in all['rows'])}
    next: {arcs: [{step: each, when: "{{ big.rows | length == 160 }}"}]}
  - step: each
    loop: {in: "{{ big.rows }}", iterator: row, spec: {mode: parallel, max_in_flight: 8}}
    tool: {kind: noop, result: {id: "{{ row.id }}", chars: "{{ row.text | length }}"}}
    next: bulky
  - step: bulky
    loop: {in: 3, iterator: i}
    tool: {kind: python, input: {i: "{{ i }}"}, code: "result = {'id': i, 'text': 'b' * 200000}"}
    next: end
  - step: end
    tool:
      kind: python
      input: {each: "{{ each }}", bulky: "{{ bulky }}", second: "{{ bulky[1].id }}"}
      code: |
        result = {'n': len(each), 'ids': sum(r['id'] for r in each), 'chars': sum(r['chars'] for r in each),
                  'bulk': [len(b['text']) for b in bulky], 'second': second}
`

// small demands that no event of a log is larger than it should be.
func (s *system) small(p *process, id event.ID) {
	s.t.Helper()
	for _, e := range s.log(p, id) {
		most := largestEvent
		if e.Type == event.CommandIssued {
			most = largestCommand
		}
		if n := len(e.Result) + len(e.Meta) + len(e.Context); n > most {
			s.t.Errorf("event %d, %s of %s, has %d bytes", e.Seq, e.Type, e.NodeName, n)
		}
	}
}

func (s *system) isLarge(p *process, id event.ID) {
	s.t.Helper()
	d := s.ended(p, id, event.StatusCompleted)
	result(s.t, d, "part", `{"answer":42,"count":160,"id":150,"word":"kept"}`)
	result(s.t, d, "whole", `{"chars":1700000,"last":159,"rows":160}`)
	result(s.t, d, "end", `{"bulk":[200000,200000,200000],"chars":1700000,"ids":12720,"n":160,"second":1}`)
	s.small(p, id)
}

func TestLargeResultsStayOutOfTheLog(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "4")
		id := s.start(server, large)
		s.isLarge(server, id)

		ref := regexp.MustCompile(`noetl://[^"]*/result/big/\d+`).FindString(string(s.logged(server, id, event.CommandCompleted).Result))
		data, err := server.client.Result(s.ctx(), ref)
		if err != nil || len(data) < 1_700_000 {
			t.Errorf("the reference %q gives %d bytes: %v", ref, len(data), err)
		}
		s.stop(server)
		prove(t, s.open(), id)
	})
}

// TestLargeResultsOfRemoteWorkers has them travel over HTTP both ways.
func TestLargeResultsOfRemoteWorkers(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	nats, args := s.natsFor()
	server := s.server(0, append(args, "--no-worker")...)
	s.worker("remote", server.url, nats, 4)
	s.isLarge(server, s.start(server, large))
}

// loaded makes 5 MB of what it is given, keeps them as a variable and hands
// them to tools.
const loaded = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: loaded, path: e2e/loaded}
workload: {lines: []}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.more: "{{ lines + lines + lines }}"}
    next: count
  - step: count
    tool: {kind: python, input: {m: "{{ ctx.more }}", l: "{{ lines }}"}, code: "result = {'n': len(l), 'chars': sum(len(x) for x in m)}"}
`

func TestLargeContextReachesTools(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	server := s.server(0)
	reg := s.register(server, loaded)
	lines := make([]string, 18)
	for i := range lines {
		lines[i] = strings.Repeat("l", 100_000)
	}
	payload, _ := json.Marshal(map[string]any{"lines": lines})
	a, err := server.client.Execute(s.ctx(), client.ExecuteRequest{CatalogID: reg.CatalogID, Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() bool { // following the log would move all of it
		st, err := server.client.Status(s.ctx(), a.ExecutionID)
		return err == nil && st.Final()
	}, patience)
	answered := false
	for _, e := range s.log(server, a.ExecutionID) {
		size := len(e.Context) + len(e.Result) + len(e.Meta)
		if e.Type != event.PlaybookStarted && size > largestCommand { // the start holds what the caller gave
			t.Errorf("%s of %s has %d bytes", e.Type, e.NodeName, size)
		}
		answered = answered || e.NodeName == "count" && strings.Contains(string(e.Result), `{"n":18,"chars":5400000}`)
	}
	if !answered {
		t.Error("the tool did not get what it was to count")
	}
}

// TestLargeChildResult crosses from one execution to another.
func TestLargeChildResult(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	server := s.server(0, "--slots", "1")
	s.register(server, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bulky, path: e2e/bulky}
workflow:
  - {step: big, tool: {kind: python, code: "result = {'count': 3, 'rows': ['x' * 200000 for i in range(3)]}"}}
`)
	id := s.start(server, caller("bulky", `
  - {step: call, tool: {kind: playbook, path: e2e/bulky, return_result: true}, next: read}
  - step: read
    tool: {kind: python, input: {c: "{{ call.count }}", last: "{{ call.rows[2] }}"}, code: "result = {'count': c, 'last': len(last)}"}
`))
	d := s.ended(server, id, event.StatusCompleted)
	result(t, d, "read", `{"count":3,"last":200000}`)
	s.small(server, id)
}
