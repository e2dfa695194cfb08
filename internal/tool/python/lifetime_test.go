package python_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/python"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// parentPID asks for the process that forks the children.
func parentPID(t *testing.T, tl *python.Tool) int {
	t.Helper()
	res, err := tl.Run(t.Context(), callOf("result = os.getppid()", nil))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(res.Data))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Skipf("this system does not show open files: %v", err)
	}
	return len(entries)
}

// zombies lists children of pid that nobody reaped.
func zombies(t *testing.T, pid int) (out []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		if fields := strings.Fields(string(text)); len(fields) > 3 && fields[2] == "Z" && fields[3] == strconv.Itoa(pid) {
			out = append(out, string(text))
		}
	}
	return out
}

// eventually asks again and again, for things that need a moment to settle.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Errorf("never happened: %s", what)
			return
		}
	}
}

// It counts this process's files, so it must not run beside other tests.
func TestManyCallsLeaveNothingBehind(t *testing.T) {
	calls := int64(300)
	if testing.Short() {
		calls = 100
	}
	tl := newTool(t, python.Options{Max: 8})
	warm := parentPID(t, tl)
	settled := func(pid int, last *int) func() bool {
		return func() bool {
			n := openFiles(t, pid)
			same := n == *last
			*last = n
			return same && len(zombies(t, pid)) == 0
		}
	}
	ours, theirs := -1, -1
	eventually(t, "a quiet start", settled(os.Getpid(), &ours))
	eventually(t, "a quiet warm process", settled(warm, &theirs))

	var group sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		group.Go(func() {
			for i := next.Add(1); i <= calls; i = next.Add(1) {
				res, err := tl.Run(t.Context(), callOf("result = i * 2", map[string]any{"i": i}))
				if err != nil || string(res.Data) != strconv.FormatInt(i*2, 10) {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	if again := parentPID(t, tl); again != warm {
		t.Errorf("the warm process changed from %d to %d", warm, again)
	}
	// Max + Idle children may be ready, three files each, against Idle before.
	eventually(t, "our files are closed", func() bool { return openFiles(t, os.Getpid()) <= ours+3*8 })
	eventually(t, "the warm process's files are closed", func() bool { return openFiles(t, warm) <= theirs })
	eventually(t, "no zombies", func() bool { return len(zombies(t, warm)) == 0 })
}

func TestCallsAboveTheBoundWait(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{Max: 1})
	log := tooltest.NewSignal()
	holder, release := context.WithCancel(t.Context())
	defer release()
	call := callOf("print('up')\nimport time\ntime.sleep(600)", nil)
	call.Log = log
	ended := make(chan error, 1)
	go func() {
		_, err := tl.Run(holder, call)
		ended <- err
	}()
	select {
	case <-log.Written():
	case err := <-ended:
		t.Fatalf("the call that should hold the slot ended: %v", err)
	}
	waiting := callOf("result = 1", nil)
	waiting.Config["timeout"] = 0.05
	_, e := fails(t, tl, waiting)
	if e.Kind != "timeout" || !strings.Contains(e.Message, "waiting for a python process") {
		t.Errorf("got %+v", e)
	}
	release()
	<-ended
	if _, err := tl.Run(t.Context(), callOf("result = 1", nil)); err != nil {
		t.Errorf("after the slot is free: %v", err)
	}
}

func TestTheWarmProcessMayDieBetweenCalls(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	for range 5 {
		pid := parentPID(t, tl)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// A kill takes effect a little later; until then it is a death in the
		// middle of a call.
		eventually(t, "the process is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
		if again := parentPID(t, tl); again == pid {
			t.Errorf("call served by the dead process %d", pid)
		}
	}
}

func TestADeathInTheMiddleOfACallIsRetryable(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	call := callOf("import time\nos.kill(os.getppid(), 9)\ntime.sleep(600)", nil)
	_, e := fails(t, tl, call)
	if e.Kind != "internal" || e.Code != "PROCESS_LOST" || !e.Retryable {
		t.Errorf("got %+v", e)
	}
	if _, err := tl.Run(t.Context(), callOf("result = 1", nil)); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestACallAfterCloseIsRefused(t *testing.T) {
	t.Parallel()
	tl := newTool(t, python.Options{})
	parentPID(t, tl)
	if err := tl.Close(); err != nil {
		t.Fatal(err)
	}
	if _, e := fails(t, tl, callOf("result = 1", nil)); e.Code != "CLOSED" || !e.Retryable {
		t.Errorf("got %+v", e)
	}
}

const helperEnv = "NOETL_PYTHON_TEST_HELPER"

// TestHelperWorker is not a test: it is the worker that the next one kills.
func TestHelperWorker(t *testing.T) {
	path := os.Getenv(helperEnv)
	if path == "" {
		t.Skip("runs only as a helper process")
	}
	tl, err := python.New(python.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The code and a process of its own hold the pipe open while they live.
	code := "import subprocess, time\nf = open(path, 'w')\nsubprocess.Popen(['sleep', '600'], stdout=f)\nf.write('up\\n')\nf.flush()\ntime.sleep(600)"
	_, err = tl.Run(t.Context(), &tool.Call{Config: map[string]any{"code": code}, Args: map[string]any{"path": path}, Step: "s", Variables: json.RawMessage("{}"), Log: io.Discard})
	t.Fatal("unexpected end", err)
}

func TestNothingOutlivesAKilledWorker(t *testing.T) {
	t.Parallel()
	newTool(t, python.Options{}) // skips without an interpreter
	path := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(os.Args[0], "-test.run=^TestHelperWorker$")
	worker.Env = append(os.Environ(), helperEnv+"="+path)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	// Opened for both so that the open does not wait; the write end is closed
	// again as soon as the code holds its own.
	both, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	_ = reader.SetReadDeadline(time.Now().Add(60 * time.Second))
	lines := bufio.NewReader(reader)
	if line, err := lines.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	both.Close()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("a process is still running: %v", err)
	}
}
