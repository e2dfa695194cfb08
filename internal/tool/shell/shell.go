// Package shell runs shell commands, each in a process group of its own that
// is gone when the call returns. It must not know of workflows; commands see a
// clean environment, never the worker's own.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// Tool runs commands one after another.
type Tool struct{}

var _ tool.Tool = Tool{}

// New makes the tool.
func New() Tool { return Tool{} }

// Kind is "shell".
func (Tool) Kind() string { return "shell" }

// script is a call's config, checked.
type script struct {
	shell string
	cmds  []string
	cwd   string
	env   []string
	parse bool // offer stdout as JSON under "json"
}

// report is the Data of a call.
type report struct {
	ExitCode   int             `json:"exit_code"`
	ReturnCode int             `json:"returncode"`
	Stdout     string          `json:"stdout"`
	Stderr     string          `json:"stderr"`
	Commands   []outcome       `json:"commands"`
	DurationMS int64           `json:"duration_ms"`
	JSON       json.RawMessage `json:"json,omitempty"`
}

// Run runs the commands and stops at the first that exits non-zero, which is
// an *Error of kind logic and code EXIT_<n> beside the Result. When ctx ends
// or the timeout passes, the running command's whole process group gets
// SIGTERM, two seconds later SIGKILL, and the *Error is of kind cancelled or
// timeout.
func (Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	s, err := readScript(call.Fields())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	log := tool.LiveLog(call.Log)
	stdout, stderr := tool.NewCapture(tool.OutputLimit), tool.NewCapture(tool.OutputLimit)
	rep := report{Commands: []outcome{}}
	var fail *tool.Error
	for _, cmd := range s.cmds {
		if ctx.Err() != nil {
			fail = tool.Ended(ctx, "shell", limit)
			break
		}
		o, err := s.run(ctx, cmd, io.MultiWriter(stdout, log), io.MultiWriter(stderr, log))
		if err != nil {
			return nil, err
		}
		rep.Commands = append(rep.Commands, o)
		rep.ExitCode = o.ReturnCode
		if o.ReturnCode != 0 {
			fail = o.failure(ctx, limit)
			break
		}
	}
	rep.ReturnCode, rep.Stdout, rep.Stderr = rep.ExitCode, stdout.String(), stderr.String()
	rep.DurationMS = time.Since(start).Milliseconds()
	if s.parse && fail == nil {
		fail = rep.parseStdout()
	}
	return rep.result(fail)
}

func (r *report) result(fail *tool.Error) (*tool.Result, error) {
	data, err := tool.Encode(r)
	if err != nil {
		return nil, err
	}
	res := &tool.Result{Data: data, Stdout: r.Stdout, Stderr: r.Stderr, ExitCode: &r.ExitCode}
	if fail != nil {
		return res, fail
	}
	return res, nil
}

func (r *report) parseStdout() *tool.Error {
	text := strings.TrimSpace(r.Stdout)
	if !json.Valid([]byte(text)) {
		return &tool.Error{
			Kind: tool.KindParse, Code: "STDOUT_NOT_JSON",
			Message: "stdout is not one JSON value, as parse: json asks for; send other output to stderr",
		}
	}
	r.JSON = json.RawMessage(text)
	return nil
}

// findShell is the program that runs commands: the one asked for, else bash,
// which most scripts are written for, else sh.
func findShell(asked string) (string, error) {
	if asked != "" {
		return exec.LookPath(asked)
	}
	if path, err := exec.LookPath("bash"); err == nil {
		return path, nil
	}
	return exec.LookPath("sh")
}

func readScript(f tool.Fields) (*script, error) {
	s := &script{}
	var err error
	if s.cmds, err = readCommands(f); err != nil {
		return nil, err
	}
	if s.shell, err = f.String("shell"); err != nil {
		return nil, err
	}
	if s.shell, err = findShell(s.shell); err != nil {
		return nil, tool.ConfigErrorf("shell cannot be found on this worker: %v", err)
	}
	if s.cwd, err = f.String("cwd"); err != nil {
		return nil, err
	}
	if info, statErr := os.Stat(s.cwd); s.cwd != "" && (statErr != nil || !info.IsDir()) {
		return nil, tool.ConfigErrorf("cwd %q is not a directory on this worker", s.cwd)
	}
	env, err := f.Texts("env")
	if err != nil {
		return nil, err
	}
	s.env = tool.CleanEnviron(env)
	parse, err := f.String("parse")
	if err != nil {
		return nil, err
	}
	if parse != "" && parse != "json" {
		return nil, tool.ConfigErrorf("parse %q is not available; the only value is json", parse)
	}
	s.parse = parse == "json"
	return s, nil
}

// readCommands gives one command per list item; text, however many lines it
// has, is one script.
func readCommands(f tool.Fields) ([]string, error) {
	name, v, ok := f.First("cmds", "cmd", "command")
	if !ok {
		return nil, tool.ConfigErrorf("shell needs cmds: a list of commands, or one script as text")
	}
	items, isList := v.([]any)
	if !isList {
		items = []any{v}
	}
	cmds := make([]string, 0, len(items))
	for i, item := range items {
		text, isText := item.(string)
		if !isText || strings.TrimSpace(text) == "" {
			where := name
			if isList {
				where = fmt.Sprintf("%s[%d]", name, i)
			}
			return nil, tool.ConfigErrorf("%s must be a command as text", where)
		}
		if strings.ContainsRune(text, 0) {
			return nil, tool.ConfigErrorf("%s holds a NUL character, which no command can carry", name)
		}
		cmds = append(cmds, text)
	}
	if len(cmds) == 0 {
		return nil, tool.ConfigErrorf("%s is an empty list", name)
	}
	return cmds, nil
}
