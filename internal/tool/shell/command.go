package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// grace is how long a group may take to end after SIGTERM.
	grace = 2 * time.Second
	// drain bounds the wait for output that a process outside the group (one
	// that made a session of its own) may hold open for ever.
	drain = time.Second
)

// outcome is one command's line in the report.
type outcome struct {
	CmdPreview string `json:"cmd_preview"`
	ReturnCode int    `json:"returncode"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	DurationMS int64  `json:"duration_ms"`

	signal  syscall.Signal // that ended the command; 0 when it exited
	stopped bool           // by us, because ctx ended
}

// run starts one command and returns when its whole group is gone.
func (s *script) run(ctx context.Context, text string, stdout, stderr io.Writer) (outcome, error) {
	start := time.Now()
	keptOut, keptErr := tool.NewCapture(tool.OutputLimit), tool.NewCapture(tool.OutputLimit)
	cmd := exec.Command(s.shell, "-c", text)
	cmd.Dir, cmd.Env = s.cwd, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := newStream(io.MultiWriter(keptOut, stdout))
	if err != nil {
		return outcome{}, fmt.Errorf("open output pipe: %w", err)
	}
	errs, err := newStream(io.MultiWriter(keptErr, stderr))
	if err != nil {
		out.abandon()
		return outcome{}, fmt.Errorf("open output pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = out.writeEnd, errs.writeEnd
	if err := cmd.Start(); err != nil {
		out.abandon()
		errs.abandon()
		return outcome{}, startError(err)
	}
	out.copy()
	errs.copy()
	stopped := waitGroup(ctx, cmd)
	out.finish()
	errs.finish()

	o := outcome{
		CmdPreview: preview(text), Stdout: keptOut.String(), Stderr: keptErr.String(),
		DurationMS: time.Since(start).Milliseconds(), stopped: stopped,
	}
	o.ReturnCode, o.signal = exitOf(cmd.ProcessState)
	if stopped && o.ReturnCode == 0 {
		// It obeyed SIGTERM and exited 0: still not finished work.
		o.ReturnCode = 128 + int(syscall.SIGTERM)
	}
	return o, nil
}

// waitGroup waits for the command and sees that nothing of its group outlives
// it. It reports whether the command had to be stopped.
func waitGroup(ctx context.Context, cmd *exec.Cmd) (stopped bool) {
	pid := cmd.Process.Pid
	exited := make(chan struct{})
	go func() {
		reap(cmd)
		close(exited)
	}()
	select {
	case <-exited:
		return false
	case <-ctx.Done():
	}
	// The group id is ours while the goroutine above has not finished. Should
	// it finish in this very moment the signal finds no group.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
		<-exited
	}
	return true
}

func exitOf(state *os.ProcessState) (code int, signal syscall.Signal) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal()
	}
	return state.ExitCode(), 0
}

func startError(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return tool.ConfigErrorf("the command or its environment is longer than the system allows (128 KiB for one script); put it in a file and run that")
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) {
		return &tool.Error{Kind: tool.KindResourceLimit, Code: "NO_PROCESS", Message: "the worker cannot start another process: " + err.Error(), Retryable: true}
	}
	return tool.ConfigErrorf("the command cannot be started: %v", err)
}

// failure turns a non-zero exit into an error for people and rules.
func (o outcome) failure(ctx context.Context, limit time.Duration) *tool.Error {
	if o.stopped {
		return tool.Ended(ctx, "shell command", limit)
	}
	e := &tool.Error{Kind: tool.KindLogic, Code: fmt.Sprintf("EXIT_%d", o.ReturnCode)}
	if o.signal != 0 {
		e.Message = fmt.Sprintf("command was killed by signal %d (%s)", int(o.signal), o.signal)
		if o.signal == syscall.SIGKILL {
			e.Message += "; the machine may be out of memory"
		}
	} else {
		e.Message = fmt.Sprintf("command exited with code %d", o.ReturnCode)
	}
	if line := lastLine(o.Stderr); line != "" {
		e.Message += ": " + line
	}
	return e
}

func lastLine(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	return clip(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), 300)
}

// preview is the first line of a command, shortened.
func preview(cmd string) string {
	first, _, more := strings.Cut(strings.TrimSpace(cmd), "\n")
	if more {
		return clip(first, 118) + " …"
	}
	return clip(first, 120)
}

func clip(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit]) + "…"
}

// stream copies one output of a command as it is written.
type stream struct {
	readEnd, writeEnd *os.File
	to                io.Writer
	done              sync.WaitGroup
}

func newStream(to io.Writer) (*stream, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stream{readEnd: r, writeEnd: w, to: to}, nil
}

// copy starts reading; the command holds its own copy of the write end.
func (s *stream) copy() {
	s.writeEnd.Close()
	s.done.Go(func() { _, _ = io.Copy(s.to, s.readEnd) })
}

// finish reads what is left once the group is gone.
func (s *stream) finish() {
	_ = s.readEnd.SetReadDeadline(time.Now().Add(drain))
	s.done.Wait()
	s.readEnd.Close()
}

func (s *stream) abandon() {
	s.readEnd.Close()
	s.writeEnd.Close()
}
