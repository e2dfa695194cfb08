package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
)

// End is how a job ended: the data of the step. The first fields are those that
// a call from outside brings.
type End struct {
	TerminalState string          `json:"terminal_state"`
	JobName       string          `json:"job_name"`
	JobUID        string          `json:"job_uid,omitempty"`
	CompletedAt   time.Time       `json:"completed_at,omitzero"`
	ExitCode      *int            `json:"exit_code,omitempty"`
	Reason        string          `json:"reason,omitempty"`
	StdoutURI     string          `json:"stdout_uri,omitempty"` // of output beyond 1 MiB
	StderrURI     string          `json:"stderr_uri,omitempty"`
	Namespace     string          `json:"namespace,omitempty"`
	Backend       string          `json:"backend"`
	PodName       string          `json:"pod_name,omitempty"`
	Stdout        string          `json:"stdout"`
	Stderr        string          `json:"stderr,omitempty"`
	LogsError     string          `json:"logs_error,omitempty"` // why there is no output
	Result        json.RawMessage `json:"result,omitempty"`
	Via           string          `json:"via"`

	Started   time.Time `json:"-"`
	Succeeded int       `json:"-"` // pods
	Failed    int       `json:"-"`
}

// ends gives each end its kind of error, as calls from outside do. Trying
// again helps when it was not the job's own fault.
var ends = map[string]struct {
	kind      string
	retryable bool
}{
	Failed:    {kind: tool.KindLogic},
	ImagePull: {kind: tool.KindConfig, retryable: true},
	OOM:       {kind: tool.KindResourceLimit},
	NodeLost:  {kind: tool.KindServerError, retryable: true},
	TimedOut:  {kind: tool.KindTimeout, retryable: true},
}

// finish gathers what a job leaves. One that had to be stopped is removed
// after its output is safe; others stay for a while, should this report be
// lost.
func (r *run) finish(ctx context.Context, at *place, s *state) (*tool.Result, error) {
	end := &End{
		TerminalState: s.end, JobName: at.name, JobUID: at.uid, CompletedAt: s.completed.UTC(), ExitCode: s.exitCode, Reason: s.reason,
		Namespace: at.namespace, Backend: r.engine.name(), PodName: s.pod, Via: "poll", Started: r.note.Started, Succeeded: s.succeeded, Failed: s.failed,
	}
	if end.CompletedAt.IsZero() {
		end.CompletedAt = r.tool.opt.Now().UTC()
	}
	if !s.gone {
		if err := r.gather(ctx, at, s, end); err != nil {
			return nil, err
		}
	}
	if s.stop {
		if err := r.engine.remove(ctx, at); err != nil {
			return nil, err // the next look tries again
		}
	}
	data, err := tool.Encode(r.action.Data(end))
	if err != nil {
		return nil, err
	}
	res := &tool.Result{Data: data, Stdout: end.Stdout, Stderr: end.Stderr, ExitCode: s.exitCode}
	if e, failed := ends[s.end]; failed {
		return res, &tool.Error{
			Kind: e.kind, Code: s.end, Retryable: e.retryable,
			Message: fmt.Sprintf("job %s ended as %s: %s", at.name, s.end, cmp.Or(s.reason, "no reason was given")),
		}
	}
	return res, nil
}

// gather reads output and result. Output that cannot be had does not change how
// the job ended.
func (r *run) gather(ctx context.Context, at *place, s *state, end *End) error {
	temp := r.tool.opt.TempDir
	if r.call.Blobs != nil {
		temp = cmp.Or(temp, os.TempDir())
	}
	stdout, stderr := process.NewOutput(tool.OutputLimit, temp), process.NewOutput(tool.OutputLimit, temp)
	defer stdout.Close()
	defer stderr.Close()
	log := tool.LiveLog(r.call.Log)
	err := r.engine.logs(ctx, at, s, io.MultiWriter(stdout, log), io.MultiWriter(stderr, log))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		end.LogsError = err.Error()
	}
	end.Stdout, end.Stderr = stdout.String(), stderr.String()
	for _, o := range []struct {
		from *process.Output
		name string
		to   *string
	}{{stdout, "stdout", &end.StdoutURI}, {stderr, "stderr", &end.StderrURI}} {
		stored, err := o.from.Store(ctx, r.call, r.call.Step+"."+o.name)
		if err != nil {
			end.LogsError = "the whole output is not kept: " + err.Error()
		} else if stored != nil {
			*o.to = stored.Ref
		}
	}
	end.Result = resultOf(r.engine.result(ctx, at, s), end.Stdout)
	return nil
}

// resultOf is the JSON of the result file, else the last line of output when
// that is JSON.
func resultOf(file []byte, stdout string) json.RawMessage {
	if file = bytes.TrimSpace(file); len(file) > 0 && json.Valid(file) {
		return compact(file)
	}
	text := strings.TrimSpace(stdout)
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if line == "" || !json.Valid([]byte(line)) {
		return nil
	}
	return compact([]byte(line))
}

func compact(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil
	}
	return b.Bytes()
}
