//go:build !linux

package shell

import (
	"os/exec"
	"syscall"
)

// reap waits for the command, then kills what is left of its group at once:
// here there is no way to wait without reaping.
func reap(cmd *exec.Cmd) {
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
