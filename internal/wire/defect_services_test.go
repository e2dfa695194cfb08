package wire

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
)

// The page asked for "Playbook" and got nothing.
func TestDefect_46_TheCatalogListsKindsByTheirCase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(oneStep)
	for _, kind := range []string{"Playbook", "playbook", "PLAYBOOK"} {
		w.post("/api/catalog/list", `{"resource_type":"`+kind+`"}`).ok().shaped(`{entries: [{path: "demo/one", kind: "playbook"}+]}`)
		w.get("/api/catalog/list/%s", kind).ok().equal("0", "demo/one")
	}
	w.post("/api/catalog/list", `{"resource_type":"credential"}`).ok().shaped(`{entries: []}`)
}

// Two registrations at a time ended in an error, and text that happened to be
// base64 was destroyed.
func TestDefect_47_RegistrationsCollideAndTextIsDecoded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	versions := make([]string, 10)
	for i := range versions {
		all.Go(func() { versions[i] = w.register(oneStep).text("version") })
	}
	all.Wait()
	seen := map[string]bool{}
	for _, v := range versions {
		seen[v] = true
	}
	if len(seen) != len(versions) || !seen["1"] || !seen["10"] {
		t.Errorf("versions are %v", versions)
	}
	content := func(body string) string {
		t.Helper()
		return w.post("/api/catalog/resource", `{"catalog_id":"`+w.post("/api/catalog/register", body).ok().text("catalog_id")+`"}`).ok().text("content")
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(oneStep))
	if got := content(`{"content":"` + encoded + `"}`); got != oneStep {
		t.Errorf("base64 is kept as %q", got)
	}
	if got := content(`{"content":` + quote(oneStep) + `}`); got != oneStep {
		t.Errorf("plain text is kept as %q", got)
	}
	w.post("/api/catalog/register", `{"content":"abcd"}`).refused(422, "") // valid base64 of nothing sensible
}

// Version and kind were ignored, and a catalog id as a string refused.
func TestDefect_48_ExecuteIgnoresVersionAndKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.register(oneStep).text("catalog_id")
	w.register(strings.Replace(oneStep, "city: Paris", "city: Rome", 1))
	for request, city := range map[string]string{
		`{"path":"demo/one"}`: "Rome", `{"path":"demo/one","version":"latest"}`: "Rome", `{"path":"demo/one","version":1}`: "Paris", `{"path":"demo/one","version":"1"}`: "Paris",
		`{"catalog_id":"` + first + `"}`: "Paris", `{"catalog_id":` + first + `,"path":"ignored"}`: "Paris", `{"path":"demo/one","resource_kind":"agent"}`: "Rome",
	} {
		id := w.post("/api/execute", request).ok().id("execution_id")
		w.get("/api/executions/%d", id).ok().equal("workload.city", city)
	}
	w.post("/api/execute", `{"path":"demo/one","version":7}`).refused(404, "version 7")
	w.post("/api/execute", `{"path":"demo/one","resource_kind":"credential"}`).refused(422, "resource_kind")
}

// A start that failed kept its key, so that the next one was a duplicate of nothing.
func TestDefect_49_AFailedStartKeepsItsKey(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	w.register(oneStep)
	start := func(path string) answer {
		return w.post("/api/execute", `{"path":"`+path+`","dedup":{"key":"message-1"}}`)
	}
	start("no/where").refused(404, "")
	w.register(playbookOf("demo/bad", loopStep("start", "{{ 3 }}", "parallel")))
	start("demo/bad").refused(422, "loop.in")
	s.broken.Store(true)
	start("demo/one").refused(503, "")
	s.broken.Store(false)
	first := start("demo/one").ok().equal("status", "started")
	start("demo/one").ok().shaped(`{status: "duplicate", commands_generated: 0}`).equal("execution_id", first.text("execution_id"))
	w.get("/api/executions/%s", first.text("execution_id")).ok()
	// Of many at once one starts.
	var all sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = w.post("/api/execute", `{"path":"demo/one","dedup":{"key":"message-2"}}`).ok() })
	}
	all.Wait()
	started := 0
	for _, a := range answers {
		if a.text("status") == "started" {
			started++
		}
		if a.text("execution_id") != answers[0].text("execution_id") {
			t.Errorf("two executions: %s and %s", a.body, answers[0].body)
		}
	}
	if started != 1 {
		t.Errorf("%d started", started)
	}
	w.pass(6 * time.Minute) // longer than a key is held
	start("demo/one").ok().equal("status", "started")
}

