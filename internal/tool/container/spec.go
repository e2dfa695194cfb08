package container

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
	"github.com/noetl/noetl-go/internal/tool/source"
)

const (
	defaultTTL = time.Hour
	// maxValue is what Linux takes as one variable.
	maxValue = 120 << 10
	// ScriptDir is where files of a job appear.
	ScriptDir = "/noetl/scripts"
	// ResultFile is where a job may leave its result.
	ResultFile = "/noetl/result.json"
)

// Spec is what a job is to be.
type Spec struct {
	Backend        string
	Image          string
	PullPolicy     string // Always, IfNotPresent, Never; "" = by the engine
	Command, Args  []string
	Exact          bool // a cluster must not read references such as $(NAME) in command and args
	Env            []Variable
	Hidden         map[string]string // variables that stay out of the job's description
	Files          map[string]string // names in ScriptDir to text
	Requests       map[string]string
	Limits         map[string]string
	Timeout        time.Duration // 0 = none of its own
	TTL            time.Duration // how long it is kept when it has ended
	Namespace      string
	ServiceAccount string
	BackoffLimit   int
	RestartPolicy  string // Never or OnFailure
	NodeSelector   map[string]string
	Tolerations    []Toleration
	Volumes        []Volume
	Mounts         []Mount
	Poll           bool
	Registry       []Registry // logins for pulling the image
}

// Variable is one of the environment: a value, or a key of a secret.
type Variable struct {
	Name, Value, Secret, Key string
	exact                    bool // a cluster must not read references in its value
}

// Registry is a login for pulling images.
type Registry struct{ Server, User, Password string }

// readSpec reads the config of the container tool.
func readSpec(ctx context.Context, call *tool.Call) (*Spec, error) {
	all, err := withRuntime(call.Fields())
	if err != nil {
		return nil, err
	}
	s, err := parseSpec(all)
	if err != nil {
		return nil, err
	}
	if s.Image == "" {
		return nil, tool.ConfigErrorf("image is missing")
	}
	if err := s.addScript(ctx, call, call.Fields()); err != nil {
		return nil, err
	}
	logins, err := call.Logins(ctx, call.Fields())
	if err != nil {
		return nil, err
	}
	if err := s.AddLogins(call, logins); err != nil {
		return nil, err
	}
	return s, s.AddContext(call)
}

// withRuntime spreads the block `runtime` out; what stands beside it wins.
func withRuntime(f tool.Fields) (tool.Fields, error) {
	block, err := f.Object("runtime")
	if err != nil {
		return nil, err
	}
	out := tool.Fields(Snake(block))
	if out["backend"] == nil {
		out["backend"] = out["provider"]
	}
	for k, v := range f {
		if v != nil {
			out[k] = v
		}
	}
	return out, nil
}

// Snake is a map with names as we write them: backoffLimit is backoff_limit.
func Snake(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for _, name := range tool.SortedKeys(m) {
		var b strings.Builder
		for i, r := range name {
			if 'A' <= r && r <= 'Z' {
				if i > 0 {
					b.WriteByte('_')
				}
				r += 'a' - 'A'
			}
			b.WriteRune(r)
		}
		if _, own := m[b.String()]; !own || b.String() == name {
			out[b.String()] = m[name]
		}
	}
	return out
}

// ParseJob reads settings of a job from a map that is part of a config.
func ParseJob(settings map[string]any) (*Spec, error) {
	return parseSpec(Snake(settings))
}

func parseSpec(f tool.Fields) (s *Spec, err error) {
	s = &Spec{}
	to := []*string{&s.Backend, &s.Image, &s.PullPolicy, &s.Namespace, &s.ServiceAccount, &s.RestartPolicy}
	for i, name := range []string{"backend", "image", "image_pull_policy", "namespace", "service_account", "restart_policy"} {
		if *to[i], err = f.String(name); err != nil {
			return nil, err
		}
	}
	s.Backend = strings.ToLower(s.Backend)
	if s.PullPolicy, err = word("image_pull_policy", s.PullPolicy, "Always", "IfNotPresent", "Never"); err != nil {
		return nil, err
	}
	if s.RestartPolicy, err = word("restart_policy", s.RestartPolicy, "Never", "OnFailure"); err != nil {
		return nil, err
	}
	if s.RestartPolicy == "" {
		s.RestartPolicy = "Never"
	}
	if s.Timeout, err = f.Duration("timeout", "timeout_seconds"); err != nil {
		return nil, err
	}
	if s.TTL, err = f.Duration("ttl_seconds_after_finished"); err != nil {
		return nil, err
	}
	if f["ttl_seconds_after_finished"] == nil {
		s.TTL = defaultTTL
	}
	if s.BackoffLimit, err = whole(f, "backoff_limit"); err != nil {
		return nil, err
	}
	if s.Poll, err = f.Bool(true, "poll"); err != nil {
		return nil, err
	}
	return s, s.parseParts(f)
}

