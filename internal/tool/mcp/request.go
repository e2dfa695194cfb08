package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// methods are the requests the tool knows, under their names in the protocol.
var methods = []string{
	"tools/call", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "ping", "health",
}

// request is a call read from its config.
type request struct {
	server    string
	url       *url.URL // nil for a program
	command   []string
	environ   map[string]string
	shown     string // where it goes, as it may be reported
	header    http.Header
	proof     *outbound.Proof
	method    string
	tool      string
	arguments map[string]any
	params    map[string]any
	version   string
	client    sdk.Implementation
	offers    *sdk.ClientCapabilities
}

func (r *request) what() string {
	if r.tool != "" {
		return "mcp " + r.method + " " + r.tool + " at " + r.shown
	}
	return "mcp " + r.method + " at " + r.shown
}

func (t *Tool) readRequest(ctx context.Context, call *tool.Call) (*request, error) {
	f := call.Fields()
	r := &request{header: http.Header{}}
	for _, read := range []func(tool.Fields) error{r.readMethod, r.readIdentity, r.readHeaders, t.placeReader(r)} {
		if err := read(f); err != nil {
			return nil, err
		}
	}
	call.Trace.Header(r.header)
	if err := r.readArguments(f, call.Args); err != nil {
		return nil, err
	}
	login, err := call.Login(ctx, f)
	if err != nil {
		return nil, err
	}
	if login != nil && r.url == nil {
		return nil, tool.ConfigErrorf("auth is for servers over HTTP; give a program what it needs in env")
	}
	if r.proof, err = t.prover.Prove(ctx, call, login); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *request) readMethod(f tool.Fields) (err error) {
	if r.method, err = f.String("method", "action"); err != nil {
		return err
	}
	if r.method = strings.ToLower(strings.TrimSpace(r.method)); r.method == "" {
		r.method = "tools/call"
	}
	if !slices.Contains(methods, r.method) {
		return tool.ConfigErrorf("method %q is not one of %s", r.method, strings.Join(methods, ", "))
	}
	if r.tool, err = f.String("tool", "tool_name"); err != nil {
		return err
	}
	if r.params, err = f.Object("params"); err != nil {
		return err
	}
	if name, ok := r.params["name"].(string); ok && r.tool == "" && r.method == "tools/call" {
		r.tool = name
	}
	if r.method == "tools/call" && r.tool == "" {
		return tool.ConfigErrorf("mcp needs the tool to call; method: tools/list shows what the server has")
	}
	return nil
}

// readIdentity reads how we introduce ourselves.
func (r *request) readIdentity(f tool.Fields) (err error) {
	if r.version, err = f.String("protocol_version"); err != nil {
		return err
	}
	if r.version == "" {
		r.version = "2025-03-26"
	}
	if !slices.Contains(sdk.SupportedProtocolVersions(), r.version) {
		return tool.ConfigErrorf("protocol_version %q is not one of %s", r.version, strings.Join(sdk.SupportedProtocolVersions(), ", "))
	}
	if r.client.Name, err = f.String("client_name"); err != nil {
		return err
	}
	if r.client.Name == "" {
		r.client.Name = "noetl-worker"
	}
	if r.client.Version, err = f.String("client_version"); err != nil {
		return err
	}
	if r.client.Version == "" {
		r.client.Version = "0"
	}
	offers, err := f.Object("capabilities")
	if err != nil {
		return err
	}
	r.offers = &sdk.ClientCapabilities{}
	text, err := tool.Encode(offers)
	if err == nil && offers != nil && json.Unmarshal(text, r.offers) != nil {
		err = tool.ConfigErrorf("capabilities are not what the protocol knows")
	}
	return err
}

func (r *request) readHeaders(f tool.Fields) error {
	headers, err := f.Texts("headers")
	for name, value := range headers {
		r.header.Set(name, value)
	}
	return err
}

