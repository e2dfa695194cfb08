package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/mcp"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// TestMain lets the test binary be a server over stdin and stdout.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") == "1" {
		_ = newServer(nil, nil).Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	os.Exit(m.Run())
}

type words struct {
	Text string `json:"text"`
}

// newServer has tools to echo, to fail and to wait. Calls that wait say so in
// entered; they end when they are cancelled, or with the server.
func newServer(entered chan<- struct{}, stop <-chan struct{}) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Text}, &sdk.TextContent{Text: os.Getenv("MCP_TEST_WORD")}}}, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("it does not work")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ words) (*sdk.CallToolResult, any, error) {
		select {
		case entered <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			if entered != nil {
				entered <- struct{}{}
			}
		case <-stop:
		}
		return nil, nil, ctx.Err()
	})
	s.AddResource(&sdk.Resource{Name: "r", URI: "test://r"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "content"}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "p"}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "for " + r.Params.Arguments["who"]}, nil
	})
	return s
}

// served is a server over HTTP that counts greetings and notes who asks.
type served struct {
	*httptest.Server
	greetings atomic.Int32
	auth      atomic.Value
	stop      chan struct{}
}

func (s *served) Close() {
	close(s.stop)
	s.Server.Close()
}

func serve(t *testing.T, entered chan<- struct{}) *served {
	t.Helper()
	s := &served{stop: make(chan struct{})}
	server := newServer(entered, s.stop)
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			_, _ = io.WriteString(w, "fine")
			return
		case "/closed/mcp":
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.auth.Store(r.Header.Get("Authorization"))
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"initialize"`) {
			s.greetings.Add(1)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		h.ServeHTTP(w, r)
	}))
	return s
}

func newTool(t *testing.T, o mcp.Options) *mcp.Tool {
	t.Helper()
	tl := mcp.New(o)
	t.Cleanup(func() { _ = tl.Close() })
	return tl
}

func callOf(config map[string]any) *tool.Call { return &tool.Call{Config: config, Log: io.Discard} }

type answer struct {
	Status, Server, Endpoint, Method, Tool, Text string
	Arguments                                    map[string]any
	Result, Initialize                           json.RawMessage
}

func run(t *testing.T, tl *mcp.Tool, config map[string]any) (answer, *tool.Error) {
	t.Helper()
	res, err := tl.Run(t.Context(), callOf(config))
	var a answer
	if res != nil {
		if err := json.Unmarshal(res.Data, &a); err != nil {
			t.Fatalf("%v in %s", err, res.Data)
		}
	}
	if err == nil {
		return a, nil
	}
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T: %v", err, err)
	}
	return a, e
}

func TestConformance(t *testing.T) {
	var srv *served
	entered := make(chan struct{}, 4)
	tooltest.Run(t, tooltest.Suite{
		Open: func(t *testing.T) (tool.Tool, func()) {
			srv = serve(t, entered)
			tl := mcp.New(mcp.Options{})
			return tl, func() {
				close(srv.stop)
				_ = tl.Close()
				srv.Server.Close()
			}
		},
		Quick: func() *tool.Call {
			return callOf(map[string]any{"endpoint": srv.URL + "/mcp", "tool": "echo", "arguments": map[string]any{"text": "hi"}})
		},
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			for len(entered) > 0 { // of a former call
				<-entered
			}
			started := make(chan struct{})
			go func() {
				<-entered
				close(started)
			}()
			return callOf(map[string]any{"endpoint": srv.URL + "/mcp", "tool": "wait", "arguments": map[string]any{"text": ""}}), started
		},
		Broken: func() *tool.Call { return callOf(map[string]any{"endpoint": "nowhere", "tool": "echo"}) },
	})
}

func TestCancellationReachesTheServer(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 1)
	srv := serve(t, entered)
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tl := newTool(t, mcp.Options{})
	done := make(chan error, 1)
	go func() {
		_, err := tl.Run(ctx, callOf(map[string]any{"endpoint": srv.URL + "/mcp", "tool": "wait", "arguments": map[string]any{"text": ""}}))
		done <- err
	}()
	<-entered
	cancel()
	if e, ok := errors.AsType[*tool.Error](<-done); !ok || e.Kind != tool.KindCancelled {
		t.Errorf("got %v", e)
	}
	<-entered // the server's handler was cancelled
}

func TestMethodsOfTheProtocol(t *testing.T) {
	t.Parallel()
	srv := serve(t, nil)
	t.Cleanup(srv.Close)
	tl := newTool(t, mcp.Options{})
	for name, tc := range map[string]struct {
		config map[string]any
		text   string
		result string
	}{
		"call":              {map[string]any{"tool": "echo", "arguments": map[string]any{"text": "one"}}, "one\n", `"text":"one"`},
		"arguments as JSON": {map[string]any{"tool_name": "echo", "arguments": `{"text":"two"}`}, "two\n", `"text":"two"`},
		"list":              {map[string]any{"method": "tools/list"}, "", `"name":"echo"`},
		"resources":         {map[string]any{"action": "resources/list"}, "", `"uri":"test://r"`},
		"read":              {map[string]any{"method": "resources/read", "params": map[string]any{"uri": "test://r"}}, "", `"text":"content"`},
		"templates":         {map[string]any{"method": "resources/templates/list"}, "", `resourceTemplates`},
		"prompts":           {map[string]any{"method": "prompts/list"}, "", `"name":"p"`},
		"prompt":            {map[string]any{"method": "prompts/get", "params": map[string]any{"name": "p", "arguments": map[string]any{"who": "you"}}}, "", "for you"},
		"ping":              {map[string]any{"method": "ping"}, "", "{}"},
	} {
		tc.config["endpoint"] = srv.URL + "/mcp"
		got, e := run(t, tl, tc.config)
		if e != nil {
			t.Errorf("%s: %v", name, e)
			continue
		}
		if got.Status != "ok" || got.Server != "kubernetes" || got.Endpoint != srv.URL+"/mcp" || !strings.Contains(string(got.Initialize), `"serverInfo"`) {
			t.Errorf("%s: %+v", name, got)
		}
		if !strings.Contains(string(got.Result), tc.result) || tc.text != "" && got.Text != tc.text || got.Text == "" {
			t.Errorf("%s: text %q, result %s", name, got.Text, got.Result)
		}
	}
	if n := srv.greetings.Load(); n != 1 {
		t.Errorf("%d greetings for one address", n)
	}
	health, e := run(t, tl, map[string]any{"endpoint": srv.URL + "/mcp", "method": "health"})
	if e != nil || health.Text != "fine" || health.Status != "ok" {
		t.Errorf("health: %+v, %v", health, e)
	}
}

func TestErrorsAreErrors(t *testing.T) {
	t.Parallel()
	srv := serve(t, nil)
	t.Cleanup(srv.Close)
	public, err := egress.Parse(egress.Settings{Profile: "public"})
	if err != nil {
		t.Fatal(err)
	}
	guarded := egress.NewPool(public, egress.PoolOptions{})
	for name, tc := range map[string]struct {
		opts       mcp.Options
		config     map[string]any
		kind, code string
		says       string
	}{
		"the tool fails":      {mcp.Options{}, map[string]any{"tool": "fail", "arguments": map[string]any{"text": ""}}, "logic", "MCP_TOOL_ERROR", "it does not work"},
		"no such tool":        {mcp.Options{}, map[string]any{"tool": "nothing"}, "logic", "MCP_ERROR", "nothing"},
		"nobody listens":      {mcp.Options{}, map[string]any{"endpoint": "http://127.0.0.1:1/mcp", "tool": "echo"}, "connection", "CONN_REFUSED", "refused"},
		"not let in":          {mcp.Options{}, map[string]any{"endpoint": srv.URL + "/closed/mcp", "tool": "echo"}, "auth", "HTTP_401", "401"},
		"a denied address":    {mcp.Options{Pool: guarded}, map[string]any{"tool": "echo"}, "auth", "EGRESS_DENIED", "inside this network"},
		"no tool":             {mcp.Options{}, map[string]any{}, "config", "CONFIG", "needs the tool"},
		"no such method":      {mcp.Options{}, map[string]any{"method": "tools/drop"}, "config", "CONFIG", "tools/drop"},
		"a list as arguments": {mcp.Options{}, map[string]any{"tool": "echo", "arguments": "[1]"}, "config", "CONFIG", "arguments"},
		"no such program":     {mcp.Options{}, map[string]any{"command": []any{"/nowhere/at/all"}, "tool": "echo"}, "config", "CONFIG", "cannot be started"},
		"a dying program":     {mcp.Options{}, map[string]any{"command": []any{"false"}, "tool": "echo"}, "connection", "CONN_ERROR", "stdio:false"},
	} {
		if tc.config["endpoint"] == nil && tc.config["command"] == nil {
			tc.config["endpoint"] = srv.URL + "/mcp"
		}
		got, e := run(t, newTool(t, tc.opts), tc.config)
		if e == nil || e.Kind != tc.kind || e.Code != tc.code || !strings.Contains(e.Message, tc.says) {
			t.Errorf("%s: got %+v", name, e)
		}
		if name == "the tool fails" && (got.Status != "error" || !strings.Contains(got.Text, "does not work")) {
			t.Errorf("the data beside the error is %+v", got)
		}
	}
}

func TestSessionsBelongToACredential(t *testing.T) {
	t.Parallel()
	srv := serve(t, nil)
	t.Cleanup(srv.Close)
	tl := newTool(t, mcp.Options{})
	for _, token := range []string{"one", "two", "one"} {
		if _, e := run(t, tl, map[string]any{"endpoint": srv.URL + "/mcp", "method": "ping", "auth": map[string]any{"type": "bearer", "token": token}}); e != nil {
			t.Fatal(e)
		}
		if got := srv.auth.Load(); got != "Bearer "+token {
			t.Errorf("the server saw %v", got)
		}
	}
	if n := srv.greetings.Load(); n != 2 {
		t.Errorf("%d sessions for two credentials", n)
	}
}

func TestAForgottenSessionIsMadeAgain(t *testing.T) {
	t.Parallel()
	var lost atomic.Bool
	server := newServer(nil, nil)
	old := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	renewed := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() {
			renewed.ServeHTTP(w, r)
			return
		}
		old.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	tl := newTool(t, mcp.Options{})
	for range 3 {
		if _, e := run(t, tl, map[string]any{"endpoint": srv.URL + "/mcp", "method": "ping"}); e != nil {
			t.Fatal(e)
		}
		lost.Store(true)
	}
}

func TestServersAreFoundByName(t *testing.T) {
	srv := serve(t, nil)
	t.Cleanup(srv.Close)
	t.Setenv("NOETL_MCP_URL", "http://127.0.0.1:1/mcp")
	t.Setenv("NOETL_MCP_MY_SERVER_2_ENDPOINT", srv.URL+"/mcp")
	got, e := run(t, newTool(t, mcp.Options{}), map[string]any{"server": "my-server.2", "method": "ping"})
	if e != nil || got.Server != "my-server.2" {
		t.Errorf("got %+v, %v", got, e)
	}
	if _, e := run(t, newTool(t, mcp.Options{}), map[string]any{"server": "other", "method": "ping"}); e == nil || e.Code != "CONN_REFUSED" {
		t.Errorf("the server for all: %+v", e)
	}
	t.Setenv("NOETL_MCP_URL", "")
	if _, e := run(t, newTool(t, mcp.Options{}), map[string]any{"server": "other", "method": "ping"}); e == nil || !strings.Contains(e.Message, "NOETL_MCP_OTHER_ENDPOINT") {
		t.Errorf("no server: %+v", e)
	}
}

func TestProgramsServeOneCall(t *testing.T) {
	t.Setenv("MCP_TEST_WORD", "the worker's own")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := map[string]any{
		"command": []any{self, "-test.run=^$"}, "tool": "echo", "arguments": map[string]any{"text": "hi"},
		"env": map[string]any{"MCP_TEST_SERVER": int64(1)},
	}
	tl := newTool(t, mcp.Options{})
	got, e := run(t, tl, program)
	if e != nil || got.Text != "hi\n" || !strings.HasPrefix(got.Endpoint, "stdio:") {
		t.Errorf("got %+v, %v", got, e)
	}
	program["tool"], program["timeout"] = "wait", 0.5
	if _, e := run(t, tl, program); e == nil || e.Kind != tool.KindTimeout {
		t.Errorf("a program that hangs: %+v", e)
	}
	program["auth"] = map[string]any{"type": "bearer", "token": "t"}
	if _, e := run(t, tl, program); e == nil || e.Kind != tool.KindConfig {
		t.Errorf("auth for a program: %+v", e)
	}
}