// What workers send was refused, and they never recovered.
func TestDefect_51_WhatWorkersSendIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	w.post("/api/vars/"+id.String(), `{"a":1,"b":{"c":[2]}}`).ok().equal("variables_set", "2")
	w.get("/api/vars/%d/b", id).ok().equal("var_value.c.0", "2")
	w.post("/api/worker/pool/heartbeat", `{"name":"w","kind":"worker_pool"}`).ok() // nobody knows it, or not any more
	w.get("/api/worker/pools?name=w").ok().shaped(`[{name: "w", kind: "worker_pool", heartbeat: time}+]`)
	w.pass(2 * time.Minute)
	w.get("/api/worker/pools?name=w").ok().equal("0.status", "offline")
	w.post("/api/worker/pool/heartbeat", `{"name":"w"}`).ok()
	if got := w.get("/api/worker/pools?name=w").ok().text("0.status"); got == "offline" {
		t.Error("a worker that is back stays offline")
	}
	w.post("/api/worker/pool/deregister", `{"name":"w","component_type":"worker_pool"}`).ok()
	w.send("DELETE", "/api/worker/pool/deregister", `{"name":"w"}`).ok()
	w.get("/api/worker/pools?name=w").ok().shaped(`[]`)
}

// Numbers to look at were zeros, or made up.
func TestDefect_52_NumbersAreMadeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	done := w.start(oneStep)
	w.worker("w").finish(done, `1`)
	w.again("demo/one", "")
	w.post("/api/worker/pool/register", `{"name":"w","status":"ready"}`).ok()
	a := w.get("/api/dashboard/stats").ok()
	for _, level := range []string{"", "stats."} {
		a.equal(level+"total_executions", "2").equal(level+"total_playbooks", "1").equal(level+"successful_executions", "1").
			equal(level+"running_executions", "1").equal(level+"total_workers", "1")
	}
	a.equal("active_executions", "1").equal("success_rate", "100").shaped(`{recent_executions: [@row+]}`)
	pool := w.get("/api/pool/status").ok()
	if pool.text("pool_max") == "0" && pool.text("pool_size") != "0" {
		t.Errorf("the pool is %s", pool.body)
	}
	if rss := w.get("/api/status").ok().text("process.memory_rss_mb"); rss == "0" {
		t.Error("the process needs no memory")
	}
	w.post("/api/db/init", "").ok().equal("status", "ok")
	w.get("/api/db/validate").ok().shaped(`{valid: true, tables: [text+], missing: []}`)
}

// Internal routes were open to everybody.
func TestDefect_54_InternalRoutesAreOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parameter := regexp.MustCompile(`\{[^}]*\}`)
	n := 0
	for _, r := range w.server.Routes() {
		if !strings.HasPrefix(r.Pattern, "/api/internal/") {
			continue
		}
		n++
		w.send(r.Method, parameter.ReplaceAllString(r.Pattern, "1"), `{}`).refused(403, "internal token")
	}
	if n < 8 {
		t.Errorf("%d internal routes", n)
	}
	// What is below them and does not exist is no way in either.
	for _, path := range []string{"plugins/x", "objects/x", "cells", "wallet", "wallet/keys", "secrets", "registry/list"} {
		w.get("/api/internal/%s", path).refused(404, "")
	}
	for _, right := range []string{"", "Authorization: Bearer " + token} {
		w.send("POST", "/api/postgres/execute", `{"query":"SELECT 1"}`, header(right)...).refused(403, "closed")
	}
}

// Browsers lose the low digits of ids that are numbers.
func TestDefect_55_BrowsersLoseTheLowDigits(t *testing.T) {
	t.Parallel()
	for _, asStrings := range []bool{false, true} {
		w := newWorld(t, setting{api: func(o *api.Options) { o.StringIDs = asStrings }})
		id := w.start(oneStep)
		child := w.again("demo/one", `,"parent_execution_id":"`+id.String()+`"`)
		if id < 1<<53 {
			t.Fatalf("%d shows nothing", id)
		}
		const twins = `{execution_id_str: sid, catalog_id_str: sid, parent_execution_id_str: sid|null}`
		w.get("/api/executions").ok().shaped(`[` + twins + `+]`)
		w.get("/api/executions/%d", child).ok().shaped(twins).equal("parent_execution_id_str", id.String()).equal("execution_id_str", child.String())
		w.get("/api/executions/%d/status", id).ok().equal("execution_id_str", id.String())
		w.post("/api/execute", `{"path":"demo/one"}`).ok().shaped(`{execution_id: sid}`)
		w.post("/api/catalog/list", `{}`).ok().shaped(`{entries: [{catalog_id: sid}+]}`)
	}
}

