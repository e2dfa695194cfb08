package shell

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

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