func (s *Spec) parseParts(f tool.Fields) (err error) {
	if s.Command, err = words(f, "command"); err != nil {
		return err
	}
	if s.Args, err = words(f, "args"); err != nil {
		return err
	}
	if text, isText := f["command"].(string); isText {
		s.Command = []string{"/bin/sh", "-c", text}
		if strings.TrimSpace(text) == "" {
			s.Command = nil
		}
	}
	if s.NodeSelector, err = f.Texts("node_selector"); err != nil {
		return err
	}
	resources, err := f.Object("resources")
	if err != nil {
		return err
	}
	if s.Requests, err = tool.Fields(resources).Texts("requests"); err == nil {
		s.Limits, err = tool.Fields(resources).Texts("limits")
	}
	if err != nil {
		return err
	}
	if s.Env, err = parseEnv(f); err != nil {
		return err
	}
	if s.Tolerations, err = parseTolerations(f); err != nil {
		return err
	}
	if s.Volumes, err = parseVolumes(f); err != nil {
		return err
	}
	s.Mounts, err = parseMounts(f)
	return err
}

// word is one of several words, in any case.
func word(field, text string, known ...string) (string, error) {
	for _, w := range known {
		if strings.EqualFold(w, text) {
			return w, nil
		}
	}
	if text == "" {
		return "", nil
	}
	return "", tool.ConfigErrorf("%s %q is not one of %s", field, text, strings.Join(known, ", "))
}

