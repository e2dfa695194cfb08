package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// safe holds credentials and remembers who asked.
type safe struct {
	secrets map[string]string // alias to data
	err     error
	asked   []event.SecretRequest
}

func (s *safe) ResolveSecrets(_ context.Context, r event.SecretRequest) ([]event.Secret, error) {
	s.asked = append(s.asked, r)
	if s.err != nil {
		return nil, s.err
	}
	var out []event.Secret
	for _, alias := range r.Aliases {
		data, ok := s.secrets[alias]
		if !ok {
			return nil, event.Errorf(event.NotFound, "there is no credential or keychain entry %q", alias)
		}
		out = append(out, event.Secret{Alias: alias, Type: "bearer", Data: json.RawMessage(data)})
	}
	return out, nil
}

const canary = "canary-7f3a9"

func newSafe() *safe {
	return &safe{secrets: map[string]string{
		"api": `{"token":"` + canary + `","header":"X-Key"}`,
		"raw": `"` + canary + `"`,
	}}
}

// leaky is a tool that shows everything it learns.
type leaky struct{ auth bool }

func (leaky) Kind() string { return "leaky" }

func (l leaky) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	text := fmt.Sprint(call.Config)
	if l.auth {
		login, err := call.Login(ctx, call.Fields())
		if err != nil {
			return nil, err
		}
		text += login.Text("token", "value")
	}
	fmt.Fprintf(call.Log, "calling with %s\nhalf a line %s", text, text[:len(text)/2])
	data, _ := json.Marshal(map[string]any{"author": "Ada", "next_page_token": "CAUQ12345678", "total_tokens": 12, "seen": text})
	res := &tool.Result{
		Data: data, Stdout: text, Stderr: text,
		HTTP: &tool.HTTPInfo{Status: 500, Headers: map[string]string{"Set-Cookie": "a=b", "X-Echo": text}},
	}
	if call.Config["fail"] == true {
		return res, &tool.Error{Kind: tool.KindLogic, Message: "failed with " + text, Details: map[string]any{"traceback": text}}
	}
	return res, nil
}

func TestSecretsReachTheToolAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"a keychain entry":         `{"kind":"leaky","header":"Bearer {{ keychain.api.token }}"}`,
		"a bare value":             `{"kind":"leaky","header":"x {{ keychain.raw }}"}`,
		"the token function":       `{"kind":"leaky","header":"{{ token('api') }}"}`,
		"an alias":                 `{"kind":"leaky","auth":"api"}`,
		"an alias from a variable": `{"kind":"leaky","auth":"{{ which }}"}`,
		"a described credential":   `{"kind":"leaky","auth":{"type":"bearer","credential":"api"}}`,
		"in a failure":             `{"kind":"leaky","header":"{{ keychain.api.token }}","fail":true}`,
		"in what set keeps":        `{"kind":"leaky","header":"{{ keychain.api.token }}","set":{"ctx.kept":"{{ output.seen }}","ctx.again":"{{ keychain.api.token }}"}}`,
		"in a list of tools":       `[{"name":"a","kind":"leaky","header":"{{ keychain.api.token }}"},{"name":"b","kind":"leaky","seen":"{{ a.seen }}"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := newSafe()
			b := newBench(pipeline.Options{Secrets: keys}, leaky{auth: strings.Contains(config, "auth")})
			kind := "leaky"
			if config[0] == '[' {
				kind = "task_sequence"
			}
			e := b.run(t, command(kind, config, with(`{"which":"api"}`)))
			for where, text := range map[string]string{"event": string(e.Payload) + string(e.Meta), "log": b.log.String()} {
				if strings.Contains(text, canary) || strings.Contains(text, canary[2:]) {
					t.Errorf("the secret is in the %s: %s", where, text)
				}
				if !strings.Contains(text, "[REDACTED]") {
					t.Errorf("the %s does not show where the secret was: %s", where, text)
				}
			}
			for _, keep := range []string{`"author":"Ada"`, `"next_page_token":"CAUQ12345678"`, `"total_tokens":12`} {
				if !strings.Contains(string(e.Payload), keep) {
					t.Errorf("%s is gone: %s", keep, e.Payload)
				}
			}
			if len(keys.asked) != 1 || keys.asked[0].EventID != 9 || keys.asked[0].ExecutionID != 7 || keys.asked[0].WorkerID != "w1" || keys.asked[0].Attempt != 1 {
				t.Errorf("asked %+v", keys.asked)
			}
		})
	}
}

func TestKeychainTextThatIsDataStaysText(t *testing.T) {
	t.Parallel()
	keys := newSafe()
	b := newBench(pipeline.Options{Secrets: keys})
	e := b.run(t, command("echo", `{"kind":"echo","x":"{{ given }}"}`, with(`{"given":"{{ keychain.api.token }}"}`)))
	e.wantData(t, `{"config":{"x":"{{ keychain.api.token }}"},"args":{}}`)
	if len(keys.asked) != 0 {
		t.Errorf("asked for %v", keys.asked)
	}
}

func TestACredentialNobodyHasNamesItself(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]string{
		"auth": `{"kind":"leaky","auth":"nobody"}`, "keychain": `{"kind":"leaky","x":"{{ keychain.nobody.y }}"}`,
	} {
		b := newBench(pipeline.Options{Secrets: newSafe()}, leaky{auth: true})
		e := b.run(t, command("leaky", config))
		if e.Type != event.CommandFailed || e.Error.Kind != tool.KindAuth || !strings.Contains(e.Error.Message, `"nobody"`) || e.Error.Retryable {
			t.Errorf("%s: %s %+v", name, e.Type, e.Error)
		}
	}
}

func TestACommandIsGivenBackWhileCredentialsAreAway(t *testing.T) {
	t.Parallel()
	policy := `"spec":{"policy":{"rules":[{"when":true,"then":{"do":"continue"}}]}}`
	for _, config := range []string{`{"kind":"leaky","auth":"api"}`, `{"kind":"leaky","x":"{{ keychain.api.token }}"}`, `{"kind":"leaky","auth":"api",` + policy + `}`} {
		keys := newSafe()
		keys.err = event.Errorf(event.Unavailable, "the store is away")
		b := newBench(pipeline.Options{Secrets: keys}, leaky{auth: true})
		if ev := b.Run(t.Context(), command("leaky", config), nil); ev.Type != "" {
			t.Errorf("%s: the first attempt ends with %s", config, ev.Type)
		}
		if len(keys.asked) < 2 {
			t.Errorf("%s: asked %d times", config, len(keys.asked))
		}
	}
	keys := newSafe()
	keys.err = event.Errorf(event.Unavailable, "the store is away")
	b := newBench(pipeline.Options{Secrets: keys}, leaky{auth: true})
	e := b.run(t, command("leaky", `{"kind":"leaky","auth":"api"}`, func(c *event.Command) { c.Meta.Attempt = 3 }))
	if e.Type != event.CommandFailed || e.Error.Code != "CREDENTIALS_AWAY" || !e.Error.Retryable {
		t.Errorf("the third attempt ends with %s %+v", e.Type, e.Error)
	}
}

func TestSecretsOfTheWorkerItself(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{EnvSecrets: map[string]string{"NOETL_X": canary}}, leaky{})
	e := b.run(t, command("leaky", `{"kind":"leaky","password":"NOETL_X","user":"NOETL_X"}`))
	if got := string(e.Payload); strings.Contains(got, canary) || !strings.Contains(got, "password:[REDACTED] user:NOETL_X") {
		t.Errorf("%s", got)
	}
}

func TestAParkedCommandNotesNoSecret(t *testing.T) {
	t.Parallel()
	parks := &fake{kind: "parks", answers: []answer{{res: &tool.Result{Park: &event.Park{Child: &event.ChildRequest{Path: "p", Payload: json.RawMessage(`{"t":"` + canary + `"}`)}}}}}}
	b := newBench(pipeline.Options{Secrets: newSafe()}, parks)
	ev := b.Run(t.Context(), command("parks", `{"kind":"parks","input":{"t":"{{ keychain.api.token }}"},"set":{"x":"{{ input.t }}"}}`), nil)
	if ev.Type != event.CommandParked || strings.Contains(string(ev.Payload), canary) {
		t.Errorf("%s %s", ev.Type, ev.Payload)
	}
}

// polling is a tool that looks at something until it is done.
type polling struct{ notes []string }

func (*polling) Kind() string { return "polling" }

func (p *polling) Run(_ context.Context, call *tool.Call) (*tool.Result, error) {
	p.notes = append(p.notes, string(call.Again))
	if len(p.notes) < 3 {
		return &tool.Result{Park: &event.Park{Delay: 5}, Again: json.RawMessage(fmt.Sprintf(`{"look":%d}`, len(p.notes)))}, nil
	}
	return &tool.Result{Data: json.RawMessage(`{"done":true}`)}, nil
}

func TestAToolLooksAgainAfterEachWait(t *testing.T) {
	t.Parallel()
	p := &polling{}
	b := newBench(pipeline.Options{}, p)
	cmd := command("polling", `{"kind":"polling"}`)
	for range 2 {
		ev := b.Run(t.Context(), cmd, nil)
		if ev.Type != event.CommandParked {
			t.Fatalf("%s %s", ev.Type, ev.Payload)
		}
		var parked struct{ Park event.Park }
		if err := json.Unmarshal(ev.Payload, &parked); err != nil {
			t.Fatal(err)
		}
		cmd = command("polling", `{"kind":"polling"}`)
		cmd.Meta.Resume = &event.Resume{State: parked.Park.Resume}
	}
	b.run(t, cmd).wantData(t, `{"done":true}`)
	if !slices.Equal(p.notes, []string{"", `{"look":1}`, `{"look":2}`}) {
		t.Errorf("notes %v", p.notes)
	}
}
