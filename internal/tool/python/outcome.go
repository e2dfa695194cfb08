package python

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// failure is how the runner tells of an exception.
type failure struct {
	Type      string `json:"type"` // "" when the runner itself complains
	Kind      string `json:"kind"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Line      int    `json:"line"`
	Text      string `json:"text"`
	Traceback string `json:"traceback"`
	ExitCode  int    `json:"exit_code"`
	Retryable bool   `json:"retryable"`
}

// outcome turns an answer into the call's result.
func (p *program) outcome(ctx context.Context, limit time.Duration, a *answer, call *tool.Call) (*tool.Result, error) {
	exit := 0
	res := &tool.Result{Stdout: a.stdout, Stderr: a.stderr, ExitCode: &exit}
	streams, err := tool.Encode(struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}{a.stdout, a.stderr})
	if err != nil {
		return nil, err
	}
	res.Data = streams
	fail := p.judge(ctx, limit, a, res)
	if fail == nil && a.kind == 'R' && a.stored == nil {
		res.Data, fail = p.storeFiles(ctx, call, a.body)
	}
	if fail != nil && ctx.Err() != nil {
		fail = tool.Ended(ctx, "python code", limit)
	}
	if fail != nil {
		res.Data, res.Stored = streams, nil
		return res, fail
	}
	return res, nil
}

// judge fills in the value and the exit code, or says what went wrong.
func (p *program) judge(ctx context.Context, limit time.Duration, a *answer, res *tool.Result) *tool.Error {
	switch {
	case !a.complete:
		*res.ExitCode = -1
		return incomplete(ctx, limit, a, res)
	case a.kind == 'E':
		return a.exception(res)
	case a.storeErr != nil:
		return storeError("the result", a.storeErr)
	case a.stored != nil:
		res.Data, res.Stored = nil, a.stored
	case a.kind == 'R':
		if !json.Valid(a.body) {
			return &tool.Error{Kind: tool.KindInternal, Code: "BAD_ANSWER", Message: "the python process answered something that is not JSON"}
		}
		res.Data = a.body
	}
	return nil
}

// exception maps what the code raised.
func (a *answer) exception(res *tool.Result) *tool.Error {
	var f failure
	if err := json.Unmarshal(a.body, &f); err != nil {
		return &tool.Error{Kind: tool.KindInternal, Code: "BAD_ANSWER", Message: "the python process told of a failure nobody can read"}
	}
	*res.ExitCode = f.ExitCode
	if f.Type == "" {
		return &tool.Error{Kind: f.Kind, Code: f.Code, Message: f.Message, Retryable: f.Retryable}
	}
	if f.Kind == "" {
		f.Kind = tool.KindLogic
	}
	code := f.Code
	if code == "" {
		code = "PY_" + f.Type
	}
	return &tool.Error{
		Kind: f.Kind, Code: code, Message: f.text(), Retryable: f.Retryable,
		Details: map[string]any{"exception_type": f.Type, "traceback": f.Traceback},
	}
}

func (f *failure) text() string {
	var b strings.Builder
	b.WriteString(f.Type)
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, " (line %d of code", f.Line)
		if f.Text != "" {
			b.WriteString(": " + f.Text)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// incomplete explains a process that ended, or was ended, without an answer.
func incomplete(ctx context.Context, limit time.Duration, a *answer, res *tool.Result) *tool.Error {
	switch {
	case a.ended:
		return tool.Ended(ctx, "python code", limit)
	case a.tooLarge:
		return &tool.Error{
			Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
			Message: fmt.Sprintf("the result is larger than %d MiB; write it to storage and return where it is", maxResult>>20),
		}
	case a.lost:
		return lostError("the warm python process died while the code ran; the step can be tried again")
	case a.status.Signaled():
		return killed(a.status.Signal(), res)
	}
	*res.ExitCode = a.status.ExitStatus()
	return &tool.Error{
		Kind: tool.KindLogic, Code: fmt.Sprintf("EXIT_%d", a.status.ExitStatus()),
		Message: fmt.Sprintf("the code ended its process with exit code %d before its result could be read; use sys.exit or return", a.status.ExitStatus()),
	}
}

func killed(sig syscall.Signal, res *tool.Result) *tool.Error {
	*res.ExitCode = 128 + int(sig)
	e := &tool.Error{
		Kind: tool.KindLogic, Code: fmt.Sprintf("SIGNAL_%d", int(sig)),
		Message: fmt.Sprintf("the python process was killed by signal %d (%s)", int(sig), sig),
	}
	switch sig {
	case syscall.SIGKILL:
		e.Kind, e.Code = tool.KindResourceLimit, "OOM"
		e.Message += "; the machine or its container may be out of memory"
	case syscall.SIGXCPU:
		e.Kind, e.Code = tool.KindResourceLimit, "CPU_LIMIT"
		e.Message += ": the code used up its processor time"
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT:
		e.Message += "; an extension module crashed"
	}
	return e
}