func whole(f tool.Fields, name string) (int, error) {
	text, err := f.String(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 || n > 1000 {
		return 0, tool.ConfigErrorf("%s must be a whole number from 0 to 1000, not %q", name, text)
	}
	return n, nil
}

// words is a list of texts; one text is a list of one.
func words(f tool.Fields, name string) ([]string, error) {
	_, v, ok := f.First(name)
	if !ok {
		return nil, nil
	}
	list, isList := v.([]any)
	if _, isMap := v.(map[string]any); isMap {
		return nil, tool.ConfigErrorf("%s must be a list of words, not a map", name)
	}
	if !isList {
		list = []any{v}
	}
	out := make([]string, 0, len(list))
	for _, x := range list {
		text, err := tool.Text(x)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

func parseEnv(f tool.Fields) ([]Variable, error) {
	_, v, ok := f.First("env")
	if !ok {
		return nil, nil
	}
	var out []Variable
	switch env := v.(type) {
	case map[string]any:
		for _, name := range tool.SortedKeys(env) {
			text, err := tool.Text(env[name])
			if err != nil {
				return nil, err
			}
			out = append(out, Variable{Name: name, Value: text})
		}
	case []any:
		for i, item := range env {
			one, err := parseVariable(fmt.Sprintf("env[%d]", i), item)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	default:
		return nil, tool.ConfigErrorf("env must be a map of names to values, or a list of {name, value}")
	}
	for _, one := range out {
		if one.Name == "" || strings.ContainsAny(one.Name, "=\x00") {
			return nil, tool.ConfigErrorf("env: %q cannot be the name of a variable", one.Name)
		}
		if strings.ContainsRune(one.Value, 0) || len(one.Value) > maxValue {
			return nil, tool.ConfigErrorf("env: the value of %s holds a NUL character or is larger than %d KiB, which no variable can carry", one.Name, maxValue>>10)
		}
	}
	return out, nil
}

func parseVariable(where string, v any) (one Variable, err error) {
	m, isMap := v.(map[string]any)
	if !isMap {
		return one, tool.ConfigErrorf("%s must be {name, value} or {name, value_from}", where)
	}
	item := tool.Fields(Snake(m))
	if one.Name, err = item.String("name"); err != nil {
		return one, err
	}
	_, _, hasValue := item.First("value")
	from, err := item.Object("value_from")
	if err != nil {
		return one, err
	}
	if from == nil {
		if one.Value, err = tool.Text(item["value"]); err != nil {
			return one, err
		}
		return one, nil
	}
	if hasValue {
		return one, tool.ConfigErrorf("%s has both value and value_from; write one of them", where)
	}
	from = Snake(from)
	if ref, isRef := from["secret_key_ref"].(map[string]any); isRef { // as Kubernetes writes it
		from = map[string]any{"secret_name": ref["name"], "secret_key": ref["key"]}
	}
	if one.Secret, err = tool.Fields(from).String("secret_name"); err == nil {
		one.Key, err = tool.Fields(from).String("secret_key")
	}
	if err == nil && (one.Secret == "" || one.Key == "") {
		err = tool.ConfigErrorf("%s.value_from needs secret_name and secret_key", where)
	}
	return one, err
}

// addScript has the job run a script: by the program that the command names,
// else by the one that its first line names, else by sh.
func (s *Spec) addScript(ctx context.Context, call *tool.Call, f tool.Fields) error {
	_, v, ok := f.First("script")
	if !ok {
		return nil
	}
	text := ""
	switch script := v.(type) {
	case string:
		text = script
	case map[string]any:
		var err error
		if text, err = source.Load(ctx, call, script); err != nil {
			return err
		}
	default:
		return tool.ConfigErrorf("script must be text, or a map that says where it is")
	}
	if strings.TrimSpace(text) == "" {
		return tool.ConfigErrorf("script is empty")
	}
	s.Files = map[string]string{"script": text}
	if len(s.Command) == 0 {
		s.Command = []string{"/bin/sh"}
		if first, found := strings.CutPrefix(strings.SplitN(text, "\n", 2)[0], "#!"); found && len(strings.Fields(first)) > 0 {
			s.Command = strings.Fields(first)
		}
	}
	s.Command = append(slices.Clone(s.Command), ScriptDir+"/script")
	return nil
}

// AddContext gives the job its input and tells it where it belongs.
func (s *Spec) AddContext(call *tool.Call) error {
	args := call.Args
	if args == nil {
		args = map[string]any{}
	}
	input, err := tool.Encode(args)
	if err != nil {
		return err
	}
	if len(input) > maxValue {
		return &tool.Error{
			Kind: tool.KindResourceLimit, Code: "INPUT_TOO_LARGE",
			Message: fmt.Sprintf("the input is %d KiB, more than the %d KiB that a variable can carry; pass a reference such as {{ step._ref }}", len(input)>>10, maxValue>>10),
		}
	}
	own := []Variable{
		{Name: "NOETL_INPUT", Value: string(input), exact: true},
		{Name: "NOETL_EXECUTION_ID", Value: call.ExecutionID},
		{Name: "NOETL_STEP", Value: call.Step, exact: true},
		{Name: "NOETL_RESULT_FILE", Value: ResultFile},
	}
	given := map[string]bool{}
	for _, one := range s.Env {
		given[one.Name] = true
	}
	for _, one := range own {
		if !given[one.Name] {
			s.Env = append(s.Env, one)
		}
	}
	for name := range s.Hidden {
		if given[name] { // what the author wrote wins
			delete(s.Hidden, name)
		}
	}
	return nil
}

// registryTypes are credentials for pulling images.
var registryTypes = []string{"docker", "registry", "docker_registry", "container_registry", "dockerconfigjson"}

// AddLogins gives the job its credentials: those of registries for pulling the
// image, others as variables.
func (s *Spec) AddLogins(call *tool.Call, logins map[string]*tool.Credential) error {
	rest := maps.Clone(logins)
	for _, name := range tool.SortedKeys(logins) {
		c := logins[name]
		if c == nil || !slices.Contains(registryTypes, strings.ToLower(c.Type)) {
			continue
		}
		delete(rest, name)
		r := Registry{
			Server: c.Text("server", "registry", "serveraddress", "url", "host"), User: c.Text("username", "user"), Password: c.Text("password", "token"),
		}
		if r.User == "" || r.Password == "" {
			return tool.ConfigErrorf("the registry credential %q needs username and password", c.Alias)
		}
		if r.Server == "" {
			r.Server = registryOf(s.Image)
		}
		call.Hidden(r.Password, base64.StdEncoding.EncodeToString([]byte(r.User+":"+r.Password)))
		s.Registry = append(s.Registry, r)
	}
	hidden, err := process.Variables(rest)
	if err != nil {
		return err
	}
	for name, value := range hidden {
		if strings.ContainsRune(value, 0) || len(value) > maxValue {
			return tool.ConfigErrorf("a credential's value for %s cannot be carried by a variable", name)
		}
	}
	if s.Hidden == nil {
		s.Hidden = map[string]string{}
	}
	maps.Copy(s.Hidden, hidden)
	return nil
}

// registryOf is the registry of an image by its name.
func registryOf(image string) string {
	host, _, ok := strings.Cut(image, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return "https://index.docker.io/v1/"
}
