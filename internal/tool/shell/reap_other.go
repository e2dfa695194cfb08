//go:build !linux

package shell

import (
	"os/exec"
	"syscall"
)

// attributes give the command a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// confine does nothing here.
func confine(string) error { return nil }

// reap waits for the command, then kills what is left of its group at once:
// here there is no way to wait without reaping.
func reap(cmd *exec.Cmd) {
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
