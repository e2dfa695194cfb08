// Package script is the script tool: a Python program that is kept elsewhere
// and runs as a job. It only says what the job is to be; the container tool
// does the rest.
package script

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/container"
	"github.com/noetl/noetl-go/internal/tool/source"
)

const (
	defaultImage   = "python:3.11-slim"
	defaultTimeout = 600 * time.Second
	defaultTTL     = 300 * time.Second
	defaultRetries = 3
	program        = "script.py"
)

// Tool runs scripts.
type Tool struct{ jobs *container.Tool }

var _ tool.Tool = Tool{}

// New makes the tool; jobs runs what it asks for.
func New(jobs *container.Tool) Tool { return Tool{jobs} }

// Kind is "script".
func (Tool) Kind() string { return "script" }

// Run implements tool.Tool.
func (t Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	return t.jobs.Do(ctx, call, container.Action{
		Kind: t.Kind(),
		Spec: func() (*container.Spec, error) { return readSpec(ctx, call, call.Fields()) },
		Data: func(e *container.End) any { return report(e) },
	})
}

func readSpec(ctx context.Context, call *tool.Call, f tool.Fields) (*container.Spec, error) {
	where, err := f.Object("script")
	if err != nil {
		return nil, err
	}
	if where == nil {
		return nil, tool.ConfigErrorf("script is missing; write {uri, source: {type}}")
	}
	settings, err := f.Object("job")
	if err != nil {
		return nil, err
	}
	s, err := jobOf(container.Snake(settings))
	if err != nil {
		return nil, err
	}
	if own, err := f.Duration("timeout", "timeout_seconds"); err != nil {
		return nil, err
	} else if own > 0 {
		s.Timeout = own
	}
	logins, err := call.Logins(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := s.AddLogins(call, logins); err != nil {
		return nil, err
	}
	hideEnv(s)
	text, err := source.Load(ctx, call, described(where))
	if err != nil {
		return nil, err
	}
	s.Files = map[string]string{program: text}
	if err := setArguments(s, call, f); err != nil {
		return nil, err
	}
	return s, s.AddContext(call)
}

// jobOf reads the settings of the job and fills in what is not said.
func jobOf(m tool.Fields) (*container.Spec, error) {
	s, err := container.ParseJob(m)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"command", "args"} {
		if m[name] != nil {
			return nil, tool.ConfigErrorf("job.%s has no place here: a script runs by python; use kind: container", name)
		}
	}
	if s.Image == "" {
		s.Image = defaultImage
	}
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	if m["ttl_seconds_after_finished"] == nil {
		s.TTL = defaultTTL
	}
	if m["backoff_limit"] == nil {
		s.BackoffLimit = defaultRetries
	}
	run := `exec python "$0" "$@"`
	if packages, ok := m["install_dependencies"]; ok && packages != nil {
		list, isList := packages.([]any)
		if !isList {
			return nil, tool.ConfigErrorf("job.install_dependencies must be a list of packages")
		}
		install, err := installation(list)
		if err != nil {
			return nil, err
		}
		run = install + run
	}
	s.Exact = true
	s.Command = []string{"/bin/sh", "-c", run, container.ScriptDir + "/" + program}
	return s, nil
}

// installation is the command that installs packages.
func installation(packages []any) (string, error) {
	if len(packages) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString("python -m pip install --quiet --disable-pip-version-check --no-cache-dir")
	for _, p := range packages {
		name, isText := p.(string)
		if !isText || strings.TrimSpace(name) == "" || strings.HasPrefix(strings.TrimSpace(name), "-") || strings.ContainsAny(name, "\x00\n") {
			return "", tool.ConfigErrorf("job.install_dependencies: %v is not a package as pip takes it", p)
		}
		b.WriteString(" '" + strings.ReplaceAll(strings.TrimSpace(name), "'", `'\''`) + "'")
	}
	b.WriteString(" 1>&2 && ")
	return b.String(), nil
}

// hideEnv keeps values out of the description of the job: they often come from
// a keychain.
func hideEnv(s *container.Spec) {
	var rest []container.Variable
	for _, v := range s.Env {
		if v.Secret != "" {
			rest = append(rest, v)
			continue
		}
		s.Hidden[v.Name] = v.Value
	}
	s.Env = rest
}

// described is where the script is, in the terms of scripts: an older spelling
// has type and content beside the uri.
func described(where map[string]any) map[string]any {
	if where["source"] != nil {
		return where
	}
	from := make(map[string]any, len(where))
	for k, v := range where {
		if k != "uri" {
			from[k] = v
		}
	}
	if from["type"] == "local" {
		from["type"] = "file"
	}
	return map[string]any{"uri": where["uri"], "source": from}
}

// setArguments passes a list as it is, and anything else as one argument in
// JSON.
func setArguments(s *container.Spec, call *tool.Call, f tool.Fields) error {
	_, v, ok := f.First("args")
	list, isList := v.([]any)
	if !ok {
		list = nil
		if len(call.Args) > 0 {
			input, err := tool.Encode(call.Args)
			if err != nil {
				return err
			}
			list = []any{string(input)}
		}
	} else if !isList {
		return tool.ConfigErrorf("args must be a list; names and values belong under input")
	}
	for _, x := range list {
		text, err := tool.Text(x)
		if err != nil {
			return err
		}
		s.Args = append(s.Args, text)
	}
	return nil
}

// outcome is the data of a step.
type outcome struct {
	Status string `json:"status"`
	*container.End
	ExecutionTime   float64 `json:"execution_time"`
	Output          string  `json:"output"`
	Succeeded       int     `json:"succeeded"`
	Failed          int     `json:"failed"`
	KubectlLogs     string  `json:"kubectl_logs,omitempty"`
	KubectlDescribe string  `json:"kubectl_describe,omitempty"`
}

func report(e *container.End) *outcome {
	o := &outcome{
		Status: "completed", End: e, Output: e.Stdout, Succeeded: e.Succeeded, Failed: e.Failed,
		ExecutionTime: max(e.CompletedAt.Sub(e.Started).Seconds(), 0),
	}
	if e.TerminalState != container.Succeeded {
		o.Status = "failed"
	}
	if e.Namespace != "" {
		o.KubectlLogs = fmt.Sprintf("kubectl logs -n %s %s", e.Namespace, e.PodName)
		o.KubectlDescribe = fmt.Sprintf("kubectl describe job -n %s %s", e.Namespace, e.JobName)
	}
	return o
}
