package wire

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret/sealed"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/sqlite"
)

// Nothing could be kept without saying until when, and each server had words of
// its own for what is kept.
func TestDefect_50_KeptSecretsNeedAnEndAndHaveManyShapes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.register(oneStep).text("catalog_id")
	id := w.again("demo/one", "")
	at := "/api/keychain/" + catalog + "/tok"
	local := "?scope_type=local&execution_id=" + id.String()

	// Without an end there is one; what belongs to one execution ends sooner.
	ends := func(a answer) time.Duration {
		until, err := time.Parse(time.RFC3339Nano, a.ok().text("expires_at"))
		if err != nil || time.Until(until) < time.Minute {
			t.Errorf("kept until %v: %v", until, err)
		}
		return time.Until(until)
	}
	global := ends(w.internal("POST", at, `{"data":{"token":"one"}}`))
	if own := ends(w.internal("POST", at, `{"data":{"token":"two"},"scope_type":"local","execution_id":`+id.String()+`}`)); own >= global {
		t.Errorf("for one execution %v, for all %v", own, global)
	}

	// Both servers' words are understood, and spoken.
	const shape = `{status: "found", data: {token: text}, token_data: {token: text}, credential_type: text, expires_at: time, ttl_seconds: int, auto_renew: bool, access_count: int}`
	w.internal("GET", at, "").ok().shaped(shape).equal("data.token", "one").equal("access_count", "1")
	w.internal("GET", at+local, "").ok().shaped(shape).equal("token_data.token", "two")
	w.internal("POST", at+local, `{"token_data":{"token":"three"},"ttl_seconds":60,"credential_type":"bearer"}`).ok().equal("cache_key", "tok:"+catalog+":"+id.String())
	w.internal("GET", at+local, "").ok().equal("data.token", "three").equal("credential_type", "bearer")
	w.get("/api/keychain/catalog/%s", catalog).ok().equal("catalog_id", catalog).equal("count", "2").
		shaped(`{entries: [{keychain_name: "tok", scope_type: "local"|"global", execution_id: sid|null, expired: false, access_count: int}+]}`)
	w.pass(2 * time.Minute)
	if a := w.internal("GET", at+local, "").ok().equal("status", "expired").equal("ttl_seconds", "0"); a.at("data") != nil || a.at("token_data") != nil {
		t.Errorf("what is over is still given out: %s", a.body)
	}
	w.internal("GET", at, "").ok().equal("data.token", "one")
	w.internal("DELETE", at, "").ok().equal("status", "deleted")
	w.internal("GET", at, "").ok().equal("status", "not_found")

	// A credential is one object, whoever asks and however it is named.
	first := w.post("/api/credentials", `{"name":"pg","type":"postgres","data":{"db_host":"a","db_password":"hunter2-long"}}`).ok()
	again := w.post("/api/credentials", `{"name":"pg","type":"postgres","data":{"db_host":"b","db_password":"hunter3-long"},"description":"moved"}`).ok().equal("id", first.text("id"))
	for _, identifier := range []string{"pg", first.text("id")} {
		a := w.get("/api/credentials/%s", identifier).ok()
		if a.body != again.body || strings.Contains(a.body, "null") {
			t.Errorf("%s\nwas answered as %s", a.body, again.body)
		}
	}
	w.get("/api/credentials").ok().equal("items.0.id", first.text("id")).equal("items.0.description", "moved")
}

