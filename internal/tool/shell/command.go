package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/process"
)

const (
	// commandLimit is how much output of one command of several is kept.
	commandLimit = 64 << 10
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
	keptOut, keptErr := tool.NewCapture(commandLimit), tool.NewCapture(commandLimit)
	argv := s.argv(text)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = s.place.Cwd, s.environ()
	cmd.SysProcAttr = attributes()
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
	started, exited := s.launch(cmd)
	if err := <-started; err != nil {
		out.abandon()
		errs.abandon()
		return outcome{}, startError(err)
	}
	out.copy()
	errs.copy()
	stopped := s.waitGroup(ctx, cmd.Process.Pid, exited)
	out.finish()
	errs.finish()
	s.collect()

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

// argv is the program that runs a command. Limits are set by a shell that then
// becomes the one asked for, so that nothing runs without them.
func (s *script) argv(text string) []string {
	argv := append([]string{s.shell, "-c", s.exporting(text), filepath.Base(s.shell)}, s.args...)
	limits := s.place.Limits
	if !limits.Any() {
		return argv
	}
	var b strings.Builder
	b.WriteString("ulimit -c 0 && ")
	if limits.Memory > 0 {
		fmt.Fprintf(&b, "ulimit -v %d && ", max(limits.Memory>>10, 1))
	}
	if limits.CPU > 0 {
		// A second above lets the process see SIGXCPU, which has a name.
		fmt.Fprintf(&b, "ulimit -S -t %d && ulimit -H -t %d && ", limits.CPUSeconds(), limits.CPUSeconds()+1)
	}
	if limits.Disk > 0 {
		fmt.Fprintf(&b, "ulimit -f %d && ", max(limits.Disk>>9, 1))
	}
	b.WriteString(`exec "$@"`)
	return append([]string{"/bin/sh", "-c", b.String(), "sh"}, argv...)
}

// environ is clean but for what the step, its files and credentials give.
func (s *script) environ() []string {
	env := make(map[string]string, len(s.place.Env)+len(s.place.Files)+len(s.shown))
	for name, path := range s.place.Files {
		env["NOETL_FILE_"+process.Variable(name)] = path
	}
	for name, v := range s.shown {
		env[name] = v
	}
	for name, v := range s.place.Env {
		if _, later := s.shown[name]; !later {
			env[name] = v
		}
	}
	if len(s.exports) > 0 {
		env[exportsVariable] = s.exportsPath()
	}
	return tool.CleanEnviron(env)
}

// launch starts the command and reaps it. The goroutine keeps its thread: the
// kernel ends the command with the thread that started it, should the worker
// die, and what the sandbox takes away is taken from the thread alone.
func (s *script) launch(cmd *exec.Cmd) (<-chan error, <-chan struct{}) {
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends here
		defer close(exited)
		err := confine(s.sandbox)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			reap(cmd)
		}
	}()
	return started, exited
}

// waitGroup waits for the command and sees that nothing of its group outlives
// it. It reports whether the command had to be stopped.
func (s *script) waitGroup(ctx context.Context, pid int, exited <-chan struct{}) (stopped bool) {
	select {
	case <-exited:
		return false
	case <-ctx.Done():
	}
	// The group id is ours while the command is not reaped. Should
	// that happen in this very moment the signal finds no group.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(s.grace)
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
	switch o.ReturnCode { // of the shell, or of a program it ran
	case 128 + int(syscall.SIGXCPU):
		e.Kind, e.Code = tool.KindResourceLimit, "CPU_LIMIT"
	case 128 + int(syscall.SIGXFSZ):
		e.Kind, e.Code = tool.KindResourceLimit, "DISK_LIMIT"
	}
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
