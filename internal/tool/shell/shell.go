// Package shell runs shell commands, each in a process group of its own that
// is gone when the call returns. It must not know of workflows; commands see a
// clean environment, never the worker's own.
package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
)

// Options adjusts the tool; the zero value is fine.
type Options struct{ process.Settings }

// Tool runs commands one after another.
type Tool struct{ opts Options }

var _ tool.Tool = Tool{}

// New makes the tool.
func New(opts Options) Tool {
	opts.Settings = opts.Settings.WithDefaults()
	return Tool{opts}
}

// Kind is "shell".
func (Tool) Kind() string { return "shell" }

// script is a call's config, checked.
type script struct {
	shell   string
	cmds    []string
	args    []string // $1 and on
	exports []string // variables that the result shows
	parse   bool     // offer stdout as JSON under "json"
	wish    process.Wish

	sandbox string
	grace   time.Duration
	place   *process.Place
	shown   map[string]string // what exports had to show so far
}

// report is the Data of a call.
type report struct {
	ExitCode   int             `json:"exit_code"`
	ReturnCode int             `json:"returncode"`
	Stdout     string          `json:"stdout"`
	Stderr     string          `json:"stderr"`
	Commands   []outcome       `json:"commands"`
	DurationMS int64           `json:"duration_ms"`
	StdoutRef  string          `json:"stdout_ref,omitempty"`
	StderrRef  string          `json:"stderr_ref,omitempty"`
	JSON       json.RawMessage `json:"json,omitempty"`
	Exports    map[string]any  `json:"exports,omitempty"`
}

// Run runs the commands and stops at the first that exits non-zero, which is
// an *Error of kind logic and code EXIT_<n> beside the Result. When ctx ends
// or the timeout passes, the running command's whole process group gets
// SIGTERM, after the grace period SIGKILL, and the *Error is of kind cancelled or
// timeout.
//
// Output beyond tool.OutputLimit is kept whole in call.Blobs, where there is
// one.
func (t Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "shell", limit)
	}
	s, err := readScript(ctx, call, call.Fields())
	if err == nil {
		s.sandbox, s.grace = t.opts.Sandbox, t.opts.Grace
		s.place, err = t.opts.Prepare(ctx, call, s.wish)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, tool.Ended(ctx, "shell", limit)
		}
		return nil, err
	}
	defer func() { _ = s.place.Remove() }()
	if own := s.place.Limits.Timeout; own > 0 && (limit == 0 || own < limit) {
		ctx, cancel = context.WithTimeout(ctx, own)
		defer cancel()
		limit = own
	}
	return s.runAll(ctx, call, limit, t.opts.TempDir)
}