// The page looked for names of an older server.
func TestDefect_56_ThePageDoesNotFindItsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(strings.Replace(oneStep, "  labels:", "  description: greets\n  labels:", 1))
	id := w.again("demo/one", "")
	const names = `{execution_id: id, path: text, version: int, status: text, start_time: time, end_time: null, duration_seconds: real, duration_human: text, progress: int, result: any, error: null, parent_execution_id: null}`
	w.get("/api/executions?page=1&page_size=10").ok().shaped(`[` + names + `+]`)
	w.get("/api/executions/%d", id).ok().shaped(names).shaped(`{events: [{timestamp: time, node_id: str, duration: real, context: any, catalog_id: id, parent_event_id: id|null}+], events_included: bool, events_endpoint: text}`)
	w.post("/api/catalog/list", `{"resource_type":"Playbook"}`).ok().equal("entries.0.payload.metadata.description", "greets").equal("entries.0.payload.metadata.name", "one")
}

// A job called back twice was done twice, moved nothing on, and failed as a success.
func TestDefect_57_CallbacksAreDoubledAndIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(playbookOf("demo/job", "  - step: start\n    tool: {kind: container, image: busybox}\n    next:\n      arcs:\n        - step: finish\n"+step("finish")))
	for state, want := range map[string]string{"succeeded": "RUNNING", "failed": "FAILED", "failed_oom": "FAILED", "failed_timeout": "FAILED", "failed_image_pull": "FAILED", "failed_node_lost": "FAILED"} {
		id := w.again("demo/job", "")
		claim := w.claim(w.command(id, "start"), "w").ok()
		w.worker("w").tell(id, "start", "command.completed", "success", fmt.Sprintf(`{"command_id":%q,"status":"success","pending_callback":true}`, claim.text("meta.command_id"))).ok()
		call := func() answer {
			return w.internal("POST", fmt.Sprintf("/api/internal/container-callback/%d/start", id), `{"state":"`+state+`","job_name":"j","job_uid":"u-1","exit_code":1}`).want(202)
		}
		call().shaped(`{status: "accepted_in_flight", event_id: id}`)
		before := len(w.log(id))
		call().shaped(`{status: "accepted_stale"|"accepted_in_flight"}`)
		if after := len(w.log(id)); after != before {
			t.Errorf("%s: a repeated call adds %d events", state, after-before)
		}
		w.wantStatus(id, want)
		if want == "RUNNING" {
			w.counts(id, "command.issued=2")
		}
	}
}

// Projected events lost columns, and those of nobody broke the whole batch.
func TestDefect_58_ProjectedEventsLoseColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	w.internal("POST", "/api/internal/events/project", fmt.Sprintf(`{"events":[
		{"event_id":901,"execution_id":%d,"event_type":"note","node_id":"n","node_name":"n","node_type":"python","status":"FINE","duration":1.5,"timestamp":"2026-01-02T03:04:05","worker_id":"w","command_id":"c","parent_event_id":7,"parent_execution_id":8,"error":"e","meta":{"k":1},"result":{"status":"FINE","context":{"a":1}},"context":{"b":2},"stack_trace":"at x"},
		{"event_id":902,"event_type":"note"},
		{"event_id":903,"execution_id":5,"event_type":"note"}]}`, id)).ok().shaped(`{projected: 1, duplicates: 0, rejected: [{index: 1|2, error: text}+]}`)
	r := only(w.log(id), "note", "")[0]
	if r.EventID != 901 || r.Worker != "w" || r.CommandID != "c" || r.ParentID != 7 || r.NodeType != "python" || r.Status != "FINE" || r.Duration != 1.5 || r.Error != "e" ||
		r.meta("k") != "1" || r.meta("stack_trace") != "at x" || !r.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("stored is %+v", r)
	}
	w.get("/api/executions/%d/events?event_type=note", id).ok().equal("events.0.parent_execution_id", "8").shaped(`{events: [{catalog_id: id}+]}`)
}
