package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
)

const (
	terminalRows    = 40
	terminalColumns = 110
	// prompt is what the shell shows where a person may type, with a mark of the
	// kind terminals understand and do not show.
	promptMark = "\x1b]133;A\x07"
	typeTime   = 60 * time.Second // a command may take
)

// terminal is a shell in a pseudo-terminal, with the screen a person would see.
type terminal struct {
	t    *testing.T
	file *os.File
	cmd  *exec.Cmd
	done chan struct{} // the reader has ended

	mu     sync.Mutex // guards what follows
	raw    bytes.Buffer
	screen vt10x.Terminal
}

// newTerminal starts a shell in dir.
func newTerminal(t *testing.T, dir string, env ...string) *terminal {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "--noediting", "-i")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append([]string{
		"TERM=xterm-256color", `PS1=\[` + promptMark + `\]$ `, "PS2=> ", "HISTFILE=/dev/null", "HOME=" + dir, "INPUTRC=/dev/null",
	}, env...)...)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: terminalRows, Cols: terminalColumns})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{
		t: t, file: file, cmd: cmd, done: make(chan struct{}),
		screen: vt10x.New(vt10x.WithSize(terminalColumns, terminalRows), vt10x.WithWriter(io.Discard)),
	}
	go term.read()
	t.Cleanup(term.close)
	term.wait("a prompt", func() bool { return bytes.Contains(term.raw.Bytes(), []byte(promptMark)) })
	term.paste("stty -echo")
	return term
}

// read takes in what programs write until the terminal is closed.
func (x *terminal) read() {
	defer close(x.done)
	buf := make([]byte, 4096)
	for {
		n, err := x.file.Read(buf)
		x.mu.Lock()
		x.raw.Write(buf[:n])
		_, _ = x.screen.Write(buf[:n]) // it takes everything
		x.mu.Unlock()
		if err != nil {
			return // a closed terminal ends with an error of input and output
		}
	}
}

// close ends the shell and what it started.
func (x *terminal) close() {
	_ = syscall.Kill(-x.cmd.Process.Pid, syscall.SIGTERM)
	_, _ = x.file.WriteString("\x03\x04")
	ended := make(chan struct{})
	go func() { defer close(ended); _ = x.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-x.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	if err := x.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		x.t.Error(err)
	}
	<-x.done
}

// wait looks, with the lock held, until something is so.
func (x *terminal) wait(what string, so func() bool) {
	x.t.Helper()
	deadline := time.After(typeTime)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		x.mu.Lock()
		ok := so()
		x.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-deadline:
			x.t.Fatalf("no %s within %s; the screen shows\n%s", what, typeTime, x.shown())
		case <-x.done:
			x.t.Fatalf("the shell ended before %s; the screen shows\n%s", what, x.shown())
		case <-tick.C:
		}
	}
}

// shown is the text on the screen.
func (x *terminal) shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// start types a line and does not wait for its end.
func (x *terminal) start(line string) (from int) {
	x.t.Helper()
	x.mu.Lock()
	from = x.raw.Len()
	x.mu.Unlock()
	x.keys(line + "\n")
	return from
}

// keys presses keys.
func (x *terminal) keys(keys string) {
	x.t.Helper()
	if _, err := x.file.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// paste types a line and returns what was printed until the next prompt.
func (x *terminal) paste(line string) string {
	x.t.Helper()
	return x.finish(x.start(line), line)
}

// finish waits for the prompt after a line that was started.
func (x *terminal) finish(from int, line string) (out string) {
	x.t.Helper()
	x.wait("end of "+line, func() bool {
		text, _, ended := bytes.Cut(x.raw.Bytes()[from:], []byte(promptMark))
		out = string(text)
		return ended
	})
	return plainText(out)
}

// see waits until the screen shows all of these lines, in any place.
func (x *terminal) see(lines []string) {
	x.t.Helper()
	x.wait("sight of "+strings.Join(lines, " / "), func() bool {
		text := squeezed(x.screen.String())
		for _, l := range lines {
			if !pattern(l).MatchString(text) {
				return false
			}
		}
		return true
	})
}

var escapes = regexp.MustCompile(`\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])`)

// plainText is what a person would read of what a program wrote: no colours,
// and of a line that was overwritten the last state.
func plainText(out string) string {
	var lines []string
	for line := range strings.SplitSeq(escapes.ReplaceAllString(strings.ReplaceAll(out, "\r\n", "\n"), ""), "\n") {
		lines = append(lines, line[strings.LastIndexByte(line, '\r')+1:])
	}
	return strings.Join(lines, "\n")
}

// squeezed is text with every run of spaces as one.
func squeezed(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// pattern matches a line of the docs: … stands for anything, and numbers of many
// digits, times and durations for any such.
func pattern(line string) *regexp.Regexp {
	p := regexp.QuoteMeta(strings.Join(strings.Fields(line), " "))
	p = regexp.MustCompile(`\d{15,}`).ReplaceAllString(p, `\d{15,}`)
	p = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^ ]*`).ReplaceAllString(p, `\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*`)
	p = regexp.MustCompile(`\b\d+(\\\.\d+)?(ms|s|µs|m)\b`).ReplaceAllString(p, `\d+(\.\d+)?(ms|s|µs|m)(\d+s)?`)
	p = strings.ReplaceAll(p, "…", ".*")
	return regexp.MustCompile(`(?m)` + p)
}
