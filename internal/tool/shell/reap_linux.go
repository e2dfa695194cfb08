package shell

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/noetl/noetl-go/internal/tool/process"
)

// attributes give the command a group of its own and an end should the worker
// be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// confine keeps what the calling thread starts from gaining rights.
func confine(sandbox string) error {
	if sandbox == process.Trusted {
		return nil
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// reap waits for the command, kills what is left of its group, then reaps it.
// In this order the group's id cannot have been given to anybody else.
func reap(cmd *exec.Cmd) {
	pid := cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = cmd.Wait()
}
