//go:build !linux

package python

import "syscall"

// parentAttributes gives the process a session of its own. That the worker
// died it learns from the control socket.
func parentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
