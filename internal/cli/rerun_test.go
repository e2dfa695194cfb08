package cli_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/cli"
)

func TestRerunAsksTheServer(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		args       []string
		body, out  string
		status     int
		answer     string
		code       int
		complaints string
	}{
		{
			name: "all of it", args: []string{"41"}, body: `{}`, status: 200,
			answer: `{"execution_id":"42","status":"started","commands_generated":1,"rerun_of":"41","warnings":["payload.x is odd"]}`,
			out:    "started execution 42, a rerun of 41\n", complaints: "warning: payload.x is odd",
		},
		{
			name: "from a step", args: []string{"41", "--from-step", "work", "--payload", `{"a": 1}`, "--set", "b=2", "-V", "latest", "-j"},
			body: `{"payload":{"a":1,"b":2},"from_step":"work","version":"latest"}`, status: 200,
			answer: `{"execution_id":"42","status":"started","commands_generated":1}`,
			out:    `{"execution_id":"42","status":"started","rerun_of":"41"}` + "\n",
		},
		{
			name: "a step it never reached", args: []string{"41", "--from-step", "end"}, body: `{"from_step":"end"}`, status: 422,
			answer: `{"error":"from_step: execution 41 never reached step \"end\"","status":422,"code":"invalid","remedy":"choose one of the steps it reached: start"}`,
			code:   cli.ExitInvalid, complaints: "never reached",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var path, body string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				path, body = r.URL.Path, string(b)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			}))
			defer srv.Close()
			var out, complaints bytes.Buffer
			args := append([]string{"rerun", "--server-url", srv.URL}, tc.args...)
			code := cli.Main(t.Context(), args, &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints})
			if code != tc.code || path != "/api/executions/41/rerun" || strings.TrimSpace(body) != tc.body || out.String() != tc.out || !strings.Contains(complaints.String(), tc.complaints) {
				t.Errorf("code %d, %s %s\n%s%s", code, path, body, out.String(), complaints.String())
			}
		})
	}
}

func TestRerunShowsWhatIsReused(t *testing.T) {
	t.Parallel()
	log := []string{
		`{"event_id":1,"seq":1,"event_type":"playbook_started","node_name":"p","created_at":"2026-01-02T03:04:05Z"}`,
		`{"event_id":2,"seq":2,"event_type":"step.reused","node_name":"start","created_at":"2026-01-02T03:04:05Z","result":{"status":"REUSED","context":{"gen":1,"execution_id":"41","status":"COMPLETED","parts":1}}}`,
		`{"event_id":3,"seq":3,"event_type":"step.reused","node_name":"start","created_at":"2026-01-02T03:04:05Z","result":{"status":"REUSED","context":{"gen":1,"execution_id":"41","part":1,"items":[1]}}}`,
		`{"event_id":4,"seq":4,"event_type":"playbook.completed","node_name":"playbook","status":"COMPLETED","created_at":"2026-01-02T03:04:05Z"}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/executions/41/rerun":
			_, _ = io.WriteString(w, `{"execution_id":"42","status":"started"}`)
		case "/api/executions/42/stream":
			w.Header().Set("Content-Type", "text/event-stream")
			for i, e := range log {
				_, _ = io.WriteString(w, "id: "+string(rune('1'+i))+"\ndata: "+e+"\n\n")
			}
			_, _ = io.WriteString(w, "event: end\ndata: {}\n\n")
		default:
			_, _ = io.WriteString(w, `{"execution_id":42,"status":"COMPLETED","steps":{"start":{"status":"COMPLETED","runs":1,"reused_from":"41"}},"events":[]}`)
		}
	}))
	defer srv.Close()
	var out, complaints bytes.Buffer
	code := cli.Main(t.Context(), []string{"rerun", "--server-url", srv.URL, "41", "--from-step", "end", "--wait"}, &cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &complaints})
	if code != cli.ExitOK || strings.Count(out.String(), "reused from execution 41") != 1 {
		t.Errorf("code %d\n%s%s", code, out.String(), complaints.String())
	}
}