// What has the look of a secret was blanked in the log, where the next step
// reads it; and stood in the clear in workloads and commands.
func TestDefect_66_DataIsBlankedAndSecretsAreNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	guarded := strings.Replace(step("start", "finish"), "- step: finish", "- step: finish\n          when: \"{{ start.author == 'Jane Auerbach' and start.total_tokens == '1234567' }}\"", 1)
	finish := strings.Replace(step("finish"), "    tool:", "    input:\n      all: \"{{ start }}\"\n      login: \"{{ workload.login }}\"\n    tool:", 1)
	w.register(playbookOf("demo/login", guarded+finish))
	secrets := map[string]string{
		"access_token": "s3ss10n-9f27aa61b0c4", "api_key": "AKx81-77aa-99bb-1122", "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJl",
		"header": "Bearer 0a1b2c3d4e5f60718293", "password": "correct-horse-42-battery", "issued": "sk-ant-0123456789abcdefghij",
	}
	plain := map[string]string{"author": "Jane Auerbach", "next_page_token": "CAUQAA", "total_tokens": "1234567", "certainty": "almost certain", "sha256": strings.Repeat("ab12", 16), "session_token": "51e8-of-a-login-step"}
	data := "{"
	for _, values := range []map[string]string{secrets, plain} {
		for name, value := range values {
			data += fmt.Sprintf("%q:%q,", name, value)
		}
	}
	data = strings.TrimSuffix(data, ",") + "}"
	id := w.again("demo/login", fmt.Sprintf(`,"payload":{"login":{"password":%q,"author":"Jane Auerbach"}}`, secrets["password"]))
	f := w.worker("rust-1")
	f.run(id, w.command(id, "start"), data)

	// The next step gets everything as it was.
	claim := w.claim(w.command(id, "finish"), "rust-1").ok()
	for _, values := range []map[string]string{secrets, plain} {
		for name, value := range values {
			claim.equal("context.render_context.start."+name, value)
		}
	}
	claim.equal("context.render_context.workload.login.password", secrets["password"])
	const printed = "logged in with "
	if err := w.bus.PublishLog(t.Context(), event.LogChunk{ExecutionID: id, EventID: w.command(id, "start"), Step: "start", Text: printed + secrets["header"] + "\n"}); err != nil {
		t.Fatal(err)
	}
	f.tell(id, "finish", "command.completed", "success", fmt.Sprintf(`{"command_id":%q,"status":"success","result":{"status":"success","context":{"status":"success","data":%s,"stdout":%q}}}`,
		claim.text("meta.command_id"), data, printed+secrets["issued"]+"\n")).ok()
	w.wantStatus(id, "COMPLETED")

	failed := w.again("demo/login", "")
	f.fail(failed, w.claim(w.command(failed, "start"), "rust-1"), "refused: "+secrets["header"])

	// Whoever looks at executions sees the data and none of the secrets.
	looked := 0
	for _, r := range w.server.Routes() {
		if r.Method != "GET" || !strings.HasPrefix(r.Pattern, "/api/executions") && !strings.HasPrefix(r.Pattern, "/api/replay/") && !strings.HasPrefix(r.Pattern, "/api/dashboard/") {
			continue
		}
		looked++
		for _, x := range []event.ID{id, failed} {
			path := strings.ReplaceAll(r.Pattern, "{id}", x.String())
			if strings.HasPrefix(path, "/api/replay/") {
				path += "?execution_id=" + x.String()
			}
			for _, accept := range []string{"application/json", "text/plain", "text/event-stream"} {
				a := w.send("GET", path, "", "Accept: "+accept).ok()
				for name, value := range secrets {
					if strings.Contains(a.body, value) {
						t.Errorf("%s as %s shows the %s: %s", a.what, accept, name, a.body)
					}
				}
			}
		}
	}
	if looked < 8 {
		t.Errorf("%d routes were looked at", looked)
	}
	detail := w.get("/api/executions/%d", id).ok()
	for name, value := range plain {
		detail.equal("steps.start.result."+name, value)
	}
	detail.equal("steps.start.result.access_token", "[REDACTED]").equal("workload.login.password", "[REDACTED]").equal("workload.login.author", "Jane Auerbach")
	w.get("/api/executions/%d/logs", id).ok().equal("chunks.0.text", printed+"[REDACTED]\n").equal("chunks.1.text", printed+"Bearer [REDACTED]\n")
}

// What a worker is given for a command is known to that worker alone: neither
// the log nor anything else of the database holds it.
func TestResolvedSecretsAreNotStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, setting{store: func(t *testing.T) store.Store {
		s, err := sqlite.Open(t.Context(), filepath.Join(dir, "noetl.db"), sqlite.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
	const hidden, visible = "canary-5c1d77", "canary-that-is-data"
	w.post("/api/credentials", `{"name":"api_key","type":"secret","data":{"value":"`+hidden+`"},"description":"`+visible+`"}`).ok()
	id := w.start(playbookOf("demo/keyed", "  - step: start\n    tool:\n      kind: http\n      url: http://x\n      headers:\n        Authorization: \"Bearer {{ keychain.api_key.value }}\"\n"))
	command := w.command(id, "start")
	claim := w.claim(command, "w").ok()
	key := w.enlist("w")
	w.post("/api/secrets/resolve", fmt.Sprintf(`{"execution_id":"%d","event_id":"%d","worker_id":"w","attempt":1,"aliases":["api_key"]}`, id, command)).ok().
		unseal(key, "sealed", sealed.Binding{Execution: id, Aliases: []string{"api_key"}}).equal("0.data.value", hidden)
	w.get("/api/credentials/api_key/sealed?worker_id=w&execution_id=%d", id).ok().unseal(key, "", sealed.Binding{}).equal("data.value", hidden)
	w.worker("w").end(id, claim, `{"done":true}`)
	w.wantStatus(id, "COMPLETED")
	w.post("/api/secrets/resolve", fmt.Sprintf(`{"execution_id":"%d","event_id":"%d","worker_id":"w","attempt":1,"aliases":["api_key"]}`, id, command)).refused(403, "COMPLETED")

	if strings.Contains(claim.body, hidden) {
		t.Errorf("the command holds it: %s", claim.body)
	}
	for _, r := range w.log(id) {
		if strings.Contains(string(r.Context)+string(r.Result)+string(r.Meta)+r.Error, hidden) {
			t.Errorf("the log holds it: %+v", r)
		}
	}
	found := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, text := range []string{hidden, visible} {
			found[text] += bytes.Count(b, []byte(text))
		}
		return err
	})
	if err != nil || found[hidden] > 0 || found[visible] == 0 {
		t.Errorf("the files of the database hold %v: %v", found, err)
	}
	lines, err := w.store.ListAudit(t.Context(), store.AuditFilter{ExecutionID: id})
	if err != nil || len(lines) != 3 || strings.Contains(fmt.Sprint(lines), hidden) {
		t.Errorf("recorded is %+v: %v", lines, err)
	}
}