// placeReader reads where the server is: its program, its address, or its name.
func (t *Tool) placeReader(r *request) func(tool.Fields) error {
	return func(f tool.Fields) (err error) {
		if r.server, err = f.String("server"); err != nil {
			return err
		}
		if done, err := r.readProgram(f); done || err != nil {
			return err
		}
		text, err := f.String("endpoint", "url", "server_url", "base_url")
		if err != nil {
			return err
		}
		if r.server == "" {
			r.server = "kubernetes"
		}
		if strings.TrimSpace(text) == "" {
			text = t.endpoint(r.server)
		}
		if text == "" {
			return tool.ConfigErrorf("mcp server %q is not known to this worker: give an endpoint, or set %s for the worker", r.server, EndpointSetting(r.server))
		}
		if r.url, err = outbound.ParseURL("endpoint", text); err != nil {
			return err
		}
		r.shown = outbound.Masked(r.url)
		return nil
	}
}

func (r *request) readProgram(f tool.Fields) (bool, error) {
	name, v, ok := f.First("command")
	if !ok {
		return false, nil
	}
	words, isList := v.([]any)
	if !isList || len(words) == 0 {
		return true, tool.ConfigErrorf("%s must be a list: the program and its arguments", name)
	}
	for _, word := range words {
		text, err := tool.Text(word)
		if err != nil {
			return true, err
		}
		r.command = append(r.command, text)
	}
	if r.command[0] == "" {
		return true, tool.ConfigErrorf("%s names no program", name)
	}
	var err error
	if r.environ, err = f.Texts("env"); err != nil {
		return true, err
	}
	r.shown = "stdio:" + filepath.Base(r.command[0])
	if r.server == "" {
		r.server = filepath.Base(r.command[0])
	}
	if r.method == "health" {
		return true, tool.ConfigErrorf("method health is for servers over HTTP; use ping")
	}
	return true, nil
}

// readArguments takes arguments as a map or as JSON, else the step's input.
func (r *request) readArguments(f tool.Fields, input map[string]any) error {
	name, v, ok := f.First("arguments")
	if !ok {
		if given, isMap := r.params["arguments"].(map[string]any); isMap {
			r.arguments = given
			return nil
		}
		r.arguments = input
		if input == nil {
			r.arguments = map[string]any{}
		}
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		r.arguments = v
		return nil
	case string:
		r.arguments = map[string]any{}
		if strings.TrimSpace(v) == "" || json.Unmarshal([]byte(v), &r.arguments) == nil && r.arguments != nil {
			return nil
		}
	}
	return tool.ConfigErrorf("%s must be a map, or JSON of one", name)
}

// send makes the request within a session.
func (r *request) send(ctx context.Context, s *sdk.ClientSession) (any, error) {
	cursor, _ := r.params["cursor"].(string)
	switch r.method {
	case "tools/call":
		return s.CallTool(ctx, &sdk.CallToolParams{Name: r.tool, Arguments: r.arguments})
	case "tools/list":
		return s.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
	case "resources/list":
		return s.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
	case "resources/templates/list":
		return s.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
	case "prompts/list":
		return s.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
	case "resources/read":
		uri, err := tool.Fields(r.params).String("uri")
		if err != nil || uri == "" {
			return nil, tool.ConfigErrorf("resources/read needs params: {uri: …}")
		}
		return s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	case "prompts/get":
		name, err := tool.Fields(r.params).String("name")
		if err != nil || name == "" {
			return nil, tool.ConfigErrorf("prompts/get needs params: {name: …}")
		}
		texts, err := tool.Fields{"arguments": any(r.arguments)}.Texts("arguments")
		if err != nil {
			return nil, err
		}
		return s.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: texts})
	}
	return map[string]any{}, s.Ping(ctx, nil)
}

// EndpointSetting is the name of the setting with the address of a server.
func EndpointSetting(server string) string {
	slug := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, server)
	return "NOETL_MCP_" + slug + "_ENDPOINT"
}

// EndpointFromEnv finds a server by the worker's settings: its own, else the
// one for all.
func EndpointFromEnv(server string) string {
	if text := os.Getenv(EndpointSetting(server)); text != "" {
		return text
	}
	return os.Getenv("NOETL_MCP_URL")
}
