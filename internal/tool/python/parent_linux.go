package python

import "syscall"

// parentAttributes gives the process a session of its own, so that an
// interrupt typed at the worker's terminal does not reach it, and a signal
// should the worker die. The signal is one it can handle: it has children to
// kill.
func parentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
}
