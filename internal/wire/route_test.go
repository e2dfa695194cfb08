package wire

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/sealed"
)

// Who calls.
const (
	worker   = "worker"
	gui      = "gui"
	cli      = "cli"
	gateway  = "gateway"
	operator = "operator" // a person or a system playbook with the internal token
	probe    = "probe"
	admin    = "admin"   // with the first token of a server
	team     = "team"    // with a token for some playbooks
	person   = "person"  // with a token of the issuer
	browser  = "browser" // with a session
)

// call is one request of a client and what comes back. $name stands for a value
// that an earlier answer gave.
type call struct {
	by     string
	ask    string // method and path
	body   string
	status int
	shape  string // of the answer; "~type" only says its content type
	keep   string // "name=place …": values for later calls
}

// script runs calls one after the other.
type script struct {
	*world
	values map[string]string
	called map[string]bool // patterns of routes
	mux    *http.ServeMux
}

func newScript(w *world) *script {
	s := &script{w, map[string]string{}, map[string]bool{}, http.NewServeMux()}
	for _, r := range w.server.Routes() {
		s.mux.Handle(r.Method+" "+r.Pattern, http.NotFoundHandler())
	}
	return s
}

var variable = regexp.MustCompile(`\$[a-z_]+[0-9]?`)

func (s *script) fill(text string) string {
	s.t.Helper()
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		v, ok := s.values[name[1:]]
		if !ok {
			s.t.Fatalf("no earlier answer gave %s", name)
		}
		return v
	})
}

// play makes the calls.
func (s *script) play(calls []call) {
	s.t.Helper()
	for _, c := range calls {
		method, path, ok := strings.Cut(s.fill(c.ask), " ")
		if !ok {
			s.t.Fatalf("%q has no method", c.ask)
		}
		s.note(method, path)
		var headers []string
		switch c.by {
		case operator:
			headers = []string{"Authorization: Bearer " + token, "Content-Type: application/json"}
		case browser:
			headers = []string{"X-Session-Token: " + s.fill("$session"), "Content-Type: application/json"}
		case admin, team, person:
			headers = []string{"Authorization: Bearer " + s.fill("$"+c.by+"_token"), "Content-Type: application/json"}
		case gui, cli, worker:
			headers = []string{"Content-Type: application/json"}
		case gateway: // passes on whatever content type the browser sent
			headers = []string{"Content-Type: application/json; charset=utf-8", "X-Forwarded-For: 10.0.0.7"}
		}
		a := s.send(method, path, s.fill(c.body), headers...)
		a.what = c.by + ": " + a.what
		s.judge(c, a)
	}
}

func (s *script) judge(c call, a answer) {
	s.t.Helper()
	a.want(c.status)
	if kind, ok := strings.CutPrefix(c.shape, "~"); ok {
		if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, kind) || a.body == "" {
			s.t.Errorf("%s: %q of type %s, want %s", a.what, a.body, got, kind)
		}
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		s.t.Errorf("%s: answer of type %q", a.what, got)
	}
	a.shaped(s.fill(c.shape))
	for pair := range strings.FieldsSeq(c.keep) {
		name, place, _ := strings.Cut(pair, "=")
		v := a.at(place)
		if v == nil {
			s.t.Fatalf("%s: nothing at %s: %s", a.what, place, a.body)
		}
		s.values[name] = fmt.Sprint(v)
	}
}

// note remembers which route a request goes to.
func (s *script) note(method, path string) {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://x"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_, pattern := s.mux.Handler(req)
	s.called[pattern] = true
}

// keepCommands names the commands of an execution that have not ended.
func (s *script) keepCommands(execution string, names ...string) {
	s.t.Helper()
	var id int64
	if _, err := fmt.Sscan(s.fill("$"+execution), &id); err != nil {
		s.t.Fatal(err)
	}
	rows := s.get("/api/executions/%d/events?limit=1000", id).ok()
	var commands []string
	events, _ := rows.at("events").([]any)
	for _, e := range events {
		if m, _ := e.(map[string]any); m["event_type"] == "command.issued" {
			commands = append(commands, fmt.Sprint(m["event_id"]))
			meta, _ := m["meta"].(map[string]any)
			s.values[names[0]+"_id"] = fmt.Sprint(meta["command_id"])
		}
	}
	if len(commands) < len(names) {
		s.t.Fatalf("%d commands, want %d", len(commands), len(names))
	}
	for i, name := range names {
		s.values[name] = commands[len(commands)-len(names)+i]
	}
}

// print sends what a command prints while it runs.
func (s *script) print(execution, command string, texts ...string) {
	s.t.Helper()
	c := event.LogChunk{CommandID: "c", Step: "start", Attempt: 1, Time: time.Now().UTC()}
	for name, id := range map[string]*event.ID{execution: &c.ExecutionID, command: &c.EventID} {
		var err error
		if *id, err = event.ParseID(s.fill("$" + name)); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, text := range texts {
		c.Text = text
		if err := s.bus.PublishLog(s.t.Context(), c); err != nil {
			s.t.Fatal(err)
		}
	}
}

// everyPart has a plane publish, and remove what is old.
func everyPart(t *testing.T) func(*control.Options) {
	policy, err := control.ParseRetention("completed=30d, failed=90d; demo: keep=10")
	if err != nil {
		t.Fatal(err)
	}
	return func(o *control.Options) { o.Outbox.On, o.Retention.Policy = true, policy }
}

// TestEveryRouteAnswersItsClients plays the calls of all clients and fails when
// a route was not among them.
func TestEveryRouteAnswersItsClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: everyPart(t), api: withConsole, parts: withSchedules})
	s := newScript(w)
	s.values["yaml"] = strings.Trim(quote(twoSteps), `"`)
	s.play(shelfCalls)
	s.play(startCalls)
	s.keepCommands("run", "cmd")
	s.play(workCalls)
	s.keepCommands("run", "cmd_b")
	s.play(secondCalls)
	s.play(readCalls)
	s.keepCommands("held", "held_cmd")
	s.play(heldCalls)
	s.play(walletCalls)
	s.values["public_key"], s.values["other_key"] = sealed.PublicText(newKey(t).PublicKey()), sealed.PublicText(newKey(t).PublicKey())
	s.play(sealedCalls)
	s.play(keptCalls)
	s.play(keyCalls)
	s.print("held", "held_cmd", "one\n", "two\n")
	s.play(logCalls)
	s.play(signalCalls)
	s.play(resultCalls)
	s.play(sideCalls)
	s.keepCommands("child", "child_cmd")
	s.play(internalCalls)
	s.play(endCalls)
	s.play(docsCalls)
	s.play(scheduleCalls)
	s.play(consoleCalls)
	s.play(retentionCalls)
	playGuarded(t, s.called)
	s.play(openCalls)
	everyOperationIsChecked(t, w)
	var missed []string
	for _, r := range w.server.Routes() {
		if !s.called[r.Method+" "+r.Pattern] {
			missed = append(missed, r.Method+" "+r.Pattern)
		}
	}
	if len(missed) > 0 {
		slices.Sort(missed)
		t.Errorf("no client calls %d routes:\n%s", len(missed), strings.Join(missed, "\n"))
	}
}