// runAll runs the commands and gathers what they leave.
func (s *script) runAll(ctx context.Context, call *tool.Call, limit time.Duration, temp string) (*tool.Result, error) {
	start := time.Now()
	log := tool.LiveLog(call.Log)
	if temp == "" {
		temp = os.TempDir()
	}
	if call.Blobs == nil {
		temp = "" // nowhere to put the whole
	}
	stdout, stderr := process.NewOutput(tool.OutputLimit, temp), process.NewOutput(tool.OutputLimit, temp)
	defer stdout.Close()
	defer stderr.Close()
	whole := &bounded{}
	out := io.MultiWriter(stdout, log)
	if s.parse {
		out = io.MultiWriter(stdout, log, whole)
	}
	rep := report{Commands: []outcome{}}
	var fail *tool.Error
	for _, cmd := range s.cmds {
		if ctx.Err() != nil {
			fail = tool.Ended(ctx, "shell", limit)
			break
		}
		o, err := s.run(ctx, cmd, out, io.MultiWriter(stderr, log))
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
	rep.Exports = s.exported()
	if s.parse && fail == nil {
		fail = rep.parseStdout(whole)
	}
	if ctx.Err() == nil {
		if err := rep.keepWhole(ctx, call, stdout, stderr); err != nil && fail == nil {
			fail = err
		}
	}
	return rep.result(fail)
}

// keepWhole stores the streams that the report shows only in part.
func (r *report) keepWhole(ctx context.Context, call *tool.Call, stdout, stderr *process.Output) *tool.Error {
	for _, stream := range []struct {
		name string
		out  *process.Output
		ref  *string
	}{{"stdout", stdout, &r.StdoutRef}, {"stderr", stderr, &r.StderrRef}} {
		at, err := stream.out.Store(ctx, call, call.Step+"/"+stream.name)
		if e, ok := errors.AsType[*tool.Error](err); ok {
			return e
		}
		if err != nil {
			return &tool.Error{Kind: tool.KindStorageAccess, Code: "NOT_STORED", Message: fmt.Sprintf("the whole %s cannot be stored: %v", stream.name, err)}
		}
		if at != nil {
			*stream.ref = at.Ref
		}
	}
	return nil
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

func (r *report) parseStdout(whole *bounded) *tool.Error {
	if whole.over {
		return &tool.Error{
			Kind: tool.KindResourceLimit, Code: "STDOUT_TOO_LARGE",
			Message: fmt.Sprintf("stdout is larger than %d MiB, too large for parse: json; write a file, or print less", maxJSON>>20),
		}
	}
	text := bytes.TrimSpace(whole.text)
	if !json.Valid(text) {
		return &tool.Error{
			Kind: tool.KindParse, Code: "STDOUT_NOT_JSON",
			Message: "stdout is not one JSON value, as parse: json asks for; send other output to stderr",
		}
	}
	r.JSON = text
	return nil
}

// maxJSON is how much JSON a command may print.
const maxJSON = 32 << 20

// bounded keeps all of a stream, or nothing of one that is too long. One
// stream has one writer.
type bounded struct {
	text []byte
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.over = b.over || len(b.text)+len(p) > maxJSON; b.over {
		b.text = nil
	} else {
		b.text = append(b.text, p...)
	}
	return len(p), nil
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

func readScript(ctx context.Context, call *tool.Call, f tool.Fields) (*script, error) {
	s := &script{shown: map[string]string{}}
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
	if s.args, err = readArgs(f); err != nil {
		return nil, err
	}
	if err = s.readExports(f); err != nil {
		return nil, err
	}
	parse, err := f.String("parse")
	if err != nil {
		return nil, err
	}
	if parse != "" && parse != "json" {
		return nil, tool.ConfigErrorf("parse %q is not available; the only value is json", parse)
	}
	s.parse = parse == "json"
	s.wish, err = readWish(ctx, call, f)
	return s, err
}

// readWish reads what the commands are to run in.
func readWish(ctx context.Context, call *tool.Call, f tool.Fields) (w process.Wish, err error) {
	if w.Cwd, err = f.String("cwd"); err != nil {
		return w, err
	}
	if w.Env, err = f.Texts("env"); err != nil {
		return w, err
	}
	if w.Resources, err = f.Object("resources"); err != nil {
		return w, err
	}
	if w.Files, err = f.Object("files"); err != nil {
		return w, err
	}
	if _, _, ok := f.First("auth", "credential"); ok {
		w.Logins, err = call.Logins(ctx, f)
	}
	return w, err
}

func readArgs(f tool.Fields) ([]string, error) {
	_, v, ok := f.First("args")
	if !ok {
		return nil, nil
	}
	list, isList := v.([]any)
	if !isList {
		return nil, tool.ConfigErrorf("args must be a list; its items are $1, $2 and so on")
	}
	out := make([]string, 0, len(list))
	for i, item := range list {
		text, err := tool.Text(item)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(text, 0) {
			return nil, tool.ConfigErrorf("args[%d] holds a NUL character, which no argument can carry", i)
		}
		out = append(out, text)
	}
	return out, nil
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
