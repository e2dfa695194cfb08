// Command noetl is the whole of NoETL: server, worker, local runner and client.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/noetl/noetl-go/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	env := &cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		env.Terminal = true
		env.Width, _, _ = term.GetSize(fd)
	}
	code := cli.Main(ctx, os.Args[1:], env)
	stop()
	os.Exit(code)
}
